"""Scripted agents of ToyRooms: `myopic` searches without knowledge, `mapuser` uses a map, `curious` surveys the corridor."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import NamedTuple

from agentexp.core import CognitiveMap, Policy, View
from agentexp.envs.toy import ToyTracker


class _Goal(NamedTuple):
    thing: str
    room: str


def _read_goal(goal: str) -> _Goal:
    match = re.search(r"(?:Find|Bring) the (\w+) (?:and|to the (.+)\.$)", goal)
    return _Goal(match[1], match[2] or "") if match else _Goal("", "")


def _tracker(view: View) -> ToyTracker:
    assert isinstance(view.tracker, ToyTracker)
    return view.tracker


def _allowed(view: View) -> tuple[str, ...]:
    return view.step.admissible or ()


class _Walker:
    """Goes one way to the end of the corridor, then the other way."""

    def __init__(self, direction: str) -> None:
        self.direction = direction

    def go(self, view: View) -> str:
        if f"go {self.direction}" not in _allowed(view):
            self.direction = "west" if self.direction == "east" else "east"
        return f"go {self.direction}"


class Myopic:
    """Takes the wanted thing when it sees it; else walks on. The first direction is drawn."""

    def __init__(self, seed: int) -> None:
        self.walker = _Walker(random.Random(seed).choice(("east", "west")))

    def act(self, view: View) -> str:
        """See `Policy`."""
        goal = _read_goal(view.goal)
        tracker = _tracker(view)
        for action in (f"take {goal.thing}", f"drop {goal.thing}" if tracker.place() == goal.room else ""):
            if action in _allowed(view):
                return action
        held = next((a for a in _allowed(view) if a.startswith("drop ")), "")
        if held and held != f"drop {goal.thing}":
            return held
        return self.towards(goal.room if held else goal.thing, view) or self.walker.go(view)

    def towards(self, what: str, view: View) -> str:
        """A step to a room or to a thing's room where it is known; "" where it is not."""
        return ""


class MapUser(Myopic):
    """`Myopic` with a fixed direction, which goes straight to what the map shows."""

    def __init__(self, seed: int) -> None:
        self.walker = _Walker("east")

    def towards(self, what: str, view: View) -> str:
        """See `Myopic`."""
        known = view.map or CognitiveMap()
        east_of = {e["thing"]: e["place"] for e in known.spatial if e["relation"] == "connects"}
        room = next((e["place"] for e in known.spatial if e["relation"] == "in" and e["thing"] == what), what)
        here = _tracker(view).place()
        for start, end, direction in ((here, room, "east"), (room, here, "west")):
            seen = set[str]()
            while start in east_of and start not in seen:
                seen.add(start)
                start = east_of[start]
                if start == end:
                    return f"go {direction}"
        return ""


class Curious:
    """Tries to take and drop one thing, visits every room, then takes and drops each other thing where it lies.

    The thing of a goal that it knows is left alone: taking it may end the task.
    """

    def __init__(self, seed: int) -> None:
        self.walker = _Walker(random.Random(seed).choice(("east", "west")))

    def act(self, view: View) -> str:
        """See `Policy`."""
        facts = _tracker(view).facts()
        tried = {fact.kind for fact in facts}
        thing = _read_goal(view.goal).thing
        for action in _allowed(view):
            verb, _, what = action.partition(" ")
            if verb in ("take", "drop") and verb not in tried and what != thing:
                return action
        if any(fact.kind == "door" and self._unseen(fact.subject, view) for fact in facts):
            return self.walker.go(view)
        return self._try_things({thing}, view)

    def _try_things(self, never: set[str], view: View) -> str:
        """Drop what is held; take the next thing that was never taken, or walk to it; "look" when nothing is left to do."""
        tracker = _tracker(view)
        held = next((action for action in _allowed(view) if action.startswith("drop ")), "")
        if held:
            return held
        taken = {fact.subject[0] for fact in tracker.facts() if fact.kind == "take"} | never
        lies = {fact.subject[0]: fact.value for fact in tracker.facts() if fact.kind == "thing"}
        places = {room: at for at, room in tracker.rooms.items()}
        left = [(places[room], name) for name, room in lies.items() if name not in taken and room in places]
        if not left:
            return "look"
        at, name = min(left, key=lambda pair: abs(pair[0] - tracker.position))
        return f"take {name}" if at == tracker.position else "go east" if at > tracker.position else "go west"

    def _unseen(self, door: tuple[str, ...], view: View) -> bool:
        rooms = _tracker(view).rooms
        position = next(i for i, room in rooms.items() if room == door[0])
        return position + (1 if door[1] == "east" else -1) not in rooms


POLICIES: dict[str, Callable[[int], Policy]] = {"myopic": Myopic, "curious": Curious, "mapuser": MapUser}
