"""Scripted agents for BabyAI. They read what a language model reads and the robot's odometry, and plan on what they believe.

* `curious` surveys: looks into every corner of a room, goes through every door, fetches keys for locked ones, then picks
things up.
  With a goal in view it pursues it, and surveys as long as what it needs was not seen.
* `mapuser` acts like `curious` with a map: what the map tells it need not be looked for.
* `myopic` goes for what it sees now and forgets the rest: it turns and walks at random otherwise, and with probability 0.3 it
  repeats what has just been refused.

All of them only survey (or wander) while the phase is "mapping" or "exploring" or the goal is hidden. Deterministic for a
seed.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence

from agentexp.core import Policy, View
from agentexp.envs.agents import fresh_agent
from agentexp.envs.babyai import belief
from agentexp.envs.babyai.engine import Clause
from agentexp.envs.babyai.expert import solve
from agentexp.envs.babyai.field import reach
from agentexp.envs.babyai.frame import Pose, Spot, beside
from agentexp.envs.babyai.mission import Part, parse_goal
from agentexp.envs.babyai.protocol import CHECK
from agentexp.envs.babyai.reader import command
from agentexp.envs.babyai.scene import LOCKED, VIEW, Cell, Scene
from agentexp.envs.babyai.tracker import GridTracker
from agentexp.errors import UserError

REPEAT = 0.3


def make(name: str, seed: int) -> Policy:
    """A fresh policy by name."""
    return fresh_agent({"curious": Curious, "mapuser": MapUser, "myopic": Myopic}, name, "babyai", seed)


class _Agent:
    """What all share: the newest text, the mission, and which of its parts are done."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.tracker = GridTracker()
        self.parts: list[Part] = []

    def look(self, view: View) -> None:
        """Take in the view; a fresh phase starts the mission anew."""
        if not isinstance(view.tracker, GridTracker):
            raise UserError("The scripted agents of babyai need env=babyai and its fact tracker.")
        self.tracker = view.tracker
        if not view.history:
            self.parts = parse_goal(view.goal) or []
        else:
            self._cross_off(view.history[-1][0])

    def pursuing(self, view: View) -> bool:
        """Whether this is the time to work on the mission."""
        return bool(view.goal and self.parts) and not view.phase.startswith(("map", "explor"))

    @property
    def due(self) -> list[Part]:
        """The parts that may be done now."""
        return [part for part in self.parts if part.rank == self.parts[0].rank] if self.parts else []

    def _cross_off(self, action: str) -> None:
        shown, order = self.tracker.now.shown, command(action)
        front = [seen for seen in shown.seen if (seen.ahead, seen.right) == (1, 0)] if shown else []
        for part in self.due:
            done = part.verb == "go to" and any(part.fits(seen.name) for seen in front)
            done = done or (part.verb == "pick up" and part.fits(self.tracker.held))
            toggled = order if order is not None and order.verb.startswith("toggle") else None
            if done or (part.verb == "open" and toggled and (not toggled.called or part.fits(_unstated(toggled.called)))):
                self.parts.remove(part)


class Curious(_Agent):
    """Surveys systematically; knows the goal's words, not where things are."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.told = belief.read_map(None)
        self.tried: set[tuple[str, object]] = set()

    def act(self, view: View) -> str:
        """The next action of a plan for the mission, else of the survey."""
        self.look(view)
        if not view.history:
            self.told, self.tried = self.knowledge(view), set()
        scene = belief.believe(self.tracker, self.told)
        if scene is None:
            return self.rng.choice(("turn left", "turn right"))
        if view.step.error and view.history:  # the world is not as believed; do not insist
            self.tried.add((view.history[-1][0], scene.key))
        for plan in self._plans(scene, view):
            if plan and plan[0] in (view.step.admissible or ()) and (plan[0], scene.key) not in self.tried:
                return plan[0]
        return CHECK if not view.history or view.history[-1][0] != CHECK else self.rng.choice(("turn left", "turn right"))

    def knowledge(self, view: View) -> belief.Told:
        """What is known beforehand."""
        return belief.read_map(None)

    def _plans(self, scene: Scene, view: View) -> Iterator[list[str]]:
        if self.pursuing(view):
            yield self._mission(scene)
        yield from self._survey(scene)
        if not self.pursuing(view):
            yield self._pick_something(scene)

    # -------------------------------------------------------------------------------------------------------- mission

    def _mission(self, scene: Scene) -> list[str]:
        due = belief.clauses(self.due, scene, self.tracker.rooms.get("start room"))[:1]
        return _solve(scene, due) or _solve(scene, [clause._replace(strict=False) for clause in due])

    # --------------------------------------------------------------------------------------------------------- survey

    def _survey(self, scene: Scene) -> Iterator[list[str]]:
        """Unseen corners of entered rooms, doors never passed, locked doors whose keys are known."""
        doors = {cell: thing for cell, thing in scene.things.items() if thing.kind == "door"}
        beyond = {cell for cell in doors if self.tracker.unknown_behind(belief.spot_of(cell))}
        if self.tracker.now.room is None and scene.cell in beyond:  # in a doorway: step into the room behind
            yield ["move forward"]
        unseen = self.tracker.unseen()
        if unseen:
            yield reach(scene, lambda cell, facing: self._sees(cell, facing, unseen))
        shut = {cell for cell in beyond if doors[cell].state != LOCKED}
        if shut:
            yield reach(scene, lambda cell, _: cell in shut)
        locked = [cell for cell in beyond if doors[cell].state == LOCKED]
        for cell in sorted(locked):
            yield _solve(scene, [Clause("open", frozenset({doors[cell].number}), "")])

    def _sees(self, cell: Cell, facing: int, spots: set[Spot]) -> bool:
        """Whether the view from a believed pose holds one of the spots; only those in the same room count as looked at."""
        pose, side = Pose(belief.spot_of(cell), (facing + 1) % 4), VIEW // 2
        one, other = beside(pose, 0, -side), beside(pose, VIEW - 1, side)
        (a, b), (c, d) = sorted((one[0], other[0])), sorted((one[1], other[1]))
        room = next((room for room in self.tracker.rooms.values() if room.holds(pose.spot)), None)
        return room is not None and any(a <= s[0] <= b and c <= s[1] <= d and room.shows(s) for s in spots)

    def _pick_something(self, scene: Scene) -> list[str]:
        """Pick up each thing that lies where it lay at the start."""
        left = frozenset(
            thing.number
            for cell, thing in scene.things.items()
            if thing.kind != "door" and belief.spot_of(cell) not in self.tracker.put
        )
        if left:
            return _solve(scene, [Clause("pick up", left, "")])
        return ["drop"] if scene.carrying else []


class MapUser(Curious):
    """Surveys like `Curious` while mapping; acts on the map."""

    def knowledge(self, view: View) -> belief.Told:
        """The map, while acting."""
        return belief.read_map(view.map)


class Myopic(_Agent):
    """Chases what is in view."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._followed: set[str] = set()

    def act(self, view: View) -> str:
        """Guidance that is an action; what fits the mission and can be reached now; else a random step."""
        self.look(view)
        if view.step.error and view.history and view.history[-1][0] and self.rng.random() < REPEAT:
            return view.history[-1][0]
        listed = view.step.admissible or ()
        guidance = view.knowledge.get("guidance")
        for line in (guidance if isinstance(guidance, list | tuple) else str(guidance or "").splitlines())[::-1]:
            action = re.sub(r"^\W*(?:\d+[.)])?\s*(?:action:)?\s*", "", str(line).lower()).strip(" `\"'.")
            if action in listed and line not in self._followed:
                self._followed.add(line)
                return action
        return (self._chase(listed) if self.pursuing(view) else "") or self._wander(listed)

    def _chase(self, listed: Sequence[str]) -> str:
        forms = {"go to": ("go to",), "pick up": ("pickup",), "open": ("toggle", "toggle and go through")}
        for part in self.due:
            for name in self._named(part):
                for action in (f"{verb} {name}" for verb in forms[part.verb]):
                    if action in listed:
                        return action
        return ""

    def _named(self, part: Part) -> list[str]:
        start, called = self.tracker.rooms.get("start room"), self.tracker.now.called()
        return [name for name, (seen, spot) in called.items() if part.fits(seen.name, spot, start)]

    def _wander(self, listed: Sequence[str]) -> str:
        through = [action for action in listed if "go through" in action]
        steps = [action for action in listed if action.startswith(("turn", "move"))]
        return self.rng.choice(through if through and self.rng.random() < 0.5 else steps or ["turn left"])


def _solve(scene: Scene, clauses: list[Clause]) -> list[str]:
    """A plan on the believed grid; empty if there is none."""
    if not clauses:
        return []
    try:
        return solve(scene, clauses)
    except UserError:
        return []


def _unstated(called: str) -> str:
    """Colour and kind of what an action names: "red ball" for "red ball 1"."""
    words = called.split()[:-1]
    return f"{words[0]} {words[-1]}"
