"""Animals: they stand, wander, flee when hit, and may leave for good."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from agentexp.wise.seen import Mask

WANDER_SPEED = 0.06  # blocks per tick
FLEE_SPEED = 0.16
FLEE_TICKS = (50, 90)
NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of animal.

    Attributes:
        health: in half hearts; a diamond sword takes 7.
        length, width, height: of the body in blocks.
        drops: (item, least, most) when it dies.
        tool, product: what a tool in use gets from the living animal; empty: nothing.
    """

    health: float
    length: float
    width: float
    height: float
    drops: tuple[tuple[str, int, int], ...]
    tool: str = ""
    product: str = ""


KINDS: Final[dict[str, Kind]] = {
    "cow": Kind(10, 1.5, 0.9, 1.4, (("beef", 1, 3), ("leather", 0, 2)), "bucket", "milk_bucket"),
    "sheep": Kind(8, 1.4, 0.9, 1.3, (("mutton", 1, 2), ("wool", 1, 1)), "shears", "wool"),
    "pig": Kind(10, 1.3, 0.9, 0.9, (("porkchop", 1, 3),)),
}


class Herd:
    """All mobs of a world, one row each.

    Attributes:
        names: of their kinds.
        number: unique over the episode.
        x, z, heading: position in blocks and yaw in degrees.
        health: half hearts left.
        shorn: nothing is left to be sheared off.
        dies: tick at which it leaves.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.number: NDArray[np.int64] = np.empty(0, np.int64)
        self.x: NDArray[np.float64] = np.empty(0)
        self.z: NDArray[np.float64] = np.empty(0)
        self.heading: NDArray[np.float64] = np.empty(0)
        self.speed: NDArray[np.float64] = np.empty(0)
        self.health: NDArray[np.float64] = np.empty(0)
        self.until: NDArray[np.int64] = np.empty(0, np.int64)
        self.flees: NDArray[np.int64] = np.empty(0, np.int64)
        self.dies: NDArray[np.int64] = np.empty(0, np.int64)
        self.shorn: NDArray[np.bool_] = np.empty(0, bool)
        self._next = 0
        self._stale = 0  # tick from which on the steps below no longer hold
        self._moves: NDArray[np.intp] = np.empty(0, np.intp)
        self._dx = self._dz = self.x

    def __len__(self) -> int:
        return len(self.names)

    def add(self, name: str, x: float, z: float, heading: float, tick: int, stay: int | None = None) -> int:
        """One more; leaves after `stay` ticks, if given. Returns its number."""
        self.names.append(name)
        row = {
            "number": self._next,
            "x": x,
            "z": z,
            "heading": heading,
            "speed": 0.0,
            "health": KINDS[name].health,
            "until": tick,
            "flees": tick,
            "dies": NEVER if stay is None else tick + stay,
            "shorn": False,
        }
        for column, value in row.items():
            setattr(self, column, np.append(getattr(self, column), np.array([value], getattr(self, column).dtype)))
        self._next += 1
        self._stale = 0
        return self._next - 1

    def remove(self, index: int) -> None:
        """Take one out."""
        self._stale = 0
        del self.names[index]
        for column in ("number", "x", "z", "heading", "speed", "health", "until", "flees", "dies", "shorn"):
            setattr(self, column, np.delete(getattr(self, column), index))

    def hurt(self, index: int, damage: float, x: float, z: float, tick: int, rng: np.random.Generator) -> bool:
        """A blow from (x, z): less health, and it runs away from there. Returns whether it is dead; the row stays."""
        self.health[index] -= damage
        self._stale = 0
        away = np.degrees(np.arctan2(-(self.x[index] - x), self.z[index] - z))
        self.heading[index] = away + rng.normal(0, 25)
        self.flees[index] = tick + rng.integers(*FLEE_TICKS)
        self.until[index] = self.flees[index]
        return bool(self.health[index] <= 0)

    def step(self, passable: Mask, tick: int, rng: np.random.Generator) -> None:
        """One tick.

        Args:
            passable: cells where a mob can be, bool of shape (size, size).
            tick: now.
            rng: the world's.
        """
        if not self.names:
            return
        if tick >= self._stale:
            self._decide(tick, rng)
        if not len(self._moves):
            return
        moves = self._moves
        x, z = self.x[moves] - self._dx, self.z[moves] + self._dz
        i, j = np.floor(x).astype(np.intp), np.floor(z).astype(np.intp)
        last = len(passable) - 1
        inside = (i >= 0) & (j >= 0) & (i <= last) & (j <= last)
        if inside.all():
            free = passable[i, j]
        else:
            free = inside & passable[np.minimum(np.maximum(i, 0), last), np.minimum(np.maximum(j, 0), last)]
        if free.all():
            self.x[moves], self.z[moves] = x, z
            return
        self.x[moves] = np.where(free, x, self.x[moves])
        self.z[moves] = np.where(free, z, self.z[moves])
        stuck = moves[~free]
        self.heading[stuck] += rng.uniform(90, 270, len(stuck))
        self._stale = 0

    def _decide(self, tick: int, rng: np.random.Generator) -> None:
        """Who leaves, who stops or goes another way now, and everybody's step until the next such change."""
        for index in reversed(np.flatnonzero(self.dies <= tick)):
            self.remove(int(index))
        due = np.flatnonzero(self.until <= tick)
        if len(due):
            walks = rng.random(len(due)) < 0.4
            self.speed[due] = np.where(walks, WANDER_SPEED, 0.0)
            self.heading[due] = np.where(walks, rng.uniform(0, 360, len(due)), self.heading[due])
            self.until[due] = tick + rng.integers(20, 120, len(due))
        flees = self.flees > tick
        speed = np.where(flees, FLEE_SPEED, self.speed)
        self._moves = np.flatnonzero(speed)
        heading = np.deg2rad(self.heading[self._moves])
        self._dx, self._dz = np.sin(heading) * speed[self._moves], np.cos(heading) * speed[self._moves]
        self._stale = min(
            int(self.until.min(initial=NEVER)),
            int(self.dies.min(initial=NEVER)),
            int(self.flees.min(initial=NEVER, where=flees)),
        )
