"""A map by its names, for reading and checking it by rule. Whoever wrote the map: entries with odd fields are skipped."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from agentexp.core import CognitiveMap

UNKNOWN = "unknown"
_ARTICLE = re.compile(r"^(?:an?|the) ")


class Affordance(NamedTuple):
    """An entry of `CognitiveMap.affordances`; `requires` empty for nothing."""

    action: str
    target: str
    works: bool
    effect: str
    requires: str


class MapIndex:
    """Look-up tables over a map, in lower case.

    Attributes:
        where: places of each thing ("in", "on", "at", "contains"), in the map's order.
        contents: things in each place.
        hollow: places that something is "in", not "on".
        states: what each thing "is".
        empty: places said to hold nothing.
        missing: (thing or type, place) said not to be there.
        connects: pairs of places.
        affordances: all of them.
    """

    def __init__(self, known: CognitiveMap) -> None:
        self.where: dict[str, list[str]] = {}
        self.contents: dict[str, list[str]] = {}
        self.hollow: set[str] = set()
        self.states: dict[str, list[str]] = {}
        self.connects: list[tuple[str, str]] = []
        for entry in known.spatial:
            thing, relation, place = (word(entry.get(key)) for key in ("thing", "relation", "place"))
            if not thing or not place:
                continue
            if relation == "contains":
                thing, place = place, thing
            if relation in ("in", "on", "at", "contains"):
                self.where.setdefault(thing, []).append(place)
                self.contents.setdefault(place, []).append(thing)
                self.hollow |= {place} if relation == "in" else set()
            elif relation == "is":
                self.states.setdefault(thing, []).append(place)
            elif relation == "connects":
                self.connects.append((thing, place))
        said = [(word(entry.get("what")), word(entry.get("place"))) for entry in known.absent]
        self.empty = {place for what, place in said if what in ("anything", "")}
        self.missing = {pair for pair in said if pair[0] not in ("anything", "")}
        self.affordances = list(map(affordance, known.affordances))
        self._map = known

    def seen_inside(self, place: str) -> bool:
        """Whether the map tells what a place holds."""
        return place in self.contents or place in self.empty

    def texts(self) -> Iterator[str]:
        """Every text in the map."""
        for entries in (self._map.spatial, self._map.absent, self._map.affordances):
            for entry in entries:
                yield from (word(value) for value in entry.values() if isinstance(value, str))
        yield from map(word, self._map.task_notes)
        yield from map(word, self._map.unknown)


def affordance(entry: Mapping[str, Any]) -> Affordance:
    """An entry of `CognitiveMap.affordances`."""
    action, target, effect, requires = (word(entry.get(key)) for key in ("action", "target", "effect", "requires"))
    return Affordance(action, target, bool(entry.get("works")), effect, requires)


def word(value: object) -> str:
    """A name without article, in lower case; empty for nothing."""
    return _ARTICLE.sub("", " ".join(str(value or "").lower().split()))
