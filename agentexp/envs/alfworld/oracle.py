"""The expert: a plan straight from the facts of the current state, without search.

Every goal of ALFWorld is reached by a fixed order of errands (fetch, treat, deliver; or fetch, go to the lamp, switch it on).
The only choice is which thing, which appliance and which receptacle, so all candidates are written out and the shortest plan is
taken. It works from any state: with full hands, with the right thing already treated, in front of a closed fridge. A receptacle
that is `full` (only in the precondition variant, see `variants`) takes nothing until something was taken out of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from functools import cached_property

from agentexp.envs.alfworld.goals import Goal
from agentexp.envs.alfworld.problem import FactTuple

_DONE_BY = {"clean": "isclean", "heat": "ishot", "cool": "iscool"}
_ABLE = {"clean": "cleanable", "heat": "heatable", "cool": "coolable"}


class Household:
    """The facts of one moment, indexed. Identifiers throughout; type words as in goals ("soapbar")."""

    def __init__(self, facts: Iterable[FactTuple]) -> None:
        self.facts: dict[str, set[tuple[str, ...]]] = {}
        for predicate, *arguments in facts:
            self.facts.setdefault(predicate, set()).add(tuple(arguments))

    def all(self, predicate: str) -> Set[tuple[str, ...]]:
        """Argument tuples of a predicate."""
        return self.facts.get(predicate, set())

    def holds(self, predicate: str, *arguments: str) -> bool:
        """Whether the fact is true."""
        return arguments in self.all(predicate)

    @cached_property
    def type_of(self) -> dict[str, str]:
        """Type word of each object and receptacle."""
        pairs = [*self.all("objecttype"), *self.all("receptacletype")]
        return {ident: kind.removesuffix("type") for ident, kind in pairs}

    @cached_property
    def location(self) -> dict[str, str]:
        """Location of each receptacle that can be walked to."""
        return dict(sorted((place, where) for place, where in self.all("receptacleatlocation")))

    @cached_property
    def contents(self) -> dict[str, list[str]]:
        """Objects in each reachable receptacle. An object can be listed in two (a shelf over a desk)."""
        found: dict[str, list[str]] = {place: [] for place in self.location}
        for thing, place in sorted(self.all("inreceptacle")):
            if place in found:
                found[place].append(thing)
        return found

    @property
    def here(self) -> str:
        """Location of the agent."""
        return next((where for _, where in self.all("atlocation")), "")

    @property
    def held(self) -> str:
        """What the agent carries, or empty."""
        return next((thing for _, thing in self.all("holds")), "")

    def places(self, kind: str) -> list[str]:
        """Reachable receptacles of a type."""
        return [place for place in self.location if self.type_of[place] == kind]

    def fits(self, thing: str, place: str) -> bool:
        """Whether the receptacle's type takes the object's type."""
        return self.holds("cancontain", f"{self.type_of[place]}type", f"{self.type_of.get(thing, '')}type")


@dataclass(frozen=True, slots=True)
class _Route:
    """A plan under construction: commands so far, where the agent then is, what it carries, opened and took from."""

    home: Household
    names: Mapping[str, str]
    here: str
    commands: tuple[str, ...] = ()
    held: str = ""
    opened: frozenset[str] = field(default_factory=frozenset)
    freed: frozenset[str] = field(default_factory=frozenset)

    def say(self, verb: str, *idents: str, joint: str = "") -> _Route:
        """Add one command."""
        words = f" {joint} ".join(self.names[ident] for ident in idents)
        return replace(self, commands=(*self.commands, f"{verb} {words}"))

    def to(self, place: str) -> _Route:
        """Stand at a receptacle. Places that share a location need no walking, and the engine refuses it."""
        where = self.home.location[place]
        return self if where == self.here else replace(self.say("go to", place), here=where)

    def into(self, place: str) -> _Route:
        """Stand at a receptacle that is open."""
        route = self.to(place)
        if not self.home.holds("openable", place) or place in self.opened or self.home.holds("opened", place):
            return route
        return replace(route.say("open", place), opened=self.opened | {place})

    def take(self, thing: str, place: str) -> _Route:
        """Fetch a thing from a receptacle."""
        route = self.into(place).say("take", thing, place, joint="from")
        return replace(route, held=thing, freed=self.freed | {place})

    def put(self, thing: str, place: str, verb: tuple[str, str]) -> _Route:
        """Leave a thing in a receptacle that `takes` it."""
        return replace(self.into(place).say(verb[0], thing, place, joint=verb[1]), held="")

    def takes(self, thing: str, place: str) -> bool:
        """Whether the thing can be left in the receptacle now."""
        return self.home.fits(thing, place) and (place in self.freed or not self.home.holds("full", place))


def plan(facts: Iterable[FactTuple], names: Mapping[str, str], goal: Goal, put: tuple[str, str] = ("move", "to")) -> list[str]:
    """Commands from the state to the goal.

    Args:
        facts: what holds now.
        names: shown names by identifier.
        goal: what to reach.
        put: verb and joint of the put command in this logic: ("move", "to") or ("put", "in/on").

    Returns:
        The commands; empty if the goal already holds.

    Raises:
        ValueError: the goal cannot be reached from here.
    """
    home = Household(facts)
    if reached(home, goal):
        return []
    start = _Route(home, names, home.here, held=home.held)
    candidates = _two(home, start, goal, put) if goal.count == 2 else _one(home, start, goal, put)
    best = min((route.commands for route in candidates), key=lambda commands: (len(commands), commands), default=None)
    if best is None:
        raise ValueError(f"no {goal.thing} can be brought to its goal from this state")
    return list(best)


def reached(home: Household, goal: Goal) -> bool:
    """The goal test on facts."""
    if goal.lamp:
        lit = any(
            home.holds("istoggled", thing) and home.type_of.get(thing) == goal.lamp and home.location[place] == home.here
            for place, things in home.contents.items()
            for thing in things
        )
        return lit and bool(home.held) and home.type_of.get(home.held) == goal.thing
    return any(delivered(home, goal, place) >= goal.count for place in home.places(goal.place))


def delivered(home: Household, goal: Goal, place: str) -> int:
    """How many things in a receptacle count for the goal. Always 0 for look_at_obj_in_light, which delivers nothing."""
    return sum(home.type_of.get(thing) == goal.thing and _treated(home, thing, goal) for thing in home.contents[place])


def _treated(home: Household, thing: str, goal: Goal) -> bool:
    return not goal.treatment or (home.holds(_DONE_BY[goal.treatment], thing) and home.holds(_ABLE[goal.treatment], thing))


def _free_hands(home: Household, start: _Route, put: tuple[str, str]) -> Iterator[tuple[str, _Route]]:
    """Get rid of what is carried, in any place that takes it: (the place, or empty if the hands are free; route)."""
    if not start.held:
        yield "", start
        return
    for place in home.location:
        if start.takes(start.held, place):
            yield place, start.put(start.held, place, put)


def _shortest(routes: Iterable[_Route]) -> _Route | None:
    return min(routes, key=lambda route: len(route.commands), default=None)


def _unblocked(home: Household, start: _Route, goal: Goal, place: str, put: tuple[str, str]) -> Iterator[_Route]:
    """Ways to begin a delivery: as it is, or after room was made in a full receptacle."""
    yield start
    if not home.holds("full", place):
        return
    # A thing of the goal's type makes room when it is fetched, so only others are cleared away.
    others = [x for x in home.contents[place] if home.holds("pickupable", x) and home.type_of.get(x) != goal.thing]
    for spot, free in _free_hands(home, start, put):
        for thing in others:
            out = free.take(thing, place)
            away = _shortest(
                out.put(thing, other, put) for other in home.location if other != place and out.takes(thing, other)
            )
            if away is not None:
                yield away.take(start.held, spot) if home.type_of.get(start.held) == goal.thing else away


def _fetched(home: Household, start: _Route, kind: str, put: tuple[str, str]) -> Iterator[tuple[str, _Route]]:
    """Every way to hold a thing of the type: (thing, route so far)."""
    if start.held and home.type_of.get(start.held) == kind:
        yield start.held, start
        return
    free = _shortest(route for _, route in _free_hands(home, start, put))
    if free is None:
        return
    for place, things in home.contents.items():
        for thing in things:
            if home.type_of.get(thing) == kind and home.holds("pickupable", thing):
                yield thing, free.take(thing, place)


def _one(home: Household, start: _Route, goal: Goal, put: tuple[str, str]) -> Iterator[_Route]:
    if goal.lamp:
        for _, route in _fetched(home, start, goal.thing, put):
            yield from _lit(home, route, goal)
        return
    for place in home.places(goal.place):
        for begin in _unblocked(home, start, goal, place, put):
            for thing, route in _fetched(home, begin, goal.thing, put):
                for ready in _ready(home, route, thing, goal):
                    if ready.takes(thing, place):
                        yield ready.put(thing, place, put)


def _ready(home: Household, route: _Route, thing: str, goal: Goal) -> Iterator[_Route]:
    """The thing in hand becomes clean, hot or cool, if that is asked for and it is not yet."""
    if _treated(home, thing, goal):
        yield route
    elif home.holds(_ABLE[goal.treatment], thing):
        for place in home.places(goal.appliance):
            yield route.to(place).say(goal.treatment, thing, place, joint="with")


def _lit(home: Household, route: _Route, goal: Goal) -> Iterator[_Route]:
    for place, things in home.contents.items():
        for lamp in things:
            if home.type_of.get(lamp) == goal.lamp and home.holds("toggleable", lamp):
                there = route.to(place)  # a lamp can be switched on in a closed cupboard
                yield there if home.holds("istoggled", lamp) else there.say("use", lamp)


def _two(home: Household, start: _Route, goal: Goal, put: tuple[str, str]) -> Iterator[_Route]:
    """Fill one receptacle with two things; what lies in it already counts."""
    for place in home.places(goal.place):
        there = {thing for thing in home.contents[place] if home.type_of.get(thing) == goal.thing}
        for begin in _unblocked(home, start, goal, place, put):
            for first, route in _fetched(home, begin, goal.thing, put):
                if first in there or not route.takes(first, place):
                    continue
                done = route.put(first, place, put)
                if goal.count - len(there) == 1:
                    yield done
                    continue
                for source, things in home.contents.items():
                    for second in things:
                        wanted = home.type_of.get(second) == goal.thing and home.holds("pickupable", second)
                        if wanted and second != first and second not in there:
                            yield done.take(second, source).put(second, place, put)
