"""Walking: from "ACTION1 moves 9 4x4 up 4" and "blocked by 4" to the shortest way to a thing that was not touched yet."""

from __future__ import annotations

import re
from collections import Counter, deque

from agentexp.envs.arc_agi3.frames import SIDE, Grid
from agentexp.envs.arc_agi3.reader import Event
from agentexp.envs.arc_agi3.shapes import Shape, things
from agentexp.envs.arc_agi3.tracker import ahead

_MOVE = re.compile(r"([0-9a-f] \d+x\d+) moves (up|down|left|right) (\d+)")
_STEPS = {"up": (0, -1), "down": (0, 1), "left": (-1, 0), "right": (1, 0)}
_MOST_PLACES = 4000


class Navigator:
    """Knows one thing that the actions move, by how much, and what stops it."""

    def __init__(self) -> None:
        self._moves: dict[str, dict[str, Counter[tuple[int, int]]]] = {}  # kind -> action -> displacements seen
        self._walls: set[str] = set()
        self._touched: set[tuple[int, str, str]] = set()

    def learn(self, context: str, effect: str, requires: str) -> None:
        """Take in one entry of a map or one effect."""
        if " on " in context:
            return
        for kind, word, count in _MOVE.findall(effect):
            dx, dy = _STEPS[word]
            step = dx * int(count), dy * int(count)
            self._moves.setdefault(kind, {}).setdefault(context, Counter())[step] += 1
        if not _MOVE.search(effect) and requires.startswith("by "):
            self._walls.add(requires[3:])

    def observe(self, event: Event) -> None:
        """Take in one answer."""
        if event.effect:
            self.learn(event.context, event.effect, "")
            if event.change is not None and event.change.gone:
                self._walls = set(sorted(self._walls, key=len)[:1])  # something was taken: doors may be open now
            return
        found = self.mover(event.before)
        if event.before is None or found is None:
            return
        shape, steps = found
        if event.context in steps:
            colours = ahead(event.before, shape, *steps[event.context])
            if colours:
                self._walls.add(colours)

    def mover(self, grid: Grid | None) -> tuple[Shape, dict[str, tuple[int, int]]] | None:
        """The thing that most actions move by a fixed step, and these steps."""
        if grid is None:
            return None
        shown = {shape.kind: shape for shape in things(grid)}
        best: tuple[Shape, dict[str, tuple[int, int]]] | None = None
        for kind, by_action in self._moves.items():
            steps = {action: seen.most_common(1)[0][0] for action, seen in by_action.items() if len(seen) == 1}
            if kind in shown and len(steps) >= 2 and (best is None or len(steps) > len(best[1])):
                best = shown[kind], steps
        return best

    def next(self, grid: Grid | None, level: int) -> str | None:
        """The first action of the shortest way to something untouched; None where nobody knows one."""
        found = self.mover(grid)
        if grid is None or found is None:
            return None
        shape, steps = found
        self._touched |= {(level, other.kind, other.box) for other in things(grid) if _overlap(shape, other, 0, 0)}
        goals = [
            other
            for other in things(grid)
            if other.kind != shape.kind and other.size <= 4 * shape.size and (level, other.kind, other.box) not in self._touched
        ]
        queue: deque[tuple[int, int, str | None]] = deque([(0, 0, None)])
        known = {(0, 0)}
        while queue and len(known) < _MOST_PLACES:
            dx, dy, first = queue.popleft()
            for goal in goals:
                if first is not None and _overlap(shape, goal, dx, dy):
                    if abs(dx) + abs(dy) == sum(map(abs, steps[first])):
                        self._touched.add((level, goal.kind, goal.box))  # the next action tries it, whatever comes of it
                    return first
            for action, (sx, sy) in steps.items():
                there = dx + sx, dy + sy
                left, top = shape.x + there[0], shape.y + there[1]
                inside = min(left, top) >= 0 and max(shape.right + there[0], shape.bottom + there[1]) < SIDE
                if inside and there not in known and _box(grid, shape, *there) not in self._walls:
                    known.add(there)
                    queue.append((*there, first or action))
        return None


def _overlap(shape: Shape, other: Shape, dx: int, dy: int) -> bool:
    across = shape.x + dx <= other.right and other.x <= shape.right + dx
    return across and shape.y + dy <= other.bottom and other.y <= shape.bottom + dy and other != shape


def _box(grid: Grid, shape: Shape, dx: int, dy: int) -> str:
    """The colours at another place of the thing, as `ahead` names them."""
    return ahead(grid, shape, dx, dy)
