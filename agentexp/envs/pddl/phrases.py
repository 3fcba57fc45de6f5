"""Facts and actions of a domain as sentences, both ways.

The wording of gripper, blockworld, barman and tyreworld follows AgentBoard's PDDL worlds, so that agents made for them can act
here. Some of its sentences are nonsense ("You are holding left.", "ball1 is carrying left."), mostly where two domains share a
predicate's name: they are mended here, and predicates that it prints raw get a sentence ("Your left hand is empty."). A domain
of the user's has plain words: "(at truck1 depot)" is "at truck1 depot.".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from agentexp.envs.pddl.language import Atom, Domain, Schema

PRINCIPAL: Mapping[str, int] = {"move": 1, "grasp": 1, "leave": 1, "empty-shot": 1, "empty-shaker": 1, "clean-shaker": 2}
"""Which argument an action is about, where that is not the first."""

_GRIPPER = (
    {
        "room": "{0} is a room",
        "ball": "{0} is a ball",
        "gripper": "{0} is a gripper",
        "at-robby": "robby is at {0}",
        "at": "{0} is at {1}",
        "free": "{0} is free",
        "carry": "{1} is carrying {0}",
    },
    {"move": "move from {0} to {1}", "pick": "pick up {0} at {1} with arm {2}", "drop": "drop {0} at {1} with arm {2}"},
)
_BLOCKS = (
    {
        "on": "{0} is on {1}",
        "on-table": "{0} is on the table",
        "clear": "the {0} is clear",
        "arm-empty": "your arm is empty",
        "holding": "you are holding {0}",
    },
    {"pickup": "pickup {0}", "putdown": "putdown {0}", "stack": "stack {0} on {1}", "unstack": "unstack {0} from {1}"},
)
_TYRES = (
    {
        "unlocked": "{0} is unlocked",
        "isopen": "{0} is open",
        "closed": "{0} is closed",
        "have": "you have {0}",
        "in": "{0} is in {1}",
        "tight": "the nut {0} on the hub {1} is tight",
        "loose": "the nut {0} on the hub {1} is loose",
        "on-ground": "hub {0} is on the ground",
        "not-on-ground": "hub {0} is not on the ground",
        "fastened": "hub {0} is fastened",
        "unfastened": "hub {0} is unfastened",
        "free": "hub {0} is free",
        "on": "{0} is on {1}",
        "intact": "wheel {0} is intact",
        "inflated": "wheel {0} is inflated",
        "not-inflated": "wheel {0} is not inflated",
    },
    {
        "open": "open {0}",
        "close": "close {0}",
        "fetch": "fetch {0} from {1}",
        "put-away": "put-away {0} in {1}",
        "loosen": "loosen the nut {0} on the hub {1}",
        "tighten": "tighten the nut {0} on the hub {1}",
        "jack-up": "jack-up the hub {0}",
        "jack-down": "jack-down the hub {0}",
        "undo": "undo the fastening of the nut {0} on the hub {1}",
        "do-up": "do-up the nut {0} on the hub {1}",
        "remove-wheel": "remove-wheel {0} from the hub {1}",
        "put-on-wheel": "put-on-wheel {0} on the hub {1}",
        "inflate": "inflate the wheel {0}",
    },
)
_BARMAN = (
    {
        "ontable": "{0} is on the table",
        "holding": "your {0} hand is holding {1}",
        "handempty": "your {0} hand is empty",
        "empty": "{0} is empty",
        "clean": "{0} is clean",
        "contains": "{0} contains {1}",
        "used": "{0} was used for {1}",
        "dispenses": "{0} dispenses {1}",
        "shaker-empty-level": "{0} is at empty level {1}",
        "shaker-level": "{0} is at level {1}",
        "next": "level {0} is next to level {1}",
        "unshaked": "{0} is unshaked",
        "shaked": "{0} is shaked",
        "cocktail-part1": "{0} part1 ingredient is {1}",
        "cocktail-part2": "{0} part2 ingredient is {1}",
    },
    {
        "grasp": "{0} grasp {1}",
        "leave": "{0} leave {1}",
        "fill-shot": "fill-shot glass {0} with {1} with {2} and {3} holding {4}",
        "refill-shot": "refill-shot {0} with {1} with {2} and {3} holding {4}",
        "empty-shot": "use hand {0} to empty-shot glass {1} with beverage {2}",
        "clean-shot": "clean-shot glass {0} with {1} with hand {2} holding shot glass and {3}",
        "pour-shot-to-clean-shaker": "pour-shot-to-clean-shaker from a shot glass {0} with {1} to a clean shaker {2} "
        "with hand {3} from level {4} to level {5}",
        "pour-shot-to-used-shaker": "pour-shot-to-used-shaker from a shot glass {0} with {1} to a used shaker {2} "
        "with hand {3} from level {4} to level {5}",
        "empty-shaker": "use hand {0} to empty-shaker {1} with ingredient {2} from level {3} to level {4}",
        "clean-shaker": "use hand {0} and hand {1} to clean-shaker {2}",
        "shake": "shake a cocktail {0} with ingredient {1} and ingredient {2} in a shaker {3} with hand {4} and hand {5}",
        "pour-shaker-to-shot": "pour-shaker-to-shot to a shot glass {1} the ingredient {0} with hand {2} from shaker {3} "
        "from level {4} to level {5}",
    },
)
_KNOWN = {"gripper": _GRIPPER, "blockworld": _BLOCKS, "tyreworld": _TYRES, "barman": _BARMAN}
NEWS_ONLY = ("barman", "tyreworld")
"""Worlds whose answers tell only what has become true; "look around" tells all."""

_ARTICLES = ("the", "a", "an")
_SLOT = re.compile(r"\{(\d)\}")
_WORD = re.compile(r"[^\s,()]+")


@dataclass(frozen=True, slots=True)
class Form:
    """A sentence with slots for the arguments."""

    template: str
    arity: int

    def fill(self, arguments: Iterable[str]) -> str:
        """The sentence, in lower case and without a full stop."""
        return self.template.format(*arguments)

    @property
    def pattern(self) -> str:
        """A regular expression with a group a0, a1, ... for each argument."""
        parts = _SLOT.split(self.template)
        return "".join(re.escape(part) if i % 2 == 0 else rf"(?P<a{part}>\S+)" for i, part in enumerate(parts))

    @property
    def order(self) -> tuple[int, ...]:
        """Arguments in the order in which they are named."""
        return tuple(int(number) for number in _SLOT.findall(self.template))


class Phrases:
    """The sentences of one domain.

    Args:
        domain: any domain.

    Attributes:
        kind: gripper, blockworld, barman or tyreworld if the domain's actions are theirs, else the domain's name.
        news_only: answers tell only what has become true.
        facts: form of each predicate.
        actions: form of each action.
    """

    def __init__(self, domain: Domain) -> None:
        known = (name for name, (_, actions) in _KNOWN.items() if actions.keys() == domain.schemas.keys())
        self.kind = next(known, domain.name)
        facts, actions = _KNOWN.get(self.kind, ({}, {}))
        self.domain = domain
        self.news_only = self.kind in NEWS_ONLY
        self.facts = {name: _form(name, len(slots), facts) for name, slots in domain.predicates.items()}
        self.actions = {name: _form(name, len(schema.parameters), actions) for name, schema in domain.schemas.items()}
        self._fillers = {
            name: {word for word in _WORD.findall(_SLOT.sub(" ", form.template)) if word not in (name, *_ARTICLES)}
            for name, form in self.actions.items()
        }

    # ------------------------------------------------------------------------------------------------------------- facts

    def fact(self, atom: Atom) -> str:
        """An atom without capital and full stop, as it stands in goals: "ball1 is at rooma"."""
        return self.facts[atom[0]].fill(atom[1:])

    def sentences(self, atoms: Iterable[Atom]) -> str:
        """Atoms as sorted sentences: "Ball1 is at rooma. Robby is at rooma."."""
        return " ".join(sorted(self.fact(atom).capitalize() + "." for atom in atoms))

    def read_facts(self, text: str) -> list[Atom]:
        """The atoms of all sentences that are facts, in the order of the text."""
        found: list[Atom] = []
        for sentence in re.split(r"\.(?:\s+|$)", text.lower()):
            match = self._sentence.fullmatch(sentence.strip())
            if match:
                name = self._order[int(str(match.lastgroup)[1:])]
                form = self.facts[name]
                number = self._order.index(name)
                found.append((name, *(match[f"p{number}a{i}"] for i in range(form.arity))))
        return found

    @cached_property
    def _order(self) -> list[str]:
        """Predicates, those with the most fixed words first: "x is at empty level l0" before "x is at y"."""
        return sorted(self.facts, key=lambda name: (-len(_SLOT.sub("", self.facts[name].template)), name))

    @cached_property
    def _sentence(self) -> re.Pattern[str]:
        parts = [f"(?P<p{i}>{self.facts[name].pattern.replace('(?P<a', f'(?P<p{i}a')})" for i, name in enumerate(self._order)]
        return re.compile("|".join(parts) or "(?!)")

    # ----------------------------------------------------------------------------------------------------------- actions

    def action(self, name: Atom) -> str:
        """A ground action as a command."""
        return self.actions[name[0]].fill(name[1:])

    def read_action(self, text: str) -> Atom | None:
        """The ground action that a text names; None if it names none.

        Accepted are the sentence with or without its small words and articles, and the PDDL form; nothing else may stand there.
        """
        words = [word.rstrip(".!") for word in _WORD.findall(text.lower())]
        verbs = [word for word in words if word in self.actions]
        if not verbs or len(words) > 40:
            return None
        verb = verbs[0]
        form, fillers = self.actions[verb], self._fillers[verb]
        rest = words[:]
        rest.remove(verb)
        named = [word for word in rest if word not in fillers]
        # An article is only read as a name where a name would be missing otherwise.
        arguments = [word for word in named if word not in _ARTICLES]
        if len(arguments) < form.arity:
            arguments = named
        if len(arguments) != form.arity:
            return None
        if words[0] == verb and len(named) == len(rest):
            return (verb, *arguments)  # the order of the PDDL schema
        slots = dict(zip(form.order, arguments, strict=True))
        return (verb, *(slots[i] for i in range(form.arity)))

    def about(self, name: Atom) -> str:
        """What a ground action is about, for counting what was tried: "pick ball1"."""
        arguments = name[1:]
        at = PRINCIPAL.get(name[0], 0) if self.kind in _KNOWN else 0
        return " ".join((name[0], arguments[at])) if at < len(arguments) else name[0]

    # ------------------------------------------------------------------------------------------------------------- rules

    def form(self, name: str) -> str:
        """An action with its variables in braces: "move from {from} to {to}"."""
        return self.actions[name].fill(f"{{{v[1:]}}}" for v, _ in self.domain.schemas[name].parameters)

    def rules(self, name: str) -> str:
        """One line on when an action is possible and what it changes."""
        schema = self.domain.schemas[name]
        needs, effect = schema.precondition, schema.effect
        parts = [
            ("needs", [*self._said(schema, needs.positive), *(f"not: {s}" for s in self._said(schema, needs.negative))]),
            ("makes true", self._said(schema, effect.positive)),
            ("makes false", self._said(schema, effect.negative)),
        ]
        parts[0][1].extend(f"{a[1:]} {'is' if same else 'is not'} {b[1:]}" for a, b, same in needs.equal)
        return f"{self.form(name)} -- " + "; ".join(f"{title}: {', '.join(said)}" for title, said in parts if said)

    def _said(self, schema: Schema, atoms: Iterable[Atom]) -> list[str]:
        return [self.facts[a[0]].fill(f"{{{v[1:]}}}" if v.startswith("?") else v for v in a[1:]) for a in atoms]


def _form(name: str, arity: int, known: Mapping[str, str]) -> Form:
    template = known.get(name)
    if template is not None and len(set(_SLOT.findall(template))) == arity:
        return Form(template, arity)
    return Form(" ".join((name, *(f"{{{i}}}" for i in range(arity)))), arity)
