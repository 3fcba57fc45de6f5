"""The few operations of torch that the learned controllers use, on numpy, and the two policies of minestudio in their forms."""

import sys
import types
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest


class Tensor(np.ndarray):
    """An array with torch's names for what is used."""

    def to(self, device: str) -> "Tensor":
        return self

    def float(self) -> "Tensor":
        return self.astype(np.float32).view(Tensor)

    def cpu(self) -> "Tensor":
        return self

    def numpy(self) -> np.ndarray:
        return np.asarray(self)


def tensor(array: Any, device: str = "cpu") -> Tensor:
    return np.asarray(array).view(Tensor)


class Linear:
    def __init__(self, inputs: int, outputs: int) -> None:
        self.shape = (outputs, inputs)

    def load_state_dict(self, weights: dict[str, np.ndarray]) -> None:
        assert weights["weight"].shape == self.shape
        self.weights = weights

    def to(self, device: str) -> "Linear":
        return self

    def eval(self) -> "Linear":
        return self

    def __call__(self, x: np.ndarray) -> Tensor:
        return tensor(self.weights["weight"] @ x + self.weights["bias"])


def torch(files: dict[str, dict[str, np.ndarray]]) -> types.ModuleType:
    module = types.ModuleType("torch")

    def load(path: str, map_location: str, weights_only: bool) -> dict[str, np.ndarray]:
        assert weights_only
        if path not in files:
            raise RuntimeError("invalid header")
        return files[path]

    vars(module).update(
        inference_mode=nullcontext,
        as_tensor=tensor,
        zeros=lambda shape, dtype, device: tensor(np.zeros(shape, bool)),
        bool=bool,
        sign=np.sign,
        log1p=np.log1p,
        abs=np.abs,
        cat=lambda parts: tensor(np.concatenate(parts)),
        relu=lambda x: np.maximum(x, 0),
        load=load,
        nn=types.SimpleNamespace(Linear=Linear),
    )
    return module


class Head:
    """Of a policy: the action is the latent's first two numbers, rounded."""

    def __call__(self, latent: np.ndarray) -> dict[str, np.ndarray]:
        return {"buttons": latent[..., :1], "camera": latent[..., 1:2]}

    def sample(self, logits: dict[str, np.ndarray], deterministic: bool) -> dict[str, Tensor]:
        return {key: tensor(np.round(value).astype(int)) for key, value in logits.items()}


class Policy:
    """What both have: moving to a device, weights by name, a head."""

    pi_head = Head()

    @classmethod
    def from_pretrained(cls, name: str) -> "Policy":
        if name == "nobody/nothing":
            raise OSError("no such repository")
        return cls()

    def to(self, device: str) -> "Policy":
        if device == "tpu":
            raise RuntimeError("no such device")
        return self

    def eval(self) -> "Policy":
        return self

    def state_dict(self) -> dict[str, np.ndarray]:
        return {"net.a": np.zeros(1), "pi_head.a": np.zeros(1), "value_head.a": np.zeros(1)}

    def load_state_dict(self, weights: dict[str, np.ndarray], strict: bool) -> None:
        assert not strict
        self.loaded = weights


class SteveOne(Policy):
    """prepare_condition, initial_state(condition, batch), model(input, state) -> ({"pi_logits"}, state) of minestudio 1.1.6."""

    def prepare_condition(self, asked: dict[str, Any]) -> dict[str, Any]:
        assert ("text" in asked) != ("video" in asked) and "cond_scale" in asked
        return asked

    def initial_state(self, condition: dict[str, Any], batch: int) -> list[Tensor]:
        assert batch == 1
        return [tensor(np.zeros(1))]

    def __call__(self, given: dict[str, Any], state: list[Tensor]) -> tuple[dict[str, Any], list[Tensor]]:
        image, condition = given["image"], given["condition"]
        assert image.shape == (1, 1, 128, 128, 3) and image.dtype == np.uint8
        length = len(condition.get("text", ()))
        logits = {"buttons": tensor([[[length]]]), "camera": tensor([[[float(state[0][0])]]])}
        return {"pi_logits": logits}, [tensor(state[0] + 1)]


class Vpt(Policy):
    """`net(input, state, context)` -> ((latent, latent), state), latents of shape (1, 1, n)."""

    def initial_state(self, batch: int) -> list[Tensor]:
        return [tensor(np.zeros(1))]

    def net(self, given: dict[str, Any], state: list[Tensor], context: dict[str, Any]) -> tuple[Any, list[Tensor]]:
        assert given["image"].dtype == np.float32 and context["first"].shape == (1, 1)
        return (tensor(np.full((1, 1, 4), float(state[0][0]))), None), [tensor(state[0] + 1)]


def install(monkeypatch: pytest.MonkeyPatch, files: dict[str, dict[str, np.ndarray]] | None = None) -> None:
    """Put the fakes where the real packages would be."""
    models = types.ModuleType("minestudio.models")
    vars(models).update(SteveOnePolicy=SteveOne, VPTPolicy=Vpt)
    body = types.ModuleType("minestudio.models.vpt.body")
    vars(body).update(load_vpt_policy=lambda path: Vpt())
    names = {"torch": torch(files or {}), "minestudio": types.ModuleType("minestudio"), "minestudio.models": models}
    names |= {"minestudio.models.vpt": types.ModuleType("minestudio.models.vpt"), "minestudio.models.vpt.body": body}
    for name, module in names.items():
        monkeypatch.setitem(sys.modules, name, module)
