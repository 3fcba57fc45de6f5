"""Facts from the texts of the PDDL worlds (MAP, appendix B.1; kinds in the order of their usefulness).

    ("works", (verb,), effects)     a first success of an action; the value grows with what it was seen to change
    ("can", (verb, thing))          an action was carried out on a thing
    ("refused", (verb,), reason)    an action was refused; "not always" once it has worked
    ("possible", (verb,))           "check valid actions" listed it
    ("reached", (predicate, ...))   a fact became true that was not true at the start

The state at reset is given, not discovered: it is no fact. It does enter the map.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from agentexp.core import CognitiveMap, Fact, Step
from agentexp.envs.pddl.language import Atom
from agentexp.envs.pddl.phrases import Phrases
from agentexp.envs.pddl.reading import LISTING, Event, Reading

NOT_ALWAYS = "not always"
PREFIX = "The goal is to satisfy the following conditions: "
ON_THE_TABLE = "table"

# Facts as entries of a map: (thing, relation, place); numbers are arguments. Unary predicates need no entry.
_ENTRIES: dict[str, dict[str, tuple[int | str, str, int | str]]] = {
    "gripper": {"at": (0, "at", 1), "at-robby": ("robby", "at", 0), "carry": (0, "in", 1)},
    "blockworld": {
        "on": (0, "on", 1),
        "on-table": (0, "on", ON_THE_TABLE),
        "holding": (0, "in", "arm"),
        "arm-empty": ("arm", "is", "empty"),
    },
    "tyreworld": {
        "in": (0, "in", 1),
        "on": (0, "on", 1),
        "tight": (0, "on", 1),
        "loose": (0, "on", 1),
        "isopen": (0, "is", "open"),
        "have": (0, "is", "in your hands"),
        "on-ground": (0, "is", "on the ground"),
        "not-on-ground": (0, "is", "off the ground"),
        "not-inflated": (0, "is", "not inflated"),
    },
    "barman": {
        "ontable": (0, "on", ON_THE_TABLE),
        "holding": (1, "in", 0),
        "handempty": (0, "is", "empty"),
        "contains": (1, "in", 0),
        "dispenses": (0, "contains", 1),
        "shaker-level": (0, "at", 1),
        "next": (0, "connects", 1),
        "used": (0, "is", "used"),
        "cocktail-part1": (0, "contains", 1),
        "cocktail-part2": (0, "contains", 1),
    },
}
_ALSO = {("tyreworld", "tight"): "tight", ("tyreworld", "loose"): "loose"}


class PddlTracker:
    """Reads one exploration of one problem.

    Args:
        known: sentences of every domain that may come.
    """

    def __init__(self, known: Sequence[Phrases]) -> None:
        self.reading = Reading(known)
        self._facts: dict[tuple[str, tuple[str, ...]], str] = {}
        self._examples: dict[str, Event] = {}  # first success of each action

    def observe(self, action: str | None, step: Step) -> list[Fact]:
        """Facts that are new or changed."""
        event = self.reading.read(action, step)
        if action is None:
            return []
        before = dict(self._facts)
        for listed in event.listed:
            self._facts.setdefault(("possible", (listed[0],)), "")
        name = event.action
        if name is not None and not event.worked:
            works = ("works", (name[0],)) in self._facts
            self._facts[("refused", (name[0],))] = NOT_ALWAYS if works else ""
        elif name is not None:
            self._worked(name, event)
        return [Fact(*key, value) for key, value in self._facts.items() if before.get(key) != value]

    def facts(self) -> list[Fact]:
        """Everything known, in the order of discovery."""
        return [Fact(*key, value) for key, value in self._facts.items()]

    def mask(self, observation: str) -> str:
        """The kinds of sentences that stand there, names as <e>, each once."""
        text = observation.rpartition("\n\n")[2]
        if text.startswith(LISTING):
            listed = (self.reading.phrases.read_action(part) for part in text.removeprefix(LISTING).split(", "))
            return LISTING.lower() + ", ".join(sorted({name[0] for name in listed if name}))
        atoms = self.reading.phrases.read_facts(text)
        if not atoms:
            return re.sub(r"\d+", "<n>", " ".join(text.lower().split()))
        facts = self.reading.phrases.facts
        return " ".join(sorted({facts[name].fill(["<e>"] * facts[name].arity) + "." for name, *_ in atoms}))

    def place(self) -> str:
        """Robby's room; the other worlds have no place for the agent."""
        return next((atom[1] for atom in sorted(self.reading.now) if atom[0] == "at-robby"), "")

    def map(self, goal: str) -> CognitiveMap:
        """The state at reset, an affordance for each action that was tried, the goal's conditions, verbs never seen to work."""
        phrases = self.reading.phrases
        chart = CognitiveMap(spatial=[entry for atom in self.reading.start for entry in entries(phrases, atom)])
        for command, event in self._examples.items():
            effect = "makes true: " + ", ".join(map(phrases.fact, event.new)) if event.new else ""
            gone = ", ".join(map(phrases.fact, event.gone))
            assert event.action is not None
            entry = {
                "action": command,
                "target": phrases.about(event.action).partition(" ")[2],
                "works": True,
                "effect": "; ".join(filter(None, (effect, f"makes false: {gone}" if gone else ""))),
                "requires": None,
            }
            chart.affordances.append(entry)
        worked = {subject[0] for kind, subject in self._facts if kind == "works"}
        for kind, subject in self._facts:
            if kind == "refused" and subject[0] not in worked:
                entry = {"action": subject[0], "target": "", "works": False, "effect": "refused", "requires": "its conditions"}
                chart.affordances.append(entry)
        said = set(map(phrases.fact, self.reading.start))
        for condition in conditions(goal):
            holds = condition in said if not condition.startswith("not: ") else condition.removeprefix("not: ") not in said
            chart.task_notes.append(f"{'Holds' if holds else 'Does not hold'} at the start: {condition}.")
        chart.unknown = [f"what this does: {phrases.form(verb)}" for verb in phrases.actions if verb not in worked]
        return chart

    def _worked(self, name: Atom, event: Event) -> None:
        phrases, verb = self.reading.phrases, name[0]
        key = ("works", (verb,))
        old = self._facts.get(key, "")
        seen = {*old.split(", ")} if old else set[str]()
        seen |= {f"+{atom[0]}" for atom in event.new} | {f"-{atom[0]}" for atom in event.gone}
        self._facts[key] = ", ".join(sorted(seen))
        if ("refused", (verb,)) in self._facts:
            self._facts[("refused", (verb,))] = NOT_ALWAYS
        about = phrases.about(name)
        self._facts.setdefault(("can", tuple(about.split(" ", 1))), "")
        self._examples.setdefault(phrases.action(name), event)
        for atom in event.new:
            if atom not in self.reading.start:
                self._facts.setdefault(("reached", atom), "")


def entries(phrases: Phrases, atom: Atom) -> list[dict[str, str]]:
    """An atom as entries of `CognitiveMap.spatial`; none for what a map has no relation for."""
    form = _ENTRIES.get(phrases.kind, {}).get(atom[0])
    if form is None:
        return [{"thing": atom[1], "relation": "is", "place": atom[0]}] if len(atom) == 2 else []
    thing, relation, place = (atom[part + 1] if isinstance(part, int) else part for part in form)
    found = [{"thing": thing, "relation": relation, "place": place}]
    if state := _ALSO.get((phrases.kind, atom[0])):
        found.append({"thing": thing, "relation": "is", "place": state})
    return found


def conditions(goal: str) -> list[str]:
    """The goal's conditions as facts without full stop."""
    text = goal.strip().removeprefix(PREFIX).removesuffix(".")
    return [part.strip() for part in text.split(", ") if part.strip()] if goal.startswith(PREFIX) else []
