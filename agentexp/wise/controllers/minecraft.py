"""The paper's low-level controller: VPT-Nav walks, STEVE-1 executes, as MrSteve puts them together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from agentexp.errors import EngineError, UserError
from agentexp.wise.controllers.actions import decode
from agentexp.wise.controllers.policies import Floats, Image, Skill, Walk
from agentexp.wise.core import Control, Frame, Pose, Subtask
from agentexp.wise.navigate import Navigator

# MrSteve's texts for STEVE-1 by target (its file of skills); a subtask without one is put as it is.
PROMPTS: Mapping[str, str] = {
    "log": "cut a tree",
    "leaves": "break a leaves",
    "water_bucket": "get water bucket",
    "beef": "kill cow",
    "leather": "kill cow",
    "milk_bucket": "get milk bucket",
    "wool": "kill sheep",
    "mutton": "kill sheep",
    "sand": "get sand",
    "dirt": "get dirt",
    "wheat_seeds": "collect seeds",
    "cobblestone": "dig down",
}
_NEAR = 20.0  # goals of VPT-Nav are shortened to this, blocks
_FORGET = 0.001 ** (1 / 20)  # of the mean movement per tick
_STANDS = 1e-3
_SAME_GOAL = 3.0


def towards(pose: Pose, x: float, z: float) -> tuple[Floats, Floats]:
    """What VPT-Nav is told: (goal, compass), see `Walk.act`."""
    goal = np.array([x - pose.x, z - pose.z], np.float32)
    length = float(np.hypot(*goal))
    if length > _NEAR:
        goal *= np.float32(_NEAR / length)
    yaw, pitch = np.deg2rad(pose.yaw), np.deg2rad(pose.pitch)
    return goal, np.array([np.cos(yaw), np.sin(yaw), np.cos(pitch), np.sin(pitch)], np.float32)


class MinecraftController:
    """A `Controller` of learned policies.

    Args:
        skill: who executes subtasks.
        walk: who walks; null: the planner that all scripted worlds use (A* over bumps, jumps from the world's auto_jump).
        navigator: that planner.
        prompts: texts by target, over MrSteve's.
        clips: visual prompts by target: paths of .npy files with a clip of shape (16, height, width, 3), uint8. They go before
            texts.
        hold: slot of the hotbar to take in hand, by target; "*" for all others. Empty: the hand is left alone.
        hotbar: let STEVE-1 change what is in hand.
    """

    def __init__(
        self,
        *,
        skill: Skill,
        walk: Walk | None = None,
        navigator: Navigator | None = None,
        prompts: dict[str, str] | None = None,
        clips: dict[str, str] | None = None,
        hold: dict[str, int] | None = None,
        hotbar: bool = False,
    ) -> None:
        self.skill, self.walk, self.navigator = skill, walk, navigator or Navigator(turn_per_step=10.0)
        self.prompts = {**PROMPTS, **(prompts or {})}
        self.clips = {target: load_clip(target, path) for target, path in (clips or {}).items()}
        self.hold, self.hotbar = dict(hold or {}), hotbar
        wrong = [slot for slot in self.hold.values() if not 1 <= slot <= 9]
        if wrong:
            raise UserError(f"controller.hold names slot {wrong[0]}; a hotbar has the slots 1 to 9.")
        self.reset(1, (0, 0))

    def reset(self, size: int, origin: tuple[int, int]) -> None:
        """Begin an episode in a region."""
        self.navigator.reset(size, origin)
        self._task: str | None = None
        self._goal: tuple[float, float] | None = None
        self._last: Pose | None = None
        self._moved: float | None = None
        self._held: int | None = None

    def navigate(self, frame: Frame, x: float, z: float) -> Control:
        """One tick towards a place."""
        self._task = None
        if self.walk is None:
            return self.navigator.towards(frame, x, z)
        if self._goal is None or np.hypot(self._goal[0] - x, self._goal[1] - z) > _SAME_GOAL:
            self.walk.begin()
            self._last = self._moved = None
        self._goal = (x, z)
        stands = self._moved is not None and self._moved < _STANDS
        self._track(frame.pose)
        goal, compass = towards(frame.pose, x, z)
        control = decode(*self.walk.act(_image(frame), goal, compass), hotbar=self.hotbar)
        return replace(control, jump=True) if stands else control

    def execute(self, frame: Frame, subtask: Subtask) -> Control:
        """One tick of doing the subtask."""
        self._goal = None
        if self._task != subtask.target:
            self._task = subtask.target
            clip = self.clips.get(subtask.target)
            self.skill.begin(self.prompts.get(subtask.target, subtask.text) if clip is None else clip)
        control = decode(*self.skill.act(_image(frame)), hotbar=self.hotbar)
        slot = self.hold.get(subtask.target, self.hold.get("*"))
        if slot is None or slot == self._held:
            return control
        self._held = slot
        others = tuple(key for key in control.keys if not key.startswith("hotbar"))
        return replace(control, keys=(*others, f"hotbar.{slot}"))

    def _track(self, pose: Pose) -> None:
        if self._last is not None:
            step = pose.distance(self._last.x, self._last.z)
            self._moved = step if self._moved is None else _FORGET * self._moved + (1 - _FORGET) * step
        self._last = pose


def load_clip(target: str, path: str) -> Image:
    """A visual prompt.

    Raises:
        UserError: there is no such file, or it holds something else.
    """
    try:
        clip = np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise UserError(f"controller.clips.{target}={path} cannot be read ({error}); an .npy file is meant.") from error
    if clip.dtype != np.uint8 or clip.ndim != 4 or clip.shape[0] != 16 or clip.shape[3] != 3:
        raise UserError(
            f"controller.clips.{target} holds {clip.dtype} of shape {clip.shape}; 16 pictures of uint8, shape "
            "(16, height, width, 3), are needed."
        )
    return np.asarray(clip, np.uint8)


def _image(frame: Frame) -> Image:
    if frame.image is None:
        raise EngineError("A learned controller needs pictures; this world's frames have none (choose minerl or minestudio).")
    return frame.image
