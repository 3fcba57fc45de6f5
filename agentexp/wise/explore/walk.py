"""A walk without memory: what is left of exploration when a controller is only told to "go explore" (the Steve-1 baseline).

STEVE-1 itself is a network that agentexp does not ship; this stands for how it moves: on in one direction for a while,
turning a little all the time, anew where it cannot go on, and standing a share of the time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from agentexp.errors import UserError
from agentexp.wise.core import Frame, Goal
from agentexp.wise.explore.clock import Decisions


class Walk:
    """An `Explorer`.

    Args:
        persistence: mean way between two new directions, blocks.
        wander: standard deviation of the change of direction over one block, degrees.
        idle: share of the ticks in which it stands still, in [0, 1).
        ahead: how far ahead its goals lie, blocks.
        speed: blocks that it walks in one tick.
    """

    def __init__(
        self, persistence: float = 60.0, wander: float = 4.0, idle: float = 0.0, ahead: float = 6.0, speed: float = 1.0
    ) -> None:
        if not 0 <= idle < 1:
            raise UserError(f"explorer.idle is {idle}; choose a share in [0, 1).")
        if persistence < 1:
            raise UserError(f"explorer.persistence is {persistence}; choose at least 1 block.")
        if not 0 < speed <= persistence:
            raise UserError(f"explorer.speed is {speed}; choose blocks per tick above 0.")
        self.persistence, self.wander, self.idle, self.ahead, self.speed = persistence, wander, idle, ahead, speed
        self.reset(128, (0, 0), 0)

    def reset(self, size: int, origin: tuple[int, int], seed: int) -> None:
        """Begin an episode."""
        self._rng = np.random.default_rng([seed, 1])
        self._low, self._high = np.array(origin, float), np.array(origin, float) + size
        self._heading: float | None = None
        self._blocked = False
        self._clock = Decisions()

    def observe(self, frame: Frame) -> None:
        """Notice only what it runs into."""
        near = frame.blocked + 0.5 - (frame.pose.x, frame.pose.z)
        self._blocked = bool(len(near)) and bool((np.hypot(near[:, 0], near[:, 1]) < 1.5).any())

    def goal(self, frame: Frame) -> Goal | None:
        """A point ahead; where it stands, while it idles."""
        with self._clock.timed():
            if self._heading is None:
                self._heading = frame.pose.yaw
            if self._rng.random() < self.idle:
                self._clock.tiers["idle"] += 1
                return Goal(frame.pose.x, frame.pose.z, "idle")
            if self._blocked or self._rng.random() < self.speed / self.persistence:
                self._heading = float(self._rng.uniform(0, 360))
            self._heading += float(self._rng.normal(0, self.wander * self.speed**0.5))
            for _ in range(16):
                at = np.deg2rad(self._heading)
                x, z = frame.pose.x - np.sin(at) * self.ahead, frame.pose.z + np.cos(at) * self.ahead
                if (self._low <= (x, z)).all() and ((x, z) < self._high).all():
                    break
                self._heading = float(self._rng.uniform(0, 360))
            self._clock.tiers["walk"] += 1
            return Goal(float(x), float(z), "walk")

    def statistics(self) -> dict[str, Any]:
        """Decisions and their time."""
        return self._clock.report()
