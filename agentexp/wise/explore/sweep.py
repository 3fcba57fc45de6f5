"""The boustrophedon sweep: parallel lanes as wide as the view, to and fro. The limit of straight walking on open ground.

It plans once, from the map's size alone; no paper has it. Where a lane's end cannot be reached it goes on with the next one.
To keep to its lanes it needs a navigator that turns on the spot (`walk_within` of 20 degrees instead of 80).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from agentexp.wise.core import Frame, Goal
from agentexp.wise.explore.clock import Decisions

# A lane begun aside is walked aslant, and the lanes hardly overlap.
NEAR = 0.1


def safe_swath(angle: float, radius: float) -> float:
    """Width of a lane in which a walker of one block a step misses nothing.

    A cell `half` aside is in view while it is between half / tan(angle / 2) and sqrt(radius^2 - half^2) ahead; that must be a
    whole step. It makes 10.5 of the 11.5 blocks that the sector is wide.
    """
    half = np.linspace(0, radius * np.sin(np.deg2rad(angle / 2)), 1001)
    ahead = np.sqrt(radius**2 - half**2) - half / np.tan(np.deg2rad(angle / 2))
    return 2 * float(half[ahead >= 1].max())


class Sweep:
    """An `Explorer`.

    Args:
        swath: width of a lane in blocks; null for the widest of which no cell is missed, see `safe_swath`.
        view_angle, view_radius: of the agent, as in the world.
        give_up_after: steps without coming closer to a lane's end.
    """

    def __init__(
        self, swath: float | None = None, view_angle: float = 70.0, view_radius: float = 10.0, give_up_after: int = 40
    ) -> None:
        self.swath = swath or safe_swath(view_angle, view_radius)
        self.give_up_after = give_up_after
        self.reset(128, (0, 0), 0)

    def reset(self, size: int, origin: tuple[int, int], seed: int) -> None:
        """Begin an episode; the lanes are laid out here. The seed is not used."""
        lanes = int(np.ceil(size / self.swath - 1e-9))
        width = size / lanes
        points = []
        for lane in range(lanes):
            z = origin[1] + (lane + 0.5) * width
            ends = (origin[0] + 1.0, origin[0] + size - 1.0)
            points += [(x, z) for x in (ends if lane % 2 == 0 else ends[::-1])]
        self._points = points
        self._best = np.inf
        self._since = self._asked = 0
        self._clock = Decisions()

    def observe(self, frame: Frame) -> None:
        """It does not look."""

    def goal(self, frame: Frame) -> Goal | None:
        """The next end of a lane; None after the last."""
        if frame.tick - self._asked > 1:
            self._best = np.inf
        self._asked = frame.tick
        while self._points:
            far = frame.pose.distance(*self._points[0])
            if far < self._best - 0.5:
                self._best, self._since = far, frame.tick
            if far >= NEAR and frame.tick - self._since < self.give_up_after:
                return Goal(*self._points[0], "lane")
            with self._clock.timed():
                self._points.pop(0)
                self._clock.tiers["lane"] += 1
                self._best, self._since = np.inf, frame.tick
        return None

    def statistics(self) -> dict[str, Any]:
        """Decisions and their time."""
        return self._clock.report()
