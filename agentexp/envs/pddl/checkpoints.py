"""Checkpoints of a PDDL problem from its ground actions (paper 001, section 3.2), and the proof of them in its texts.

The whole state is told at the start, so seeing a name is no discovery. What can be discovered is what can be changed:

    location    rooms (gripper), hubs and containers (tyreworld)
    object      every other object of a fact that some action can make true, without the levels of a shaker
    affordance  an action on the thing that it is about: "pick ball1"

    "task_closure"   the same for the actions that may help to reach the goal: those that make a condition of the goal true,
                     those that make one of their conditions true, and so on, for conditions that do not hold at the start
    "all"            whatever can be reached
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agentexp.capabilities import Checkpoint
from agentexp.core import Step
from agentexp.envs.pddl.grounding import Ground, Operator
from agentexp.envs.pddl.phrases import Phrases
from agentexp.envs.pddl.reading import Reading
from agentexp.errors import UserError

PLACES = ("hub", "container")  # types of tyreworld; barman's containers are things
LEFT_OUT = ("level",)


def checkpoints(ground: Ground, phrases: Phrases, relevance: str = "task_closure") -> list[Checkpoint]:
    """The checkpoints of an instance, sorted.

    Args:
        ground: the problem.
        phrases: its domain's sentences.
        relevance: "task_closure" or "all".

    Raises:
        UserError: another relevance.
    """
    if relevance == "task_closure":
        operators: Iterable[Operator] = closure(ground)
    elif relevance == "all":
        operators = ground.operators
    else:
        raise UserError(f"relevance={relevance} is unknown: choose task_closure or all.")
    places = _places(ground, phrases)
    found: set[Checkpoint] = set()
    for op in operators:
        if not op.adds & ~op.needs and not op.deletes & ~op.adds:
            continue  # changes nothing wherever it is possible: a move from a room to itself
        found.add(Checkpoint("affordance", phrases.about(op.name)))
        for atom in ground.fluents(op.adds & ~op.needs):
            for name in atom[1:]:
                if not ground.domain.is_a(ground.problem.objects[name], LEFT_OUT):
                    found.add(Checkpoint("location" if name in places else "object", name))
    return sorted(found)


def closure(ground: Ground) -> list[Operator]:
    """Actions that the goal may need, by the rule above."""
    makers: dict[int, list[int]] = {}
    for i, op in enumerate(ground.operators):
        for bit in _bits(op.adds & ~op.needs):
            makers.setdefault(bit, []).append(i)
    need, _, _ = ground.goal
    # What holds at the start may be undone on the way, but then it is the way that needs it, not the goal.
    queue = [bit for bit in _bits(need) if not ground.init >> bit & 1]
    seen, chosen = set(queue), set[int]()
    for bit in queue:
        for i in makers.get(bit, ()):
            if i not in chosen:
                chosen.add(i)
                fresh = [b for b in _bits(ground.operators[i].needs & ~ground.init) if b not in seen]
                seen |= set(fresh)
                queue += fresh
    return [op for i, op in enumerate(ground.operators) if i in chosen]


class PddlMatcher:
    """Implements `CheckpointMatcher`.

    An action that worked proves its affordance and every name in a fact that it made true. Looking, listing and refusals prove
    nothing.
    """

    def __init__(self, known: Sequence[Phrases]) -> None:
        self._reading = Reading(known)

    def observe(self, action: str | None, step: Step) -> set[Checkpoint]:
        """See `CheckpointMatcher`."""
        event = self._reading.read(action, step)
        if event.action is None or not event.worked or not event.new:
            return set()
        names = {name for atom in event.new for name in atom[1:]}
        # A name is a location in one world and an object in another; the checkpoint set holds only one of the two.
        proved = {Checkpoint("location", name) for name in names} | {Checkpoint("object", name) for name in names}
        return proved | {Checkpoint("affordance", self._reading.phrases.about(event.action))}


def _places(ground: Ground, phrases: Phrases) -> set[str]:
    if phrases.kind == "tyreworld":
        return {name for name, kinds in ground.problem.objects.items() if ground.domain.is_a(kinds, PLACES)}
    return {atom[1] for atom in ground.atoms if atom[0] == "at-robby"}


def _bits(mask: int) -> list[int]:
    return [i for i in range(mask.bit_length()) if mask >> i & 1]
