"""Scripted agents for stories. They read what a language model reads: the texts, the listed actions, the goal and the map.

* `curious` (also called `systematic`) explores without a goal: in each room it opens what is closed, takes, talks and reads,
  then takes the nearest way not yet taken; at last it tries the other actions that change something.
* `repetitive` goes back and forth between two rooms and looks at the same things.
* `myopic` does the first listed action that shares a word with the goal, else walks at random; it repeats a refused command
  with probability 0.3.
* `mapuser` explores like `curious` while mapping. While acting it weighs every listed action: by its verb, the goal's words,
  and what it has read (a note that names one valve speaks against the others); it walks to what the map knows, else explores.
"""

from __future__ import annotations

import random
import re

from agentexp.core import CognitiveMap, Policy, View
from agentexp.envs.jericho.commands import read
from agentexp.envs.jericho.scene import DIRECTIONS
from agentexp.envs.jericho.tracker import StoryTracker
from agentexp.errors import UserError

NAMES = ("curious", "systematic", "repetitive", "myopic", "mapuser", "random")
REPEAT = 0.3
OPPOSITE = {"north": "south", "east": "west", "northeast": "southwest", "northwest": "southeast", "up": "down", "in": "out"}
OPPOSITE |= {back: way for way, back in OPPOSITE.items()}
_EXPLORING = {
    "open": 9.0, "take": 8.0, "unlock": 7.5, "talk to": 7.0, "examine": 6.5, "light": 6.2, "switch on": 6.0, "give": 5.5,
    "cut": 5.5, "dig": 5.5, "switch off": 5.2,
}  # fmt: skip
DARK = "Darkness"
_ACTING = {
    "unlock": 9.0, "open": 8.0, "take": 7.5, "talk to": 5.5, "examine": 5.0, "give": 8.5, "put": 5.5, "pour": 8.5, "tie": 8.5,
    "light": 8.5, "cut": 9.0, "dig": 8.0, "wind": 8.5, "mix": 9.0, "ring": 9.0, "set": 6.5, "switch on": 8.0, "switch off": 6.0,
    "pull": 6.5, "push": 6.0, "turn": 6.5, "enter": 7.0, "look through": 7.0, "eat": -9.0, "drop": -1.0, "close": 3.0,
    "lock": -9.0,
}  # fmt: skip
_ENOUGH = 5.0
_NOTHING_NEW = ("take", "put", "close", "lock", "switch on", "switch off", "drop")
_COMMON = {
    "the",
    "and",
    "with",
    "into",
    "from",
    "that",
    "look",
    "you",
    "your",
    "has",
    "its",
    "for",
    "put",
    "take",
    "open",
    "box",
    "out",
}
_WAY = re.compile(r"^(\w+) of (.+?)(?: \(the (.+)\))?$")


def make(name: str, seed: int) -> Policy:
    """A fresh policy by name."""
    kinds: dict[str, type[_Reader]] = {
        "curious": Curious, "systematic": Curious, "repetitive": Repetitive, "myopic": Myopic, "mapuser": MapUser,
        "random": Random,
    }  # fmt: skip
    if name not in kinds:
        raise UserError(f"model.policy={name} does not exist in jericho; choose one of {', '.join(NAMES)}.")
    return kinds[name](seed)


class _Reader:
    """Keeps a tracker of the current phase up to date, and what was tried where."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.known = StoryTracker()
        self.tried: set[tuple[str, str]] = set()
        self.guessed: dict[str, dict[str, str]] = {}  # most ways lead back the opposite way
        self.last_seen: dict[str, int] = {}
        self.dark: set[tuple[str, str]] = set()  # ways into the dark that a light made worth another try
        self.left: set[str] = set()  # what was put down again
        self._hands: set[str] = set()
        self._read = self._clock = 0

    def act(self, view: View) -> str:
        """The next action."""
        raise NotImplementedError

    def look(self, view: View) -> None:
        """Take in what is new; a fresh phase starts from nothing."""
        if not view.history:
            self.known, self.tried, self._read = StoryTracker(), set(), 0
            self.guessed, self.last_seen, self.dark, self.left = {}, {}, set(), set()
            self.known.observe(None, view.step)
        for action, step in view.history[self._read :]:
            here = self.known.room
            self.tried.add((here, action))
            self.known.observe(action, step)
            self._learn_from(action, here, step.error)
            self._clock += 1
            self.last_seen[self.known.room] = self._clock
        self._read = len(view.history)

    def _learn_from(self, action: str, here: str, refused: bool) -> None:
        command, now = read(action), self.known.room
        if refused:
            return
        hands = {f.subject[0] for f in self.known.facts() if f.subject[1:] == ("inventory",) and f.value != "gone"}
        if any("key" in name.split() for name in hands - self._hands):  # doors that were shut are worth another try
            self.tried = {(room, way) for room, way in self.tried if (room, way) not in self.known.all_doors()}
        self._hands = hands
        if command.verb == "open":  # a door that was in the way is so no more
            ways = {way for place, way in self.known.doors(command.thing) if place == here}
            self.tried -= {(here, way) for way in ways}
        elif command.verb in ("light", "switch on"):  # dark places may be seen now
            dark = {(room, way) for room, ways in self.known.ways.items() for way, to in ways.items() if to == DARK}
            self.tried -= dark
            self.dark = dark
        elif command.verb in ("put", "drop"):
            self.left.add(command.other if command.verb == "put" else command.thing)
        elif command.verb == "go" and here != now:
            self.dark.discard((here, command.thing))
            back = OPPOSITE[command.thing]
            if self.known.ways.get(now, {}).get(back, "") == "" and (back in self.known.ways.get(now, {}) or now == DARK):
                self.guessed.setdefault(now, {})[back] = here

    def listed(self, view: View) -> list[str]:
        """The listed actions; where the world lists none, those that the texts suggest."""
        if view.step.admissible is not None:
            return list(view.step.admissible)
        here = self.known.room
        places = {here, *(f.subject[0] for f in self.known.facts() if f.kind == "in" and f.subject[1] == here)}
        facts = [f for f in self.known.facts() if f.kind == "in" and f.value != "gone" and f.subject[1] in places]
        things = list(dict.fromkeys(f.subject[0] for f in facts))
        forms = ("open {}", "take {}", "examine {}")
        return [*self.known.ways.get(here, {}), *(form.format(thing) for thing in things for form in forms)]

    def new(self, action: str) -> bool:
        """Whether the action was not yet sent in this room."""
        return (self.known.room, action) not in self.tried

    def toward(self, wanted: set[str], unknown: bool) -> str:
        """The first move to the nearest of some rooms or, with `unknown`, through a way not yet taken; "" if none is known."""
        start = self.known.room
        first: dict[str, str] = {start: ""}
        front = [start]
        for room in front:  # grows while it is walked: breadth first
            if room != start and room in wanted:
                return first[room]
            guessed = self.guessed.get(room, {})
            for way, known in {**guessed, **self.known.ways.get(room, {})}.items():
                to = "" if (room, way) in self.dark else known or guessed.get(way, "")
                if not to and unknown and (room, way) not in self.tried:
                    return first[room] or way
                if to and to not in first:
                    first[to] = first[room] or way
                    front.append(to)
        return ""


class Random(_Reader):
    """Draws from the listed actions."""

    def act(self, view: View) -> str:
        """Any listed action."""
        self.look(view)
        return self.rng.choice(self.listed(view) or ["look"])


class Curious(_Reader):
    """Systematic explorer; knows no goal."""

    def act(self, view: View) -> str:
        """Details of this room, then the nearest way not taken, then anything else that is new."""
        self.look(view)
        fresh = [action for action in self.listed(view) if self.new(action) and read(action).verb != "go"]
        if fresh and (best := max(fresh, key=self._interest)) and self._interest(best) >= _ENOUGH:
            return best
        if way := self.toward(set(), unknown=True):
            return way
        rest = [action for action in fresh if read(action).verb not in ("", "examine", *_NOTHING_NEW)]
        if rest:
            return max(rest, key=lambda action: (_ACTING.get(read(action).verb, 0.0), self.rng.random()))
        for room in sorted(self.known.rooms, key=lambda room: self.last_seen.get(room, 0)):
            if room != self.known.room and (way := self.toward({room}, unknown=False)):
                return way
        return "look"

    def _interest(self, action: str) -> float:
        command = read(action)
        if command.verb == "examine" and self._told(command.thing):
            return 0.0
        if command.verb == "take" and command.thing in self.left:
            return 0.0
        if command.verb.startswith("switch") and any(
            act.endswith(command.thing) and act.startswith("switch") for _, act in self.tried
        ):
            return 0.0
        if command.verb == "put":
            return 5.5 if self._belongs(command.other, command.thing) else 0.0
        return _EXPLORING.get(command.verb, 0.0)

    def _belongs(self, thing: str, holder: str) -> bool:
        """Whether something says that a thing goes into a holder: their names, or a text that names the holder."""
        said = {f.subject[0]: _words(f.value) for f in self.known.facts() if f.kind == "text"}
        there = [words for name, words in said.items() if name == holder or _words(holder) & words]
        return any(_words(thing) & words for words in there) or bool(_words(thing) & _words(holder))

    def _told(self, thing: str) -> bool:
        """Whether the thing was examined before, or is a mere holder, whose contents are listed anyway."""
        return any(
            (fact.kind, fact.subject) == ("empty", (thing,))
            or fact.subject == ("examine", thing)
            or (fact.kind == "in" and fact.subject[1] == thing)
            for fact in self.known.facts()
        )


class Repetitive(_Reader):
    """Back and forth."""

    def act(self, view: View) -> str:
        """Look, inventory, through the first way, look, back."""
        self.look(view)
        turn = len(view.history) % 4
        if turn in (0, 2):
            return "look"
        if turn == 1:
            return next(iter(self.known.ways.get(self.known.room, {})), "inventory")
        last = read(view.history[-2][0]).thing
        return OPPOSITE.get(last, "inventory")


class Myopic(_Reader):
    """Goes for the goal's words."""

    def act(self, view: View) -> str:
        """An untried action with a word of the goal, else a way drawn at random."""
        self.look(view)
        if view.step.error and view.history and self.rng.random() < REPEAT:
            return view.history[-1][0] or "look"
        words = _words(view.goal)
        for action in self.listed(view):
            if words & _words(action) and self.new(action):
                return action
        ways = [action for action in self.listed(view) if action in DIRECTIONS]
        return self.rng.choice(ways or ["look"])


class MapUser(Curious):
    """Explores while mapping; while acting it weighs actions by goal and notes, and walks by the map."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._notes = ""
        self._places: dict[str, str] = {}
        self._seen: set[str] = set()
        self._held: tuple[str, ...] = ()

    def act(self, view: View) -> str:
        """The best listed action, if it is good enough; else on to where something is to be had or done."""
        if view.phase.startswith(("map", "explor")) or not view.goal:
            return super().act(view)
        self.look(view)
        if not view.history:
            self._learn(view.map)
        hands = tuple(sorted(f.subject[0] for f in self.known.facts() if f.subject[1:] == ("inventory",) and f.value != "gone"))
        if hands != self._held:  # with other things in hand everything may be tried again
            self._held, self._seen = hands, set()
            self.tried = {pair for pair in self.tried if read(pair[1]).verb in ("go", "examine", "talk to", "take", "drop")}
        self._seen.add(self.known.room)
        goal, notes = (
            view.goal.lower(),
            f"{self._notes} {' '.join(f.value for f in self.known.facts() if f.kind == 'text')}".lower(),
        )
        fresh = [action for action in self.listed(view) if self.new(action) and action not in DIRECTIONS]
        if (
            fresh
            and (best := max(fresh, key=lambda a: self._weight(a, goal, notes)))
            and self._weight(best, goal, notes) > _ENOUGH
        ):
            return best
        wanted = {room for thing, room in self._places.items() if thing not in hands and room not in self._seen}
        if way := self.toward(wanted, unknown=False) or self.toward(set(), unknown=True):
            return way
        if way := self.toward(set(self.known.rooms) - self._seen, unknown=False):
            return way
        return max(fresh, key=lambda a: self._weight(a, goal, notes)) if fresh else "look"

    def _weight(self, action: str, goal: str, notes: str) -> float:
        command = read(action)
        weight = _ACTING.get(command.verb, 0.0)
        if command.verb in ("examine", "talk to") and (self._told(command.thing) or f"the {command.thing}:" in notes):
            return 0.0
        weight += 2.0 * bool(_words(command.thing) & _words(goal))
        number = re.search(r"\d+", action)
        kind = command.thing.rpartition(" ")[2]
        if number:
            weight += 3.0 if re.search(rf"\b{number[0]}\b", notes) else -4.0
        elif command.thing and command.thing in notes and command.verb not in ("take", "examine"):
            weight += 2.0
        elif (
            " " in command.thing
            and re.search(rf"\b\w+ {re.escape(kind)}\b", notes)
            and command.verb in ("turn", "pull", "push", "dig")
        ):
            weight -= 6.0  # a note is about another one of these
        return weight

    def _learn(self, chart: CognitiveMap | None) -> None:
        """Ways, places of things and notes of a map."""
        self._notes, self._places = " ".join(chart.task_notes) if chart else "", {}
        if chart is None:
            return
        for entry in chart.affordances:
            move = re.fullmatch(r"go (\w+)", str(entry.get("action", "")))
            to = re.fullmatch(r"leads to (.+)", str(entry.get("effect", "")))
            if move and to and move[1] in DIRECTIONS:
                self.known.ways.setdefault(str(entry.get("target")), {})[move[1]] = to[1]
        for text in chart.unknown:
            if (match := _WAY.match(text)) and match[1] in DIRECTIONS:
                self.known.ways.setdefault(match[2], {}).setdefault(match[1], "")
        rooms = set(self.known.ways)
        where = {str(e.get("thing")): str(e.get("place")) for e in chart.spatial if e.get("relation") in ("in", "on", "at")}
        for thing in where:
            place, steps = where[thing], 0
            while place not in rooms and place in where and steps < len(where):
                place, steps = where[place], steps + 1
            if place in rooms:
                self._places[thing] = place


def _words(text: str) -> set[str]:
    return {word for word in re.findall(r"[a-z]+", text.lower()) if len(word) > 2} - _COMMON
