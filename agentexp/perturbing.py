"""When the world changes in mid-episode (MAP, appendix C.4): once an episode, in the acting phase, before a step.

The step is planned by (instance, seed), uniformly among the 0-based acting steps 1 to 10; paradigms and repeats share it, and
the draw of what goes where. If the world cannot change then (the wanted thing is in the agent's hands), the next steps are
tried. Exploring and mapping are never disturbed. The agent is told nothing: it has chosen its action before the change.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agentexp.capabilities import HasPerturbation
from agentexp.core import Task, stable_seed

if TYPE_CHECKING:
    from agentexp.rollout import Rollout

NOTE = "perturbation"  # where `agentexp.metrics.perturbation` looks for it
FIRST, LAST = 1, 10
"""Range of the planned step."""


def planned_step(task: Task) -> int:
    """The 0-based acting step before which the change is due."""
    return FIRST + stable_seed("perturb at", task.env, task.split, task.id, task.seed) % (LAST - FIRST + 1)


async def perturb_when_due(ro: Rollout) -> None:
    """Change the rollout's world if this run asks for it and the time has come. To be called before every step.

    Keeps the note "perturbation" = {"step": index within the acting phase of the step before which it happened, "t_planned",
    "moved": {thing: [[old place, ...], new place]}, "origins": all old places}. Without a change there is no note.
    """
    # Asked before every step of every world: looking at a protocol's members takes as long as reading a reply.
    if ro.phase_name != "acting" or not getattr(ro.env, "perturbs", False) or not isinstance(ro.env, HasPerturbation):
        return
    now, due = ro.episode.steps_by_phase["acting"], planned_step(ro.task)
    if now < due or NOTE in ro.episode.notes:
        return
    task = ro.task
    change: dict[str, Any] | None = await ro.world.call(
        "perturb", stable_seed("perturb to", task.env, task.split, task.id, task.seed)
    )
    if change is None:
        return
    ro.step = replace(ro.step, admissible=tuple(change["admissible"]))
    origins = sorted({place for old, _ in change["moved"].values() for place in old})
    ro.note(NOTE, {"step": now, "t_planned": due, "moved": change["moved"], "origins": origins})
