"""Facts from a story's texts (MAP, section 3.2.2).

    ("room", (room,))                         a room whose description was seen
    ("exit", (room, direction), room | "")    a way out; where it leads is known once it was walked
    ("door", (room, direction), door)         the door in it
    ("in", (thing, place), "in" | "on" | "gone")  place: a room, a thing that holds things, or "inventory"
    ("empty", (holder,))
    ("state", (thing,), "open" | "closed" | "locked" | "on" | "off")
    ("works", (verb, thing), "yes" | "no")
    ("text", (thing,), what it says when it is read, examined or talked to)

The map describes the state at reset: the first state seen of everything, without what the agent itself moved or changed before.
"""

from __future__ import annotations

import re

from agentexp.core import CognitiveMap, Fact, Step
from agentexp.envs.jericho.commands import Command, read, resolve
from agentexp.envs.jericho.texts import Room, Thing, plain, read_contents, read_inventory, read_room

_DULL = re.compile(
    r"nothing special|nothing of interest|currently switched|can't see inside|^(?:In|On) the .+ (?:is|are)\b|is empty"
)
_LOCKED = re.compile(r"^The (.+?) seems to be locked\.", re.MULTILINE)
_CHANGED = {"open": "open", "close": "closed", "switch on": "on", "switch off": "off", "unlock": "closed", "lock": "locked"}
_BEFORE = {"open": "closed", "close": "open", "switch on": "off", "switch off": "on", "unlock": "locked", "lock": "closed"}
_LISTS = re.compile(r"(you can (?:also )?see|exits:|revealing|carrying:?|(?:in|on) the [^.]*? (?:is|are)) [^.]*\.?")
_LONG_TEXT = 300
DARK = "Darkness"  # the name that a story gives to any place without light


class StoryTracker:
    """Reads one exploration of one game.

    Attributes:
        room: where the agent is; empty before the first description.
        rooms: the newest description of each room.
        ways: room -> direction -> room behind it, "" while nobody went there.
    """

    def __init__(self) -> None:
        self.room = ""
        self.rooms: dict[str, Room] = {}
        self.ways: dict[str, dict[str, str]] = {}
        self._facts: dict[tuple[str, tuple[str, ...]], Fact] = {}
        self._first: dict[tuple[str, tuple[str, ...]], Fact] = {}
        self._touched: set[str] = set()
        self._news: list[Fact] = []

    # -------------------------------------------------------------------------------------------------------- FactTracker

    def observe(self, action: str | None, step: Step) -> list[Fact]:
        """Facts that are new or changed."""
        self._news = []
        text, place = step.observation.strip(), str(step.info.get("place", ""))
        command = read(action or "")
        came_from = self.room
        room = read_room(text, place)
        if room is not None:
            self._read_room(room)
        elif place and place != self.room:
            self.room = place
            self._add("room", (place,))
        if command.verb == "go":
            self._moved(came_from, command.thing, step)
        elif command.verb and action is not None:
            self._acted(command, text, step)
        for match in _LOCKED.finditer(text):
            self._add("state", (match[1],), "locked")
        if not step.error:
            for holder, relation, things in read_contents(text):
                self._contents(holder, relation, things)
            if (carried := read_inventory(text)) is not None:
                self._contents("inventory", "in", carried)
        return self._news

    def facts(self) -> list[Fact]:
        """Everything known, in the order of discovery."""
        return list(self._facts.values())

    def mask(self, observation: str) -> str:
        """Lower case, one blank, digits as <n>, names of things and rooms and lists as <e>."""
        text = re.sub(r"\d+", "<n>", " ".join(observation.lower().split()))
        text = _LISTS.sub(r"\1 <e>", text)
        names = sorted(self.names() | {room.lower() for room in self.rooms}, key=lambda name: (-len(name), name))
        return re.sub(rf"\b(?:{'|'.join(map(re.escape, names))})\b", "<e>", text) if names else text

    def place(self) -> str:
        """The room and what stands open there."""
        opened = [f.subject[0] for f in self._facts.values() if f.kind == "state" and f.value == "open"]
        here = sorted(name for name in opened if ("in", (name, self.room)) in self._facts)
        return f"{self.room}: {', '.join(here)} open" if here else self.room

    def map(self, goal: str) -> CognitiveMap:
        """Ways and things at reset, what works, what was read; unknown: ways not taken and things not opened.

        Long maps are cut from the end (extractor), so what the goal names comes first.
        """
        chart = CognitiveMap()
        for kind, subject, value in self._first.values():
            if kind == "in" and value != "gone" and subject[1] != "inventory":
                chart.spatial.append({"thing": subject[0], "relation": value, "place": subject[1]})
            elif kind == "state":
                chart.spatial.append({"thing": subject[0], "relation": "is", "place": value})
            elif kind == "empty" and subject[0] != "inventory":
                chart.absent.append({"place": subject[0], "what": "anything"})
        chart.spatial.sort(key=lambda entry: (str(entry["thing"]) not in goal, entry["relation"] == "is"))
        for here, ways in self.ways.items():
            for way, to in ways.items():
                door = self._facts.get(("door", (here, way)))
                if to:
                    entry = {"action": f"go {way}", "target": here, "works": True, "effect": f"leads to {to}"}
                    chart.affordances.append({**entry, "requires": door.value if door else None})
                    link = {"thing": min(here, to), "relation": "connects", "place": max(here, to)}
                    chart.spatial += [link] if link not in chart.spatial and DARK not in link.values() else []
                else:
                    chart.unknown.append(f"{way} of {here}" + (f" (the {door.value})" if door else ""))
        for kind, subject, value in self._facts.values():
            if kind == "works" and subject[0] != "examine":
                effect = "works" if value == "yes" else "refused"
                entry = {"action": f"{subject[0]} {subject[1]}", "target": subject[1], "works": value == "yes"}
                chart.affordances.append({**entry, "effect": effect, "requires": None})
            elif kind == "text":
                chart.task_notes.append(f"The {subject[0]}: {value}")
            elif kind == "state" and value in ("closed", "locked"):
                chart.unknown.append(f"inside of the {subject[0]}")
        chart.unknown = list(dict.fromkeys(chart.unknown))
        return chart

    # ------------------------------------------------------------------------------------------------------------- reading

    def names(self) -> set[str]:
        """Names of all things seen."""
        return {f.subject[0] for f in self._facts.values() if f.kind in ("in", "state")} | {
            f.value for f in self._facts.values() if f.kind == "door"
        }

    def doors(self, door: str) -> list[tuple[str, str]]:
        """(room, direction) of the ways that a door is in."""
        return [(f.subject[0], f.subject[1]) for f in self._facts.values() if f.kind == "door" and f.value == door]

    def all_doors(self) -> set[tuple[str, str]]:
        """(room, direction) of all ways with a door in it."""
        return {(f.subject[0], f.subject[1]) for f in self._facts.values() if f.kind == "door"}

    def _read_room(self, room: Room) -> None:
        self.room, self.rooms[room.name] = room.name, room
        self._add("room", (room.name,))
        ways = self.ways.setdefault(room.name, {})
        for way, door in (room.exits or {}).items():
            ways.setdefault(way, "")
            self._add("exit", (room.name, way), ways[way])
            if door.door:
                self._add("door", (room.name, way), door.door)
                known = self._facts.get(("state", (door.door,)))
                if door.closed and (known is None or known.value == "open"):
                    self._add("state", (door.door,), "closed")
                elif not door.closed:
                    self._add("state", (door.door,), "open")
        self._contents(room.name, "in", room.things)

    def _moved(self, start: str, way: str, step: Step) -> None:
        if step.error or not start:
            return
        if self.room != start:
            self.ways.setdefault(start, {})[way] = self.room
            self._add("exit", (start, way), self.room)

    def _acted(self, command: Command, text: str, step: Step) -> None:
        name = resolve(command.thing, self.names())
        known = name in self.names()
        if not known and step.error:
            return
        self._add("works", (command.verb, name), "no" if step.error else "yes")
        if step.error:
            return
        if command.verb in ("examine", "talk to"):
            if not _DULL.search(text) and not read_inventory(text):
                self._add("text", (name,), " ".join(text.split())[:_LONG_TEXT])
            return
        if command.verb in _CHANGED:
            key = ("state", (name,))
            if key not in self._first:
                self._first[key] = Fact(*key, _BEFORE[command.verb])
            self._add(*key, _CHANGED[command.verb])
        moved = resolve(command.other, self.names()) if command.verb in ("put", "give", "pour") else name
        if command.verb in ("take", "drop", "put", "give"):
            for kind, subject, value in list(self._facts.values()):
                if kind == "in" and subject[0] == moved and value != "gone":
                    self._touched.add(subject[1])
                    self._add("in", subject, "gone")
            target = {"take": "inventory", "drop": self.room}.get(command.verb, name)
            self._touched |= {moved, target}
            if command.verb != "give":
                self._add("in", (moved, target), "in")

    def _contents(self, place: str, relation: str, things: list[Thing]) -> None:
        """What a place holds now; what was there before and is not listed any more is gone."""
        listed = {thing.name for thing in things}
        for kind, subject, value in list(self._facts.values()):
            if kind == "in" and subject[1] == place and value != "gone" and subject[0] not in listed:
                self._add("in", subject, "gone")
        if not things and place not in ("inventory", DARK):
            self._add("empty", (place,))
        for thing in things:
            name = plain(thing.name)
            self._add("in", (name, place), relation)
            for state in thing.states:
                if state in ("open", "closed"):
                    known = self._facts.get(("state", (name,)))
                    if not (state == "closed" and known is not None and known.value == "locked"):
                        self._add("state", (name,), state)
                elif state == "empty":
                    self._add("empty", (name,))
            if thing.contents:
                self._contents(name, thing.relation, thing.contents)

    def _add(self, kind: str, subject: tuple[str, ...], value: str = "") -> None:
        fact = Fact(kind, subject, value)
        key = (kind, subject)
        if self._facts.get(key) == fact:
            return
        if key not in self._first and not (kind in ("in", "empty") and self._touched & set(subject)):
            self._first[key] = fact
        self._facts[key] = fact
        self._news = [news for news in self._news if news[:2] != key]
        self._news.append(fact)
