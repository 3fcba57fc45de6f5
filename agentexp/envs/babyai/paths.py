"""The paths that AgentBoard's composite actions take: shortest in moves, inside the field of view, around what is visible.

A cell that is not visible counts as free and so does every door: a path may turn out to be impossible, and then it ends
where a move changes nothing. Among equally short paths AgentBoard takes the one that its queue happens to hold last; so do
these.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from typing import TypeAlias

from agentexp.envs.babyai.scene import FORWARD, LEFT, RIGHT, VECTORS, VIEW, Cell, ahead

Pose: TypeAlias = tuple[Cell, int]


class Paths:
    """Shortest paths from one pose to some cells.

    Args:
        cell: where the robot is.
        facing: its direction.
        blocked: visible walls and things that one cannot walk through.
        targets: the cells.
    """

    def __init__(self, cell: Cell, facing: int, blocked: Set[Cell], targets: Set[Cell]) -> None:
        self._targets = targets
        self._columns, self._rows = _bounds(cell, facing)
        self._blocked = blocked
        self._came: dict[Pose, tuple[Pose, int]] = {}
        self._into: dict[Cell, Pose] = {}  # first pose in each cell
        self._before: dict[Cell, Pose] = {}  # first pose that faces each cell
        self._explore((cell, facing))

    def into(self, cell: Cell) -> tuple[int, ...] | None:
        """Moves that end in a cell; None if there is no path."""
        return self._moves(self._into.get(cell))

    def before(self, cell: Cell) -> tuple[int, ...] | None:
        """Moves that end in front of a cell, facing it."""
        return self._moves(self._before.get(cell))

    def _explore(self, start: Pose) -> None:
        # `first` holds a layer's poses in the order in which they leave the queue first, `last` in that in which they leave it
        # last: AgentBoard's queue holds a pose once for each way to it, and what leaves it last decides the way that it keeps.
        first, last, seen = [start], [start], {start}
        missing = set(self._targets)
        while first:
            done = not missing  # what is faced in one layer is entered in the next
            for pose in first:
                self._into.setdefault(pose[0], pose)
                front = ahead(*pose)
                self._before.setdefault(front, pose)
                missing.discard(front)
            if done:
                return
            following = {child: None for pose in first for _, child in self._children(pose) if child not in seen}
            latest: dict[Pose, None] = {}
            for pose in last:
                for move, child in self._children(pose):
                    if child not in seen:
                        latest.pop(child, None)
                        latest[child] = None
                        self._came[child] = pose, move
            seen |= set(following)
            first, last = list(following), list(latest)

    def _children(self, pose: Pose) -> Iterator[tuple[int, Pose]]:
        cell, facing = pose
        (x, y), (dx, dy) = cell, VECTORS[facing]
        front = x + dx, y + dy
        if front not in self._blocked and front[0] in self._columns and front[1] in self._rows:
            yield FORWARD, (front, facing)
        yield LEFT, (cell, (facing - 1) % 4)
        yield RIGHT, (cell, (facing + 1) % 4)

    def _moves(self, end: Pose | None) -> tuple[int, ...] | None:
        if end is None:
            return None
        moves: list[int] = []
        while end in self._came:
            end, move = self._came[end]
            moves.append(move)
        return tuple(reversed(moves))


def _bounds(cell: Cell, facing: int) -> tuple[range, range]:
    """Columns and rows that a path may use: the view, and one more where AgentBoard's range counts its end as well."""
    half = VIEW // 2
    corner = ahead(cell, facing, VIEW - 1, -half)
    (fx, fy) = VECTORS[facing]
    beyond = corner[0] + VIEW * (-fx - fy), corner[1] + VIEW * (-fy + fx)
    spans = (range(b, a + 1) if b < a else range(a, b) for a, b in zip(corner, beyond, strict=True))
    columns, rows = spans
    return columns, rows
