"""The body's way to a place: straight where nothing known is in the way, else A* over what is known. Shared by all methods.

Ground that was never seen counts as free (so does the paper's VPT-Nav, which knows no map). Turning and walking happen in the
same step while the remaining angle is small enough; the walk never leads into a cell known to be blocked.
"""

from __future__ import annotations

from functools import cache
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from agentexp.wise.core import Control, Frame, Pose
from agentexp.wise.seen import Mask, SeenMap

DIAGONAL = 2**0.5
WALK_WITHIN = 80.0
MOVES = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (1, -1), (-1, 1), (-1, -1))


def bearing(pose: Pose, x: float, z: float) -> float:
    """Change of yaw in degrees, in [-180, 180), after which the pose looks at (x, z)."""
    return float((np.degrees(np.arctan2(pose.x - x, z - pose.z)) - pose.yaw + 180) % 360 - 180)


@cache
def _shares(count: int) -> NDArray[np.float64]:
    """`count` - 1 equal steps from 0 to 1, without the 0."""
    shares = np.linspace(0, 1, count)[1:]
    shares.setflags(write=False)
    return shares


def astar(
    blocked: Mask, start: tuple[int, int], goal: tuple[int, int], limit: int = 20_000
) -> tuple[list[tuple[int, int]], bool]:
    """Cheapest way over 8 neighbours, corners not cut.

    Args:
        blocked: impassable cells.
        start, goal: cells; the start may be blocked.
        limit: most cells to expand.

    Returns:
        The cells after the start up to the goal, and True; or those up to the cell nearest to the goal that was found, and
        False.
    """
    # Flat indices into a map with a solid border: this runs within a control step.
    width = blocked.shape[1] + 2
    solid = np.pad(blocked, 1, constant_values=True).tobytes()
    first, last = (start[0] + 1) * width + start[1] + 1, (goal[0] + 1) * width + goal[1] + 1
    side_x, side_z = np.abs(np.arange(len(blocked) + 2) - goal[0] - 1), np.abs(np.arange(width) - goal[1] - 1)
    longer, shorter = np.maximum.outer(side_x, side_z), np.minimum.outer(side_x, side_z)
    rest: list[float] = (longer + (DIAGONAL - 1) * shorter).ravel().tolist()
    moves = [(di * width + dj, di * width, dj, DIAGONAL if di and dj else 1.0) for di, dj in MOVES]
    cost = [np.inf] * len(solid)
    cost[first] = 0.0
    came: dict[int, int] = {}
    heap = [(rest[first], 0, first)]
    done = bytearray(len(solid))
    best = first
    pushed = expanded = 0
    while heap and expanded < limit:
        _, _, here = heappop(heap)
        if done[here]:
            continue
        done[here] = 1
        expanded += 1
        if rest[here] < rest[best]:
            best = here
        if here == last:
            break
        so_far = cost[here]
        for move, beside_x, beside_z, length in moves:
            there = here + move
            if solid[there] or done[there] or (length > 1 and (solid[here + beside_x] or solid[here + beside_z])):
                continue
            new = so_far + length
            if new < cost[there] - 1e-9:
                cost[there] = new
                came[there] = here
                pushed += 1
                heappush(heap, (new + rest[there], -pushed, there))
    path = []
    at = best
    while at != first:
        path.append((at // width - 1, at % width - 1))
        at = came[at]
    return path[::-1], best == last


class Navigator:
    """Turns a place into controls.

    Args:
        turn_per_step: degrees that one step can turn, as in the world; null for free turning.
        walk_within: walk while turning when the angle left after the turn is at most this, degrees.
        look_ahead: how many cells of a planned way are cut short by walking straight.
        half_width: of the body; a straight way is one along which it touches nothing known. 0 for a body without extent.
    """

    def __init__(
        self,
        turn_per_step: float | None = 30.0,
        walk_within: float = WALK_WITHIN,
        look_ahead: int = 12,
        half_width: float = 0.0,
    ) -> None:
        self.turn_per_step, self.walk_within, self.look_ahead = turn_per_step, walk_within, look_ahead
        self._sides = np.array([[0.0], [half_width], [-half_width]] if half_width else [[0.0]])
        self._map = SeenMap(1)
        self._blocked = 0
        self._goal: tuple[int, int] | None = None
        self._path: list[tuple[int, int]] = []
        self.reachable = True

    def reset(self, size: int, origin: tuple[int, int]) -> None:
        """Begin an episode."""
        self._map = SeenMap(size, origin)
        self._blocked = 0
        self._goal, self._path, self.reachable = None, [], True

    def towards(self, frame: Frame, x: float, z: float) -> Control:
        """One step towards (x, z). `reachable` says whether the last plan came through."""
        if len(frame.blocked):
            self._map.block(frame.blocked)
            self._blocked = int(np.count_nonzero(self._map.blocked))
        return self._steer(frame.pose, *self._aim(frame.pose, x, z))

    def _aim(self, pose: Pose, x: float, z: float) -> tuple[float, float]:
        if not self._blocked:
            return x, z
        if self._clear(pose.x, pose.z, x, z):
            self._goal, self._path, self.reachable = None, [], True
            return x, z
        here, goal = self._map.cell(pose.x, pose.z), self._map.cell(x, z)
        blocked = self._map.blocked
        on_way = here in self._path[: self.look_ahead]
        if self._goal != goal or not on_way or any(blocked[cell] for cell in self._path):
            self._goal = goal
            way, self.reachable = astar(blocked, here, goal)
            self._path = [here, *way]
        else:
            self._path = self._path[self._path.index(here) :]
        aim = self._path[min(1, len(self._path) - 1)]
        for cell in self._path[2 : self.look_ahead]:
            if not self._clear(pose.x, pose.z, *self._map.centre(*cell)):
                break
            aim = cell
        return self._map.centre(*aim)

    def _clear(self, x: float, z: float, to_x: float, to_z: float) -> bool:
        dx, dz = to_x - x, to_z - z
        length = float(np.hypot(dx, dz))
        share = _shares(max(2, int(length * 3) + 1))
        beside = self._sides / max(length, 1e-6)  # a line for each side of the body
        i = self._index(x + dx * share - dz * beside, self._map.origin[0])
        i *= self._map.size
        i += self._index(z + dz * share + dx * beside, self._map.origin[1])
        return not self._map.blocked.ravel().take(i).any()

    def _index(self, place: NDArray[np.float64], origin: int) -> NDArray[np.intp]:
        """Map indices of coordinates, those outside moved to the edge."""
        index = np.floor(place).astype(np.intp)
        if origin:
            index -= origin
        np.maximum(index, 0, out=index)
        np.minimum(index, self._map.size - 1, out=index)
        return index

    def _steer(self, pose: Pose, x: float, z: float) -> Control:
        distance = pose.distance(x, z)
        if distance < 1e-6:
            return Control()
        turn = bearing(pose, x, z)
        if self.turn_per_step is not None:
            turn = min(max(turn, -self.turn_per_step), self.turn_per_step)
        yaw = pose.yaw + turn
        left = abs(bearing(Pose(pose.x, pose.y, pose.z, yaw), x, z))
        # Close to the goal a step aside would only circle it.
        if left > self.walk_within or (left > 10 and distance < 3):
            return Control(turn=turn)
        step = min(1.0, distance)
        ahead = np.deg2rad(yaw)
        if (
            left > 1
            and self._blocked
            and not self._clear(pose.x, pose.z, pose.x - np.sin(ahead) * step, pose.z + np.cos(ahead) * step)
        ):
            return Control(turn=turn)
        return Control(forward=step, turn=turn)
