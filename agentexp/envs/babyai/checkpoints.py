"""Checkpoints of a BabyAI instance from its grid (paper 001, section 3.2), and the proof of them.

Texts name neither rooms nor places, so names are told from the start (`frame`): "room 1 ahead", "red ball at 3 ahead 2 left".

    "all"            locations: rooms that can be reached (with the keys that lie about); objects: the things in them and their
                     doors; affordances: pick up each thing, open each door that is shut
    "task_closure"   locations: the same, for what the hidden task wants may be in any; objects: what fits the task, doors, and
                     the keys of locked doors; affordances: pick up these keys and what the task wants picked up, open doors
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agentexp.capabilities import Checkpoint
from agentexp.core import Step
from agentexp.envs.babyai.engine import Clause
from agentexp.envs.babyai.frame import Frame, Spot, beside, spot_text
from agentexp.envs.babyai.reader import Follower, command
from agentexp.envs.babyai.scene import LOCKED, OPEN, VECTORS, Cell, Scene, Thing
from agentexp.errors import UserError


def checkpoints(start: Scene, frame: Frame, clauses: Sequence[Clause], relevance: str = "task_closure") -> list[Checkpoint]:
    """The checkpoints of an instance.

    Args:
        start: the scene at reset.
        frame: tells places from the start.
        clauses: the parts of the hidden mission; only "task_closure" needs them.
        relevance: "task_closure" or "all".

    Raises:
        UserError: another relevance.
    """
    if relevance not in ("task_closure", "all"):
        raise UserError(f"relevance={relevance} is unknown: choose task_closure or all.")
    return sorted(set(_all(start, frame, list(clauses) if relevance == "task_closure" else None)))


def reachable(start: Scene) -> tuple[set[Cell], dict[Cell, Thing]]:
    """Free cells that can be reached and the things beside them, taking away what is in the way and using the keys found."""
    keys: set[str] = set()
    while True:
        cells, things = {start.cell}, dict[Cell, Thing]()
        front = [start.cell]
        while front:
            x, y = front.pop()
            for cell in ((x + dx, y + dy) for dx, dy in VECTORS):
                thing = start.things.get(cell)
                if thing is not None:
                    things[cell] = thing
                shut = thing is not None and thing.state == LOCKED and thing.colour not in keys
                if cell not in cells and not shut and not start.is_wall(cell):
                    cells.add(cell)
                    front.append(cell)
        found = {thing.colour for thing in things.values() if thing.kind == "key"}
        if found <= keys:
            return cells, things
        keys |= found


def _all(start: Scene, frame: Frame, clauses: list[Clause] | None) -> Iterator[Checkpoint]:
    cells, things = reachable(start)
    for room in filter(None, map(frame.room, cells)):
        yield Checkpoint("location", room.name)
    locked = {thing.colour for thing in things.values() if thing.state == LOCKED}
    fits = {number for clause in clauses or () for number in clause.things}
    wanted = {number for clause in clauses or () if clause.verb == "pick up" for number in clause.things}
    for cell, thing in things.items():
        name = named(thing.colour, thing.kind, frame.spot(cell))
        key = thing.kind == "key" and thing.colour in locked
        if clauses is None or thing.number in fits or thing.kind == "door" or key:
            yield Checkpoint("object", name)
        if thing.kind == "door" and thing.state != OPEN:
            yield Checkpoint("affordance", f"open {name}")
        elif thing.kind != "door" and (clauses is None or thing.number in wanted or key):
            yield Checkpoint("affordance", f"pickup {name}")


def named(colour: str, kind: str, spot: Spot) -> str:
    """A thing by its looks and its place at reset."""
    return f"{colour} {kind} at {spot_text(spot)}"


class GridMatcher:
    """Implements `CheckpointMatcher`. Follows one exploration.

    location    the robot stands inside the room object      a description shows it; a list of actions, a refusal and what
    the robot says do not affordance  "pickup": it was in view by that name, and is carried then; "open": a toggling action,
    and the door it meant is
                open then, or the robot stands in it
    """

    def __init__(self) -> None:
        self._now = Follower()

    def observe(self, action: str | None, step: Step) -> set[Checkpoint]:
        """See `CheckpointMatcher`."""
        known, before = self._now.called(), self._now
        held = before.shown.held if before.shown else ""
        pose = before.pose
        fresh = Follower()
        told = fresh.observe(step)
        if fresh.shown is not None:
            self._now = fresh
        if action is None or step.error or not told:
            return set()
        assert fresh.shown is not None and fresh.pose is not None
        shown = [(seen, beside(fresh.pose, seen.ahead, seen.right)) for seen in fresh.shown.seen]
        found = {Checkpoint("object", named(seen.colour, seen.kind, spot)) for seen, spot in shown}
        if fresh.room is not None:
            found.add(Checkpoint("location", fresh.room.name))
        order = command(action)
        if order is None:
            return found
        meant, spot = known.get(order.called, (None, None))
        if order.verb == "toggle" and pose is not None:
            spot = beside(pose, 1)
            meant = next((seen for seen, place in known.values() if place == spot), None)
        if meant is None or spot is None:
            return found
        if order.verb == "pickup" and fresh.shown.held == meant.name and not held:
            found.add(Checkpoint("affordance", f"pickup {named(meant.colour, meant.kind, spot)}"))
        is_open = fresh.pose.spot == spot or any(seen.state == "open" and place == spot for seen, place in shown)
        if order.verb.startswith("toggle") and meant.state != "open" and is_open:
            found.add(Checkpoint("affordance", f"open {named(meant.colour, meant.kind, spot)}"))
        return found
