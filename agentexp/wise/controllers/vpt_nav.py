"""VPT-Nav (Park et al. 2025): a frozen VPT whose latent is moved by where the goal lies. The weights are the user's.

The goal (x and z in blocks, symlog) and the compass (cosine, sine of yaw and pitch) go through a small network to 512 numbers
and from there linearly to the size of VPT's latent, to which they are added before the action head.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentexp.errors import UserError
from agentexp.wise.controllers.loading import module, numbers, on, pretrained
from agentexp.wise.controllers.policies import Floats, Image, small

_LAYER = re.compile(r"goal_embed\.(?:_mlp\.|.*?)(\d+)\.weight$")


class VptNav:
    """A `Walk`. The model is loaded when it is first used.

    Args:
        weights: file of MrSteve's weights (vpt_nav.weights): goal network, action head and, where they are in it, VPT itself.
        model: VPT's own file 2x.model, which describes the network. Only a file that you trust: it is a pickle.
        base: VPT's weights where `weights` lacks them: name on the Hugging Face hub or a folder; null: they are in `weights`.
        greedy: take the likeliest action instead of drawing one.
        device: of torch.

    Raises:
        UserError: there is no such file.
    """

    def __init__(
        self,
        *,
        weights: str,
        model: str | None = None,
        base: str | None = None,
        greedy: bool = False,
        device: str = "cuda",
    ) -> None:
        self.weights = Path(weights).expanduser()
        self.model = Path(model).expanduser() if model else None
        self.base, self.greedy, self.device = base, greedy, device
        for name, path in (("weights", self.weights), ("model", self.model)):
            if path is not None and not path.is_file():
                raise UserError(f"There is no file walk.{name}={path}; docs/wise-minecraft.md says where it is from.")
        if (model is None) == (base is None):
            raise UserError("VPT-Nav needs one of walk.model (VPT's 2x.model) and walk.base (VPT on the hub, or a folder).")
        self._policy: Any = None
        self._layers: list[Any] = []
        self._state: Any = None

    def begin(self) -> None:
        """See `Walk.begin`. Raises `MissingDependency` or `UserError` when the model cannot be loaded."""
        if self._policy is None:
            self._load()
        self._state = self._policy.initial_state(1)

    def act(self, image: Image, goal: Floats, compass: Floats) -> tuple[int, int]:
        """See `Walk.act`."""
        if self._state is None:
            raise UserError("VPT-Nav was not started: begin() comes before act(...).")
        torch = module("torch")
        with torch.inference_mode():
            picture = torch.as_tensor(small(image), device=self.device)[None, None].float()
            first = torch.zeros((1, 1), dtype=torch.bool, device=self.device)
            (latent, _), self._state = self._policy.net({"image": picture}, self._state, context={"first": first})
            where = torch.as_tensor(goal, device=self.device)
            where = torch.sign(where) * torch.log1p(torch.abs(where))
            moved = torch.cat([where, torch.as_tensor(compass, device=self.device)])
            for number, layer in enumerate(self._layers):
                # ReLU between the layers of the goal network, none after its last, nor after the projection.
                moved = layer(torch.relu(moved) if 0 < number < len(self._layers) - 1 else moved)
            logits = self._policy.pi_head(latent + moved)
            return numbers(self._policy.pi_head.sample(logits, self.greedy))

    def _load(self) -> None:
        torch = module("torch")
        if self.base is not None:
            policy = pretrained("minestudio.models", "VPTPolicy", self.base, "walk", self.device)
        else:
            loader = module("minestudio.models.vpt.body").load_vpt_policy
            policy = on(loader(str(self.model)), "walk", self.device)
        try:
            stored = torch.load(str(self.weights), map_location=self.device, weights_only=True)
        except (OSError, RuntimeError, ValueError) as error:
            raise UserError(f"walk.weights={self.weights} is not a file of weights ({error}).") from error
        known = policy.state_dict()
        fitting = {key: value for key, value in stored.items() if key in known}
        lacking = [key for key in known if key.startswith(("net.", "pi_head.")) and key not in fitting]
        if self.base is None and lacking:
            raise UserError(
                f"walk.weights={self.weights} lacks {len(lacking)} of VPT's own weights ({lacking[0]} ...); name VPT's weights "
                "in walk.base instead of walk.model."
            )
        policy.load_state_dict(fitting, strict=False)
        self._layers = [self._linear(torch, stored, name) for name in goal_layers(stored, str(self.weights))]
        self._policy = policy

    def _linear(self, torch: Any, stored: Mapping[str, Any], name: str) -> Any:
        weight, bias = stored[f"{name}.weight"], stored[f"{name}.bias"]
        layer = torch.nn.Linear(weight.shape[1], weight.shape[0])
        layer.load_state_dict({"weight": weight, "bias": bias})
        return layer.to(self.device).eval()


def goal_layers(stored: Mapping[str, Any], source: str) -> list[str]:
    """Names of the goal network's linear layers in order, the projection last.

    Args:
        stored: weights by name.
        source: where they are from, for messages.

    Raises:
        UserError: they are not there, or do not begin with 6 inputs.
    """
    found = {int(match[1]): key.removesuffix(".weight") for key in stored if (match := _LAYER.match(key))}
    layers = [found[number] for number in sorted(found)]
    if not layers or "goal_proj.weight" not in stored:
        raise UserError(f"walk.weights={source} has no goal network (goal_embed, goal_proj): is it MrSteve's vpt_nav.weights?")
    inputs = int(stored[f"{layers[0]}.weight"].shape[1])
    if inputs != 6:
        raise UserError(
            f"The goal network of walk.weights={source} takes {inputs} numbers; 6 were expected (goal and compass)."
        )
    return [*layers, "goal_proj"]
