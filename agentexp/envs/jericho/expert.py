"""The expert for our stories: plans backwards from the end, from whatever state the world is in.

A story's plan (`plans.py`) says what only this story knows: which deeds there are, where they are done, with what in hand, and
which deeds come before. Everything else is common: walking over known ways, opening and unlocking what is in between, fetching
what is needed, taking a light into the dark. Each action is carried out on the engine, so a plan that is returned has won.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from agentexp.envs.jericho.engine import Engine
from agentexp.envs.jericho.scene import Scene, Way
from agentexp.errors import EngineError

MOST_ACTIONS = 80
_DEEPEST = 25


@dataclass(frozen=True, slots=True)
class Deed:
    """Something to be done once.

    Attributes:
        action: the command, or what tells it from the state.
        at: the room where it is done; empty for anywhere.
        hold: what must be in hand.
        first: deeds that must be done before, after fetching what is to be held.
        done: whether it is done already.
    """

    action: Callable[[Scene], str] | str
    at: Callable[[Scene], str] | str = ""
    hold: Callable[[Scene], tuple[str, ...]] | tuple[str, ...] = ()
    first: tuple[str, ...] = ()
    done: Callable[[Scene], bool] = lambda scene: False


@dataclass(frozen=True, slots=True)
class Plan:
    """What an expert knows about one story.

    Attributes:
        deeds: by name; the one called "win" ends the story.
        gates: room -> deed that must be done before it can be entered.
        made: thing that is nowhere at first -> deed that brings it.
        before: thing -> deed to do before it is taken or opened.
        opens: thing -> deed that opens it, in place of "open".
        light: deed that makes a light to carry into dark rooms.
    """

    deeds: Mapping[str, Deed]
    gates: Mapping[str, str] = field(default_factory=dict)
    made: Mapping[str, str] = field(default_factory=dict)
    before: Mapping[str, str] = field(default_factory=dict)
    opens: Mapping[str, str] = field(default_factory=dict)
    light: str = ""


class NoPlan(Exception):
    """The expert knows no way from here."""


def solve(engine: Engine, plan: Plan) -> list[str]:
    """Actions from the current state to the good end. The engine is left as it was.

    Raises:
        EngineError: the world is in a state from which the expert knows no way.
    """
    start, actions = engine.save(), list[str]()
    try:
        while len(actions) < MOST_ACTIONS:
            scene = engine.scene()
            before = scene.memory.objects()
            actions.append(_Thought(scene, plan).achieve("win"))
            answer = engine.send(actions[-1])
            if answer.won:
                return actions
            if answer.over or (answer.refused and engine.memory().objects() == before):
                raise NoPlan(f"{actions[-1]!r} was answered with {' '.join(answer.text.split())[:80]!r}")
        raise NoPlan(f"{MOST_ACTIONS} actions were not enough")
    except NoPlan as error:
        raise EngineError(f"The expert knows no way to win from this state of the story: {error}.") from error
    finally:
        engine.restore(start)


class _Thought:
    """Finds the next action in one state."""

    def __init__(self, scene: Scene, plan: Plan) -> None:
        self.scene, self.plan, self._depth = scene, plan, 0

    def done(self, name: str) -> bool:
        return self.plan.deeds[name].done(self.scene)

    def achieve(self, name: str) -> str:
        """The next action towards a deed."""
        self._depth += 1
        if self._depth > _DEEPEST:
            raise NoPlan(f"{name} needs itself")
        scene, deed = self.scene, self.plan.deeds[name]
        hold = deed.hold(scene) if callable(deed.hold) else deed.hold
        missing = [thing for thing in map(scene.find, hold) if not scene.holds(thing)]
        if missing:
            return self.get(min(missing, key=self._distance))
        for other in deed.first:
            if not self.done(other):
                return self.achieve(other)
        at = deed.at(scene) if callable(deed.at) else deed.at
        if at and scene.here != scene.find(at):
            return self.travel(scene.find(at))
        return deed.action(scene) if callable(deed.action) else deed.action

    def get(self, thing: int) -> str:
        """The next action towards having a thing in hand."""
        scene, name = self.scene, self.scene.name(thing)
        room = scene.room_of(thing)
        if not room:
            if name in self.plan.made:
                return self.achieve(self.plan.made[name])
            raise NoPlan(f"the {name} is gone")
        holders, holder = list[int](), scene.holder(thing)
        while holder not in (room, scene.player):
            holders.append(holder)
            holder = scene.holder(holder)
        shut = [h for h in reversed(holders) if scene.has(h, "container") and not scene.has(h, "open")]
        for barrier in (*shut, thing):
            if (needed := self._needed(barrier)) is not None:
                return needed
        if room != scene.here:
            return self.travel(room)
        if not scene.lit():
            return self.achieve(self.plan.light)
        if shut:
            return self.open(shut[0])
        return f"take {name}"

    def open(self, thing: int) -> str:
        """The next action towards an open door or container that is here."""
        scene, name = self.scene, self.scene.name(thing)
        if (needed := self._needed(thing)) is not None:
            return needed
        if scene.has(thing, "locked"):
            return f"unlock {name} with {scene.name(scene.memory.value(thing, 'with_key'))}"
        return f"open {name}"

    def _needed(self, thing: int) -> str | None:
        """The next action towards what must be done or fetched before a thing can be opened or taken; None if nothing."""
        scene, name = self.scene, self.scene.name(thing)
        for table in (self.plan.opens, self.plan.before):
            if (deed := table.get(name)) and not self.done(deed):
                return self.achieve(deed)
        key = scene.memory.value(thing, "with_key")
        return self.get(key) if scene.has(thing, "locked") and not scene.holds(key) else None

    def travel(self, room: int) -> str:
        """The next action on the way to a room. What the way needs is fetched before the first step."""
        scene, way = self.scene, self._way(room)
        if not way:
            raise NoPlan(f"no way leads to the {scene.name(room)}")
        for step in way:
            deed = self.plan.gates.get(scene.name(step.room))
            if deed and not self.done(deed):
                return self.achieve(deed)
            if step.door and (needed := self._needed(step.door)) is not None:
                return needed
            if not scene.has(step.room, "light") and not any(
                scene.has(t, "light") for t in scene.memory.children(scene.player)
            ):
                return self.achieve(self.plan.light)
        if way[0].door and not scene.has(way[0].door, "open"):
            return self.open(way[0].door)
        return way[0].direction

    def _way(self, room: int) -> list[Way]:
        """The shortest way from here, as steps."""
        start = self.scene.here
        came: dict[int, tuple[int, Way]] = {}
        front = [start]
        for place in front:  # grows while it is walked: breadth first
            for way in self.scene.ways(place):
                if way.room != start and way.room not in came:
                    came[way.room] = place, way
                    front.append(way.room)
        steps: list[Way] = []
        while room in came:
            room, way = came[room]
            steps.append(way)
        return steps[::-1]

    def _distance(self, thing: int) -> int:
        room = self.scene.room_of(thing)
        return 0 if room == self.scene.here else len(self._way(room)) or 99
