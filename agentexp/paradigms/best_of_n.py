"""Best-of-N, a baseline of TTExplore: n independent attempts, of which the best one counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from agentexp.core import Model
from agentexp.errors import UserError
from agentexp.paradigms.context import Context
from agentexp.paradigms.react import Form, ReAct
from agentexp.paradigms.trials import CHOSEN, TRIALS, check_resets, play_trial
from agentexp.prompts import Style
from agentexp.rollout import Rollout


class BestOfN:
    """n attempts from the initial state, each with the full budget and seeds of its own.

    The selector "score" is an oracle: it reads the world's own score, which no agent sees, so its rate is pass@n and not what
    an agent without an oracle reaches. The note "best_of_n" therefore always has the mean over the attempts (pass@1) beside it.
    Steps and tokens of all attempts count.

    Args:
        n: attempts.
        select: "score" takes the attempt with success, else the highest score, of equals the first; "first" takes the first
            attempt (pass@1 with the cost of n; for checks).
        style: see `ReAct`; as the next four.
        form: see `ReAct`.
        show_admissible: see `ReAct`.
        show_steps_left: see `ReAct`.
        examples: see `ReAct`.
    """

    name = "best_of_n"
    roles: tuple[str, ...] = ()

    def __init__(
        self,
        n: int = 3,
        select: Literal["score", "first"] = "score",
        style: Style = "full",
        form: Form = "think_answer",
        show_admissible: bool | None = None,
        show_steps_left: bool = False,
        examples: str = "",
    ) -> None:
        if n < 1:
            raise UserError(f"paradigm.n={n} must be at least 1.")
        if select not in ("score", "first"):
            raise UserError(f"paradigm.select={select} is not possible; choose score or first.")
        self.n, self.select = n, select
        self.actor = ReAct(style, form, show_admissible, show_steps_left, examples)

    async def prepare(self, ctx: Context) -> dict[str, Any]:
        """Refuse models and worlds whose attempts would all be the same. Nothing is prepared."""
        check_resets(ctx.env, self.name)
        check_sampling(ctx.models)
        return {}

    async def __call__(self, ro: Rollout) -> None:
        """One episode of n attempts."""
        check_sampling(ro.models)
        ends = [await play_trial(ro, self.actor) for _ in range(self.n)]
        trials = ro.episode.notes[TRIALS]
        best = max(range(self.n), key=lambda i: (trials[i]["success"], trials[i]["score"], -i))
        chosen = best if self.select == "score" else 0
        ro.note(CHOSEN, chosen)
        ro.note(
            "best_of_n",
            {
                "n": self.n,
                "select": self.select,
                "pass_at_1": sum(trial["success"] for trial in trials) / self.n,
                "pass_at_n": float(any(trial["success"] for trial in trials)),
                "mean_score": sum(trial["score"] for trial in trials) / self.n,
            },
        )
        ro.step, reason = ends[chosen]
        ro.finish(reason)


def check_sampling(models: Mapping[str, Model]) -> None:
    """Raise `UserError` unless attempts can differ: they need a temperature above 0 and replies that are drawn."""
    actor = models["actor"]
    if actor.sampling.temperature <= 0:
        raise UserError(
            "paradigm.n attempts of paradigm=best_of_n would all be the same: set model.temperature above 0, for example 0.7. "
            "Scripted agents draw nothing at a temperature and cannot be used."
        )
    if getattr(actor, "decode", "generate") == "rank":
        raise UserError(
            "paradigm=best_of_n needs replies that are drawn, but model.decode=rank takes the maximum; use generate."
        )
    if actor.sampling.seed is not None:
        raise UserError("paradigm=best_of_n gives every attempt seeds of its own; leave the model's sampling seed unset.")
