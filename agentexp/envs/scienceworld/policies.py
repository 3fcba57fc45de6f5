"""Scripted agents for ScienceWorld. They read what a language model reads: the texts, the goal and the map.

* `curious` explores without a goal: looks into every room (nearest first), then opens every closed container, reads what can
  be read and switches every device once.
* `myopic` walks straight to what the goal names: it forgets to open doors until it is refused, repeats a refused command with
  probability 0.3, and focuses on the first thing whose name shares a word with the goal.
* `mapuser` explores like `curious` while mapping. While acting it carries out the plans below, taking rooms and things from the
  map where it has one and searching for them where not. It can do 8 of the 30 tasks: find-living-thing, find-non-living-thing,
  find-plant, find-animal, lifespan-longest-lived, lifespan-shortest-lived, lifespan-longest-lived-then-shortest-lived and
  use-thermometer. In all others it focuses on nothing, goes to the rooms that the goal names and explores on; that earns
  the points for reaching places and never the task. It knows no physics, so no plan for the rest would be honest.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator

from agentexp.core import CognitiveMap, Policy, View
from agentexp.envs.agents import fresh_agent
from agentexp.envs.scienceworld.texts import Room, Thing
from agentexp.envs.scienceworld.tracker import ScienceWorldTracker

REPEAT = 0.3
ANIMAL = re.compile(r"^(?:baby|juvenile|adult|hatchling|tadpole)\b|\b(?:egg|pupa|caterpillar|larva|tadpole|nymph)$")
PLANT = re.compile(r"\b(?:tree|plant)$")
ALIVE = re.compile(
    r"egg|pupa|baby|adult|juvenile|tree|plant|seed|apple|orange|banana|potato|flower|bee|moth|dead|air|agent|ground"
)
DEVICE = re.compile(
    r"\b(?:sink|stove|oven|stopwatch|bathtub|furnace|burner|fountain|buzzer|motor|bulb|switch|generator|panel)$"
)
FIND = re.compile(r"find a\(n\) ([\w-]+(?: thing)?)\..* move it to the (\w+ box) in the ([\w ]+)\.")
MEASURE = re.compile(
    r"measure the temperature of ([\w ]+), which is located around the ([\w ]+)\..* above (-?[\d.]+) degrees celsius, "
    r"place it in the (\w+ box)\..* below [-\d.]+ degrees celsius, place it in the (\w+ box)\..* located around the ([\w ]+)\."
)
# Typical life spans in years (general knowledge); only the order matters.
YEARS = {
    "dragonfly": 0.3, "butterfly": 0.1, "moth": 0.1, "bee": 0.2, "ant": 1, "mouse": 2, "hedgehog": 3, "chipmunk": 4,
    "chameleon": 6, "rabbit": 8, "wolf": 9, "blue jay": 7, "dove": 10, "frog": 10, "beaver": 12, "toad": 11, "brown bear": 25,
    "turtle": 40, "crocodile": 60, "elephant": 65, "parrot": 70, "giant tortoise": 150,
}  # fmt: skip


def make(name: str, seed: int) -> Policy:
    """A fresh policy by name."""
    return fresh_agent({"curious": Curious, "mapuser": MapUser, "myopic": Myopic}, name, "scienceworld", seed)


class _Reader:
    """Keeps a tracker of the current phase up to date."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.known = ScienceWorldTracker()
        self.done: set[str] = set()
        self.answer, self.refused = "", False
        self._read = 0

    def look(self, view: View) -> None:
        """Take in what is new; a fresh phase starts from nothing."""
        if not view.history:
            self.known, self.done, self._read = ScienceWorldTracker(), set(), 0
            self.known.observe(None, view.step)
        for action, step in view.history[self._read :]:
            here = f"{self.known.room}|{action}"
            if step.error and here in self.done:
                self.done.add(f"{here}|stuck")
            self.done.add(here)
            self.known.observe(action, step)
        self._read = len(view.history)
        self.answer, self.refused = view.step.observation, view.step.error

    def tried(self, action: str) -> bool:
        """Whether the action was sent in this room before."""
        return f"{self.known.room}|{action}" in self.done

    def step_to(self, room: str) -> str | None:
        """Next action on the way to a room: open the door, else go; None if no way is known."""
        way = self.known.path(self.known.room, room)
        if len(way) < 2:
            return None
        here, door = self.known.rooms.get(self.known.room), f"open door to {way[1]}"
        shut = here.doors.get(way[1]) != "open" if here else not self.tried(door)
        return door if shut and not self.tried(door) else f"go to {way[1]}"

    def explore(self) -> str | None:
        """Next action of a search through the rooms: look here, else the nearest room never seen; None when all were seen."""
        if self.known.room not in self.known.rooms:
            return "look around"
        for room in self._by_distance():
            if room not in self.known.rooms and (action := self.step_to(room)) and not self._stuck(action):
                return action
        return None

    def _by_distance(self) -> list[str]:
        start = self.known.room
        seen, front = [start], [start]
        for room in front:
            for to in self.known.neighbours(room):
                if to not in seen:
                    seen.append(to)
                    front.append(to)
        return seen

    def _stuck(self, action: str) -> bool:
        return action.startswith("go to ") and f"{self.known.room}|{action}|stuck" in self.done


class Curious(_Reader):
    """Systematic explorer; knows no goal."""

    def act(self, view: View) -> str:
        """Rooms first, then closed containers, then inside them, texts and devices, room by room."""
        self.look(view)
        if view.step.info.get("choice"):
            return "0"
        return self.explore() or self._details() or "look around"

    def _details(self) -> str | None:
        for room in self._by_distance():
            for action in self._jobs(room):
                if f"{room}|{action}" not in self.done:
                    return action if room == self.known.room else self.step_to(room)
        return None

    def _jobs(self, room: str) -> Iterator[str]:
        if room not in self.known.rooms:
            return
        for thing in _all(self.known.rooms[room].things):
            if "closed" in thing.states:
                yield f"open {thing.name}"
                yield f"look in {thing.name}"
            if thing.name.startswith(("recipe", "book")):
                yield f"read {thing.name}"
            if DEVICE.search(thing.name):
                yield f"activate {thing.name}"
                yield f"deactivate {thing.name}"


class Myopic(_Reader):
    """Goes for the goal's words."""

    def act(self, view: View) -> str:
        """Focus on a thing of the goal, else walk to a room of the goal, else anywhere."""
        self.look(view)
        if view.step.info.get("choice"):
            return "0"
        last = view.history[-1][0] if view.history else ""
        if view.step.error and last and self.rng.random() < REPEAT:
            return last
        goal, room = view.goal.lower(), self.known.rooms.get(self.known.room)
        if room is None:
            return "look around"
        if view.step.error and last.startswith("go to "):
            return f"open door to {last[6:]}"
        named = [thing.name for thing in _all(room.things) if set(thing.name.split()) & set(re.findall(r"[a-z]+", goal)[3:])]
        for name in named:
            if not self.tried(f"focus on {name}"):
                return f"focus on {name}"
        rooms = [to for to in room.doors if to in goal] or list(room.doors)
        return f"go to {self.rng.choice(rooms)}" if rooms else "look around"


class MapUser(Curious):
    """Explores while mapping, carries out a plan while acting."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._plan: Iterator[str] = iter(())

    def act(self, view: View) -> str:
        """The plan's next action; without a plan, or after it, exploration."""
        if view.phase.startswith(("map", "explor")) or not view.goal:
            return super().act(view)
        self.look(view)
        if not view.history:
            _learn(self.known, view.map)
            self._plan = self._plan_for(view.goal)
        if view.step.info.get("choice"):
            return "0"
        return next(self._plan, None) or self.explore() or "look around"

    def _plan_for(self, goal: str) -> Iterator[str]:
        if match := FIND.search(goal):
            yield from self._find(match[1], match[2], match[3])
        elif "life span" in goal or "longest-lived" in goal or "shortest-lived" in goal:
            yield from self._lifespan(goal)
        elif match := MEASURE.search(goal):
            yield from self._thermometer(match[1], match[2], float(match[3]), match[4], match[5], match[6])
        else:
            for room in re.findall(r"around the ([\w ]+?)[.,]", goal):
                yield from self._go(room)

    def _go(self, room: str) -> Iterator[str]:
        """Walk to a room, searching while no way is known."""
        for _ in range(40):
            if self.known.room == room:
                return
            action = self.step_to(room) or self.explore()
            if action is None:
                return
            yield action

    def _seek(self, fits: Callable[[str], bool]) -> Iterator[str]:
        """Go to the nearest room that holds a fitting thing; searches while none is known."""
        for _ in range(60):
            room = next((room for room in self._by_distance() if room in self.known.rooms and self._here(fits, room)), None)
            if room is not None and room == self.known.room:
                return
            action = self.step_to(room) if room else self.explore()
            if action is None:
                return
            yield action

    def _here(self, fits: Callable[[str], bool], room: str = "") -> tuple[str, str] | None:
        """A fitting thing of a room and what it lies in ("" for the room itself)."""
        place = self.known.rooms.get(room or self.known.room)
        for thing in place.things if place else ():
            for inner in _all([thing]):
                if fits(inner.name):
                    return inner.name, thing.name if inner is not thing else ""
        return None

    def _find(self, kind: str, box: str, room: str) -> Iterator[str]:
        if kind == "non-living thing":
            yield from self._go(room)
            if self.known.room not in self.known.rooms:
                yield "look around"
            found = self._here(lambda name: not ALIVE.search(name) and name != box)
            if found:
                yield f"focus on {found[0]}"
                yield f"move {found[0]} to {box}"
            return
        fits = {"plant": PLANT, "animal": ANIMAL}.get(kind, re.compile(f"{ANIMAL.pattern}|{PLANT.pattern}"))
        yield from self._seek(lambda name: bool(fits.search(name)))
        yield "look around"  # the map shows the start; things may have moved since
        found = self._here(lambda name: bool(fits.search(name)))
        if not found:
            return
        name, holder = found
        carried = holder if PLANT.search(name) and holder else name
        yield f"focus on {name}"
        yield f"pick up {carried}"
        yield from self._go(room)
        yield f"move {carried} to {box}"
        if self.refused:  # an egg may have hatched on the way: take its name of now
            yield "inventory"
            held = [fact.subject[0] for fact in self.known.facts() if fact[1][1:] == ("inventory",) and fact.value == "in"]
            yield from (f"move {name} to {box}" for name in held if fits.search(name))

    def _lifespan(self, goal: str) -> Iterator[str]:
        yield from self._go("outside")
        yield "look around"
        here = self.known.rooms.get("outside", Room("outside", [], {}))
        ages = {
            max(kinds, key=lambda pair: len(pair[1])): thing.name
            for thing in here.things
            if ANIMAL.search(thing.name) and (kinds := [(years, kind) for kind, years in YEARS.items() if kind in thing.name])
        }
        if not ages:
            return
        longest, shortest = goal.find("longest"), goal.find("shortest")
        order = [pick for at, pick in sorted(((longest, max), (shortest, min)), key=lambda pair: pair[0]) if at >= 0]
        for pick in order:
            yield f"focus on {ages[pick(ages)]}"

    def _thermometer(self, thing: str, around: str, limit: float, above: str, below: str, boxes: str) -> Iterator[str]:
        yield from self._seek(lambda name: name == "thermometer")
        yield "pick up thermometer"
        yield "focus on thermometer in inventory"
        yield from self._go(around)
        yield from self._seek(lambda name: name == thing)
        yield f"pick up {thing}"
        yield f"focus on {thing} in inventory"
        yield f"use thermometer in inventory on {thing} in inventory"
        measured = re.search(r"temperature of (-?\d+)", self.answer)
        yield from self._go(boxes)
        yield f"move {thing} in inventory to {above if measured and int(measured[1]) > limit else below}"


def _all(things: list[Thing]) -> Iterator[Thing]:
    """The things and everything nested in them."""
    for thing in things:
        yield thing
        yield from _all(thing.contents)


def _learn(known: ScienceWorldTracker, chart: CognitiveMap | None) -> None:
    """Put the rooms, doors and things of a map into the tracker, as if they had been seen."""
    spatial = chart.spatial if chart else []
    holds: dict[str, list[str]] = {}
    links: list[tuple[str, str]] = []
    for entry in spatial:
        thing, relation, place = (str(entry.get(key, "")) for key in ("thing", "relation", "place"))
        if relation == "connects":
            links += [(thing, place), (place, thing)]
        elif relation == "contains":
            holds.setdefault(thing, []).append(place)
        elif relation in ("in", "on", "at"):
            holds.setdefault(place, []).append(thing)
    rooms = {room for link in links for room in link}
    for room in sorted(rooms & set(holds)):
        if room not in known.rooms:
            things = [Thing(name, contents=[Thing(inner) for inner in holds.get(name, ())]) for name in holds[room]]
            known.rooms[room] = Room(room, things, {})
    for here, to in links:
        if here in known.rooms:
            known.rooms[here].doors.setdefault(to, "closed")
