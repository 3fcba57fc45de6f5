"""MineCLIP, the paper's encoder, through the package minestudio. The weights (attn.pth of MineDojo) are the user's.

Untested against the real weights. Used of the package (1.1.6) are its class `MineCLIP` and, as MrSteve does, the adapters
of its reward head, so that the cosine of a picture and a text is their MineCLIP score over 100. Its tokenizer comes from the
Hugging Face hub (openai/clip-vit-base-patch16), from the local cache once it is there.
"""

from __future__ import annotations

from collections import deque
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from agentexp.errors import MissingDependency, UserError
from agentexp.wise.memory.text import SKILLS

_CONFIG = {
    "arch": "vit_base_p16_fz.v2.t2",
    "hidden_dim": 512,
    "image_feature_dim": 512,
    "mlp_adapter_spec": "v0-2.t0",
    "pool_type": "attn.d2.nh8.glusw",
    "resolution": [160, 256],
}
_FRAMES = 16

# MrSteve's published thresholds by target, as cosines.
_BY_TARGET = {
    "log": 0.231,
    "beef": 0.2355,
    "leather": 0.2355,
    "milk_bucket": 0.2355,
    "wool": 0.2342,
    "water_bucket": 0.2214,
    "wheat_seeds": 0.2274,
    "dirt": 0.2274,
    "sand": 0.2274,
}
THRESHOLDS = {SKILLS[target]: value for target, value in _BY_TARGET.items()}


class MineClipEncoder:
    """Pictures and texts in MineCLIP's space. The model is loaded when it is first used.

    Args:
        checkpoint: path of attn.pth.
        device: of torch.
        window: what fills the 16 frames of the model's window. "repeat": the picture itself, 16 times, as in MrSteve's code;
            "last": the last 16 pictures since `begin`, the paper's eq. 2, for memories that take every frame.

    Raises:
        UserError: there is no such file, or no such window.
    """

    dimension = 512

    def __init__(self, *, checkpoint: str, device: str = "cuda", window: Literal["repeat", "last"] = "repeat") -> None:
        self.checkpoint, self.device, self.window = Path(checkpoint).expanduser(), device, window
        if window not in ("repeat", "last"):
            raise UserError(f"encoder.window={window} is not possible; choose one of: repeat, last.")
        if not self.checkpoint.is_file():
            raise UserError(f"There is no file encoder.checkpoint={checkpoint}; MineDojo's attn.pth is meant.")
        self._model: Any = None
        self._texts: dict[str, NDArray[np.float32]] = {}
        self._last: deque[Any] = deque(maxlen=_FRAMES if window == "last" else 1)

    def begin(self) -> None:
        """Forget the pictures of another episode."""
        self._last.clear()

    def picture(self, image: NDArray[np.uint8]) -> NDArray[np.float32]:
        """See `Encoder.picture`. A window that is not full yet begins with its first picture repeated."""
        model, torch = self._load(), import_module("torch")
        with torch.no_grad():
            frame = torch.as_tensor(_resized(image), device=self.device).permute(2, 0, 1).float()
            self._last.append(model.forward_image_features(frame[None]).view(1, 1, -1))
            frames = [self._last[0]] * (_FRAMES - len(self._last)) + list(self._last)
            video = model.forward_video_features(torch.cat(frames, 1))
            head = model.reward_head
            return _unit(_adapted(video, head.video_adapter, head.video_residual_weight))

    def text(self, text: str) -> NDArray[np.float32]:
        """See `Encoder.text`."""
        if text not in self._texts:
            model, torch = self._load(), import_module("torch")
            with torch.no_grad():
                head = model.reward_head
                try:
                    features = model.encode_text([text])
                except OSError as error:  # the hub's error for no network and nothing in the cache
                    raise UserError(
                        f"encoder=mineclip needs the tokenizer openai/clip-vit-base-patch16 of the Hugging Face hub ({error}): "
                        "a network at its first use, or HF_HOME pointing to a cache that has it."
                    ) from error
                self._texts[text] = _unit(_adapted(features, head.text_adapter, head.text_residual_weight))
        return self._texts[text]

    def threshold(self, text: str) -> float | None:
        """MrSteve's published threshold for its own texts; None for others."""
        return THRESHOLDS.get(text)

    def _load(self) -> Any:
        if self._model is None:
            try:
                package = import_module("minestudio.utils.mineclip_lib.mineclip")
            except ImportError as error:
                raise MissingDependency("encoder=mineclip needs `pip install minestudio` (and torch).") from error
            model = package.MineCLIP(**_CONFIG)
            try:
                model.load_ckpt(str(self.checkpoint), strict=True)
            except (KeyError, RuntimeError, ValueError, EOFError) as error:
                raise UserError(
                    f"encoder.checkpoint={self.checkpoint} does not hold MineCLIP's weights ({type(error).__name__}: "
                    f"{str(error)[:200]}); MineDojo's attn.pth is meant, not avg.pth."
                ) from error
            self._model = model.to(self.device).eval()
        return self._model


def _adapted(features: Any, adapter: Any, residual: Any) -> Any:
    if residual is None:
        return adapter(features)
    share = residual.sigmoid()
    return share * features + (1 - share) * adapter(features)


def _unit(vector: Any) -> NDArray[np.float32]:
    array = np.asarray(vector.float().cpu().numpy(), np.float32).reshape(-1)
    unit: NDArray[np.float32] = array / max(float(np.linalg.norm(array)), 1e-12)
    return unit


def _resized(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    height, width = 160, 256
    if image.shape[:2] == (height, width):
        return image
    from PIL import Image

    return np.asarray(Image.fromarray(image).resize((width, height)), np.uint8)
