"""The controller: walks to places and does what a subtask asks with what is in the picture. One for all methods.

It stands for VPT-Nav and STEVE-1. It does not know the world: obstacles are those of the frames, things are recognised in the
picture by `Eyes`, their distance follows from how low in the picture they end. When to give up is the agent's business.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import atan2, cos, degrees, radians, sin, tan
from typing import NamedTuple

import numpy as np

from agentexp.errors import UserError
from agentexp.wise.core import Control, Frame, Pose, Subtask
from agentexp.wise.eyes import Blob, Eyes
from agentexp.wise.navigate import bearing
from agentexp.wise.walker import Walker

EYES_UP = 1.62
FARTHEST = 32.0


class Skill(NamedTuple):
    """How something is obtained: what to look for, which key, from how near (blocks), and what the hand needs (else attack)."""

    looks_for: str
    key: str
    near: float
    needs: str = ""


# What STEVE-1 was trained to do, as a table. The planner and the memories do not see it.
SKILLS = {
    "water_bucket": Skill("water", "use", 3.5, "bucket"),
    "log": Skill("log", "attack", 3.5),
    "beef": Skill("cow", "attack", 2.5),
    "leather": Skill("cow", "attack", 2.5),
    "milk_bucket": Skill("cow", "use", 2.5, "bucket"),
    "wool": Skill("sheep", "use", 2.5, "shears"),
    "mutton": Skill("sheep", "attack", 2.5),
    "porkchop": Skill("pig", "attack", 2.5),
    "sand": Skill("sand", "attack", 2.0),
    "dirt": Skill("grass", "attack", 2.0),
    "cobblestone": Skill("stone", "attack", 3.0),
    "wheat_seeds": Skill("tallgrass", "attack", 2.0),
}
MOBS = frozenset({"cow", "sheep", "pig"})
REACH = 4.2
AT_TRUNK = 12.0  # pitch, degrees
PRESSES = {"log": 66, "sand": 20, "grass": 24, "stone": 16, "tallgrass": 4}  # ticks until what was dug must have come off
IN_VAIN = 30  # the same for anything else
STEPS = 14  # ticks of going nearer then, to pick it up
GATHERING = 90  # ticks for walking to where something fell
SPECK = 6  # pixels of ground or trunk below which it is a mistake, mostly
LARGE = 12  # pixels of what is believed while something is picked up
KEPT = 80  # ticks that a place is walked to without seeing it


@dataclass(slots=True)
class Spotted:
    """Where the thing is thought to be.

    Attributes:
        x, z: its place.
        tick: when it was seen last.
        far: distance then.
    """

    x: float
    z: float
    tick: int
    far: float


class ScriptedController:
    """A `Controller`.

    Args:
        eyes: what recognises things; None: those fitted for the simulated world.
        turn_per_step: most degrees of turn in a tick, as in the world; null for free turning.
        view_angle: horizontal opening of the pictures, degrees.
        gaze: pitch while walking, degrees.
        speed: blocks per tick at full speed.

    Attributes:
        lost: pictures in a row, while it executes, on which it did not recognise what it is after.
    """

    def __init__(
        self,
        *,
        eyes: Eyes | None = None,
        turn_per_step: float | None = 9.0,
        view_angle: float = 70.0,
        gaze: float = 8.0,
        speed: float = 0.215,
    ) -> None:
        self.eyes = eyes or Eyes()
        self.walker = Walker(turn_per_step, gaze, speed)
        self.view_angle, self.gaze = view_angle, gaze
        self.turn_per_step = turn_per_step or 45.0
        self.reset(1, (0, 0))

    def reset(self, size: int, origin: tuple[int, int]) -> None:
        """Begin an episode."""
        self.walker.reset(size, origin)
        self._size, self._origin = size, origin
        self._forget()
        self._target = ""
        self._tick = -1

    def _forget(self) -> None:
        self._spotted: Spotted | None = None
        self.lost = 0
        self._pressed = 0
        self._nearer = 0
        self._gather_until = -1
        self._fallen: list[tuple[float, float]] = []  # where it was struck last, and around: what it drops lies there
        self._search = 0
        self._stroll: tuple[float, float] | None = None

    def navigate(self, frame: Frame, x: float, z: float) -> Control:
        """See `Controller.navigate`. Stands within a quarter of a block, or where nothing leads nearer."""
        return self.walker.step(frame, x, z)

    def execute(self, frame: Frame, subtask: Subtask) -> Control:
        """See `Controller.execute`.

        Raises:
            UserError: nobody taught it how to obtain that.
        """
        skill = SKILLS.get(subtask.target)
        if skill is None:
            raise UserError(f"The controller cannot obtain {subtask.target!r}; it can obtain {', '.join(SKILLS)}.")
        if skill.needs and not frame.inventory.get(skill.needs):
            skill = skill._replace(key="attack")
        if subtask.target != self._target or frame.tick > self._tick + 1:
            self._forget()  # another subtask, or taken up anew
        self._target, self._tick = subtask.target, frame.tick
        if frame.image is None:
            return self._unseen(frame, skill)
        least = LARGE if frame.tick <= self._gather_until else 1 if skill.looks_for in MOBS else SPECK
        blobs = self.eyes.find(frame.image, skill.looks_for, least)
        self.lost = 0 if blobs else self.lost + 1
        if not blobs:
            return self._unseen(frame, skill)
        height, width = frame.image.shape[:2]
        blob = self._choose(blobs, frame.pose, width, height)
        return self._seen(frame, skill, blob, width, height)

    # ------------------------------------------------------------------------------------------------------ in the picture

    def _choose(self, blobs: list[Blob], pose: Pose, width: int, height: int) -> Blob:
        """The nearest, but what it is after already as long as that is about where it was."""
        large = max(blob.pixels for blob in blobs)
        blobs = [blob for blob in blobs if blob.pixels >= min(12, large / 3)]  # specks are mistakes, mostly
        if self._spotted is None:
            return max(blobs, key=lambda blob: blob.pixels) if blobs[0].name in MOBS else blobs[0]
        old = self._spotted
        return min(
            blobs,
            key=lambda blob: (
                float(np.hypot(*np.subtract(self._place(blob, pose, width, height)[:2], (old.x, old.z)))) / 4
                - blob.bottom / height
            ),
        )

    def _place(self, blob: Blob, pose: Pose, width: int, height: int) -> tuple[float, float, float]:
        """(x, z, distance) of a blob whose lower edge stands on level ground."""
        focal = width / 2 / tan(radians(self.view_angle / 2))
        slope = (blob.bottom - 0.5 - height / 2) / focal + tan(radians(pose.pitch))
        depth = min(FARTHEST, EYES_UP / max(slope, 1e-3))
        side = (_middle(blob) - width / 2) / focal * depth
        yaw = radians(pose.yaw)
        x, z = self._inside(pose.x - sin(yaw) * depth - cos(yaw) * side, pose.z + cos(yaw) * depth - sin(yaw) * side)
        return x, z, float(np.hypot(depth, side))

    def _inside(self, x: float, z: float) -> tuple[float, float]:
        """The nearest place on the map."""
        last = self._size - 1.0
        return (
            min(max(x, self._origin[0] + 1.0), self._origin[0] + last),
            min(max(z, self._origin[1] + 1.0), self._origin[1] + last),
        )

    def _seen(self, frame: Frame, skill: Skill, blob: Blob, width: int, height: int) -> Control:
        pose = frame.pose
        focal = width / 2 / tan(radians(self.view_angle / 2))
        x, z, far = self._place(blob, pose, width, height)
        old = self._spotted
        if old is None or frame.tick - old.tick > 10 or far < old.far - 0.5 or np.hypot(x - old.x, z - old.z) > 1.5:
            old = self._spotted = Spotted(x, z, frame.tick, far)
        old.tick = frame.tick
        cut_off = blob.bottom >= height - 1
        self._search = 0
        if far > skill.near + 1.5 and not cut_off:
            self._pressed = self._nearer = 0
            return self.walker.step(frame, old.x, old.z)
        # Near: face it, look at it, press the key when it is in the middle.
        turn = degrees(atan2(_middle(blob) - width / 2, focal))
        row = blob.row if skill.looks_for in MOBS else (blob.row + blob.bottom) / 2
        look = degrees(atan2((row - height / 2) / focal + tan(radians(pose.pitch)), 1.0)) - pose.pitch
        if skill.looks_for == "log":
            look = AT_TRUNK - pose.pitch  # half-way up, and its foot stays in the picture
        if skill.looks_for in MOBS:
            aimed = self._covers(blob, width, height) and far < REACH
        else:
            aimed = blob.centre
            # Where it is nearest changes with every turn: half of it, and none when it is in the middle.
            turn = 0.0 if aimed else turn / 2
        nearer = far > skill.near and not (cut_off and skill.looks_for not in MOBS)
        if aimed and self._pressed > PRESSES.get(skill.looks_for, IN_VAIN):
            self._nearer, self._pressed = STEPS, 0
        if self._nearer:
            self._nearer -= 1
            nearer = True
        elif aimed:
            self._pressed += 1
        control = Control(
            forward=1.0 if nearer and abs(turn) < 30 else 0.0,
            turn=min(max(turn, -self.turn_per_step), self.turn_per_step),
            look=min(max(look, -self.turn_per_step), self.turn_per_step),
            attack=aimed and skill.key == "attack",
            use=aimed and skill.key == "use",
        )
        if aimed and skill.key == "attack" and skill.looks_for in MOBS:
            self._gather_until, self._fallen = frame.tick + GATHERING, _around(pose, x, z)
        return self.walker.keep(frame, control, jumps=skill.looks_for in MOBS or not cut_off)

    @staticmethod
    def _covers(blob: Blob, width: int, height: int) -> bool:
        return blob.left <= width / 2 <= blob.right and blob.top <= height / 2 <= blob.bottom

    # -------------------------------------------------------------------------------------------------------- not in it

    def _unseen(self, frame: Frame, skill: Skill) -> Control:
        """Where it was seen last; where something must have fallen; else look around, and stroll."""
        if frame.tick <= self._gather_until:
            if self._fallen and frame.pose.distance(*self._fallen[0]) < 0.5:
                del self._fallen[0]
            if self._fallen:
                return self.walker.step(frame, *self._inside(*self._fallen[0]))
            self._gather_until = -1
        old = self._spotted
        if old is not None and frame.tick <= old.tick + KEPT:
            if frame.pose.distance(old.x, old.z) > 0.6:
                return self.walker.step(frame, old.x, old.z)
            self._spotted = None
        turns = int(360 / self.turn_per_step) + 1
        if self._search < turns or self._stroll is None:
            self._search += 1
            if self._search == turns:
                # A golden angle apart each time: soon it has been everywhere around.
                heading = radians(frame.pose.yaw + 137.5)
                self._stroll = self._inside(frame.pose.x - 10 * sin(heading), frame.pose.z + 10 * cos(heading))
            look = min(max(self.gaze - frame.pose.pitch, -9.0), 9.0)
            return self.walker.keep(frame, Control(turn=self.turn_per_step, look=look))
        self._search += 1
        if self._search > turns + 60 or frame.pose.distance(*self._stroll) < 1:
            self._search, self._stroll = 0, None
            return Control(turn=self.turn_per_step)
        if abs(bearing(frame.pose, *self._stroll)) > 170:
            return Control(turn=self.turn_per_step)
        return self.walker.step(frame, *self._stroll)


def _middle(blob: Blob) -> float:
    """Column to turn to: of an animal its middle, of ground and trees where they are nearest."""
    return blob.column if blob.name in MOBS else blob.foot


def _around(pose: Pose, x: float, z: float, far: float = 1.7) -> list[tuple[float, float]]:
    """A place, the one behind it as seen from the pose, and those beside it."""
    length = max(pose.distance(x, z), 1e-6)
    dx, dz = (x - pose.x) / length * far, (z - pose.z) / length * far
    return [(x, z), (x + dx, z + dz), (x - dz, z + dx), (x + dz, z - dx)]
