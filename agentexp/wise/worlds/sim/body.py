"""The agent's body: walking, turning, jumping up one block, falling. Constants are Minecraft's, per tick of 1/20 s."""

from __future__ import annotations

from math import cos, floor, radians, sin

import numpy as np

from agentexp.wise.core import Control, Pose
from agentexp.wise.worlds.sim.terrain import Heights

WALK = 0.215  # blocks per tick
LEAST_SPEED = 0.75  # of it; the rest is noise, which stands for a learnt controller's uneven steps
JUMP, GRAVITY, DRAG = 0.42, 0.08, 0.98
EYES = 1.62
HALF_WIDTH = 0.3
STEEPEST = 60.0


class Body:
    """Position, yaw, pitch and vertical motion.

    Args:
        floor_map: height on which one can stand, +inf where a body cannot be; padded by `pad` cells.
        pad: see there.
        turn_per_step: most degrees of turning and looking in a tick; None: any.
        rng: draws the noise of the speed.
        x, z, yaw: where it begins.

    Attributes:
        floor_map: replaced by the world when a tree is gone.
    """

    def __init__(
        self,
        floor_map: Heights,
        pad: int,
        turn_per_step: float | None,
        rng: np.random.Generator,
        x: float,
        z: float,
        yaw: float,
    ) -> None:
        self.floor_map, self._pad, self._turn, self._rng = floor_map, pad, turn_per_step, rng
        self.x, self.z, self.yaw, self.pitch = x, z, yaw, 0.0
        self.y = self._below(x, z)
        self._rise = 0.0
        self.grounded = True

    @property
    def pose(self) -> Pose:
        """Of the feet; the eyes are 1.62 blocks above."""
        return Pose(self.x, self.y, self.z, self.yaw, self.pitch)

    def move(self, control: Control) -> tuple[int, int] | None:
        """One tick. Returns the cell that it bumped into and cannot climb, if there is one."""
        turn, look = control.turn, control.look
        if self._turn is not None:
            turn = min(max(turn, -self._turn), self._turn)
            look = min(max(look, -self._turn), self._turn)
        self.yaw = (self.yaw + turn) % 360
        self.pitch = min(max(self.pitch + look, -STEEPEST), STEEPEST)
        if control.jump and self.grounded:
            self._rise, self.grounded = JUMP, False
        # One draw in every tick, so that what is done never shifts what is drawn later.
        noise = LEAST_SPEED + (1 - LEAST_SPEED) * self._rng.random()
        bumped = None
        if control.forward:
            step = WALK * min(max(control.forward, -1.0), 1.0) * noise
            heading = radians(self.yaw)
            bumped = self._walk(-sin(heading) * step, cos(heading) * step)
        self._fall()
        return bumped

    def _walk(self, dx: float, dz: float) -> tuple[int, int] | None:
        for sx, sz in ((dx, dz), (dx, 0.0), (0.0, dz)):
            if (sx or sz) and self._below(self.x + sx, self.z + sz) <= self.y + 1e-6:
                self.x, self.z = self.x + sx, self.z + sz
                if (sx, sz) == (dx, dz):
                    return None
                break
        base = self._below(self.x, self.z)
        for cx, cz in self._corners(self.x + dx, self.z + dz):
            if self.floor_map[cx + self._pad, cz + self._pad] > base + 1.5:
                return cx, cz
        return None

    def _fall(self) -> None:
        below = self._below(self.x, self.z)
        if self.grounded and self.y <= below:
            return
        self.y += self._rise
        self._rise = (self._rise - GRAVITY) * DRAG
        self.grounded = self.y <= below
        if self.grounded:
            self.y, self._rise = below, 0.0

    def _below(self, x: float, z: float) -> float:
        """Height of the highest ground under the body at (x, z); inf where it cannot be."""
        pad, ground = self._pad, self.floor_map
        return max([float(ground[cx + pad, cz + pad]) for cx, cz in self._corners(x, z)])

    @staticmethod
    def _corners(x: float, z: float) -> list[tuple[int, int]]:
        west, east = floor(x - HALF_WIDTH), floor(x + HALF_WIDTH)
        north, south = floor(z - HALF_WIDTH), floor(z + HALF_WIDTH)
        if west == east:
            return [(west, north)] if north == south else [(west, north), (west, south)]
        if north == south:
            return [(west, north), (east, north)]
        return [(west, north), (west, south), (east, north), (east, south)]
