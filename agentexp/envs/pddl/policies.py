"""Scripted agents for the PDDL worlds. They read the texts, the goal, the map and the list of possible actions.

* `random` draws from the possible actions.
* `systematic` explores without a goal: the possible action whose kind and thing were tried least, in the order of the list; it
  never undoes its last action while there is anything else to do. `curious` does so too, but draws among equals.
* `repetitive` goes back and forth: among the first few actions that it ever did, the one done longest ago.
* `myopic` follows guidance that is literally an action; else it takes the possible action that names most things of conditions
  which do not hold yet, whatever its effect, and with probability 0.3 what it did before, if that is possible.
* `mapuser` explores like `curious` while mapping. While acting it plans, but only with actions that it knows: that it has seen
  to work in this episode, or that are on the map (K_g: all). It has read what those need and change. Without a plan it tries
  an unknown one.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from agentexp.core import Policy, View
from agentexp.envs.agents import fresh_agent
from agentexp.envs.pddl.grounding import Ground
from agentexp.envs.pddl.language import Atom, Literals, Problem
from agentexp.envs.pddl.phrases import Phrases
from agentexp.envs.pddl.reading import Event, Reading
from agentexp.envs.pddl.search import Planner, Unsolved
from agentexp.envs.pddl.tracker import conditions

if TYPE_CHECKING:
    from agentexp.core import Step

REPEAT = 0.3
FEW = 4  # things that the repetitive agent keeps doing
IDLE = "look around"
PLAN_LIMIT = 2_000  # states; a scripted agent need not think long


class _Reader:
    """Keeps a reading of the current phase up to date."""

    def __init__(self, seed: int, known: Sequence[Phrases]) -> None:
        self.rng = random.Random(seed)
        self._known = known
        self.reading = Reading(known)
        self.done: Counter[Atom] = Counter()
        self.tried: Counter[str] = Counter()
        self._read = 0

    def look(self, view: View) -> None:
        """Take in what is new; a fresh phase starts over."""
        if not view.history:
            self.reading, self._read = Reading(self._known), 0
            self.done, self.tried = Counter(), Counter()
            self.reading.read(None, view.step)
        for action, step in view.history[self._read :]:
            self.take_in(self.reading.read(action, step), step)
        self._read = len(view.history)

    def take_in(self, event: Event, step: Step) -> None:
        """One answer."""
        if event.action is not None:
            self.done[event.action] += 1
            self.tried[self.reading.phrases.about(event.action)] += 1

    def possible(self, view: View) -> list[tuple[str, Atom]]:
        """Possible actions with what they are, without looking and checking."""
        found = ((command, self.reading.phrases.read_action(command)) for command in view.step.admissible or ())
        return [(command, name) for command, name in found if name is not None]


class Random(_Reader):
    """Any possible action."""

    def act(self, view: View) -> str:
        """See `Policy`."""
        self.look(view)
        return self.rng.choice(self.possible(view) or [(IDLE, ())])[0]


class Systematic(_Reader):
    """Least tried first."""

    def act(self, view: View) -> str:
        """See `Policy`."""
        self.look(view)
        return self.explore(view)

    def explore(self, view: View) -> str:
        """The possible action whose thing, then which itself, was done least often."""
        about = self.reading.phrases.about
        ranked = [((self.tried[about(name)], self.done[name], self.tie()), command) for command, name in self.possible(view)]
        return min(ranked, key=lambda pair: pair[0])[1] if ranked else IDLE

    def tie(self) -> float:
        """Order among equals: as listed."""
        return 0.0


class Curious(Systematic):
    """Least tried first, drawn among equals."""

    def tie(self) -> float:
        """Order among equals: drawn."""
        return self.rng.random()


class Repetitive(_Reader):
    """Back and forth."""

    def __init__(self, seed: int, known: Sequence[Phrases]) -> None:
        super().__init__(seed, known)
        self._habit: list[Atom] = []

    def act(self, view: View) -> str:
        """See `Policy`."""
        self.look(view)
        if not view.history:
            self._habit = []
        possible = self.possible(view)
        habitual = [(self._habit.index(name), command, name) for command, name in possible if name in self._habit]
        if habitual:
            _, command, name = min(habitual)
            self._habit.remove(name)
        elif possible and len(self._habit) < FEW:
            command, name = possible[0]
        else:
            return IDLE
        self._habit.append(name)
        return command


class Myopic(_Reader):
    """Grabs at whatever the goal names."""

    def __init__(self, seed: int, known: Sequence[Phrases]) -> None:
        super().__init__(seed, known)
        self._followed: set[str] = set()
        self._last = ""

    def act(self, view: View) -> str:
        """See `Policy`."""
        self.look(view)
        self._last = self._guided(view) or self._choose(view)
        return self._last

    def _choose(self, view: View) -> str:
        possible = self.possible(view)
        if not possible:
            return IDLE
        if any(command == self._last for command, _ in possible) and self.rng.random() < REPEAT:
            return self._last
        phrases = self.reading.phrases
        said = set(map(phrases.fact, self.reading.now))
        wanted = {word for condition in conditions(view.goal) if condition not in said for word in condition.split()}
        scores = [(len(wanted.intersection(name[1:])), self.rng.random(), command) for command, name in possible]
        return max(scores)[2]

    def _guided(self, view: View) -> str:
        """The next line of the guidance that is an action and was not followed yet."""
        guidance = view.knowledge.get("guidance") or ""
        text = "\n".join(map(str, guidance)) if isinstance(guidance, list | tuple) else str(guidance)
        for line in text.splitlines():
            action = re.sub(r"^\s*(?:[-*•]|\d+[.)])?\s*(?:action:)?\s*", "", line, flags=re.IGNORECASE).strip(" `\"'.")
            if line not in self._followed and self.reading.phrases.read_action(action) is not None:
                self._followed.add(line)
                return action.lower()
        return ""


class MapUser(Curious):
    """Plans with the actions that it knows."""

    def __init__(self, seed: int, known: Sequence[Phrases]) -> None:
        super().__init__(seed, known)
        self.verbs: set[str] = set()
        self._plan: list[Atom] = []
        self._planned_with: tuple[object, ...] = ()

    def take_in(self, event: Event, step: Step) -> None:
        """See `_Reader`; an action that worked is known from then on."""
        super().take_in(event, step)
        if event.action is not None and event.worked:
            self.verbs.add(event.action[0])
            self._believe(event.action)

    def act(self, view: View) -> str:
        """See `Policy`."""
        if view.phase.startswith(("map", "explor")) or not view.goal:
            return super().act(view)
        if not view.history:
            self.verbs, self._plan, self._planned_with = set(), [], ()
        self.look(view)
        if not view.history:
            for entry in view.map.affordances if view.map else ():
                name = self.reading.phrases.read_action(str(entry.get("action") or "").strip())
                if name is not None and entry.get("works"):
                    self.verbs.add(name[0])
        if view.knowledge.get("k_g"):
            self.verbs = set(self.reading.phrases.actions)
        possible = {name: command for command, name in self.possible(view)}
        if not self._plan or self._plan[0] not in possible:
            self._plan = self._make_plan(view)
        if self._plan and self._plan[0] in possible:
            return possible[self._plan.pop(0)]
        unknown = [(command, name) for name, command in possible.items() if name[0] not in self.verbs]
        return self.rng.choice(unknown)[0] if unknown else self.explore(view)

    def _believe(self, name: Atom) -> None:
        """What the answers of some worlds do not tell: which facts ended."""
        schema = self.reading.phrases.domain.schemas[name[0]]
        binding = dict(zip((v for v, _ in schema.parameters), name[1:], strict=True))
        added = {tuple(binding.get(v, v) for v in atom) for atom in schema.effect.positive}
        self.reading.now -= {tuple(binding.get(v, v) for v in atom) for atom in schema.effect.negative} - added

    def _make_plan(self, view: View) -> list[Atom]:
        """A plan from what is believed now with the known actions; empty if there is none."""
        phrases = self.reading.phrases
        now = frozenset(self.reading.now)
        situation = (now, frozenset(self.verbs))
        goal = [atom for condition in conditions(view.goal) for atom in phrases.read_facts(condition + ".")]
        if situation == self._planned_with or not goal or not self.verbs:
            return []
        self._planned_with = situation
        domain = replace(phrases.domain, schemas={n: s for n, s in phrases.domain.schemas.items() if n in self.verbs})
        # Types follow from where a name stands in the facts that the texts told.
        problem = Problem("now", domain.name, _types(phrases, now | set(goal)), now, Literals(tuple(goal)))
        ground = Ground(domain, problem)
        try:
            return [op.name for op in Planner(ground).plan(ground.init, PLAN_LIMIT, effort=100)]
        except Unsolved:
            return []


def _types(phrases: Phrases, atoms: frozenset[Atom]) -> dict[str, tuple[str, ...]]:
    """Objects with the types that their names ("shot1") or else the predicates' declarations give them."""
    found: dict[str, tuple[str, ...]] = dict(phrases.domain.constants)
    for atom in sorted(atoms):
        for name, kinds in zip(atom[1:], phrases.domain.argument_types[atom[0]], strict=True):
            old = found.get(name, ("object",))
            if phrases.domain.is_a(kinds, old):
                found[name] = kinds
    types = {*phrases.domain.parents, *(kind for kinds in phrases.domain.parents.values() for kind in kinds)}
    return {name: (stem,) if (stem := name.rstrip("0123456789")) in types else kinds for name, kinds in found.items()}


NAMES: dict[str, Callable[[int, Sequence[Phrases]], Policy]] = {
    "curious": Curious,
    "mapuser": MapUser,
    "myopic": Myopic,
    "random": Random,
    "repetitive": Repetitive,
    "systematic": Systematic,
}


def make(name: str, seed: int, known: Sequence[Phrases]) -> Policy:
    """A fresh policy by name."""
    return fresh_agent(NAMES, name, "pddl", seed, known)
