"""Questions about an ALFWorld house, with answers from its facts at reset (Map QA; MAP, appendix C.3).

object_location  Where is mug 1?
affordance       What happens if you open drawer 1? Can a mug be heated in fridge 1?
negative         Is there a mug in drawer 1? (yes and no; of the types of things in this house)
task_reasoning   Which place should be visited first? (an optimal plan begins there) Which of the things, which place is needed?
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from agentexp.capabilities import Question
from agentexp.core import CognitiveMap
from agentexp.envs.alfworld import texts
from agentexp.envs.alfworld.goals import Goal
from agentexp.envs.alfworld.oracle import Household, plan
from agentexp.envs.alfworld.problem import FactTuple
from agentexp.envs.map_index import UNKNOWN, MapIndex

SHOWS, EMPTY, CLOSED_FOR_EVER = "it opens and shows things", "it opens and is empty", "it cannot be opened"
OPENING = (SHOWS, EMPTY, CLOSED_FOR_EVER)
YES_NO = ("yes", "no")
TREATMENTS = {
    "heat": ("heated", "heatable", "microwave"),
    "cool": ("cooled", "coolable", "fridge"),
    "clean": ("cleaned", "cleanable", "sinkbasin"),
}
PER_PLACE = 2  # questions with yes, and with no, about what is in one place


def questions(facts: Iterable[FactTuple], names: Mapping[str, str], goal: Goal | None, task: str, seed: int) -> list[Question]:
    """All questions, in an order drawn from `seed`.

    Args:
        facts: what holds at reset.
        names: shown names by identifier.
        goal: the goal, None if it cannot be read; then there are no questions about the task.
        task: the goal's text.
        seed: of what is asked about each place, and of the order.
    """
    house, rng = _House(frozenset(facts), names), random.Random(seed)
    found = [*house.locations(), *house.doors(), *house.treatments(), *house.absences(rng)]
    if goal is not None:
        found += house.errands(goal, task)
    rng.shuffle(found)
    return found


class _House:
    def __init__(self, facts: frozenset[FactTuple], names: Mapping[str, str]) -> None:
        self.facts, self.names, self.home = facts, names, Household(facts)
        self.places = sorted(names[place] for place in self.home.location)
        self.inside = {names[p]: sorted(names[t] for t in things) for p, things in self.home.contents.items()}
        self.ids = {names[ident]: ident for ident in self.home.location}
        self.spots: dict[str, list[str]] = {}
        self.wanted = ""
        for place, things in sorted(self.inside.items()):
            for thing in things:
                self.spots.setdefault(thing, []).append(place)

    def locations(self) -> Iterator[Question]:
        for thing, spots in sorted(self.spots.items()):
            yield Question(
                "object_location",
                f"Where is {thing}?",
                tuple(spots),
                names=tuple(self.places),
                entity=thing,
                evidence=(_any(_shown(place, thing) for place in spots),),
                query=("where", thing),
            )

    def doors(self) -> Iterator[Question]:
        for place in self.places:
            ident = self.ids[place]
            openable = self.home.holds("openable", ident)
            if openable and self.home.holds("opened", ident):
                continue  # opening it would be refused although it is no lack of the place
            answer = CLOSED_FOR_EVER if not openable else SHOWS if self.inside[place] else EMPTY
            yield Question(
                "affordance",
                f"What happens if you open {place}?",
                (answer,),
                choices=OPENING,
                entity=place,
                evidence=(_looked_into(place),),
                query=("open", place),
            )

    def treatments(self) -> Iterator[Question]:
        """Of each type that lies about; an attempt with each appliance decides it."""
        kinds = {texts.kind(name): ident for ident, name in self.names.items() if name in self.spots}
        appliances = [place for place in self.places if self.home.type_of[self.ids[place]] in _APPLIANCES]
        for kind, ident in sorted(kinds.items()):
            if not self.home.holds("pickupable", ident):
                continue
            for verb, (done, able, appliance) in TREATMENTS.items():
                for place in appliances:
                    works = self.home.type_of[self.ids[place]] == appliance and self.home.holds(able, ident)
                    tried = rf"^> {verb} {kind} \d+ with {re.escape(place)}\n"
                    yield Question(
                        "affordance",
                        f"Can {_a(kind)} be {done} with {place}?",
                        ("yes" if works else "no",),
                        choices=YES_NO,
                        entity=place,
                        evidence=(tried + ("You " if works else re.escape(texts.NOTHING)),),
                        query=("treat", verb, kind, place),
                    )

    def absences(self, rng: random.Random) -> Iterator[Question]:
        everywhere = sorted({texts.kind(thing) for thing in self.spots})
        for place in self.places:
            there = sorted({texts.kind(thing) for thing in self.inside[place]})
            elsewhere = [kind for kind in everywhere if kind not in there]
            for answer, kinds in zip(YES_NO, (there, elsewhere), strict=True):
                for kind in rng.sample(kinds, min(PER_PLACE, len(kinds))):
                    yield Question(
                        "negative",
                        f"Is there {_a(kind)} in or on {place}?",
                        (answer,),
                        choices=YES_NO,
                        entity=place,
                        evidence=(_looked_into(place),),
                        query=("inside", kind, place),
                    )

    # ---------------------------------------------------------------------------------------------------- the task

    def errands(self, goal: Goal, task: str) -> Iterator[Question]:
        self.wanted = goal.thing
        wanted = {thing: spots for thing, spots in self.spots.items() if texts.kind(thing) == goal.thing}
        holders = {place for spots in wanted.values() for place in spots}
        first = self._first(goal)
        known = [_shown(p, t) for t, spots in sorted(wanted.items()) for p in spots if p in first]
        if known:
            everything = tuple(_any(_shown(p, t) for p in spots) for t, spots in sorted(wanted.items()))
            yield self._about(
                task,
                "Which place should be visited first?",
                tuple(sorted(first)),
                # With two things to bring, the best first place depends on where all of them are.
                everything if goal.count > 1 else (_any(known),),
                ("first", goal.kind, goal.thing, goal.place, goal.lamp, goal.appliance),
            )
        if holders:
            seen = _any(_shown(p, t) for t, spots in sorted(wanted.items()) for p in spots)
            ask = f"Which {goal.thing} can be taken for it? Give its name with its number."
            query = ("which", goal.thing)
            yield self._about(task, ask, tuple(sorted(wanted)), (seen,), query, tuple(sorted(self.spots)))
        target = goal.appliance or goal.place
        needed = [p for p in self.places if texts.kind(p) == target]
        lit = {p: t for t, spots in self.spots.items() for p in spots if goal.lamp and texts.kind(t) == goal.lamp}
        if goal.lamp:
            needed = sorted(lit)
        if needed:
            seen = _any(_shown(p, t) for p, t in sorted(lit.items())) if lit else _any(map(re.escape, needed))
            ask = f"To which place must the {goal.thing} be brought right after it was taken?"
            yield self._about(task, ask, tuple(needed), (seen,), ("bring", target, goal.lamp))

    def _first(self, goal: Goal) -> set[str]:
        """Places at which an optimal plan can begin: standing there already saves exactly the way."""
        try:
            best = len(plan(self.facts, self.names, goal))
            starts = {place: len(plan(self._standing(place), self.names, goal)) for place in self.places}
        except ValueError:
            return set()
        return {place for place, left in starts.items() if left + 1 == best}

    def _standing(self, place: str) -> set[FactTuple]:
        agents = {fact for fact in self.facts if fact[0] == "atlocation"}
        where = self.home.location[self.ids[place]]
        return set(self.facts - agents) | {(fact[0], fact[1], where) for fact in agents}

    def _about(
        self,
        task: str,
        ask: str,
        answers: tuple[str, ...],
        evidence: tuple[str, ...],
        query: tuple[str, ...],
        names: tuple[str, ...] = (),
    ) -> Question:
        text = f"The task is: {task} {ask}" if task.endswith(".") else f"The task is: {task}. {ask}"
        return Question("task_reasoning", text, answers, (), names or tuple(self.places), self.wanted, evidence, query)


def _a(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"


_APPLIANCES = {appliance for _, _, appliance in TREATMENTS.values()}


def _shown(place: str, thing: str) -> str:
    return rf"(?i:(?:on the {re.escape(place)}|{re.escape(place)} is open\. in it), you see [^.]*\b{re.escape(thing)}\b)"


def _looked_into(place: str) -> str:
    return rf"(?i:(?:on the {re.escape(place)}|{re.escape(place)} is open\. in it), you see )"


def _any(patterns: Iterable[str]) -> str:
    return "|".join(patterns)


# --------------------------------------------------------------------------------------------------------- the rules reader


def look_up(question: Question, known: CognitiveMap) -> str:
    """The answer that a map gives, or "unknown"; a place that was looked into holds what the map lists and nothing else."""
    verb, *about = question.query
    readers: dict[str, Callable[..., str]] = {
        "where": _where,
        "open": _open,
        "treat": _treat,
        "inside": _inside,
        "first": _begin,
        "which": _which,
        "bring": _bring,
    }
    return readers[verb](MapIndex(known), *about)


def _where(index: MapIndex, thing: str) -> str:
    return next(iter(index.where.get(thing, ())), UNKNOWN)


def _open(index: MapIndex, place: str) -> str:
    if not index.seen_inside(place):
        return UNKNOWN
    if not index.states.get(place) and place not in index.hollow:  # the map says of every door whether it is open
        return CLOSED_FOR_EVER
    return SHOWS if index.contents.get(place) else EMPTY


def _treat(index: MapIndex, verb: str, kind: str, place: str) -> str:
    said = [a for a in index.affordances if a.action == verb and a.target == f"{kind} with {texts.kind(place)}"]
    if any(entry.works and not entry.requires for entry in said):
        return "yes"
    return "no" if any(not entry.works for entry in said) else UNKNOWN


def _inside(index: MapIndex, kind: str, place: str) -> str:
    if any(texts.kind(thing) == kind for thing in index.contents.get(place, ())):
        return "yes"
    return "no" if index.seen_inside(place) or (kind, place) in index.missing else UNKNOWN


def _which(index: MapIndex, kind: str) -> str:
    return next((thing for thing in index.where if texts.kind(thing) == kind), UNKNOWN)


def _places(index: MapIndex, kind: str) -> list[str]:
    if not kind:
        return []
    return sorted({name for text in index.texts() for name in re.findall(rf"\b{kind} \d+\b", text)})


def _bring(index: MapIndex, kind: str, lamp: str) -> str:
    holders = [spots[0] for thing, spots in index.where.items() if texts.kind(thing) == lamp]
    return next(iter(holders if lamp else _places(index, kind)), UNKNOWN)


def _begin(index: MapIndex, kind: str, thing: str, place: str, lamp: str, appliance: str) -> str:
    """The first place of the shortest round that the map allows: fetch, treat, deliver; twice for two things."""
    spots = [(name, there[0]) for name, there in index.where.items() if texts.kind(name) == thing]
    ends = [there[0] for name, there in index.where.items() if texts.kind(name) == lamp] if lamp else _places(index, place)
    treats: list[str] = _places(index, appliance)
    rounds: list[tuple[int, str]] = []
    for end in ends or [""]:
        there = [name for name, spot in spots if spot == end] if not lamp else []
        open_ends = [(name, spot) for name, spot in spots if name not in there or not kind.startswith("pick_two")]
        for name, spot in open_ends:
            for oven in treats or [""]:
                stops = [spot, *filter(None, (oven, end))]
                if kind.startswith("pick_two") and not there:
                    others = [other for n, other in open_ends if n != name]
                    rounds += [(_length(index, [*stops, other, end], lamp), spot) for other in others] or [(99, spot)]
                else:
                    rounds.append((_length(index, stops, lamp), spot))
    return min(rounds, default=(0, UNKNOWN))[1]


def _length(index: MapIndex, stops: list[str], lamp: str) -> int:
    """Commands for walking and opening; treating needs no open door, nor does switching on a lamp."""
    walks = sum(a != b for a, b in zip(["", *stops], stops, strict=False))
    doors = {stops[0], *(() if lamp else stops[-1:]), *(stops[2:3] if len(stops) > 3 else ())}
    return walks + sum("closed" in index.states.get(place, ()) for place in doors)
