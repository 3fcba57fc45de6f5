"""What an agent believes the grid to be, as a `Scene`: from what it has read since the reset, and from a map.

Believed walls are everything that is not inside an entered (or mapped) room and no door; so plans never lead through the
unknown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agentexp.core import CognitiveMap
from agentexp.envs.babyai.engine import Clause
from agentexp.envs.babyai.frame import Pose, Room, Spot, read_spot
from agentexp.envs.babyai.mission import Part
from agentexp.envs.babyai.scene import OPEN, Cell, Scene, Thing
from agentexp.envs.babyai.tracker import GridTracker

_MIDDLE = 64  # far enough from the edges: no level is wider than 64 cells
_AT = re.compile(r"(?P<spot>.+?)(?: in (?P<room>.+))?")


@dataclass(slots=True)
class Told:
    """What a map of the form of `GridTracker.map` tells of the state at reset. Entries of another form tell nothing."""

    things: dict[Spot, str]
    states: dict[Spot, str]
    rooms: dict[str, Room]


def read_map(known: CognitiveMap | None) -> Told:
    """The things, door states and rooms of a map."""
    told = Told({}, {}, {})
    for entry in known.spatial if known else ():
        thing, relation, place = (str(entry.get(key) or "") for key in ("thing", "relation", "place"))
        if relation == "at" and (match := _AT.fullmatch(place)) and (spot := read_spot(match["spot"])) is not None:
            told.things[spot] = thing
        elif relation == "is" and place.startswith("from "):
            low, high = (read_spot(text) for text in (place.removeprefix("from ").partition(" to ")[::2]))
            if low is not None and high is not None:
                told.rooms[thing] = Room(thing, low, high)
        elif relation == "is" and " at " in thing and (spot := read_spot(thing.partition(" at ")[2])) is not None:
            told.states[spot] = place
    return told


def believe(tracker: GridTracker, told: Told) -> Scene | None:
    """The believed grid; None while the agent does not know where it is. Things are numbered by `number`."""
    pose = tracker.now.pose
    if pose is None:
        return None
    things: dict[Cell, Thing] = {}
    for spot, name in told.things.items():
        if spot not in tracker.looked and spot not in tracker.doors:  # what was looked at is known better
            things[cell(spot)] = _thing(spot, name, told.states.get(spot, ""))
    for spot, name in tracker.things.items():
        things[cell(spot)] = _thing(spot, name, "")
    for spot, (colour, state) in tracker.doors.items():
        things[cell(spot)] = _thing(spot, f"{colour} door", state)
    if tracker.now.room is None and cell(pose.spot) not in things:  # somewhere between rooms: in a doorway
        things[cell(pose.spot)] = _thing(pose.spot, "grey door", OPEN)
    held = tracker.held.partition(" ")
    return _scene({**told.rooms, **tracker.rooms}, things, pose, Thing(-1, held[2], held[0]) if tracker.held else None)


def from_map(told: Told) -> Scene:
    """The grid of a map alone, with the robot at the start."""
    things = {cell(spot): _thing(spot, name, told.states.get(spot, "")) for spot, name in told.things.items()}
    return _scene(told.rooms, things, Pose((0, 0), 0), None)


def clauses(parts: Sequence[Part], scene: Scene, start: Room | None) -> list[Clause]:
    """The parts of a mission with the believed things that they speak of; without those that speak of nothing known.

    Args:
        parts: as read from the mission's words.
        scene: the believed grid.
        start: the room of the start; sides are told of things in it.
    """
    found = []
    for part in parts:
        fitting = frozenset(
            thing.number
            for place, thing in scene.things.items()
            if part.fits(f"{thing.colour} {thing.kind}", spot_of(place), start)
            and not (part.verb == "open" and thing.state == OPEN)
        )
        if fitting:
            found.append(Clause(part.verb, fitting, "", strict=part.verb == "open", rank=part.rank))
    return found


def _scene(rooms: Mapping[str, Room], things: dict[Cell, Thing], pose: Pose, carrying: Thing | None) -> Scene:
    inside = {
        cell((a, r))
        for room in rooms.values()
        for a in range(room.low[0], room.high[0] + 1)
        for r in range(room.low[1], room.high[1] + 1)
    }
    free = inside | things.keys()
    around = {(x + dx, y + dy) for x, y in free for dx in (-1, 0, 1) for dy in (-1, 0, 1)}
    return Scene(2 * _MIDDLE, 2 * _MIDDLE, frozenset(around - free), things, cell(pose.spot), facing(pose), carrying)


def cell(spot: Spot) -> Cell:
    """A spot on the believed grid, where "ahead of the start" is north."""
    return _MIDDLE + spot[1], _MIDDLE - spot[0]


def spot_of(place: Cell) -> Spot:
    """The inverse of `cell`."""
    return _MIDDLE - place[1], place[0] - _MIDDLE


def facing(pose: Pose) -> int:
    """A pose's direction on the believed grid."""
    return (3 + pose.turn) % 4


def number(spot: Spot) -> int:
    """The number of the thing on a spot."""
    return (spot[0] + _MIDDLE) * 2 * _MIDDLE + spot[1] + _MIDDLE


def _thing(spot: Spot, name: str, state: str) -> Thing:
    colour, _, kind = name.partition(" ")
    return Thing(number(spot), kind, colour, (state or "closed") if kind == "door" else "")
