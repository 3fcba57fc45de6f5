"""How an agent explores while it acts (paper 003, figure 4; the paper names no definitions in our copy, these are ours).

    action diversity        distinct actions / steps
    observation diversity   distinct masked observations / steps; numbers are masked, so "mug 1" and "mug 2" are one sight
    repetition              share of steps whose (action, observation) pair occurred before
    invalid                 share of steps whose reply was unreadable or whose action was refused

Counts are pooled over steps. An attempt of several (Reflexion, Best-of-N) is counted by itself: what an earlier attempt did
does not make a step a repetition. Diversities fall as episodes get longer, so compare methods at equal steps.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentexp.metrics.behaviour import normalised
from agentexp.records import Record

TRIALS = "trials"
"""The note of attempts, see `agentexp.paradigms.trials`."""


@dataclass(frozen=True, slots=True)
class Exploration:
    """Counts over the acting steps of one episode, all attempts together."""

    steps: int
    actions: int
    observations: int
    repeated: int
    invalid: int


def exploration(record: Record, phase: str = "acting") -> Exploration:
    """The counts of one record."""
    counts = [_counted(steps) for steps in attempts(record, phase)]
    return Exploration(
        steps=sum(c.steps for c in counts),
        actions=sum(c.actions for c in counts),
        observations=sum(c.observations for c in counts),
        repeated=sum(c.repeated for c in counts),
        invalid=sum(c.invalid for c in counts),
    )


def attempts(record: Record, phase: str = "acting") -> list[list[Mapping[str, Any]]]:
    """The steps of a phase, apart for each attempt where there were several."""
    trials = record["notes"].get(TRIALS)
    steps = record["trajectory"]
    if not trials:
        return [[step for step in steps if step["phase"] == phase]]
    return [steps[trial["first_step"] : trial["first_step"] + trial["steps"]] for trial in trials]


def masked(observation: str) -> str:
    """Lower case, blanks collapsed, numbers as <n>. The same for every world, so that records alone are enough."""
    return re.sub(r"\d+", "<n>", " ".join(observation.lower().split()))


def _counted(steps: Sequence[Mapping[str, Any]]) -> Exploration:
    actions = [normalised(step["action"] if step["action"] is not None else step.get("rewrite") or None) for step in steps]
    pairs = [(action, step["observation"]) for action, step in zip(actions, steps, strict=True)]
    return Exploration(
        steps=len(steps),
        actions=len(set(actions) - {None}),
        observations=len({masked(step["observation"]) for step in steps}),
        repeated=sum(pair in pairs[:t] for t, pair in enumerate(pairs)),
        invalid=sum(bool(step["error"]) or step["status"] != "ok" for step in steps),
    )
