"""A map of an ALFWorld house beside its facts at reset (MAP, appendix B.2).

Judged are: things in or on places; "is open", "is closed"; "empty" and "no mug here"; opening and closing, taking, putting,
heating, cooling, cleaning and switching by type of thing and place. Coverage counts receptacles.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from agentexp.capabilities import Alignment
from agentexp.core import CognitiveMap
from agentexp.envs.alfworld import texts
from agentexp.envs.alfworld.oracle import Household
from agentexp.envs.alfworld.problem import FactTuple
from agentexp.envs.alfworld.questions import TREATMENTS
from agentexp.envs.map_index import Affordance, MapIndex, affordance, word

_SPLIT = re.compile(r" (?:with|at|from|to|in/on|in|on|using) ")


def align(facts: Iterable[FactTuple], names: Mapping[str, str], known: CognitiveMap) -> Alignment:
    """Judge every entry of a map.

    Args:
        facts: what holds at reset.
        names: shown names by identifier.
        known: the map.
    """
    truth, index = _Truth(Household(facts), names), MapIndex(known)
    verdicts: dict[tuple[str, int], bool | None] = {}
    for i, entry in enumerate(known.spatial):
        verdicts["spatial", i] = truth.spatial(*(word(entry.get(key)) for key in ("thing", "relation", "place")))
    for i, entry in enumerate(known.absent):
        verdicts["absent", i] = truth.absent(word(entry.get("place")), word(entry.get("what")))
    for i, entry in enumerate(known.affordances):
        verdicts["affordances", i] = truth.affordance(affordance(entry))
    return Alignment(
        right=sum(verdict is True for verdict in verdicts.values()),
        wrong=tuple(key for key, verdict in verdicts.items() if verdict is False),
        unjudged=sum(verdict is None for verdict in verdicts.values()),
        found=sum(index.seen_inside(place) for place in truth.inside),
        places=len(truth.inside),
    )


class _Truth:
    def __init__(self, home: Household, names: Mapping[str, str]) -> None:
        self.home = home
        self.inside = {names[place]: {names[thing] for thing in things} for place, things in home.contents.items()}
        self.ids = {names[place]: place for place in home.location}
        self.of_type: dict[str, list[str]] = {}
        for ident, name in names.items():
            self.of_type.setdefault(texts.kind(name), []).append(ident)

    def spatial(self, thing: str, relation: str, place: str) -> bool | None:
        if relation == "contains":
            thing, place = place, thing
        if relation in ("in", "on", "at", "contains"):
            return thing in self.inside.get(place, ())
        if relation == "is" and place in ("open", "closed") and thing in self.ids:
            ident = self.ids[thing]
            return self.home.holds("openable", ident) and self.home.holds("opened", ident) is (place == "open")
        return None

    def absent(self, place: str, what: str) -> bool | None:
        if place not in self.inside:
            return False
        if what in ("anything", ""):
            return not self.inside[place]
        return not any(what in (thing, texts.kind(thing)) for thing in self.inside[place])

    def affordance(self, said: Affordance) -> bool | None:
        """Of a type, an action works if it does for one member; what it "requires" is not judged."""
        thing, _, place = _SPLIT.sub("\0", said.target).partition("\0")
        if said.action in ("open", "close"):
            possible = self._any("openable", place or thing)
        elif said.action == "use":
            possible = self._any("toggleable", thing)
        elif said.action == "take":
            possible = self._any("pickupable", thing)
        elif said.action in ("move", "put") and place:
            takes = {self.home.type_of.get(i, "") for i in self._members(place)}
            holds = {self.home.type_of.get(i, "") for i in self._members(thing)}
            possible = any(self.home.holds("cancontain", f"{a}type", f"{b}type") for a in takes for b in holds)
        elif said.action in TREATMENTS and place:
            _, able, appliance = TREATMENTS[said.action]
            possible = texts.kind(f"{place} 0" if place.isalpha() else place) == appliance and self._any(able, thing)
        else:
            return None
        if said.works:
            return possible
        return None if possible else True  # a refusal at one moment does not say that it never works

    def _members(self, name: str) -> list[str]:
        return self.of_type.get(texts.kind(name) if re.search(r" \d+$", name) else name, [])

    def _any(self, predicate: str, name: str) -> bool:
        return any(self.home.holds(predicate, ident) for ident in self._members(name))
