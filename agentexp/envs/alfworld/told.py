"""What maps and rules tell a scripted agent, whoever wrote them: a language model's odd entries are skipped, not trusted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from agentexp.core import CognitiveMap
from agentexp.envs.alfworld.card import PUT
from agentexp.envs.alfworld.facts import HouseFacts
from agentexp.envs.alfworld.texts import kind


class Known:
    """What a map says, whoever wrote it: entries with missing or odd fields are skipped."""

    def __init__(self, m: CognitiveMap | None) -> None:
        self.at: list[tuple[str, str]] = []
        self._seen: set[str] = set()
        if m is None:
            return
        for entry in m.spatial:
            thing, place = _word(entry.get("thing")), _word(entry.get("place"))
            if thing and place and str(entry.get("relation", "")).lower() in ("in", "on", "at", "contains"):
                if str(entry.get("relation")).lower() == "contains":
                    thing, place = place, thing
                self.at.append((thing, place))
                self._seen.add(place)
        self._seen |= {_word(entry.get("place")) for entry in m.absent if _word(entry.get("what")) in ("anything", "")}
        self._seen -= {_word(name) for name in m.unknown}

    def where(self, thing_kind: str, house: HouseFacts) -> list[tuple[str, str]]:
        """(thing, place) of a type, as far as the agent has not seen otherwise since."""
        return [
            (thing, place)
            for thing, place in self.at
            if kind(thing) == thing_kind
            and place in house.places
            and not house.looked_into(place)
            and thing != house.holding
            and not any(thing in things for things in house.contents.values())
        ]

    def was_seen(self, place: str) -> bool:
        """The map's author has looked into this place."""
        return place in self._seen


class Remembered(Known):
    """What a map says, and what an agent knows by heart about the house as it used to be. The map wins: it was made here.

    Args:
        m: the map, if there is one.
        at: (thing, place) of everything that is remembered.
    """

    def __init__(self, m: CognitiveMap | None, at: Iterable[tuple[str, str]]) -> None:
        super().__init__(m)
        told = {thing for thing, _ in self.at}
        self.at += [(thing, place) for thing, place in at if thing not in told and place not in self._seen]


class Rules:
    """What K_g says about the grammar, whoever wrote it: two questions, answered by its words."""

    def __init__(self, knowledge: Mapping[str, Any]) -> None:
        lines = [line.lower() for line in _strings(knowledge.get("k_g"))]
        said = (re.search(r"\bmove\b.+\bto\b|\bput\b.+\bin/on\b", line) for line in lines)
        first = next((match.group() for match in said if match), "put")
        # Without rules an agent tries the wording that is all over the literature first.
        self.put_forms = (PUT["new"], PUT["old"]) if first.startswith("move") else (PUT["old"], PUT["new"])
        self.treats_closed = any(
            re.search(r"\b(heat|cool|clean|microwave|fridge)", line)
            and re.search(r"without opening|no need to open|not (?:need|have) to (?:be )?open|even (?:if|when) .*closed", line)
            for line in lines
        ) or any(_needs_no_opening(rule) for rule in _mappings(knowledge.get("k_g")))


def _needs_no_opening(rule: Mapping[str, Any]) -> bool:
    """A rule of the form {"action": "heat", "requires": [...]} that asks for no open place."""
    action, needs = str(rule.get("action", "")).lower(), " ".join(_strings(rule.get("requires"))).lower()
    return action.startswith(("heat", "cool", "clean")) and "requires" in rule and "open" not in needs


def _mappings(value: Any) -> Iterable[Mapping[str, Any]]:
    if isinstance(value, Mapping):
        yield value
        for inner in value.values():
            yield from _mappings(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _mappings(inner)


def _strings(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _strings(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _strings(inner)


def _word(value: object) -> str:
    return str(value or "").strip().lower()
