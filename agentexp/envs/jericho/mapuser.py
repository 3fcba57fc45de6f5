"""The scripted agent that acts on a map: it weighs the listed actions by their verbs, the goal and what was read."""

from __future__ import annotations

import re

from agentexp.core import CognitiveMap, View
from agentexp.envs.jericho.commands import Command, read
from agentexp.envs.jericho.explorers import ACTING, ENOUGH, Curious, words_of
from agentexp.envs.jericho.scene import DIRECTIONS

_UNKNOWN_WAY = re.compile(r"^(\w+) of (.+?)(?: \(the (.+)\))?$")
_NOTE = re.compile(r"^The (.+?): (.+)$")
_ALIKE = ("turn", "pull", "push", "dig")  # verbs for which a note that names one of several alike speaks against the others
_ONCE = ("go", "examine", "talk to", "take", "drop", "switch on", "switch off")  # not tried again with other things in hand


class MapUser(Curious):
    """Explores while mapping; while acting it weighs actions by goal and notes, and walks by the map."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._notes: dict[str, str] = {}
        self._places: dict[str, str] = {}
        self._seen: set[str] = set()
        self._had: set[str] = set()

    def act(self, view: View) -> str:
        """The best listed action, if it is good enough; else on to where something is to be had or done."""
        if view.phase.startswith(("map", "explor")) or not view.goal:
            return super().act(view)
        self.look(view)
        if not view.history:
            self._learn(view.map)
        if new := self.hands - self._had:  # with other things in hand everything may be tried again
            self._had |= new
            self._seen = set()
            self.tried = {pair for pair in self.tried if read(pair[1]).verb in _ONCE}
        self._seen.add(self.known.room)
        goal, notes = view.goal.lower(), " ".join(self.texts().values()).lower()
        weights = {a: self._weight(read(a), a, goal, notes) for a in self.listed(view) if a not in DIRECTIONS and self.new(a)}
        best = max(weights, key=lambda action: weights[action], default="")
        if best and weights[best] > ENOUGH:
            return best
        wanted = {room for thing, room in self._places.items() if thing not in self._had and room not in self._seen}
        homeward = {room for room in self.known.ways if words_of(room) & words_of(goal)} - self._seen
        for rooms, unknown in (
            (wanted, False),
            (set[str](), True),
            (homeward, False),
            (set(self.known.rooms) - self._seen, False),
        ):
            if way := self.toward(rooms, unknown):
                return way
        self._seen = {self.known.room}
        return self.toward(set(self.known.rooms), unknown=False) or "look"

    def texts(self) -> dict[str, str]:
        """What was read, now or while mapping."""
        return {**self._notes, **super().texts()}

    def sorted_ways(self, room: str, ways: dict[str, str]) -> list[tuple[str, str]]:
        """First the way that a text names right after the room ("behind the yew go west")."""
        hints: set[str] = set()
        for text in self.texts().values():
            for word in words_of(room):
                if match := re.search(rf"\b{word}\b(?: \w+){{0,3}} ({'|'.join(DIRECTIONS)})\b", text.lower()):
                    hints.add(match[1])
        return sorted(ways.items(), key=lambda pair: pair[0] not in hints)

    def _weight(self, command: Command, action: str, goal: str, notes: str) -> float:
        """How promising an action is; above `ENOUGH` it is worth doing at once."""
        verb, thing = command.verb, command.thing
        if verb in ("examine", "talk to") and (self._told(thing) or thing in self._notes):
            return 0.0
        if (verb == "take" and thing in self.left) or (verb == "drop" and "drop" not in goal):
            return 0.0
        if verb == "put" and not self._belongs(command.other, thing):
            return 0.0
        if verb.startswith("switch") and any(act.startswith("switch") and act.endswith(thing) for _, act in self.tried):
            return 0.0
        weight = ACTING.get(verb, 0.0) + 2.0 * bool(words_of(thing) & words_of(goal))
        number, kind = re.search(r"\d+", action), thing.rpartition(" ")[2]
        if number:
            return weight + (3.0 if re.search(rf"\b{number[0]}\b", notes) else -4.0)
        if verb in _ALIKE and thing not in notes and re.search(rf"\b\w+ {re.escape(kind)}\b", notes):
            return weight - 6.0
        return weight + 2.0 * (thing in notes and verb not in ("take", "examine"))

    def _learn(self, chart: CognitiveMap | None) -> None:
        """Ways, places of things and notes of a map."""
        self._notes, self._places, self._had, self._seen = {}, {}, set(), set()
        if chart is None:
            return
        self._notes = {match[1]: match[2] for match in map(_NOTE.match, chart.task_notes) if match}
        ways = self.known.ways
        for entry in chart.affordances:
            move = re.fullmatch(r"go (\w+)", str(entry.get("action", "")))
            to = re.fullmatch(r"leads to (.+)", str(entry.get("effect", "")))
            if move and to and move[1] in DIRECTIONS:
                ways.setdefault(str(entry.get("target")), {})[move[1]] = to[1]
        for text in chart.unknown:
            if (match := _UNKNOWN_WAY.match(text)) and match[1] in DIRECTIONS:
                ways.setdefault(match[2], {}).setdefault(match[1], "")
        where = {str(e.get("thing")): str(e.get("place")) for e in chart.spatial if e.get("relation") in ("in", "on", "at")}
        for thing in where:
            place, steps = where[thing], 0
            while place not in ways and place in where and steps < len(where):
                place, steps = where[place], steps + 1
            if place in ways:
                self._places[thing] = place
