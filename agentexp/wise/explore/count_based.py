"""MrSteve's count-based exploration with its published parameters: the baseline.

It keeps its own square map, centred on where it started, and paints its own pentagon of a field of view into it (70 degrees,
radius 10, four points on the arc, no occlusion). The map less a border of half a patch is cut into patches of 15 cells. The
next goal is the middle of the nearest patch of which nothing was seen, chance deciding between equals; once there is none,
that of the patch with the fewest seen cells. A goal is kept until the agent is within 3 blocks or 2,000 ticks have passed.

Two consequences are part of the method and are kept: a patch with one seen cell is never headed for while an untouched one is
left, and the border (and what is left over of the patches) never at all. Reference: Park et al. 2025, code and configuration.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from agentexp.wise.core import Frame, Goal, Pose
from agentexp.wise.explore.clock import Decisions
from agentexp.wise.seen import Mask

OUTLINE = 0.9


def pentagon(yaw: float, angle: float, radius: float, points: int) -> NDArray[np.int64]:
    """Vertices relative to the observer's cell, rounded towards zero as the original does; int of shape (points + 1, 2)."""
    at = np.deg2rad(yaw) + np.deg2rad(np.linspace(-angle / 2, angle / 2, points))
    arc = np.stack((-np.sin(at), np.cos(at)), axis=1) * radius
    return np.concatenate((np.zeros((1, 2)), arc)).astype(np.int64)


def fill(vertices: NDArray[np.int64], reach: int) -> Mask:
    """Cells inside or on a convex polygon, as a mask of side 2 * reach + 1 about (0, 0)."""
    side = np.arange(-reach, reach + 1)
    x, z = np.meshgrid(side, side, indexing="ij")
    start, end = vertices, np.roll(vertices, -1, axis=0)
    across = [(b[0] - a[0]) * (z - a[1]) - (b[1] - a[1]) * (x - a[0]) for a, b in zip(start, end, strict=True)]
    turns = np.stack(across)
    # Either winding. The original fills with OpenCV's anti-aliased outline, which adds most of a cell all around: with 0.9 the
    # number of cells is the same, 79 in the mean over all yaws (measured; the bare pentagon has 59).
    length = np.hypot(*(end - start).T)[:, None, None] * OUTLINE
    inside: Mask = (turns >= -length).all(0) | (turns <= length).all(0)
    return inside


class CountBased:
    """An `Explorer`.

    Args:
        map_range: side of its own map in blocks; null for the side of the world's region (128 in the original).
        fov_angle, fov_radius, num_points: of the field of view it paints.
        action_radius: side of a patch.
        reach_margin: distance in blocks at which a goal counts as reached.
        give_up_after: ticks.
    """

    def __init__(
        self,
        map_range: int | None = None,
        fov_angle: float = 70.0,
        fov_radius: float = 10.0,
        num_points: int = 4,
        action_radius: int = 15,
        reach_margin: float = 3.0,
        give_up_after: int = 2000,
    ) -> None:
        self.map_range = map_range
        self.fov_angle, self.fov_radius, self.num_points = fov_angle, fov_radius, num_points
        self.action_radius, self.reach_margin, self.give_up_after = action_radius, reach_margin, give_up_after
        self._views: dict[int, Mask] = {}
        self.reset(128, (0, 0), 0)

    def reset(self, size: int, origin: tuple[int, int], seed: int) -> None:
        """Begin an episode; the seed decides between patches at the same distance."""
        side = self.map_range or size
        self.map: Mask = np.zeros((side, side), bool)
        self._rng = np.random.default_rng([seed, 15])
        self._start: tuple[float, float] | None = None
        self._goal: tuple[float, float] | None = None
        self._ticks = self._asked = 0
        self._clock = Decisions()

    def _cell(self, pose: Pose) -> tuple[int, int]:
        assert self._start is not None
        middle = len(self.map) // 2
        return int(middle + pose.x - self._start[0]), int(middle + pose.z - self._start[1])

    def observe(self, frame: Frame) -> None:
        """Paint the field of view of one frame."""
        if self._start is None:
            self._start = frame.pose.x, frame.pose.z
        reach = int(self.fov_radius) + 1
        degree = round(frame.pose.yaw) % 360
        if degree not in self._views:
            self._views[degree] = fill(pentagon(degree, self.fov_angle, self.fov_radius, self.num_points), reach)
        view = self._views[degree]
        i, j = self._cell(frame.pose)
        side = len(self.map)
        a, b, c, d = max(i - reach, 0), min(i + reach + 1, side), max(j - reach, 0), min(j + reach + 1, side)
        if a < b and c < d:
            self.map[a:b, c:d] |= view[a - i + reach : b - i + reach, c - j + reach : d - j + reach]

    def patches(self) -> NDArray[np.int64]:
        """Seen cells of each patch; shape (n, n)."""
        side, half = self.action_radius, self.action_radius // 2
        inner = self.map[half:-half, half:-half]
        count = len(inner) // side
        cut = inner[: count * side, : count * side].reshape(count, side, count, side)
        total: NDArray[np.int64] = cut.sum(axis=(1, 3))
        return total

    def goal(self, frame: Frame) -> Goal | None:
        """The middle of a patch; never None, for this method does not know that it is done."""
        if frame.tick - self._asked > 1:
            self._goal = None  # the original, too, chooses anew when it comes back to exploring
        self._asked = frame.tick
        if self._goal is not None:
            self._ticks += 1
            if frame.pose.distance(*self._goal) < self.reach_margin or self._ticks > self.give_up_after:
                self._goal = None
        if self._goal is None:
            with self._clock.timed():
                self._goal = self._choose(frame.pose)
            self._ticks = 0
        return Goal(*self._goal, "patch")

    def _choose(self, pose: Pose) -> tuple[float, float]:
        assert self._start is not None
        side, half = self.action_radius, self.action_radius // 2
        seen = self.patches()
        untouched = np.argwhere(seen == 0)
        if len(untouched):
            i, j = self._cell(pose)
            far = np.hypot(untouched[:, 0] - (i - half) // side, untouched[:, 1] - (j - half) // side)
            equal = untouched[far == far.min()]
            patch = equal[self._rng.integers(len(equal))]
            self._clock.tiers["untouched"] += 1
        else:
            patch = np.array(np.unravel_index(int(seen.argmin()), seen.shape))
            self._clock.tiers["fewest"] += 1
        x, z = (patch + 1) * side - len(self.map) // 2
        return float(x + self._start[0]), float(z + self._start[1])

    def statistics(self) -> dict[str, Any]:
        """Decisions by rule ("untouched", "fewest") and their time."""
        return self._clock.report()
