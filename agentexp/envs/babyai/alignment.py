"""A BabyAI map beside the grid at reset (MAP, appendix B.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentexp.capabilities import Alignment
from agentexp.core import CognitiveMap
from agentexp.envs.babyai.checkpoints import reachable
from agentexp.envs.babyai.frame import Frame, Room, Spot, read_spot, spot_text
from agentexp.envs.babyai.scene import CLOSED, VECTORS, Scene
from agentexp.envs.map_index import affordance, word


class _Truth:
    def __init__(self, start: Scene, frame: Frame) -> None:
        cells, things = reachable(start)
        self.names = {frame.spot(cell): f"{thing.colour} {thing.kind}" for cell, thing in start.things.items()}
        self.states = {frame.spot(cell): thing.state for cell, thing in start.things.items() if thing.kind == "door"}
        self.rooms: dict[str, Room] = {room.name: room for room in map(frame.room, cells) if room is not None}
        self.pairs: set[frozenset[str]] = set()
        for cell, thing in things.items():
            if thing.kind == "door":
                sides = [frame.room((cell[0] + dx, cell[1] + dy)) for dx, dy in VECTORS]
                self.pairs.add(frozenset(room.name for room in sides if room is not None))

    def spatial(self, entry: Mapping[str, Any]) -> bool | None:
        """Whether an entry holds; None if it is not of a form that the grid decides."""
        thing, relation, place = (word(entry.get(key)) for key in ("thing", "relation", "place"))
        if relation == "connects":
            return frozenset((thing, place)) in self.pairs if {thing, place} <= self.rooms.keys() else None
        if relation == "is" and place.startswith("from ") and thing in self.rooms:
            room = self.rooms[thing]
            return place == f"from {spot_text(room.low)} to {spot_text(room.high)}"
        if relation == "is":
            name, _, at = thing.partition(" at ")
            spot = read_spot(at)
            return None if spot is None else self.names.get(spot) == name and self.states.get(spot) == place
        if relation not in ("at", "in"):
            return None
        if place in self.rooms:
            return any(name == thing and self.rooms[place].holds(spot) for spot, name in self.names.items())
        at, _, room_name = place.partition(" in ")
        spot = read_spot(at)
        if spot is None:
            return None
        inside = not room_name or (room_name in self.rooms and self.rooms[room_name].holds(spot))
        return self.names.get(spot) == thing and inside

    def absent(self, entry: Mapping[str, Any]) -> bool | None:
        """Whether something is missing where a map says so."""
        what, place = word(entry.get("what")), word(entry.get("place"))
        spots: list[Spot] = [spot for spot in self.names if place in self.rooms and self.rooms[place].holds(spot)]
        if place not in self.rooms:
            return None
        return not spots if what in ("anything", "") else all(self.names[spot] != what for spot in spots)


def align(start: Scene, frame: Frame, known: CognitiveMap) -> Alignment:
    """Judge what a map says of things, doors, rooms and actions; coverage counts rooms that it knows from inside."""
    truth = _Truth(start, frame)
    verdicts = {
        "spatial": [truth.spatial(entry) for entry in known.spatial],
        "absent": [truth.absent(entry) for entry in known.absent],
        "affordances": [_works(entry) for entry in known.affordances],
    }
    flat = [verdict for some in verdicts.values() for verdict in some]
    told = {word(entry.get("thing")) for entry in known.spatial if word(entry.get("place")).startswith("from ")}
    told |= {word(entry.get("place")).partition(" in ")[2] or word(entry.get("place")) for entry in known.spatial}
    return Alignment(
        right=flat.count(True),
        wrong=tuple((name, i) for name, some in verdicts.items() for i, verdict in enumerate(some) if verdict is False),
        unjudged=flat.count(None),
        found=len(told & truth.rooms.keys()),
        places=len(truth.rooms),
    )


def _works(entry: Mapping[str, Any]) -> bool | None:
    """What holds in every instance: things can be picked up, doors cannot; shut doors can be toggled."""
    said = affordance(entry)
    kind = said.target.rpartition(" ")[2]
    if said.action in ("pickup", "pick up"):
        return None if kind not in ("ball", "box", "key", "door") else said.works is (kind != "door")
    if said.action.startswith("toggle") and said.target.endswith(f"{CLOSED} door"):
        return said.works
    return None
