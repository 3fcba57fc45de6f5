"""What a story's memory says about its world: rooms and ways, where things are, what is in sight."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from agentexp.envs.jericho.memory import Memory

DIRECTIONS = ("north", "south", "east", "west", "northeast", "northwest", "southeast", "southwest", "up", "down", "in", "out")
NO_ROUTINE = 0xFFFF  # the library's default of `before`


class Way(NamedTuple):
    """A way out of a room: its direction, where it leads, and the door in it (0 for none)."""

    direction: str
    room: int
    door: int


class Scene:
    """A story's world at one moment. Things are object numbers; `name` gives their names, `find` their numbers.

    Args:
        memory: the snapshot.
        player: number of the player object. Everything with a lower number belongs to the library.

    Attributes:
        rooms: all rooms.
        doors: all doors.
        things: everything else that belongs to the story, also what is nowhere yet.
    """

    def __init__(self, memory: Memory, player: int) -> None:
        self.memory, self.player = memory, player
        own = range(player + 1, memory.count)  # the last object is a mark
        self.rooms = [o for o in own if not memory.parent(o) and any(memory.values(o, way) for way in DIRECTIONS)]
        self.doors = [o for o in own if o not in self.rooms and memory.values(o, "found_in")]
        classes = {"Room", "Furniture", "Portal"}
        kept = (o for o in own if o not in self.rooms and o not in self.doors and self.name(o) not in classes)
        self.things = [o for o in kept if self.name(o) and self.name(o)[0].islower()]

    def name(self, thing: int) -> str:
        """Short name."""
        return self.memory.names[thing]

    def find(self, name: str) -> int:
        """The thing, door or room of a name. Raises `KeyError`."""
        for thing in (*self.things, *self.doors, *self.rooms):
            if self.name(thing) == name:
                return thing
        raise KeyError(name)

    def has(self, thing: int, attribute: str) -> bool:
        """Whether a thing has an attribute."""
        return self.memory.has(thing, attribute)

    def has_rules(self, thing: int) -> bool:
        """Whether a thing has rules of its own about what may be done with it (the property `before`)."""
        return self.memory.value(thing, "before") not in (0, NO_ROUTINE)

    # ---------------------------------------------------------------------------------------------------------------- places

    @property
    def here(self) -> int:
        """The room of the player."""
        return self.room_of(self.player)

    def room_of(self, thing: int) -> int:
        """The room that a thing is in, however deep; 0 for nowhere."""
        while thing and thing not in self.rooms:
            thing = self.memory.parent(thing)
        return thing

    def holder(self, thing: int) -> int:
        """What holds a thing directly; 0 for nothing."""
        return self.memory.parent(thing)

    def holds(self, thing: int) -> bool:
        """Whether the player has a thing in hand."""
        return self.memory.parent(thing) == self.player

    def ways(self, room: int) -> Iterator[Way]:
        """Ways out of a room in the fixed order of directions."""
        for direction in DIRECTIONS:
            target = self.memory.value(room, direction)
            if target in self.rooms:
                yield Way(direction, target, 0)
            elif target in self.doors:
                ends = [end for end in self.memory.values(target, "found_in") if end != room]
                yield from (Way(direction, end, target) for end in ends[:1])

    def reachable(self, start: int) -> list[int]:
        """Rooms that can be reached over any way, open or not."""
        seen = [start]
        for room in seen:  # grows while it is walked
            seen += [way.room for way in self.ways(room) if way.room not in seen]
        return seen

    # ------------------------------------------------------------------------------------------------------------------ sight

    def lit(self) -> bool:
        """Whether there is light where the player is."""
        here = self.here
        return self.has(here, "light") or any(self.has(thing, "light") for thing in self._inside(here))

    def opaque(self, thing: int) -> bool:
        """Whether a thing hides what is in it."""
        return self.has(thing, "container") and not self.has(thing, "open") and not self.has(thing, "transparent")

    def visible(self) -> list[int]:
        """Things and doors in sight, those in hand included; in the dark only those."""
        held = list(self._inside(self.player))
        if not self.lit():
            return held
        doors = [way.door for way in self.ways(self.here) if way.door]
        return [*held, *(thing for thing in self._inside(self.here) if thing not in held), *doors]

    def _inside(self, holder: int) -> Iterator[int]:
        for thing in self.memory.children(holder):
            if thing in self.doors:
                continue
            if thing != self.player:
                yield thing
            if thing == self.player or not self.opaque(thing):
                yield from self._inside(thing)
