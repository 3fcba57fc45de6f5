"""The planner: greedy search on the FF heuristic with preferred operators, then shorter plans by weighted A*.

FF: Hoffmann and Nebel 2001; lazy evaluation and two queues as in LAMA, Richter and Westphal 2010. Where the search for the
whole goal stalls, its conditions are reached one after the other, and then random restarts are tried. Satisficing: plans are
short but not proved shortest. Deterministic: limits are numbers of evaluated states, never seconds.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Sequence
from typing import NamedTuple

from agentexp.envs.pddl.grounding import Ground, Operator

QUICK = 200  # states for the whole goal at once; enough nearly always, but not in barman
STAGE = 300  # states for one more condition of the goal
RESTART = 800  # states for one random restart
BOOST = 50  # expansions that the preferred queue gains, in every other restart, when the heuristic improves
WEIGHTS = (3, 2, 1)  # of the heuristic in A*, for shorter and shorter plans
CACHE = 100_000  # states whose heuristic is remembered


class Unsolved(Exception):
    """No plan within the limit. `proved` says that there is none at all."""

    def __init__(self, proved: bool) -> None:
        super().__init__("no plan exists" if proved else "no plan within the limit of states")
        self.proved = proved


class Estimate(NamedTuple):
    """Length of a relaxed plan, and its actions that are applicable now (as a mask over operator numbers)."""

    length: int
    preferred: frozenset[int]


class Planner:
    """Plans for one problem from any of its states.

    Args:
        ground: the problem.
    """

    def __init__(self, ground: Ground) -> None:
        self.ground = ground
        n = len(ground.atoms)
        # Atom i has a complement n + i for the relaxation where a condition or the goal asks for its absence.
        self._size = 2 * n
        self._needs = [[*_bits(op.needs), *(n + i for i in _bits(op.forbids))] for op in ground.operators]
        self._goal = (*_bits(ground.goal[0]), *(n + i for i in _bits(ground.goal[1])))
        asked = {i for needs in self._needs for i in needs} | set(self._goal)
        self._adds = [
            [*_bits(op.adds), *(n + i for i in _bits(op.deletes & ~op.adds) if n + i in asked)] for op in ground.operators
        ]
        self._negated = sorted(i for i in asked if i >= n)
        self._users: list[list[int]] = [[] for _ in range(self._size)]
        for i, needs in enumerate(self._needs):
            for atom in needs:
                self._users[atom].append(i)
        self._makers: list[list[int]] = [[] for _ in range(self._size)]
        for i, atoms in enumerate(self._adds):
            for atom in atoms:
                self._makers[atom].append(i)
        self._counts = [len(needs) for needs in self._needs]
        self._free = [i for i, needs in enumerate(self._needs) if not needs]
        self._seen: dict[tuple[int, tuple[int, ...]], Estimate | None] = {}
        self._left = 0  # states that may still be evaluated

    def plan(self, state: int, limit: int = 30_000, effort: int = 300) -> list[Operator]:
        """Ground actions from a state to the goal.

        Args:
            state: where to start.
            limit: states that the search for a first plan may evaluate.
            effort: states that each search for a shorter one may evaluate.

        Raises:
            Unsolved: there is no plan, or none was found.
        """
        if not self.ground.goal[2]:
            raise Unsolved(True)
        plan = self._shorten(state, self._first(state, limit))
        if effort and len(plan) > 1:
            plan = self._improve(state, plan, effort)
        return plan

    def estimate(self, state: int, goal: tuple[int, ...] | None = None) -> Estimate | None:
        """The FF heuristic; None where no relaxed plan exists, so that there is no plan.

        Args:
            state: from where.
            goal: atom numbers; None for the problem's goal.
        """
        key = state, self._goal if goal is None else goal
        if key not in self._seen:
            if len(self._seen) > CACHE:
                self._seen.clear()
            self._seen[key] = self._relaxed(*key)
        return self._seen[key]

    # ---------------------------------------------------------------------------------------------------------- searches

    def _first(self, start: int, limit: int) -> list[Operator]:
        """Any plan."""
        self._left = limit
        plan = self._greedy(start, self._goal, QUICK)
        hardest = sorted(self._goal, key=lambda atom: self._length(start, atom), reverse=True)
        for order in (hardest, hardest[::-1]) if len(hardest) > 1 else ():
            plan = self._one_by_one(start, order) if plan is None else plan
        seed = 0
        while plan is None:
            seed += 1
            plan = self._greedy(start, self._goal, RESTART, BOOST * (seed % 2), random.Random(seed))
            if plan is None and self._left <= 0:
                raise Unsolved(False)
        return plan

    def _length(self, state: int, atom: int) -> int:
        found = self.estimate(state, (atom,))
        return found.length if found else 0

    def _one_by_one(self, start: int, order: Sequence[int]) -> list[Operator] | None:
        """Reach the first condition, then the first two, and so on. None where that leads nowhere, which proves nothing."""
        state, plan = start, list[Operator]()
        for count in range(1, len(order) + 1):
            part = None
            for seed in range(3):
                try:
                    part = self._greedy(
                        state, tuple(order[:count]), STAGE, BOOST * (seed % 2), random.Random(seed) if seed else None
                    )
                except Unsolved:
                    return None
                if part is not None:
                    break
            if part is None:
                return None
            for op in part:
                state = op.after(state)
            plan += part
        return plan

    def _greedy(
        self, start: int, goal: tuple[int, ...], limit: int, boost: int = 0, rng: random.Random | None = None
    ) -> list[Operator] | None:
        """Greedy best-first search over two queues in turn; None at the limit. `rng` orders equals, else the older comes first.

        Raises:
            Unsolved: nothing is left to search, so there is no plan.
        """
        need, avoid = self._masks(goal)
        came: dict[int, tuple[int, Operator] | None] = {start: None}
        queues: tuple[list[tuple[int, float, int]], list[tuple[int, float, int]]] = ([(0, 0, start)], [])  # all, preferred
        turns = [0, 0]
        closed: set[int] = set()
        pushed, evaluated, best = 0, 0, 1 << 30
        operators = self.ground.operators
        while queues[0] or queues[1]:
            which = 1 if queues[1] and (not queues[0] or turns[1] <= turns[0]) else 0
            turns[which] += 1
            state = heapq.heappop(queues[which])[2]
            if state in closed:
                continue
            closed.add(state)
            if state & need == need and not state & avoid:
                return _trace(came, state)
            if evaluated >= limit or self._left <= 0:
                return None
            evaluated, self._left = evaluated + 1, self._left - 1
            found = self.estimate(state, goal)
            if found is None:
                continue
            if found.length < best:
                best, turns[1] = found.length, turns[1] - boost
            for i, op in enumerate(operators):
                if state & op.needs == op.needs and not state & op.forbids:
                    after = op.after(state)
                    if after in closed:
                        continue
                    pushed += 1
                    entry = found.length, rng.random() if rng else pushed, after
                    if after not in came:
                        came[after] = (state, op)
                        heapq.heappush(queues[0], entry)
                    if i in found.preferred:
                        heapq.heappush(queues[1], entry)
        raise Unsolved(True)

    def _masks(self, goal: Sequence[int]) -> tuple[int, int]:
        """Atom numbers as masks of what must hold and what must not."""
        n = len(self.ground.atoms)
        return sum(1 << i for i in goal if i < n), sum(1 << (i - n) for i in goal if i >= n)

    def _improve(self, start: int, plan: list[Operator], effort: int) -> list[Operator]:
        """Weighted A*, with a smaller weight each time, for a plan shorter than the last one."""
        for weight in WEIGHTS:
            shorter = self._astar(start, weight, effort, len(plan))
            if shorter is not None:
                plan = self._shorten(start, shorter)
        return plan

    def _astar(self, start: int, weight: int, effort: int, below: int) -> list[Operator] | None:
        queue = [(0, 0, 0, 0, start)]
        cost = {start: 0}
        came: dict[int, tuple[int, Operator] | None] = {start: None}
        evaluated = pushed = 0
        while queue:
            _, _, _, g, state = heapq.heappop(queue)
            if g > cost[state]:
                continue
            if self.ground.solved(state):
                return _trace(came, state)
            for op in self.ground.applicable(state):
                after = op.after(state)
                if g + 1 >= cost.get(after, below):
                    continue
                evaluated += after not in cost
                found = self.estimate(after)
                if found is None or (found.length and g + 2 > below - 1):
                    continue
                cost[after], came[after] = g + 1, (state, op)
                pushed += 1
                heapq.heappush(queue, (g + 1 + weight * found.length, found.length, pushed, g + 1, after))
            if evaluated > effort:
                return None
        return None

    def _shorten(self, start: int, plan: Sequence[Operator]) -> list[Operator]:
        """Leave out every action, with all that then fails, where the rest still reaches the goal."""
        kept, i = list(plan), 0
        while i < len(kept):
            state, rest = start, list[Operator]()
            for j, op in enumerate(kept):
                if j != i and op.possible(state) and (after := op.after(state)) != state:
                    state = after
                    rest.append(op)
            if self.ground.solved(state):
                kept = rest
            else:
                i += 1
        return kept

    # --------------------------------------------------------------------------------------------------------- heuristic

    def _relaxed(self, state: int, goal: tuple[int, ...]) -> Estimate | None:
        """Costs by the sum heuristic, then a relaxed plan along the cheapest supporters."""
        n = len(self.ground.atoms)
        cost = [1 << 30] * self._size
        supporter = [-1] * self._size
        missing, total = self._counts[:], [1] * len(self._counts)
        adds, users = self._adds, self._users
        start = [*_bits(state), *(i for i in self._negated if not state >> (i - n) & 1)]
        for i in start:
            cost[i] = 0
        layers: list[list[int]] = [start, []]  # atoms by cost; costs are small integers
        for op in self._free:
            for atom in adds[op]:
                if cost[atom] > 1:
                    cost[atom], supporter[atom] = 1, op
                    layers[1].append(atom)
        left = set(goal)
        value = 0
        while value < len(layers) and left:
            for atom in layers[value]:
                if cost[atom] != value:
                    continue
                left.discard(atom)
                for op in users[atom]:
                    missing[op] -= 1
                    total[op] += value
                    if not missing[op]:
                        price = total[op]
                        while price >= len(layers):
                            layers.append([])
                        for added in adds[op]:
                            if price < cost[added]:
                                cost[added], supporter[added] = price, op
                                layers[price].append(added)
            value += 1
        if left:
            return None
        chosen: set[int] = set()
        todo = [atom for atom in goal if cost[atom]]
        while todo:
            op = supporter[todo.pop()]
            if op not in chosen:
                chosen.add(op)
                todo += [atom for atom in self._needs[op] if cost[atom]]
        # Helpful actions of FF: whatever can be done now and adds something that the relaxed plan makes in its first layer.
        first = {op for op in chosen if all(not cost[atom] for atom in self._needs[op])}
        made = {atom for op in first for atom in self._adds[op] if supporter[atom] == op and cost[atom] == 1}
        now = (op for atom in made for op in self._makers[atom] if all(not cost[a] for a in self._needs[op]))
        return Estimate(len(chosen), frozenset(now))


def _bits(mask: int) -> list[int]:
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return found


def _trace(came: dict[int, tuple[int, Operator] | None], state: int) -> list[Operator]:
    plan: list[Operator] = []
    while (step := came[state]) is not None:
        state, op = step
        plan.append(op)
    return plan[::-1]
