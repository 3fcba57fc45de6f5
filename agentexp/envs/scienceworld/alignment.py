"""A map of a ScienceWorld instance beside its object tree at reset (MAP, appendix B.2).

Judged are: what stands in or on what; open, closed, on and off; "empty"; opening and activating by name. Not judged are doors,
drains and the ways between rooms, which the tree does not tell; living things that were seen elsewhere, for they move; and
water, ice and steam, which turn into each other. Coverage counts rooms.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from agentexp.capabilities import Alignment
from agentexp.core import CognitiveMap
from agentexp.envs.map_index import MapIndex, affordance, word
from agentexp.envs.scienceworld.inventory import CHANGING, Item, Stock
from agentexp.envs.scienceworld.names import canonical, kinds_of

_STATES = {"open": ("opened", True), "closed": ("opened", False), "on": ("running", True), "off": ("running", False)}
_PLACED = re.compile(r"^(.+) in (?:the )?(.+)$")
_UNTOLD = re.compile(r"^(?:door|drain)\b|\b(?:liquid|solid|gaseous|ash|smoke)\b")


def align(stock: Stock, known: CognitiveMap) -> Alignment:
    """Judge every entry of a map.

    Args:
        stock: what stands where at reset.
        known: the map.
    """
    verdicts: dict[tuple[str, int], bool | None] = {}
    for i, entry in enumerate(known.spatial):
        thing, relation, place = (word(entry.get(key)) for key in ("thing", "relation", "place"))
        verdicts["spatial", i] = _spatial(stock, thing, relation, place)
    for i, entry in enumerate(known.absent):
        verdicts["absent", i] = _absent(stock, word(entry.get("place")), word(entry.get("what")))
    for i, entry in enumerate(known.affordances):
        said = affordance(entry)
        verb, _, rest = said.action.partition(" ")
        verdicts["affordances", i] = _works(stock, verb, said.target or rest, said.works)
    index = MapIndex(known)
    return Alignment(
        right=sum(verdict is True for verdict in verdicts.values()),
        wrong=tuple(key for key, verdict in verdicts.items() if verdict is False),
        unjudged=sum(verdict is None for verdict in verdicts.values()),
        found=sum(index.seen_inside(room) for room in stock.rooms),
        places=len(stock.rooms),
    )


def _spatial(stock: Stock, thing: str, relation: str, place: str) -> bool | None:
    if relation == "connects":
        return None if {thing, place} <= set(stock.rooms) else False
    if relation == "is":
        return _state(stock, thing, place)
    if relation == "contains":
        thing, place = place, thing
    names = kinds_of(thing) | {canonical(thing)}
    if place == "inventory" or names & CHANGING or _UNTOLD.search(thing):
        return None
    holders = {place, *kinds_of(place)}
    if any(item.name in names and (item.holder in holders or item.room == place) for item in stock.items):
        return True
    return None if any(item.alive and item.name in names | holders for item in stock.items) else False  # it moves or grows


def _state(stock: Stock, thing: str, state: str) -> bool | None:
    placed = _PLACED.match(thing)
    name, room = (placed[1], placed[2]) if placed and placed[2] in stock.rooms else (thing, "")
    items = [item for item in stock.named(canonical(name)) if room in ("", item.room)]
    if state not in _STATES or _UNTOLD.search(name) or any(item.alive for item in items):
        return None
    flag, value = _STATES[state]
    return any(getattr(item, flag) is value for item in items)


def _absent(stock: Stock, place: str, what: str) -> bool | None:
    if place in stock.rooms:
        return canonical(what) not in stock.inside(place) if what not in ("anything", "") else not stock.inside(place)
    holders = stock.named(canonical(place))
    if what in ("anything", ""):
        return any(not _settled(stock, holder) for holder in holders)
    return any(canonical(what) not in holder.contents for holder in holders)


def _settled(stock: Stock, holder: Item) -> set[str]:
    """What a thing holds, without what may have come or gone by itself."""
    return {name for name in holder.contents if name not in CHANGING and not any(i.alive for i in stock.named(name))}


def _works(stock: Stock, verb: str, name: str, works: bool) -> bool | None:
    if verb not in ("open", "activate") or _UNTOLD.search(name):
        return None
    items: Iterable[Item] = stock.named(canonical(name))
    possible = any(item.opens if verb == "open" else item.switches for item in items)
    if works:
        return possible
    return None if possible else True  # a refusal at one moment does not say that it never works
