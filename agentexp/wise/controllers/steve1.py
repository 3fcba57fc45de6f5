"""STEVE-1 (Lifshitz et al. 2023) through the package minestudio. The weights are the user's: a hub name or a folder."""

from __future__ import annotations

from typing import Any

from agentexp.errors import UserError
from agentexp.wise.controllers.loading import module, numbers, pretrained
from agentexp.wise.controllers.policies import Image, small


class Steve1:
    """A `Skill`. The model is loaded when it is first used.

    Args:
        weights: name on the Hugging Face hub, or a folder that was downloaded from it.
        cond_scale: how much the goal counts against acting without one (classifier-free guidance); MrSteve: 6.
        greedy: take the likeliest action instead of drawing one.
        device: of torch.
    """

    def __init__(
        self,
        *,
        weights: str = "CraftJarvis/MineStudio_STEVE-1.official",
        cond_scale: float = 6.0,
        greedy: bool = False,
        device: str = "cuda",
    ) -> None:
        if cond_scale < 0:
            raise UserError(f"skill.cond_scale is {cond_scale}; choose 0 (no guidance) or more.")
        self.weights, self.cond_scale, self.greedy, self.device = weights, cond_scale, greedy, device
        self._model: Any = None
        self._condition: Any = None
        self._state: Any = None

    def begin(self, goal: str | Image) -> None:
        """See `Skill.begin`. Raises `MissingDependency` or `UserError` when the model cannot be loaded."""
        if self._model is None:
            self._model = pretrained("minestudio.models", "SteveOnePolicy", self.weights, "skill", self.device)
        asked: dict[str, Any] = {"cond_scale": self.cond_scale}
        asked["text" if isinstance(goal, str) else "video"] = goal
        with module("torch").inference_mode():
            self._condition = self._model.prepare_condition(asked)
            state = self._model.initial_state(self._condition, 1)
        self._state = [part.to(self.device) for part in state]

    def act(self, image: Image) -> tuple[int, int]:
        """See `Skill.act`."""
        if self._condition is None:
            raise UserError("STEVE-1 has no goal: begin(goal) comes before act(image).")
        torch = module("torch")
        with torch.inference_mode():
            picture = torch.as_tensor(small(image), device=self.device)[None, None]
            latents, self._state = self._model({"image": picture, "condition": self._condition}, self._state)
            return numbers(self._model.pi_head.sample(latents["pi_logits"], self.greedy))
