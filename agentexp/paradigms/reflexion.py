"""Reflexion (Shinn et al. 2023), a baseline of TTExplore: fail, say in words why, begin again with that in mind."""

from __future__ import annotations

from typing import Any

from agentexp.actions import without_thinking
from agentexp.errors import ContextOverflow, UserError
from agentexp.paradigms.context import Context
from agentexp.paradigms.json_reply import token_limit
from agentexp.paradigms.react import Form, ReAct
from agentexp.paradigms.record import trajectory_text
from agentexp.paradigms.trials import CHOSEN, TRIALS, check_resets, play_trial
from agentexp.paradigms.ttexplore import CLIPS
from agentexp.prompts import Style, render
from agentexp.rollout import Rollout


class Reflexion:
    """Up to `trials` attempts, each from the initial state and with the full budget.

    The result is the last attempt: the first that succeeded, or the last that did not. An attempt knows whether the one before
    it succeeded, which ReAct and TTExplore are never told. Steps and tokens of all attempts count, and those of the
    reflections.

    Args:
        trials: most attempts (paper 003: 3).
        memory: reflections that are kept, newest last (Shinn et al.: 1 to 3).
        reflection_tokens: limit of a reflection; the model's own where that is higher.
        style: see `ReAct`; as the next four.
        form: see `ReAct`.
        show_admissible: see `ReAct`.
        show_steps_left: see `ReAct`.
        examples: see `ReAct`.
    """

    name = "reflexion"
    roles: tuple[str, ...] = ("reflector",)

    def __init__(
        self,
        trials: int = 3,
        memory: int = 3,
        reflection_tokens: int = 512,
        style: Style = "full",
        form: Form = "think_answer",
        show_admissible: bool | None = None,
        show_steps_left: bool = False,
        examples: str = "",
    ) -> None:
        if trials < 1 or memory < 1:
            raise UserError("paradigm.trials and paradigm.memory must be at least 1.")
        self.trials, self.memory, self.reflection_tokens = trials, memory, reflection_tokens
        self.actor = ReAct(style, form, show_admissible, show_steps_left, examples)

    async def prepare(self, ctx: Context) -> dict[str, Any]:
        """Refuse worlds that change in mid-episode. Nothing is prepared."""
        check_resets(ctx.env, self.name)
        return {}

    async def __call__(self, ro: Rollout) -> None:
        """One episode of several attempts."""
        kept: list[str] = []
        for number in range(self.trials):
            ro.knowledge["reflections"] = list(kept)
            env, style = ro.task.env, self.actor.style
            block = render("reflexion/block", env, style=style, reflections=kept) if kept else ""
            step, reason = await play_trial(ro, self.actor, block)
            ro.note(CHOSEN, number)
            if step.success or number + 1 == self.trials:
                break
            text = await self._reflect(ro, kept)
            ro.episode.notes[TRIALS][-1]["reflection"] = text
            kept = [*kept, text][-self.memory :] if text else kept
        ro.finish(reason)

    async def _reflect(self, ro: Rollout, past: list[str]) -> str:
        """What the reflector says about the attempt that has just ended; empty where it says nothing or does not fit."""
        tokens = token_limit(ro.models, "reflector", self.reflection_tokens)
        chat, steps = ro.chat("reflecting"), [(action, step.observation) for action, step in ro.history]
        for clip in CLIPS:
            chat.messages.clear()
            chat.user(
                render(
                    "reflexion/reflect",
                    ro.task.env,
                    style=self.actor.style,
                    goal=ro.goal,
                    reason="the world ended" if ro.step.done else "the steps were used up",
                    trajectory=trajectory_text(steps, clip=clip),
                    past=past,
                )
            )
            try:
                reply = await ro.ask(chat, role="reflector", purpose="reflexion_reflect", max_tokens=tokens)
            except ContextOverflow:
                continue
            chat.assistant(reply.text)
            return without_thinking(reply.text, ro.parsing).strip()
        return ""
