"""A map of a game of ours beside its object tree at reset (MAP, appendix B.2).

Judged are: what is in or on what; open, closed, locked, on and off; ways and where they lead; "empty"; opening. Other actions
are not: whether they work depends on what was done before. Coverage counts rooms.
"""

from __future__ import annotations

from agentexp.capabilities import Alignment
from agentexp.core import CognitiveMap
from agentexp.envs.jericho.scene import DIRECTIONS, Scene
from agentexp.envs.jericho.tracker import DARK
from agentexp.envs.map_index import MapIndex, affordance, word

_STATES = {
    "open": ("open", True),
    "closed": ("open", False),
    "locked": ("locked", True),
    "on": ("on", True),
    "off": ("on", False),
}


def align(scene: Scene, known: CognitiveMap) -> Alignment:
    """Judge every entry of a map.

    Args:
        scene: the world at reset.
        known: the map.
    """
    judge = _Judge(scene)
    verdicts: dict[tuple[str, int], bool | None] = {}
    for i, entry in enumerate(known.spatial):
        verdicts["spatial", i] = judge.spatial(*(word(entry.get(key)) for key in ("thing", "relation", "place")))
    for i, entry in enumerate(known.absent):
        verdicts["absent", i] = judge.absent(word(entry.get("place")), word(entry.get("what")))
    for i, entry in enumerate(known.affordances):
        said = affordance(entry)
        verdicts["affordances", i] = judge.action(said.action, said.target, said.works, said.effect)
    index = MapIndex(known)
    rooms = [scene.name(room).lower() for room in scene.reachable(scene.here)]
    named = {a.target for a in index.affordances} | {room for pair in index.connects for room in pair}
    return Alignment(
        right=sum(verdict is True for verdict in verdicts.values()),
        wrong=tuple(key for key, verdict in verdicts.items() if verdict is False),
        unjudged=sum(verdict is None for verdict in verdicts.values()),
        found=sum(index.seen_inside(room) or room in named for room in rooms),
        places=len(rooms),
    )


class _Judge:
    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.rooms = {scene.name(room).lower(): room for room in scene.rooms}
        self.things = {scene.name(thing): thing for thing in (*scene.things, *scene.doors)}

    def spatial(self, thing: str, relation: str, place: str) -> bool | None:
        scene = self.scene
        if relation == "connects":
            ends = self.rooms.get(thing), self.rooms.get(place)
            if None in ends:
                return False
            return any(way.room == b for a, b in (ends, ends[::-1]) for way in scene.ways(a or 0))
        if relation == "contains":
            thing, place = place, thing
        number = self.things.get(thing)
        if number is None:
            return False
        if relation == "is":
            attribute, value = _STATES.get(place, ("", False))
            return scene.has(number, attribute) is value if attribute else None
        holder = self.rooms.get(place) or self.things.get(place)
        if not scene.room_of(number):
            return None  # what is made later
        return holder is not None and (scene.holder(number) == holder or scene.room_of(number) == holder)

    def absent(self, place: str, what: str) -> bool | None:
        holder = self.things.get(place) or self.rooms.get(place)
        if holder is None:
            return None
        inside = [self.scene.name(t) for t in self.scene.memory.children(holder) if t in self.scene.things]
        return what not in inside if what not in ("", "anything") else not inside

    def action(self, action: str, target: str, works: bool, effect: str) -> bool | None:
        scene = self.scene
        verb, _, rest = action.partition(" ")
        if verb == "go" and rest in DIRECTIONS and target in self.rooms and effect.startswith("leads to "):
            to = self.rooms.get(effect.removeprefix("leads to "))
            if to is None:
                return None if effect.endswith(DARK.lower()) else False
            return any(way.direction == rest and way.room == to for way in scene.ways(self.rooms[target]))
        number = self.things.get(target)
        if verb != "open" or number is None or scene.has_rules(number):
            return None
        if works:
            return scene.has(number, "openable")
        return None if scene.has(number, "openable") else True
