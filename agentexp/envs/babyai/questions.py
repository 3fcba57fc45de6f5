"""Questions about a BabyAI instance, with answers from its grid (Map QA; MAP, appendix C.3).

Places are told from the start, looking as the robot did then (see `frame`). Asked is only about things whose name is unique.

object_location  Is the red ball ahead of the start, behind it, or level with it? On its left, on its right, or straight?
affordance       What does it take to pass the blue door?
negative         Is the blue door locked?
task_reasoning   What has to be picked up first for the task?
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from agentexp.capabilities import Question
from agentexp.core import CognitiveMap
from agentexp.envs.babyai import belief
from agentexp.envs.babyai.checkpoints import reachable
from agentexp.envs.babyai.engine import Clause
from agentexp.envs.babyai.expert import solve
from agentexp.envs.babyai.frame import Frame, Spot
from agentexp.envs.babyai.mission import parse_goal
from agentexp.envs.babyai.reader import command
from agentexp.envs.babyai.scene import CLOSED, LOCKED, OPEN, Scene
from agentexp.envs.map_index import UNKNOWN
from agentexp.errors import UserError

AXES = {"along": ("ahead", "behind", "level"), "across": ("left", "right", "straight")}
PASSING = {OPEN: "nothing", CLOSED: "toggling", LOCKED: "its key"}
NOTHING = "nothing"


def questions(start: Scene, frame: Frame, clauses: Sequence[Clause], goal: str, seed: int) -> list[Question]:
    """All questions, in an order drawn from `seed`.

    Args:
        start: the scene at reset.
        frame: tells places from the start.
        clauses: the parts of the mission.
        goal: its words.
        seed: of the order.
    """
    things = reachable(start)[1]
    count = Counter(f"{thing.colour} {thing.kind}" for thing in start.things.values())
    unique = {f"{t.colour} {t.kind}": (t, frame.spot(cell)) for cell, t in things.items() if count[f"{t.colour} {t.kind}"] == 1}
    found = [*_places({name: spot for name, (_, spot) in unique.items()})]
    found += _doors({thing.colour: thing.state for thing, _ in unique.values() if thing.kind == "door"})
    found += _task(start, clauses, goal, sorted(unique))
    random.Random(seed).shuffle(found)
    return found


def _places(spots: dict[str, Spot]) -> Iterator[Question]:
    asks = {
        "along": "Is the {} ahead of where you started, behind it, or level with it?",
        "across": "Is the {} on the left or on the right of where you started, or straight?",
    }
    for name, spot in sorted(spots.items()):
        for axis, ask in asks.items():
            yield Question(
                "object_location",
                f"Think of the direction that you looked in at the start. {ask.format(name)}",
                (_side(axis, spot),),
                choices=AXES[axis],
                entity=name,
                evidence=(_seen(name),),
                query=(axis, name),
            )


def _doors(states: dict[str, str]) -> Iterator[Question]:
    for colour, state in sorted(states.items()):
        shown = (rf"There is a {colour} {state} door \d",)
        name = f"{colour} door"
        ask = f"What does it take to pass the {name} as it is at the start?"
        yield Question("affordance", ask, (PASSING[state],), tuple(PASSING.values()), (), name, shown, ("pass", name))
        answer = "yes" if state == LOCKED else "no"
        yield Question(
            "negative", f"Is the {name} locked at the start?", (answer,), ("yes", "no"), (), name, shown, ("locked", name)
        )


def _task(start: Scene, clauses: Sequence[Clause], goal: str, names: Sequence[str]) -> Iterator[Question]:
    first = _first_pickup(solve(start, clauses))
    movable = [name for name in names if not name.endswith(" door")]
    targets = {f"{t.colour} {t.kind}" for t in start.things.values() if any(t.number in clause.things for clause in clauses)}
    evidence = tuple(_seen(name) for name in sorted({first} - {NOTHING})) or (f"(?:{'|'.join(map(_seen, sorted(targets)))})",)
    yield Question(
        "task_reasoning",
        f"The task is: {goal}. What is the first thing that has to be picked up for it?",
        (first,),
        choices=tuple(sorted({first, NOTHING, *movable})),
        entity=goal,
        evidence=evidence,
        query=("fetch", goal),
    )


def _first_pickup(plan: Sequence[str]) -> str:
    """Colour and kind of what a plan picks up first."""
    for action in plan:
        order = command(action)
        if order is not None and order.verb == "pickup":
            return order.called.rpartition(" ")[0]
    return NOTHING


def _seen(name: str) -> str:
    colour, kind = name.split()
    return rf"There is a {re.escape(colour)} (?:\w+ )?{re.escape(kind)} \d"


def _side(axis: str, spot: Spot) -> str:
    value = spot[0] if axis == "along" else -spot[1]
    before, after, neither = AXES[axis]
    return before if value > 0 else after if value < 0 else neither


# --------------------------------------------------------------------------------------------------------- the rules reader


def look_up(question: Question, known: CognitiveMap) -> str:
    """The answer that a map of the form of `GridTracker.map` gives, or "unknown"."""
    kind, what = question.query
    told = belief.read_map(known)
    if kind == "fetch":
        scene, parts = belief.from_map(told), parse_goal(what) or []
        clauses = belief.clauses(parts, scene, told.rooms.get("start room"))
        if len(clauses) < max(len(parts), 1):
            return UNKNOWN
        try:
            return _first_pickup(solve(scene, clauses))
        except UserError:
            return UNKNOWN
    spots = [spot for spot, name in told.things.items() if name == what]
    if not spots:
        return UNKNOWN
    if kind in AXES:
        return _side(kind, spots[0])
    state = told.states.get(spots[0], "")
    if kind == "pass":
        return PASSING.get(state, UNKNOWN)
    return UNKNOWN if not state else "yes" if state == LOCKED else "no"
