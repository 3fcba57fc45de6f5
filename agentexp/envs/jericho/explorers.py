"""The explorers among the scripted agents, and what all of them remember; `policies.py` says what each does."""

from __future__ import annotations

import random
import re

from agentexp.core import View
from agentexp.envs.jericho.commands import read
from agentexp.envs.jericho.scene import DIRECTIONS
from agentexp.envs.jericho.tracker import DARK, StoryTracker

REPEAT = 0.3
OPPOSITE = {"north": "south", "east": "west", "northeast": "southwest", "northwest": "southeast", "up": "down", "in": "out"}
OPPOSITE |= {back: way for way, back in OPPOSITE.items()}
_EXPLORING = {
    "open": 9.0, "take": 8.0, "unlock": 7.5, "talk to": 7.0, "examine": 6.5, "light": 6.2, "switch on": 6.0, "give": 5.5,
    "cut": 5.5, "dig": 5.5, "switch off": 5.2,
}  # fmt: skip
ACTING = {
    "unlock": 9.0, "open": 8.0, "take": 7.5, "talk to": 5.5, "examine": 5.0, "give": 8.5, "put": 5.5, "pour": 8.5, "tie": 8.5,
    "light": 8.5, "cut": 9.0, "dig": 8.0, "wind": 8.5, "mix": 9.0, "ring": 9.0, "set": 6.5, "switch on": 8.0, "switch off": 6.0,
    "pull": 6.5, "push": 6.0, "turn": 6.5, "enter": 7.0, "look through": 7.0, "eat": -9.0, "drop": -1.0, "close": 3.0,
    "lock": -9.0,
}  # fmt: skip
ENOUGH = 5.0
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


def words_of(text: str) -> set[str]:
    """Words that say something."""
    return {word for word in re.findall(r"[a-z]+", text.lower()) if len(word) > 2} - _COMMON


class Reader:
    """Keeps a tracker of the current phase up to date, and what was tried where."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.known = StoryTracker()
        self.tried: set[tuple[str, str]] = set()
        self.guessed: dict[str, dict[str, str]] = {}  # most ways lead back the opposite way
        self.last_seen: dict[str, int] = {}
        self.dark: set[tuple[str, str]] = set()  # ways into the dark that a light made worth another try
        self.left: set[str] = set()  # what was put down again
        self.hands: set[str] = set()
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
        if any("key" in name.split() for name in hands - self.hands):  # doors that were shut are worth another try
            self.tried = {(room, way) for room, way in self.tried if (room, way) not in self.known.all_doors()}
        self.hands = hands
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
            for way, known in self.sorted_ways(room, {**guessed, **self.known.ways.get(room, {})}):
                to = "" if (room, way) in self.dark else known or guessed.get(way, "")
                if not to and unknown and (room, way) not in self.tried:
                    return first[room] or way
                if to and to not in first:
                    first[to] = first[room] or way
                    front.append(to)
        return ""

    def sorted_ways(self, room: str, ways: dict[str, str]) -> list[tuple[str, str]]:
        """Ways out of a room, the most promising first."""
        return list(ways.items())


class Random(Reader):
    """Draws from the listed actions."""

    def act(self, view: View) -> str:
        """Any listed action."""
        self.look(view)
        return self.rng.choice(self.listed(view) or ["look"])


class Curious(Reader):
    """Systematic explorer; knows no goal."""

    def act(self, view: View) -> str:
        """Details of this room, then the nearest way not taken, then anything else that is new."""
        self.look(view)
        fresh = [action for action in self.listed(view) if self.new(action) and read(action).verb != "go"]
        if fresh and (best := max(fresh, key=self._interest)) and self._interest(best) >= ENOUGH:
            return best
        if way := self.toward(set(), unknown=True):
            return way
        rest = [action for action in fresh if read(action).verb not in ("", "examine", *_NOTHING_NEW)]
        if rest:
            return max(rest, key=lambda action: (ACTING.get(read(action).verb, 0.0), self.rng.random()))
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
        if any(f.kind == "in" and f.subject == (thing, holder) for f in self.known.facts()):
            return False  # that is where it came from
        said = {name: words_of(text) for name, text in self.texts().items()}
        there = [words for name, words in said.items() if name == holder or words_of(holder) & words]
        return any(words_of(thing) & words for words in there) or bool(words_of(thing) & words_of(holder))

    def texts(self) -> dict[str, str]:
        """What was read, by the thing that says it."""
        return {f.subject[0]: f.value for f in self.known.facts() if f.kind == "text"}

    def _told(self, thing: str) -> bool:
        """Whether the thing was examined before, or is a mere holder, whose contents are listed anyway."""
        return any(
            (fact.kind, fact.subject) == ("empty", (thing,))
            or fact.subject == ("examine", thing)
            or (fact.kind == "in" and fact.subject[1] == thing)
            for fact in self.known.facts()
        )


class Repetitive(Reader):
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


class Myopic(Reader):
    """Goes for the goal's words."""

    def act(self, view: View) -> str:
        """An untried action with a word of the goal, else a way drawn at random."""
        self.look(view)
        if view.step.error and view.history and self.rng.random() < REPEAT:
            return view.history[-1][0] or "look"
        words = words_of(view.goal)
        for action in self.listed(view):
            if words & words_of(action) and self.new(action):
                return action
        ways = [action for action in self.listed(view) if action in DIRECTIONS]
        return self.rng.choice(ways or ["look"])
