"""Explore-then-Act (paper 001, section 3.4): look around without a task, note what was learnt, then act on the notes.

    explore    goal-free, N steps or until "finish exploring":  tau = (o_1, a_1, ..., a_N, o_N+1)         (eq. 7)
    summarise  K = Summarize(tau), at most 300 words
    reset      the acting phase meets the initial state
    act        a_t ~ pi(. | H_t, g, K): K stands in the system prompt                                     (eq. 8)

Explorer, summariser and executor may be different models: roles "summariser", "explorer", "actor"; each falls back to the next.
Explorations and summaries are kept in files and used again by every run that needs the same ones, see `explored.py`.

Scripted agents cannot read prose. For them `View.map` is the map that the world's own rules read from the same N steps; no
language model sees it, K is their only knowledge.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, replace
from typing import Any

from agentexp.actions import without_thinking
from agentexp.capabilities import Checkpoint, HasFacts
from agentexp.core import FactTracker, Model, Step, StepRecord, Usage
from agentexp.envs.goal_free import goal_free_actions, goal_hidden
from agentexp.errors import ContextOverflow, LimitReached, UserError
from agentexp.hooks import Context
from agentexp.metrics.ecc import Relevance, instance_checkpoints, note_coverage
from agentexp.paradigms.explored import Exploration, ExplorationStore, Slot, Summary
from agentexp.paradigms.json_reply import token_limit
from agentexp.paradigms.react import Form, ReAct
from agentexp.paradigms.record import trajectory_text
from agentexp.prompts import Style, render
from agentexp.rollout import Rollout

STOP_WORD = "finish exploring"
CLIPS = (None, 500, 150)  # characters of an observation in the summariser's prompt, shorter while it does not fit


class ExploreThenAct:
    """Explore-then-Act and its controls.

    Args:
        explore_steps: N, the steps whose knowledge is used; 0 = direct acting (column "Dir.").
        explore_budget: steps of the exploring session; None = N. With 100 and N = 10, K comes from the first 10 steps of a
            session of 100: one session serves a whole curve over N. A session that was promised fewer may go differently.
        direct_bonus: no exploration, but its N steps are added to the acting phase (control "Dir.+N"; ours).
        act: False ends after the summary (`agentexp explore`).
        stop_early: the explorer may end the session with "finish exploring".
        cache: use and keep explorations and summaries below `<output_root>/knowledge`.
        coverage: which checkpoints ECC counts (metrics/ecc.py): what the hidden task can need, or all.
        summary_words: most words of K; longer ones are cut. 0 writes no summary and needs `act` False.
        summary_tokens: limit of the summariser's reply; the model's own where that is higher.
        style: of the executor's prompts, see `ReAct`.
        explorer_style: of the explorer's and summariser's prompts; None = `style`.
        form: see `ReAct`; for both, as the next two.
        show_admissible: see `ReAct`; None = only in compact style.
        show_steps_left: see `ReAct`.
        examples: see `ReAct`; for acting.
    """

    name = "explore_then_act"
    roles = ("explorer", "summariser")

    def __init__(
        self,
        explore_steps: int = 50,
        explore_budget: int | None = None,
        direct_bonus: bool = False,
        act: bool = True,
        stop_early: bool = True,
        cache: bool = True,
        coverage: Relevance = "task_closure",
        summary_words: int = 300,
        summary_tokens: int = 1024,
        style: Style = "full",
        explorer_style: Style | None = None,
        form: Form = "thought_action",
        show_admissible: bool | None = None,
        show_steps_left: bool = False,
        examples: str = "",
    ) -> None:
        if explore_steps < 0 or summary_words < 0:
            raise UserError("paradigm.explore_steps and paradigm.summary_words must be 0 or more.")
        if explore_budget is not None and explore_budget < explore_steps:
            raise UserError(
                f"paradigm.explore_budget={explore_budget} is the whole session, so it must be at least "
                f"paradigm.explore_steps={explore_steps}, or null."
            )
        if not act and (direct_bonus or not explore_steps):
            raise UserError("Exploring alone (paradigm.act=false) needs paradigm.explore_steps above 0 and direct_bonus=false.")
        if act and not summary_words:
            raise UserError(
                "paradigm.summary_words=0 leaves the executor without notes; it is for exploring alone (act=false)."
            )
        self.explore_steps, self.explore_budget, self.direct_bonus, self.acts = explore_steps, explore_budget, direct_bonus, act
        self.stop_early, self.cache, self.coverage = stop_early, cache, coverage
        self.summary_words, self.summary_tokens = summary_words, summary_tokens
        self.style = style
        self.actor = ReAct(style, form, show_admissible, show_steps_left, examples)
        self.explorer = ReAct(explorer_style or style, form, show_admissible, show_steps_left)
        self._store: ExplorationStore | None = None

    async def prepare(self, ctx: Context) -> dict[str, Any]:
        """Find the place of the knowledge. Returns {"knowledge": its folder below `<output_root>/knowledge`} or {}."""
        if self.direct_bonus or not self.explore_steps or not self.cache:
            return {}
        explorer = self.explorer
        settings = {
            "style": explorer.style,
            "form": explorer.form,
            "show_admissible": explorer.show_admissible,
            "show_steps_left": explorer.show_steps_left,
            "stop_early": self.stop_early,
        }
        summary = {"style": explorer.style, "words": self.summary_words, "tokens": self.summary_tokens}
        roles = _role(ctx.models, "explorer"), _role(ctx.models, "summariser", "explorer")
        self._store = ExplorationStore.of(ctx, *roles, settings, summary)
        return {"knowledge": f"{ctx.env.name}/{self._store.folder.name}"}

    async def __call__(self, ro: Rollout) -> None:
        """One episode."""
        steps = self.explore_steps if ro.budget.exploring is None else ro.budget.exploring
        knowledge, acting = "", ro.budget.acting
        if self.direct_bonus:
            acting += steps
        elif steps:
            knowledge = await self._learn(ro, steps)
        if not self.acts:
            ro.finish("completed")
            return
        with ro.phase("acting", acting):
            await ro.reset()
            await self.actor.act(ro, knowledge)
        ro.finish()

    # -------------------------------------------------------------------------------------------------------- exploring

    async def _learn(self, ro: Rollout, steps: int) -> str:
        """Explore and summarise, or read both from the store. Returns the block with K for the acting prompt."""
        session = steps if self.explore_budget is None or ro.budget.exploring is not None else self.explore_budget
        async with self._store.locked(ro.task) if self._store else nullcontext() as slot:
            with ro.phase("exploring", session):
                found = slot.exploration(session) if slot else None
                cached = found is not None
                if found is None:
                    found, points = await self._explore(ro, session)
                    if slot:
                        slot.add(found)
                else:
                    _recall(ro, found)
                    await ro.world.reset(ro.task)
                    points = await instance_checkpoints(ro, self.coverage)
                ro.note("exploration", _note(found, steps, cached))
                note_coverage(ro, points, found.start, found.steps)
                seen = found.steps[:steps]
                ro.history = [(record.action or "", _step(record)) for record in seen]
                ro.tracker = _read(ro, found.start, seen)
                ro.map = ro.tracker.map("") if ro.tracker else None
                summary = await self._summary(ro, found, steps, slot) if self.summary_words else None
        if summary is None or not summary.text:
            return ""
        ro.knowledge["summary"] = summary.text
        return render("explore_then_act/act_block", ro.task.env, style=self.style, summary=summary.text)

    async def _explore(self, ro: Rollout, session: int) -> tuple[Exploration, list[Checkpoint]]:
        first_step, first_call, started = len(ro.episode.trajectory), len(ro.episode.calls), time.perf_counter()
        stopped, endings = "budget", list[dict[str, Any]]()
        with goal_hidden(ro) as world:
            start = await ro.reset(show_goal=False)
            points = await instance_checkpoints(ro, self.coverage)
            chat = ro.chat("exploring").system(self._prompt(ro, session))
            text = self.explorer.first(start, ro.steps_left)
            while ro.steps_left > 0:
                try:
                    turn = await ro.turn(
                        chat.user(text), self.explorer.form, role="explorer", stop_word=STOP_WORD if self.stop_early else ""
                    )
                except ContextOverflow:
                    stopped = "context_limit"  # what was seen so far can still be summarised
                    break
                except LimitReached as limit:
                    if limit.reason != "invalid_limit":  # tokens or money: the whole episode ends
                        raise
                    stopped = limit.reason
                    break
                if turn.stopped:
                    stopped = "model"
                    break
                endings += [{"step": session - ro.steps_left, **asdict(event)} for event in world.events[len(endings) :]]
                text = self.explorer.next(turn.step, ro.steps_left)
        episode = ro.episode
        found = Exploration(
            budget=session,
            explorer=ro.models[_role(ro.models, "explorer")].label,
            goal=episode.goal,
            start=start.observation,
            steps=[replace(record, call=None) for record in episode.trajectory[first_step:]],
            chat=list(chat.messages),
            stopped=stopped,
            endings=endings,
            usage=sum((call.usage for call in episode.calls[first_call:]), Usage()),
            seconds=round(time.perf_counter() - started, 3),
        )
        return found, points

    def _prompt(self, ro: Rollout, session: int) -> str:
        card = ro.env.card
        return render(
            "explore_then_act/explore",
            ro.task.env,
            style=self.explorer.style,
            intro=card.intro,
            actions=goal_free_actions(card),
            notes=card.notes,
            budget=session,
            stop_word=STOP_WORD if self.stop_early else "",
            format=self.explorer.format(ro.task.env),
        )

    # ---------------------------------------------------------------------------------------------------------- summary

    async def _summary(self, ro: Rollout, found: Exploration, steps: int, slot: Slot | None) -> Summary:
        """K of the first `steps` steps; the note "summary" is its text, and "exploration" says what it cost."""
        summary = slot.summary(found.budget, steps) if slot else None
        cached = summary is not None
        if summary is None:
            summary = await self._summarise(ro, found, steps)
            if slot:
                slot.add(summary)
        else:
            ro.calls_before += summary.usage.calls
        ro.note("summary", summary.text)
        ro.episode.notes["exploration"] |= {
            "summary_cached": cached,
            "summary_cut": summary.cut,
            "summary_usage": asdict(summary.usage),
        }
        return summary

    async def _summarise(self, ro: Rollout, found: Exploration, steps: int) -> Summary:
        role, first_call = _role(ro.models, "summariser", "explorer"), len(ro.episode.calls)
        tokens = token_limit(ro.models, role, self.summary_tokens)
        acts = [(record.action or "", record.observation) for record in found.steps[:steps]]
        for clip in CLIPS:
            record = trajectory_text(acts, found.start, clip)
            style, words = self.explorer.style, self.summary_words
            prompt = render("explore_then_act/summarize", ro.task.env, style=style, trajectory=record, max_words=words)
            chat = ro.chat("summary").user(prompt)
            try:
                reply = await ro.ask(chat, role=role, purpose="eta_summarize", max_tokens=tokens)
            except ContextOverflow:
                if clip == CLIPS[-1]:
                    raise
                continue
            break
        chat.assistant(reply.text)
        plain = without_thinking(reply.text, ro.parsing).strip()
        text = _first_words(plain, self.summary_words)
        usage = sum((call.usage for call in ro.episode.calls[first_call:]), Usage())
        key = self._store.summary_key if self._store else ""
        return Summary(found.budget, steps, key, text, cut=text != plain, usage=usage)


def _role(models: Mapping[str, Model], *wanted: str) -> str:
    """The first of these roles that has a model of its own; "actor" if none has."""
    return next((role for role in wanted if role in models), "actor")


def _recall(ro: Rollout, found: Exploration) -> None:
    """Put an earlier exploration into the record as if it had just happened, except for its calls: they cost nothing now."""
    episode = ro.episode
    episode.goal = found.goal
    ro.chat("exploring").messages.extend(found.chat)
    episode.trajectory += [replace(record, seconds=0.0) for record in found.steps]
    episode.steps += len(found.steps)
    episode.steps_by_phase["exploring"] += len(found.steps)
    ro.calls_before += found.usage.calls


def _note(found: Exploration, steps: int, cached: bool) -> dict[str, Any]:
    """What the record says about the exploration; `usage` is what it cost when it was made, also if that was long ago."""
    used = min(steps, len(found.steps))
    return {
        "steps": used,
        "budget": steps,
        "premature": found.stopped == "model" and used < steps,
        "session_steps": len(found.steps),
        "session_budget": found.budget,
        "stopped": found.stopped,
        "start": found.start,
        "endings": found.endings,
        "explorer": found.explorer,
        "cached": cached,
        "usage": asdict(found.usage),
        "seconds": found.seconds,
    }


def _step(record: StepRecord) -> Step:
    return Step(record.observation, error=record.error, info=record.info)


def _read(ro: Rollout, start: str, seen: Sequence[StepRecord]) -> FactTracker | None:
    """A tracker that has read these steps; None where the world counts no facts."""
    if not isinstance(ro.env, HasFacts):
        return None
    tracker = ro.env.fact_tracker()
    tracker.observe(None, Step(start))
    for record in seen:
        if record.action is not None:
            tracker.observe(record.action, _step(record))
    return tracker


def _first_words(text: str, most: int) -> str:
    """The text up to its word number `most`."""
    words = list(re.finditer(r"\S+", text))
    return text if len(words) <= most else text[: words[most - 1].end()]
