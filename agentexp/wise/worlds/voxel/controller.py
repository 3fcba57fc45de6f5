"""The voxel world's controller: a scripted stand-in for VPT-Nav (navigate) and STEVE-1 (execute), the same for every method.

It perceives what a player sees: the ground in the frame, and in `Frame.info` the things in view with their places ("seen",
every `look_every` ticks) and what the crosshair is on ("target"). It asks the world for nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from agentexp.errors import UserError
from agentexp.wise.controller import SKILLS
from agentexp.wise.core import Control, Frame, Subtask
from agentexp.wise.knowledge.names import generic
from agentexp.wise.navigate import bearing
from agentexp.wise.walker import ARRIVED, Walker
from agentexp.wise.worlds.voxel.surface import EYE

ITEM = "item:"
# What the blocks are called that a skill looks for, where that is another name.
BLOCKS = {"grass": ("grass_block",), "tallgrass": ("grass",), "stone": ("stone", "cobblestone")}
BLOCK_REACH, MOB_REACH = 3.9, 2.6
AIMED = 5.0  # degrees
GATHER = 5.0  # blocks
VAIN, ASIDE = 200, 50  # ticks of work on something in vain; of going aside then
STALE = 40  # ticks after which a place seen is no longer believed


class VoxelController:
    """A `Controller`. Needs `world=voxel` with `world.look_every` above 0.

    Args:
        turn_per_step: most degrees of turn in a tick, as in the world; null for free turning.
        gaze: pitch while walking, degrees.
        speed: blocks per tick at full speed.

    Attributes:
        lost: ticks in a row, while it executes, without seeing what it is to work on.
    """

    def __init__(self, *, turn_per_step: float | None = 10.0, gaze: float = 8.0, speed: float = 0.215) -> None:
        self.turn_per_step = turn_per_step or 45.0
        self.walker = Walker(turn_per_step, gaze, speed)
        self.gaze = gaze
        self.reset(1, (0, 0))

    def reset(self, size: int, origin: tuple[int, int]) -> None:
        """Begin an episode."""
        self.walker.reset(size, origin)
        self._things: list[Mapping[str, Any]] = []
        self._seen = -STALE
        self._target, self._tick = "", -1
        self._fallen: tuple[float, float, int] | None = None
        self._vain = self._times = 0
        self.lost = 0

    def navigate(self, frame: Frame, x: float, z: float) -> Control:
        """See `Controller.navigate`."""
        self._look(frame)
        return self.walker.step(frame, x, z)

    def execute(self, frame: Frame, subtask: Subtask) -> Control:
        """See `Controller.execute`: pick up what lies about, else go to the nearest source in view, aim at it, press the key.

        Raises:
            UserError: nobody taught it how to obtain that.
        """
        skill = SKILLS.get(subtask.target)
        if skill is None:
            raise UserError(f"The controller cannot obtain {subtask.target!r}; it can obtain {', '.join(SKILLS)}.")
        self._look(frame)
        if subtask.target != self._target or frame.tick > self._tick + 1:
            self.lost, self._fallen, self._vain = 0, None, 0  # another subtask, or taken up anew
        self._target, self._tick = subtask.target, frame.tick
        fresh = self._things if frame.tick - self._seen <= STALE else []
        drops = [one for one in fresh if self._wants(frame, one, subtask.target)]
        if drops:
            self._fallen = (float(drops[0]["x"]), float(drops[0]["z"]), frame.tick)
        if (place := self._to_gather(frame)) is not None:
            self.lost = 0
            return self.walker.step(frame, *place)
        sources = [one for one in fresh if _shows(one["name"], skill.looks_for)]
        if not sources:
            self.lost += 1
            return Control(turn=self.turn_per_step, look=self._pitch(frame, self.gaze))
        self.lost = 0
        self._vain += 1
        if self._vain > VAIN:
            return self._aside()
        return self._work(frame, sources[0], skill.looks_for, skill.key)

    def _aside(self) -> Control:
        """It cannot be had from here (a tree upon a cliff): some steps aside, each time to the other side."""
        passed = self._vain - VAIN
        if passed >= ASIDE:
            self._vain, self._times = 0, self._times + 1
        turn = self.turn_per_step * (1 if self._times % 2 else -1) if passed <= 90 / self.turn_per_step else 0.0
        return Control(forward=1.0, turn=turn)

    def _to_gather(self, frame: Frame) -> tuple[float, float] | None:
        """Where something lies; remembered for a while, since what lies at one's feet is below the picture."""
        if self._fallen is None:
            return None
        x, z, tick = self._fallen
        if frame.tick - tick > STALE or frame.pose.distance(x, z) < ARRIVED:
            self._fallen = None
            return None
        return x, z

    def _wants(self, frame: Frame, thing: Mapping[str, Any], target: str) -> bool:
        """It lies about and is what is wanted, or near enough that this may lie beneath it."""
        name = str(thing["name"])
        if not name.startswith(ITEM):
            return False
        item = name[len(ITEM) :]
        return target in (item, generic(item)) or frame.pose.distance(float(thing["x"]), float(thing["z"])) < GATHER

    def _work(self, frame: Frame, thing: Mapping[str, Any], name: str, key: str) -> Control:
        pose = frame.pose
        x, y, z = float(thing["x"]), float(thing["y"]), float(thing["z"])
        flat = pose.distance(x, z)
        up = y - pose.y - EYE
        target = frame.info.get("target") or {}
        on_it = _shows(str(target.get("name", "")), name)
        if np.hypot(flat, up) > (MOB_REACH if thing["mob"] else BLOCK_REACH) and (thing["mob"] or not on_it):
            return self.walker.step(frame, x, z)
        turn, look = bearing(pose, x, z), -float(np.degrees(np.arctan2(up, max(flat, 0.1)))) - pose.pitch
        # With the crosshair on it the body keeps still: digging goes on only while it stays on one block.
        if not on_it or (thing["mob"] and max(abs(turn), abs(look)) > AIMED):
            limit = self.turn_per_step
            control = Control(turn=float(np.clip(turn, -limit, limit)), look=float(np.clip(look, -limit, limit)))
            if not on_it and max(abs(turn), abs(look)) <= AIMED:
                # Aimed, and something is before it: leaves and plants are dug away, else it goes nearer.
                soft = str(target.get("name", "")).endswith(("leaves", "grass", "poppy", "dandelion"))
                control = replace(control, attack=soft, forward=0.0 if soft else 1.0)
        else:
            control = Control()
        return replace(control, attack=control.attack or (on_it and key == "attack"), use=on_it and key == "use")

    def _look(self, frame: Frame) -> None:
        if "seen" in frame.info:
            self._things, self._seen = list(frame.info["seen"]), frame.tick

    def _pitch(self, frame: Frame, wanted: float) -> float:
        return float(np.clip(wanted - frame.pose.pitch, -self.turn_per_step, self.turn_per_step))


def _shows(name: str, wanted: str) -> bool:
    return name in BLOCKS[wanted] if wanted in BLOCKS else generic(name) == wanted
