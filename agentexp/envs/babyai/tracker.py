"""The fact tracker of BabyAI (MAP, section 3.2.2): what the texts of one exploration have told.

("thing", ("red ball", "3 ahead 2 left"), "there" | "taken")    seen lying there
("door", ("blue", "4 ahead"), "closed" | "locked" | "open")
("room", ("room 1 ahead",), "entered") and ("connects", (room, room))
("moved", ("red ball",))                                          put down somewhere else
("does", (verb, kind), "works" | "not always" | the reason of a refusal)
"""

from __future__ import annotations

import re
from typing import Any

from agentexp.core import CognitiveMap, Fact, Step
from agentexp.envs.babyai.frame import Room, Spot, beside, spot_text
from agentexp.envs.babyai.mission import parse_goal
from agentexp.envs.babyai.reader import Command, Description, Follower, command
from agentexp.envs.babyai.scene import VIEW

_NOT_ALWAYS = "not always"
_MASKS = (
    (re.compile(r"there is a .*\. (?=the room has walls)"), "<e> "),
    (
        re.compile(r"\b(?:red|green|blue|purple|yellow|grey)(?: (?:open|closed|locked))? (?:ball|box|key|door)\b(?: \d+)?"),
        "<e>",
    ),
    (re.compile(r"(?<=you are facing a )(?:wall|box)"), "<e>"),
    (re.compile(r"(?<=following actions: ).*"), "<e>"),
    (re.compile(r"\d+"), "<n>"),
)
_EFFECTS = {"pickup": "you carry it", "toggle": "the door opens", "toggle and go through": "you stand in the open door"}


class GridTracker:
    """Reads one exploration of one instance. Implements `FactTracker`; policies read its attributes as well.

    Attributes:
        now: the newest description and where the robot is.
        things: name of what lies on each spot that was seen, as far as is known.
        doors: (colour, state) of each door.
        rooms: the rooms that were entered, by name.
        looked: spots of these rooms, their walls included, that were in view.
        held: what is carried; empty for nothing.
        put: where the robot has put things down.
    """

    def __init__(self) -> None:
        self.now = Follower()
        self.things: dict[Spot, str] = {}
        self.doors: dict[Spot, tuple[str, str]] = {}
        self.rooms: dict[str, Room] = {}
        self.looked: set[Spot] = set()
        self.held = ""
        self.put: set[Spot] = set()
        self._facts: dict[tuple[str, tuple[str, ...]], str] = {}
        self._new: dict[tuple[str, tuple[str, ...]], str] = {}
        # As it was at reset: first sights, never what the robot itself has done.
        self._first: dict[Spot, str] = {}
        self._first_state: dict[Spot, str] = {}

    # ------------------------------------------------------------------------------------------------- FactTracker

    def observe(self, action: str | None, step: Step) -> list[Fact]:
        """See `FactTracker`."""
        self._new = {}
        order = command(action) if action is not None else None
        known = self.now.called()
        if order is not None:
            self._tried(order, step)
        if self.now.observe(step):
            assert self.now.shown is not None
            self._handled(order, known.get(order.called, (None, None))[1] if order else None, self.now.shown)
            self._look(self.now.shown)
            self._enter()
        return [Fact(*key, value) for key, value in self._new.items()]

    def facts(self) -> list[Fact]:
        """See `FactTracker`."""
        return [Fact(*key, value) for key, value in self._facts.items()]

    def mask(self, observation: str) -> str:
        """Names, numbers, what is faced and all lists are masked."""
        text = " ".join(observation.lower().split())
        for pattern, mask in _MASKS:
            text = pattern.sub(mask, text)
        return text

    def place(self) -> str:
        """The room, or "doorway"."""
        return self.now.room.name if self.now.room else "doorway" if self.now.pose else ""

    def map(self, goal: str) -> CognitiveMap:
        """The grid as it was at reset, what the goal speaks of first."""
        wanted = parse_goal(goal) or []
        order = sorted(self._first, key=lambda spot: not any(part.fits(self._first[spot]) for part in wanted))
        spatial = [
            {"thing": self._first[spot], "relation": "at", "place": spot_text(spot) + self._room_of(spot)} for spot in order
        ]
        spatial += [
            {"thing": f"{self._first[spot]} at {spot_text(spot)}", "relation": "is", "place": state}
            for spot, state in self._first_state.items()
        ]
        spatial += [
            {"thing": room.name, "relation": "is", "place": f"from {spot_text(room.low)} to {spot_text(room.high)}"}
            for room in self.rooms.values()
        ]
        joined = [key for name, key in self._facts if name == "connects"]
        spatial += [{"thing": one, "relation": "connects", "place": other} for one, other in joined]
        return CognitiveMap(
            spatial=spatial,
            affordances=self._affordances(),
            task_notes=[
                f"{self._first[spot]} at {spot_text(spot)} fits the goal."
                for spot in order
                if any(part.fits(self._first[spot], spot, self.rooms.get("start room")) for part in wanted)
            ],
            unknown=[
                f"beyond the {self._first[spot]} at {spot_text(spot)}"
                for spot in self._first_state
                if self.unknown_behind(spot)
            ],
        )

    # -------------------------------------------------------------------------------------------------- for policies

    def unknown_behind(self, door: Spot) -> bool:
        """Whether a door leads to a room that was not entered."""
        return len(self._sides(door)) < 2

    def unseen(self) -> set[Spot]:
        """Spots of entered rooms, their walls included, that were never in view."""
        shown = {
            (a, r)
            for room in self.rooms.values()
            for a in range(room.low[0] - 1, room.high[0] + 2)
            for r in range(room.low[1] - 1, room.high[1] + 2)
            if room.shows((a, r))
        }
        return shown - self.looked

    # ------------------------------------------------------------------------------------------------------ learning

    def _learn(self, name: str, *subject: str, value: str = "") -> None:
        if self._facts.get((name, subject)) != value:
            self._facts[name, subject] = self._new[name, subject] = value

    def _tried(self, order: Command, step: Step) -> None:
        kind = " ".join(order.called.split()[1:-1])
        known = self._facts.get(("does", (order.verb, kind)))
        value = "works"
        if step.error:
            value = step.observation.partition(", as ")[2].rstrip(".") or "nothing changes"
            # Which of several reasons came last is no new knowledge.
            value = known if known not in (None, "works") else _NOT_ALWAYS if known else value
        elif known not in (None, "works"):
            value = _NOT_ALWAYS
        self._learn("does", order.verb, kind, value=value)

    def _handled(self, order: Command | None, spot: Spot | None, shown: Description) -> None:
        """Picking up and putting down."""
        pose = self.now.pose
        if shown.held and not self.held and order is not None and order.verb == "pickup" and spot is not None:
            self.things.pop(spot, None)
            if spot not in self.put:
                self._learn("thing", shown.held, spot_text(spot), value="taken")
        elif self.held and not shown.held and pose is not None:
            self.put.add(beside(pose, 1))
            self._learn("moved", self.held)
        self.held = shown.held

    def _look(self, shown: Description) -> None:
        pose, room = self.now.pose, self.now.room
        assert pose is not None
        for seen in shown.seen:
            spot = beside(pose, seen.ahead, seen.right)
            if spot not in self.put:
                self._first.setdefault(spot, seen.name)
            if seen.kind == "door":
                self._first_state.setdefault(spot, seen.state)
                self.doors[spot] = seen.colour, seen.state
                self._learn("door", seen.colour, spot_text(spot), value=seen.state)
            else:
                self.things[spot] = seen.name
                if spot not in self.put:
                    self._learn("thing", seen.name, spot_text(spot), value="there")
        if pose.spot in self.doors:  # one stands in open doors only, and a view does not show what one stands on
            colour = self.doors[pose.spot][0]
            self.doors[pose.spot] = colour, "open"
            self._learn("door", colour, spot_text(pose.spot), value="open")
        if room is not None:
            side = VIEW // 2
            view = {beside(pose, a, r) for a in range(VIEW) for r in range(-side, side + 1)}
            self.looked |= {spot for spot in view if room.shows(spot)}

    def _enter(self) -> None:
        room = self.now.room
        if room is None:
            return
        self.rooms[room.name] = room
        self._learn("room", room.name, value="entered")
        for door in self.doors:
            sides = self._sides(door)
            if len(sides) == 2:
                self._learn("connects", *sides)

    def _sides(self, door: Spot) -> list[str]:
        """The entered rooms that a door belongs to."""
        near = [(door[0] + a, door[1] + r) for a, r in ((1, 0), (-1, 0), (0, 1), (0, -1))]
        return sorted(room.name for room in self.rooms.values() if any(map(room.holds, near)))

    # ----------------------------------------------------------------------------------------------------- rendering

    def _room_of(self, spot: Spot) -> str:
        return next((f" in {room.name}" for room in self.rooms.values() if room.holds(spot)), "")

    def _affordances(self) -> list[dict[str, Any]]:
        entries = []
        for (name, subject), value in self._facts.items():
            if name != "does" or not subject[1]:
                continue
            verb, kind = subject
            entries.append(
                {
                    "action": verb,
                    "target": kind,
                    "works": value in ("works", _NOT_ALWAYS),
                    "effect": _EFFECTS.get(verb, "you are there") if value in ("works", _NOT_ALWAYS) else f"refused: {value}",
                    "requires": "a key of its colour in your hand" if kind == "locked door" and "toggle" in verb else None,
                }
            )
        return entries
