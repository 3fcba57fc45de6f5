"""The regional tier: eq. 12 over the frontier of one region.

    U_R(f) = alpha * Cover(f) + beta * Novel(f) - gamma * Dist(P, f)

A frontier cell is an unseen cell next to a seen one (never a seen one: an agent that stands on its goal and looks the other way
would stay there for ever). Cover is the unseen share of a window about it, Novel is 1 / (1 + visits of that window). Dist is
what it takes to bring the cell into view, in steps: the walk up to the radius of view and the turn up to half its angle; over
the region's side, at most 1.5.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agentexp.wise.core import Pose
from agentexp.wise.seen import Mask, SeenMap

Rectangle = tuple[int, int, int, int]
WINDOW = 0.6


@dataclass(frozen=True, slots=True)
class Reach:
    """How far and how fast the agent looks, and its speed in blocks per tick: to tell what it costs to see a cell."""

    radius: float = 10.0
    angle: float = 70.0
    turn_per_step: float | None = 30.0
    speed: float = 1.0

    def steps(self, pose: Pose, x: NDArray[np.floating], z: NDArray[np.floating]) -> NDArray[np.float64]:
        """What it takes to bring points (x, z) into view, in blocks walked meanwhile (steps, at one block a step)."""
        dx, dz = x - pose.x, z - pose.z
        walk = np.maximum(np.hypot(dx, dz) - self.radius, 0.0)
        if self.turn_per_step is None:
            return np.asarray(walk)
        off = np.abs((np.degrees(np.arctan2(-dx, dz)) - pose.yaw + 180) % 360 - 180)
        result: NDArray[np.float64] = walk + np.maximum(off - self.angle / 2, 0.0) / self.turn_per_step * self.speed
        return result


def box_sum(values: NDArray[np.int32], half: int) -> NDArray[np.int32]:
    """Sum over the (2 half + 1)-square about each cell that lies at least `half` from the edge: shape less 2 * half."""
    total = np.zeros((values.shape[0] + 1, values.shape[1] + 1), np.int32)
    np.cumsum(np.cumsum(values, 0), 1, out=total[1:, 1:])
    side = 2 * half + 1
    return total[side:, side:] - total[:-side, side:] - total[side:, :-side] + total[:-side, :-side]


def frontier(seen: SeenMap, region: Rectangle, among: Mask | None = None) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Map indices of the wanted cells of the region that touch a seen free cell; all its wanted cells where none does.

    `among`, bool of the region's shape, takes the place of its wanted cells.
    """
    x0, x1, z0, z1 = region
    wanted = seen.wanted[x0:x1, z0:z1] if among is None else among
    a, c = max(x0 - 1, 0), max(z0 - 1, 0)
    known = seen.seen[a : x1 + 1, c : z1 + 1] & ~seen.blocked[a : x1 + 1, c : z1 + 1]
    near = np.zeros((x1 - x0 + 2, z1 - z0 + 2), bool)
    near[a - x0 + 1 : a - x0 + 1 + known.shape[0], c - z0 + 1 : c - z0 + 1 + known.shape[1]] = known
    edge: Mask = wanted & (near[:-2, 1:-1] | near[2:, 1:-1] | near[1:-1, :-2] | near[1:-1, 2:])
    i, j = np.nonzero(edge)
    if not len(i):
        i, j = np.nonzero(wanted)
    return i + x0, j + z0


class Frontier:
    """Eq. 12.

    Args:
        cover, novel, distance: alpha, beta and gamma of eq. 12; the paper says only that they are normalised.
        reach: of the agent's view.
    """

    def __init__(self, cover: float = 0.05, novel: float = 0.05, distance: float = 0.9, reach: Reach | None = None) -> None:
        self.cover, self.novel, self.distance = cover, novel, distance
        self.reach = reach or Reach()
        self.half = max(1, round(WINDOW * self.reach.radius))

    def best(
        self, seen: SeenMap, visits: NDArray[np.int32], region: Rectangle, pose: Pose, among: Mask | None = None
    ) -> tuple[int, int] | None:
        """The frontier cell of the greatest utility; None when the region has no wanted cell.

        Args:
            seen: the map.
            visits: ticks spent in each cell, with a margin of at least `half` cells on every side.
            region: half-open ranges (x0, x1, z0, z1) of map cells.
            pose: of the agent, world coordinates.
            among: bool of the region's shape, the cells that count; all its wanted cells by default.
        """
        i, j = frontier(seen, region, among)
        if not len(i):
            return None
        utility = self.utility(seen, visits, region, pose, i, j)
        k = int(np.argmax(utility))
        return int(i[k]), int(j[k])

    def utility(
        self, seen: SeenMap, visits: NDArray[np.int32], region: Rectangle, pose: Pose, i: NDArray[np.intp], j: NDArray[np.intp]
    ) -> NDArray[np.float64]:
        """U_R of the cells (i, j) of the region."""
        x0, x1, z0, z1 = region
        half, size = self.half, seen.size
        window = np.zeros((x1 - x0 + 2 * half, z1 - z0 + 2 * half), np.int32)
        a, b, c, d = max(x0 - half, 0), min(x1 + half, size), max(z0 - half, 0), min(z1 + half, size)
        window[a - x0 + half : b - x0 + half, c - z0 + half : d - z0 + half] = seen.wanted[a:b, c:d]
        margin = (len(visits) - size) // 2
        trace = visits[x0 + margin - half : x1 + margin + half, z0 + margin - half : z1 + margin + half]
        cover = box_sum(window, half)[i - x0, j - z0] / (2 * half + 1) ** 2
        novel = 1.0 / (1.0 + box_sum(trace, half)[i - x0, j - z0])
        steps = self.reach.steps(pose, i + seen.origin[0] + 0.5, j + seen.origin[1] + 0.5)
        far = np.minimum(steps / max(x1 - x0, z1 - z0), 1.5)
        result: NDArray[np.float64] = self.cover * cover + self.novel * novel - self.distance * far
        return result
