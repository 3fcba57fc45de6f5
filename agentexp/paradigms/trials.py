"""One attempt of several at the same task, for baselines that begin again (Reflexion, Best-of-N)."""

from __future__ import annotations

from typing import Any

from agentexp.capabilities import HasPerturbation
from agentexp.core import Env, Step
from agentexp.errors import ContextOverflow, LimitReached, UserError
from agentexp.paradigms.react import ReAct
from agentexp.rollout import Rollout

TRIALS = "trials"  # the note with one entry per attempt
CHOSEN = "chosen_trial"  # the note with the 0-based number of the attempt that is the result


def check_resets(env: Env, paradigm: str) -> None:
    """Raise `UserError` where the world changes in mid-episode: a reset would undo it, and later attempts would be spared."""
    if isinstance(env, HasPerturbation) and env.perturbs:
        raise UserError(f"paradigm={paradigm} starts the world anew several times; set env.perturb=none.")


async def play_trial(ro: Rollout, actor: ReAct, knowledge: str = "") -> tuple[Step, str]:
    """Reset and act for the whole budget; add what came of it to the note `TRIALS`.

    Every attempt has the full budget, and all of their steps are steps of the episode. A full context and too many unreadable
    replies end the attempt alone; a limit on tokens or money ends the episode.

    Returns:
        The last answer of the world, and the reason of the end where it was neither the world's nor the budget's.
    """
    trials: list[dict[str, Any]] = ro.episode.notes.setdefault(TRIALS, [])
    first_step, first_call, reason = ro.episode.steps, len(ro.episode.calls), ""
    try:
        with ro.phase("acting", ro.budget.total):
            await ro.reset()
            await actor.act(ro, knowledge)
    except ContextOverflow:
        reason = "context_limit"
    except LimitReached as limit:
        if limit.reason != "invalid_limit":
            raise
        reason = limit.reason
    finally:
        step, calls = ro.step, ro.episode.calls[first_call:]
        trials.append(
            {
                "first_step": first_step,
                "steps": ro.episode.steps - first_step,
                "success": step.success,
                "score": max((record.score for record in ro.episode.trajectory[first_step:]), default=0.0),
                "end_reason": reason or ("won" if step.success else "lost" if step.done else "step_limit"),
                "calls": len(calls),
                "tokens": sum(call.usage.prompt_tokens + call.usage.completion_tokens for call in calls),
            }
        )
    return step, reason
