"""Facts from ScienceWorld's texts (MAP, section 3.2.2).

    ("room", (room,))                        seen with "look around"
    ("connects", (room, room))               a door between them, names sorted
    ("in", (thing, place), "in" | "gone")    a thing seen in a room, in or on a container, or in the "inventory"
    ("empty", (place,))                      a container seen empty
    ("state", (thing, room, aspect), "open") aspect door: open, closed; power: on, off; stage: adult ...; doors are "door to X"
    ("works", (verb, thing type), "yes" | "no")
    ("reading", (instrument, thing), "20")   temperature to the nearest 10 degrees: a drifting value is no news
    ("text", (thing,), what it reads)

The map describes the state at reset: the first state seen of everything, without what the agent itself moved or changed before.
"""

from __future__ import annotations

import re

from agentexp.core import CognitiveMap, Fact, Step
from agentexp.envs.scienceworld.texts import Room, Thing, read_list, read_room, read_thing

MOVED = re.compile(r"^(?:\(.*\))?You move the (.+?) to the (.+?)\.$")
ARRIVED = re.compile(r"^You (?:move|teleport) to the (.+?)\.$")
SWITCHED = re.compile(r"^The (.+?) is now (open|closed|activated|deactivated)\.")
MEASURED = re.compile(r"^the (.+?) measures a temperature of (-?\d+)")
POURED = re.compile(r"^You (?:pour|dunk) .* in(?:to)? the (.+?)[.,]")
POWER = {"activated": "on", "deactivated": "off"}
OPPOSITE = {"open": "closed", "closed": "open", "on": "off", "off": "on"}
VERBS = re.compile(
    r"^(open|close|pick up|put down|drop|move|pour|dunk|mix|activate|deactivate|use|connect|disconnect|read|eat|flush|focus on)"
    r"\s+(.+)$"
)
TARGET_END = re.compile(r" (?:to|into|in|on|containing) ")
MASKS = (
    (re.compile(r"^(this (?:room|outside location) is called the) .*"), r"\1 <e>"),
    (
        re.compile(r"^((?:inside|ambiguous request)\b|in your inventory, you see:|task description:|the recipe reads:).*"),
        r"\1 <e>",
    ),
    (re.compile(r"^(?:\(.*\))?(you (?:move|teleport) to the) [^.]*\.$"), r"\1 <e>."),
    (re.compile(r"^(?:\(.*\))?you (move|pour|dunk) the .*"), r"you \1 the <e> to the <e>."),
    (re.compile(r"^(you focus on the) .*"), r"\1 <e>."),
    (
        re.compile(r"^the .+? (is (?:now|already|not) |measures |isn't |is empty|doesn't )(?:connected to .*|([\w ]*).*)"),
        r"the <e> \1\2",
    ),
    (re.compile(r"^.+ (is now connected to|mix to produce) .*"), r"<e> \1 <e>."),
    (re.compile(r"^(?:an?|the) .*|^[a-z' -]+$"), "<e>"),
)


class ScienceWorldTracker:
    """Reads one exploration of one instance.

    Attributes:
        room: where the agent is; empty before the first description.
        rooms: what was last seen in each room.
    """

    def __init__(self) -> None:
        self.room = ""
        self.rooms: dict[str, Room] = {}
        self._facts: dict[tuple[str, tuple[str, ...]], Fact] = {}
        self._first: dict[tuple[str, tuple[str, ...]], Fact] = {}
        self._touched: set[str] = set()
        self._news: list[Fact] = []
        self._seen_from: dict[tuple[str, ...], str] = {}  # (thing, place) -> the room in which it was seen there

    def observe(self, action: str | None, step: Step) -> list[Fact]:
        """Facts that are new or changed."""
        self._news = []
        text, command = step.observation.strip(), " ".join((action or "").lower().split())
        verb = VERBS.match(command)
        if verb and not text.startswith("Ambiguous"):
            self._add("works", (verb[1], _type(verb[2])), "no" if step.error else "yes")
        if not step.error:
            self._read(command, verb, text)
        return self._news

    def facts(self) -> list[Fact]:
        """Everything known, in the order of discovery."""
        return list(self._facts.values())

    def mask(self, observation: str) -> str:
        """Lower case, one blank, digits as <n>, names and lists as <e>."""
        text = re.sub(r"\d+", "<n>", " ".join(observation.lower().split()))
        for pattern, replacement in MASKS:
            masked = pattern.sub(replacement, text)
            if masked != text:
                return masked
        return text

    def place(self) -> str:
        """The room and what stands open in it ("kitchen: cupboard open")."""
        opened = [f[1][0] for f in self._facts.values() if f.kind == "state" and f.value == "open" and f[1][1] == self.room]
        return f"{self.room}: {', '.join(sorted(opened))} open" if opened else self.room

    def map(self, goal: str) -> CognitiveMap:
        """Rooms, things and states at reset; affordances; rooms behind doors that were never entered as unknown.

        Long maps are cut from the end (extractor), so what the goal names comes first, what every room has comes last.
        """
        chart = CognitiveMap()
        for kind, subject, value in self._first.values():
            if kind == "connects":
                chart.spatial.append({"thing": subject[0], "relation": "connects", "place": subject[1]})
            elif kind == "in" and value != "gone" and subject[1] != "inventory":
                chart.spatial.append({"thing": subject[0], "relation": value, "place": subject[1]})
            elif kind == "state":
                chart.spatial.append({"thing": f"{subject[0]} in {subject[1]}", "relation": "is", "place": value})
            elif kind == "empty":
                chart.absent.append({"place": subject[0], "what": "anything"})
        chart.spatial.sort(key=lambda entry: self._rank(entry, goal))
        for kind, subject, value in self._facts.values():
            if kind == "works":
                effect = "works" if value == "yes" else "refused"
                entry = {"action": f"{subject[0]} {subject[1]}", "target": subject[1], "works": value == "yes"}
                chart.affordances.append({**entry, "effect": effect, "requires": None})
            elif kind == "reading":
                chart.task_notes.append(f"The {subject[0]} measured about {value} degrees celsius at {subject[1]}.")
            elif kind == "text":
                chart.task_notes.append(f"The {subject[0]} reads: {value}")
        named = [room for room in self.rooms if goal and re.search(rf"\b{re.escape(room)}\b", goal)]
        chart.task_notes += [f"The task names the {room}: {', '.join(self.path('', room)) or 'here'}." for room in named]
        chart.unknown = sorted({to for room in self.rooms.values() for to in room.doors} - set(self.rooms))
        return chart

    def _rank(self, entry: dict[str, str], goal: str) -> int:
        """Smaller is more useful: named by the goal, ways, things in rooms, things in things, states, doors and air."""
        thing = entry["thing"]
        if thing in ("air", "agent"):
            return 6
        if goal and re.search(rf"\b{re.escape(thing)}\b", goal):
            return 0
        if entry["relation"] == "is":
            return 5 if thing.startswith("door") else 4
        return 1 if entry["relation"] == "connects" else 2 if entry["place"] in self.rooms else 3

    # ------------------------------------------------------------------------------------------------------ navigation

    def path(self, start: str, goal: str) -> list[str]:
        """Rooms from `start` (empty: the first room seen) to `goal`, both included, over known doors; [] if none is known."""
        start = start or next(iter(self.rooms), "")
        came, front = {start: ""}, [start]
        for room in front:  # grows while it is walked: breadth first
            if room == goal:
                way = [room]
                while came[way[-1]]:
                    way.append(came[way[-1]])
                return way[::-1]
            for to in self.neighbours(room):
                if to not in came:
                    came[to] = room
                    front.append(to)
        return []

    def neighbours(self, room: str) -> list[str]:
        """Rooms with a known door to `room`."""
        ahead = list(self.rooms[room].doors) if room in self.rooms else []
        return ahead + [name for name, other in self.rooms.items() if room in other.doors and name not in ahead]

    # --------------------------------------------------------------------------------------------------------- reading

    def _read(self, command: str, verb: re.Match[str] | None, text: str) -> None:
        if room := read_room(text):
            self._read_room(room)
        elif match := ARRIVED.match(text):
            if command.startswith(("go", "teleport")):
                self.room = match[1]
        elif match := MOVED.match(text):
            self._touched |= {match[1], match[2]} | {
                f[1][1] for f in self._facts.values() if f.kind == "in" and f[1][0] == match[1]
            }
            self._add("in", (match[1], match[2]), "in")
        elif match := POURED.match(text):
            self._touched |= {match[1]}
        elif match := SWITCHED.match(text):
            thing = match[1]
            if thing == "door" and verb:
                thing = "door to " + re.sub(r"^door to |^the | door$", "", verb[2])
                if self.room in self.rooms and thing[8:] in self.rooms[self.room].doors:
                    self.rooms[self.room].doors[thing[8:]] = match[2]
            self._state(thing, self.room, match[2], changed=True)
        elif match := MEASURED.match(text):
            target = re.sub(r"^.* on ", "", command)
            self._add("reading", (match[1], target), str(round(int(match[2]), -1)))
        elif text.startswith("Inside the "):
            self._contents(text[11:].split(" is:", 1)[0], read_list(text), "in")
        elif text.startswith("In your inventory"):
            self._contents("inventory", read_list(text), "in")
        elif command.startswith("read ") and verb:
            self._add("text", (_type(verb[2]),), " ".join(text.split(":", 1)[-1].split())[:300])
        elif command.startswith(("look at", "examine")) and self.room:
            thing = read_thing(text)
            if thing.seen_inside and thing.name:
                self._contents(thing.name, thing.contents, thing.relation)
            for state in thing.states:
                self._state(thing.name, self.room, state)

    def _read_room(self, room: Room) -> None:
        self.room, self.rooms[room.name] = room.name, room
        self._add("room", (room.name,))
        for to, state in room.doors.items():
            low, high = sorted((room.name, to))
            self._add("connects", (low, high))
            self._state(f"door to {to}", room.name, state)
        self._contents(room.name, room.things, "in")

    def _contents(self, place: str, things: list[Thing], relation: str) -> None:
        """What a place holds now; what was there before and is not listed any more is gone.

        Names repeat (three wood cups in one room): all of one name is merged before it is compared with what was known.
        """
        seen: dict[str, dict[str, str]] = {}
        states: dict[tuple[str, str], set[str]] = {}
        _collect(place, things, relation, seen, states)
        room = "" if place == "inventory" else self.room
        for holder, inside in seen.items():
            for kind, subject, value in list(self._facts.values()):
                here = kind == "in" and subject[1] == holder and self._seen_from.get(subject) == room
                if here and value != "gone" and subject[0] not in inside:
                    self._add("in", subject, "gone")
            if not inside and holder != "inventory":
                self._add("empty", (holder,))
            for name, how in inside.items():
                self._seen_from[(name, holder)] = room
                self._add("in", (name, holder), how)
        if room:
            for (name, aspect), values in states.items():
                self._state(name, room, " or ".join(sorted(values)), aspect=aspect)

    def _state(self, thing: str, room: str, state: str, *, aspect: str = "", changed: bool = False) -> None:
        state = POWER.get(state, state)
        key = ("state", (thing, room, aspect or _aspect(state)))
        if changed and key not in self._first:  # the agent has just changed it, so at reset it was the other way round
            self._first[key] = Fact(*key, OPPOSITE[state])
        self._add(*key, state)

    def _add(self, kind: str, subject: tuple[str, ...], value: str = "") -> None:
        fact = Fact(kind, subject, value)
        key = (kind, subject)
        if self._facts.get(key) == fact:
            return
        if key not in self._first and not (kind in ("in", "empty") and self._touched & set(subject)):
            self._first[key] = fact
        self._facts[key] = fact
        self._news.append(fact)


def _collect(
    place: str, things: list[Thing], relation: str, seen: dict[str, dict[str, str]], states: dict[tuple[str, str], set[str]]
) -> None:
    """Gather a nested list: what each holder holds and how, and the states of each name."""
    inside = seen.setdefault(place, {})
    for thing in things:
        inside[thing.name] = relation
        for state in thing.states:
            state = POWER.get(state, state)
            states.setdefault((thing.name, _aspect(state)), set()).add(state)
        if thing.seen_inside and thing.name:
            _collect(thing.name, thing.contents, thing.relation, seen, states)


def _aspect(state: str) -> str:
    return {"open": "door", "closed": "door", "on": "power", "off": "power"}.get(state, "stage")


def _type(words: str) -> str:
    """Thing type of a command's object: without its place, its number and its article."""
    words = TARGET_END.split(re.sub(r"^(an?|the) ", "", words), maxsplit=1)[0] if not words.startswith("door to") else "door"
    return re.sub(r"\s+\d+$", "", "door" if words.endswith(" door") else words)
