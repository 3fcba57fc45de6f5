"""The expert: a plan of text actions from any state, for missions of going to, picking up and opening things.

It knows the whole grid. `decide` finds the next thing to be done on the cheapest way to what the mission wants (fetch the
key of a locked door, move what stands in the way, free the hands), `leg` searches breadth-first for the fewest actions that
do it. Both see states, not the past, so the expert can take over anywhere. Plans are short but not proven shortest.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from agentexp.envs.babyai.engine import Clause
from agentexp.envs.babyai.protocol import options
from agentexp.envs.babyai.scene import (
    CLOSED,
    DROP,
    LOCKED,
    OPEN,
    PICKUP,
    TOGGLE,
    VECTORS,
    Cell,
    Scene,
    Thing,
    opens,
)
from agentexp.errors import UserError

MOST_LEGS = 60
_SHUT, _IN_THE_WAY, _LOCKED = 1, 20, 40  # what a way costs beyond its steps: a door to open, a thing to move, a key to fetch

Wanted: TypeAlias = Callable[[Scene, int, Scene], float | None]
"""(before, move, after) -> None if this is not it, else how many steps later a better outcome may be and still be preferred."""


def solve(scene: Scene, pending: Sequence[Clause]) -> list[str]:
    """Actions that do the pending parts of a mission in their order.

    Raises:
        UserError: there is no way that the expert knows.
    """
    return _Expert(scene, list(pending)).plan()


def fulfils(clause: Clause, before: Scene, move: int, after: Scene) -> bool:
    """Whether a move does a part of a mission (minigrid's verifiers, for things that stand where they are seen)."""
    if clause.verb == "go to":
        front = after.things.get(after.front)
        return front is not None and front.number in clause.things
    if clause.verb == "pick up":
        held = after.carrying
        return move == PICKUP and before.carrying is None and held is not None and held.number in clause.things
    door = after.things.get(after.front)
    return move == TOGGLE and door is not None and door.number in clause.things and door.state == OPEN


def spoils(clause: Clause, before: Scene, move: int, after: Scene) -> bool:
    """Whether a move is a mistake that a strict part of a mission forbids."""
    if not clause.strict or fulfils(clause, before, move, after):
        return False
    if clause.verb == "pick up":
        return move == PICKUP and after.carrying is not None
    front = after.things.get(after.front)
    return clause.verb == "open" and move == TOGGLE and front is not None and front.kind == "door"


@dataclass(frozen=True, slots=True)
class _Way:
    """A way to the front of something: its cost and the first thing on it that has to be dealt with."""

    cost: float
    obstacle: Thing | None


class _Expert:
    def __init__(self, scene: Scene, pending: list[Clause]) -> None:
        self.scene, self.pending = scene, pending
        self.actions: list[str] = []

    def plan(self) -> list[str]:
        for _ in range(MOST_LEGS):
            if not self.pending:
                return self.actions
            self.leg(self.decide())
        raise UserError("babyai's expert finds no end: it goes in circles from here.")

    @property
    def current(self) -> list[Clause]:
        """The parts that are due now."""
        first = min(clause.rank for clause in self.pending)
        return [clause for clause in self.pending if clause.rank == first]

    # -------------------------------------------------------------------------------------------------------- deciding

    def decide(self) -> Wanted:
        """What the next leg has to bring about."""
        ways = [(way.cost, i) for i, clause in enumerate(self.current) if (way := self.way(self._targets(clause))) is not None]
        if not ways:
            held = self.scene.carrying
            if held is not None and any(held.number in clause.things for clause in self.current):
                return self._put_down  # what is wanted is in hand: only putting it down lets one go to it or pick it up
            raise UserError("babyai's expert knows no way from here to what the mission wants.")
        clause = self.current[min(ways)[1]]
        cells = self._targets(clause)
        obstacle = self._first_obstacle(cells, frozenset())
        if obstacle is not None:
            return obstacle
        if clause.verb == "pick up":
            return self._put_down if self.scene.carrying else lambda b, m, a: 0.0 if fulfils(clause, b, m, a) else None
        if clause.verb == "open":
            doors = [self.scene.things[cell] for cell in cells]
            if all(door.state == LOCKED and not opens(self.scene.carrying, door) for door in doors):
                return self._key(doors[0], frozenset())
        return lambda b, m, a: 0.0 if fulfils(clause, b, m, a) else None

    def _targets(self, clause: Clause) -> list[Cell]:
        """Cells of what would do; an open door cannot be opened, and no action shuts it."""
        return [
            cell
            for cell, thing in self.scene.things.items()
            if thing.number in clause.things and not (clause.verb == "open" and thing.state == OPEN)
        ]

    def _first_obstacle(self, cells: list[Cell], busy: frozenset[int]) -> Wanted | None:
        """How to deal with the first thing on the way to the front of one of the cells; None if the way is free."""
        way = self.way(cells, busy)
        if way is None:
            raise UserError("babyai's expert knows no way from here to a key or to what stands in the way.")
        thing = way.obstacle
        if thing is None:
            return None
        if thing.kind != "door":
            return self._fetch({thing.number}, busy)
        if opens(self.scene.carrying, thing):  # now, while the key is in hand
            return lambda b, m, a: 0.0 if m == TOGGLE and a.things[a.front] == thing._replace(state=OPEN) else None
        return self._key(thing, busy)

    def _key(self, door: Thing, busy: frozenset[int]) -> Wanted:
        """Get the key of a locked door."""
        keys = {t.number for t in self.scene.things.values() if t.kind == "key" and t.colour == door.colour}
        return self._fetch(keys, busy | {door.number})

    def _fetch(self, numbers: set[int], busy: frozenset[int]) -> Wanted:
        cells = [cell for cell, thing in self.scene.things.items() if thing.number in numbers]
        obstacle = self._first_obstacle(cells, busy)
        if obstacle is not None:
            return obstacle
        if self.scene.carrying is not None:
            return self._put_down
        return lambda b, m, a: 0.0 if m == PICKUP and a.carrying is not None and a.carrying.number in numbers else None

    def way(self, cells: Iterable[Cell], busy: frozenset[int] = frozenset()) -> _Way | None:
        """The cheapest way to the front of one of the cells; None if there is none. `busy` doors stay shut."""
        scene, targets = self.scene, set(cells)
        cost = {scene.cell: 0.0}
        queue: list[tuple[float, Cell, Thing | None]] = [(0.0, scene.cell, None)]
        while queue:
            so_far, cell, obstacle = heapq.heappop(queue)
            if so_far > cost[cell]:
                continue
            near = [(cell[0] + dx, cell[1] + dy) for dx, dy in VECTORS]
            if targets.intersection(near):
                return _Way(so_far, obstacle)
            for following in near:
                step = self._step(following, busy)
                if step is None or so_far + step >= cost.get(following, float("inf")):
                    continue
                cost[following] = so_far + step
                thing = scene.things.get(following)
                if thing is not None and thing.state in (OPEN, CLOSED):
                    thing = None
                heapq.heappush(queue, (so_far + step, following, obstacle or thing))
        return None

    def _step(self, cell: Cell, busy: frozenset[int]) -> float | None:
        """Cost of entering a cell; None if that is impossible."""
        thing = self.scene.things.get(cell)
        if self.scene.is_wall(cell) or (thing is not None and thing.number in busy):
            return None
        if thing is None or thing.state == OPEN:
            return 1
        strict = {clause.verb for clause in self.current if clause.strict}
        if thing.kind != "door":
            return None if "pick up" in strict else _IN_THE_WAY
        if "open" in strict:
            return None
        if thing.state == CLOSED or opens(self.scene.carrying, thing):
            return 1 + _SHUT
        return _LOCKED

    # ---------------------------------------------------------------------------------------------------------- acting

    def _put_down(self, before: Scene, move: int, after: Scene) -> float | None:
        """Put down what is carried, rather not where it shuts off a door, a thing or a passage."""
        if move != DROP or after.carrying is not None:
            return None
        (x, y) = before.front
        beside = [before.things.get((x + dx, y + dy)) for dx, dy in VECTORS]
        if any(thing is not None and thing.kind == "door" for thing in beside):
            return 12.0
        if _divides(before, before.front):
            return 6.0
        return 2.0 if any(beside) else 0.0

    def leg(self, wanted: Wanted) -> None:
        """Search for the fewest actions that bring something about, and take them."""
        best: tuple[float, list[str], Scene] | None = None
        queue: deque[tuple[list[str], Scene]] = deque([([], self.scene)])
        seen = {(self.scene.cell, self.scene.facing)}
        while queue and (best is None or len(queue[0][0]) + 1 < best[0]):
            actions, scene = queue.popleft()
            for action, moves in options(scene).moves.items():
                end, malus = self._carry_out(scene, moves, wanted)
                if end is None:
                    continue
                if malus is not None:
                    if best is None or len(actions) + 1 + malus < best[0]:
                        best = len(actions) + 1 + malus, [*actions, action], end
                elif not {PICKUP, DROP}.intersection(moves) and (end.cell, end.facing) not in seen:
                    seen.add((end.cell, end.facing))
                    queue.append(([*actions, action], end))
        if best is None:
            raise UserError("babyai's expert finds no actions that do what comes next.")
        self._take(best[1])

    def _carry_out(self, scene: Scene, moves: Sequence[int], wanted: Wanted) -> tuple[Scene | None, float | None]:
        """Where moves end, None if in a mistake; and whether they bring about what is wanted."""
        malus: float | None = None
        for move in moves:
            after = scene.after(move)
            if after is scene:
                break
            if any(spoils(clause, scene, move, after) for clause in self.current):
                return None, None
            gained = wanted(scene, move, after)
            malus = gained if malus is None else malus
            scene = after
        return scene, malus

    def _take(self, actions: list[str]) -> None:
        """Carry out actions, and cross off what they do."""
        for action in actions:
            for move in options(self.scene).moves[action]:
                after = self.scene.after(move)
                if after is self.scene:
                    break
                self._cross_off(move, after)
                self.scene = after
            self.actions.append(action)
            if not self.pending:
                return

    def _cross_off(self, move: int, after: Scene) -> None:
        while self.pending:  # what follows may be done by the same move
            done = [clause for clause in self.current if fulfils(clause, self.scene, move, after)]
            over = len(done) == len(self.current)
            self.pending = [clause for clause in self.pending if clause not in done]
            if not over:
                return


def _divides(scene: Scene, cell: Cell) -> bool:
    """Whether a thing put into a free cell would part the free cells around it."""
    ring = [(1, 0), (1, 1), (0, 1), (-1, 1), (-1, 0), (-1, -1), (0, -1), (1, -1)]
    free = [scene.can_enter((cell[0] + dx, cell[1] + dy)) for dx, dy in ring]
    # Walk around the cell: every stretch of free cells that holds a direct neighbour (even index) is a part of its own.
    if all(free):
        return False
    start = free.index(False)
    parts, direct = 0, False
    for i in range(start, start + 9):
        if free[i % 8]:
            direct = direct or i % 2 == 0
        else:
            parts, direct = parts + direct, False
    return parts > 1
