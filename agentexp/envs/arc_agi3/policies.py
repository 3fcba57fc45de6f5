"""Scripted agents for the games. They read what a language model reads: the texts, the list of actions and the map.

* `random`      any listed action; RESET when the game is over.
* `repetitive`  goes to and fro between the first two listed actions.
* `systematic`  an action untried in this situation; else the shortest known way to a situation that has one.
* `curious`     the same, beginning with what leads to the least visited place and with what was tried least often anywhere.
* `myopic`      repeats what changed something, else draws; with probability 0.3 it repeats what changed nothing.
* `mapuser`     explores like `curious` while mapping; while acting it walks to whatever it has not touched yet, as far as it
                knows how to walk, and searches systematically otherwise. The map saves it finding out how actions move things,
                what is in the way, and which actions do nothing.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Hashable

from agentexp.core import Policy, View
from agentexp.envs.agents import fresh_agent
from agentexp.envs.arc_agi3 import actions
from agentexp.envs.arc_agi3.navigator import Navigator
from agentexp.envs.arc_agi3.reader import Event, Reader, click_context
from agentexp.envs.arc_agi3.tracker import digest

REPEAT = 0.3
RESET = "RESET"


def make(name: str, seed: int) -> Policy:
    """A fresh policy by name."""
    kinds: dict[str, type[_Player]] = {
        "curious": Curious,
        "mapuser": MapUser,
        "myopic": Myopic,
        "random": Random,
        "repetitive": Repetitive,
        "systematic": Systematic,
    }
    return fresh_agent(kinds, name, "arc_agi3", seed)


class _Player:
    """What all remember: situations, what was tried in them and where it led."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.reader = Reader()
        self.edges: dict[Hashable, dict[str, Hashable]] = {}
        self.options: dict[Hashable, list[str]] = {}
        self.tried: Counter[str] = Counter()
        self._read = 0

    def act(self, view: View) -> str:
        """The next action."""
        self.look(view)
        if self.reader.over:
            return RESET
        listed = [action for action in view.step.admissible or () if action != RESET]
        if not listed:
            return RESET
        self.options[self.here()] = listed
        return self.choose(view, listed)

    def choose(self, view: View, listed: list[str]) -> str:
        """An action of the list."""
        raise NotImplementedError

    def look(self, view: View) -> None:
        """Take in what is new; a new phase begins at its first observation, what was learnt about situations stays."""
        if not view.history:
            self.reader.observe(None, view.step)
            self._read = 0
        for action, step in view.history[self._read :]:
            before = self.here()
            event = self.reader.observe(action, step)
            if event.action is not None:
                text = str(event.action)
                self.edges.setdefault(before, {})[text] = self.here()
                self.tried[event.context] += 1
                self.learn(event)
        self._read = len(view.history)

    def learn(self, event: Event) -> None:
        """More to remember about an action's effect."""

    def here(self) -> Hashable:
        """The situation: the level and its frame without the border."""
        grid = self.reader.grid
        return (self.reader.level, self.reader.over, digest(grid) if grid else "")

    def context(self, action: str) -> str:
        """The action with what it hits."""
        parsed, _ = actions.parse(action, tuple(range(1, 8)))
        if parsed is None or parsed.x is None or parsed.y is None:
            return action
        return click_context(self.reader.grid, parsed.x, parsed.y)[0]


class Random(_Player):
    """Uniform."""

    def choose(self, view: View, listed: list[str]) -> str:
        """Any action."""
        return self.rng.choice(listed)


class Repetitive(_Player):
    """To and fro."""

    def choose(self, view: View, listed: list[str]) -> str:
        """The first two actions by turns."""
        return listed[len(view.history) % min(2, len(listed))]


class Myopic(_Player):
    """Holds on to what worked last."""

    def choose(self, view: View, listed: list[str]) -> str:
        """The last action again if it changed something, sometimes even if not; else any."""
        last = next((action for action, _ in reversed(view.history) if action in listed), None)
        changed = len(view.history) > 0 and not view.step.error and "Nothing changed." not in view.step.observation
        if last is not None and (changed or self.rng.random() < REPEAT):
            return last
        return self.rng.choice(listed)


class Systematic(_Player):
    """Searches the graph of situations."""

    def choose(self, view: View, listed: list[str]) -> str:
        """Untried here, else on the way to something untried; a RESET where no such way is known."""
        here = self.here()
        fresh = self.untried(here)
        if fresh:
            return fresh[0]
        return self._way(here) or (RESET if view.history and view.history[-1][0] != RESET else self.rng.choice(listed))

    def untried(self, situation: Hashable) -> list[str]:
        """Actions of a situation that were never sent there."""
        done = self.edges.get(situation, {})
        return [action for action in self.options.get(situation, ()) if action not in done]

    def _way(self, here: Hashable) -> str | None:
        queue: deque[tuple[Hashable, str | None]] = deque([(here, None)])
        known = {here}
        while queue:
            place, first = queue.popleft()
            if first is not None and self.untried(place):
                return first
            for action, there in self.edges.get(place, {}).items():
                if there not in known:
                    known.add(there)
                    queue.append((there, first or action))
        return None


class Curious(Systematic):
    """The search, but where nobody was and what was rarely tried comes first."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.navigator = Navigator()
        self.visits: Counter[tuple[int, int, int]] = Counter()

    def learn(self, event: Event) -> None:
        """Keep how things move, and where the thing that actions move has been."""
        self.navigator.observe(event)
        found = self.navigator.mover(self.reader.grid)
        if found is not None:
            self.visits[(self.reader.level, found[0].x, found[0].y)] += 1

    def untried(self, situation: Hashable) -> list[str]:
        """What leads to the least visited place first, then what was tried least anywhere."""
        found = super().untried(situation)
        if situation != self.here():
            return found
        mover = self.navigator.mover(self.reader.grid)

        def visits(action: str) -> int:
            if mover is None or action not in mover[1]:
                return 0
            dx, dy = mover[1][action]
            return self.visits[(self.reader.level, mover[0].x + dx, mover[0].y + dy)]

        order = {action: (visits(action), self.tried[self.context(action)], self.rng.random()) for action in found}
        return sorted(found, key=order.__getitem__)


class MapUser(Curious):
    """Explores while mapping; walks and searches while acting."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.curious = False
        self.dead: set[str] = set()
        self.alive: set[str] = set()

    def look(self, view: View) -> None:
        """The actor knows what the map tells, nothing else of the exploration."""
        self.curious = _exploring(view)
        if not view.history and not self.curious:
            self.navigator, self.dead, self.alive, self.visits = Navigator(), set(), set(), Counter()
            self.edges, self.options, self.tried = {}, {}, Counter()
            for entry in view.map.affordances if view.map else ():
                context = str(entry.get("action", "")) + (f" on {entry['target']}" if entry.get("target") else "")
                self.navigator.learn(context, str(entry.get("effect") or ""), str(entry.get("requires") or ""))
                (self.alive if entry.get("works") else self.dead).add(context)
        super().look(view)

    def learn(self, event: Event) -> None:
        """Keep how things move and what stops them."""
        super().learn(event)
        (self.alive if event.effect else self.dead).add(event.context)

    def choose(self, view: View, listed: list[str]) -> str:
        """The next step of a walk, else the search."""
        if self.curious:
            return super().choose(view, listed)
        step = self.navigator.next(self.reader.grid, self.reader.level)
        return step if step in listed else super().choose(view, listed)

    def untried(self, situation: Hashable) -> list[str]:
        """Without what is known to do nothing, and what is known to work first."""
        found = super().untried(situation)
        if self.curious or situation != self.here():
            return found
        contexts = {action: self.context(action) for action in found}
        hopeless = self.dead - self.alive
        found = [action for action in found if contexts[action] not in hopeless or "ACTION6" not in action]
        return sorted(found, key=lambda action: contexts[action] not in self.alive)


def _exploring(view: View) -> bool:
    return view.phase.startswith(("map", "explor")) or not view.goal
