"""One episode: `Rollout` is what a paradigm sees, `run_episode` is the only episode loop and the only broad `except`.

A failed episode is data, not a crash: whatever happens, `run_episode` returns an `Episode` that says how it ended. An engine
failure costs one attempt; the episode starts again from its beginning with a fresh engine.
"""

from __future__ import annotations

import asyncio
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import replace
from typing import Any

from agentexp.actions import Parsed, ParseSettings, parse
from agentexp.capabilities import HasFacts
from agentexp.core import (
    Call,
    CognitiveMap,
    Completion,
    Env,
    Episode,
    FactTracker,
    Model,
    Paradigm,
    Request,
    Sampling,
    Step,
    StepRecord,
    Task,
    Usage,
    View,
    stable_seed,
)
from agentexp.errors import ContextOverflow, FatalError, HarnessError, LimitReached, UserError
from agentexp.limits import Budget as Budget
from agentexp.limits import Limits as Limits
from agentexp.parts import Chat as Chat
from agentexp.parts import Turn as Turn
from agentexp.parts import World as World
from agentexp.parts import checked
from agentexp.perturbing import perturb_when_due
from agentexp.shortening import more_to_drop, without


class Rollout:
    """What a paradigm sees of one episode. Records every message, call and step into `episode`."""

    def __init__(
        self,
        task: Task,
        env: Env,
        world: World,
        models: Mapping[str, Model],
        episode: Episode,
        budget: Budget,
        limits: Limits = Limits(),
        parsing: ParseSettings = ParseSettings(),
        artefacts: Mapping[str, Any] | None = None,
    ) -> None:
        self.task, self.env, self.world, self.models = task, env, world, models
        self.episode, self.budget, self.limits, self.parsing = episode, budget, limits, parsing
        self.artefacts = artefacts or {}  # what `Paradigm.prepare` left for all episodes, for example {"k_g": {...}}
        self.phase_name = ""
        self.steps_left = 0
        self.history: list[tuple[str, Step]] = []
        self.tracker: FactTracker | None = None
        self.step: Step = Step("")
        self.goal = ""
        self.map: CognitiveMap | None = None
        self.knowledge: dict[str, Any] = {}
        self.calls_before = 0  # of this episode's past, made by an earlier run: sampling seeds count on from them
        self._goal_visible = True
        self._memory: dict[str, Any] = {}
        self._left_out: dict[str, set[int]] = {}  # by conversation: observations that no longer fit
        self._invalid_in_a_row = 0

    # -------------------------------------------------------------------------------------------------------- phases

    @contextmanager
    def phase(self, name: str, steps: int) -> Iterator[None]:
        """A stretch of the episode with its own step budget and history.

        The budget ends with the block: outside of any phase no step is possible. What happened stays readable until the next
        phase begins, and what a model is asked in between counts as part of the phase before.
        """
        self.phase_name, self.steps_left, self.history = name, steps, []
        self._invalid_in_a_row = 0
        self.episode.steps_by_phase.setdefault(name, 0)
        try:
            yield
        finally:
            self.steps_left = 0

    async def reset(self, *, show_goal: bool = True) -> Step:
        """Put the world into the instance's initial state. With `show_goal` False, nothing the agent sees names the goal."""
        self._goal_visible = show_goal
        step = checked(await self.world.reset(self.task), "reset")
        self.goal = step.goal
        self.episode.goal = step.goal
        self.step = step if show_goal else replace(step, goal="")
        self.history = []
        if isinstance(self.env, HasFacts):
            self.tracker = self.env.fact_tracker()
            self.tracker.observe(None, self.step)
        return self.step

    # ---------------------------------------------------------------------------------------------------------- model

    def chat(self, name: str) -> Chat:
        """A new conversation. A name that is taken gets a number: a rewritten prompt is a new conversation."""
        unique, n = name, 1
        while unique in self.episode.chats:
            n += 1
            unique = f"{name}.{n}"
        chat = Chat(unique)
        self.episode.chats[unique] = chat.messages
        return chat

    async def ask(
        self, chat: Chat, *, role: str = "actor", purpose: str = "act", form: str = "", max_tokens: int | None = None
    ) -> Completion:
        """Let the model of `role` answer `chat`. The reply is not appended: the caller decides what is kept."""
        completion, _ = await self._ask(chat, role, purpose, form, max_tokens)
        return completion

    async def _ask(self, chat: Chat, role: str, purpose: str, form: str, max_tokens: int | None) -> tuple[Completion, Call]:
        episode, model = self.episode, self.models.get(role) or self.models["actor"]
        used = episode.usage
        if self.limits.tokens is not None and used.prompt_tokens + used.completion_tokens >= self.limits.tokens:
            raise LimitReached("token_limit")
        if self.limits.cost is not None and (used.cost or 0.0) >= self.limits.cost:
            raise LimitReached("token_limit")
        sampling = model.sampling
        if max_tokens is not None:
            sampling = replace(sampling, max_tokens=max_tokens)
        if sampling.temperature > 0 and sampling.seed is None:
            sampling = replace(sampling, seed=stable_seed(self.task.key, self.calls_before + len(episode.calls)))
        completion = await self._sent(chat, model, sampling, purpose, form)
        call = Call(
            chat=chat.name,
            upto=len(chat.messages),
            role=role,
            purpose=purpose,
            phase=self.phase_name,
            usage=completion.usage,
            seconds=completion.seconds,
            finish_reason=completion.finish_reason,
            retries=completion.retries,
            cached=completion.cached,
            reasoning=completion.reasoning,
            token_ids=completion.token_ids,
            logprobs=completion.logprobs,
            info=completion.info,
        )
        episode.calls.append(call)
        episode.usage = used + completion.usage
        by_role = episode.usage_by_role
        by_role[role] = by_role[role] + completion.usage if role in by_role else completion.usage
        return completion, call

    async def _sent(self, chat: Chat, model: Model, sampling: Sampling, purpose: str, form: str) -> Completion:
        """The reply to a conversation; with `limits.context` "drop_oldest", to as much of it as fits."""
        left_out = self._left_out.setdefault(chat.name, set())
        while True:
            messages = without(chat.messages, left_out) if left_out else chat.messages
            request = Request(messages, sampling, purpose, form, self.view(), f"{self.task.key}|{chat.name}")
            try:
                completion = await model.chat(request)
            except ContextOverflow:
                more = more_to_drop(chat.messages, left_out) if self.limits.context == "drop_oldest" else []
                if not more:
                    raise
                left_out.update(more)
                self.note("left_out", {name: len(indices) for name, indices in self._left_out.items() if indices})
                continue
            if left_out:
                completion.info = {**completion.info, "left_out": sorted(left_out)}
            return completion

    def view(self) -> View:
        """What scripted policies and likelihood ranking may look at now."""
        return View(
            task=self.task,
            goal=self.goal if self._goal_visible else "",
            phase=self.phase_name,
            step=self.step,
            history=self.history,
            steps_left=self.steps_left,
            map=self.map,
            knowledge=self.knowledge,
            tracker=self.tracker,
            env=self.env,
            oracle=self.oracle,
            memory=self._memory,
        )

    async def oracle(self) -> list[str]:
        """Expert actions from the current state (asks the engine)."""
        plan: list[str] = await self.world.call("oracle")
        return plan

    # ---------------------------------------------------------------------------------------------------------- steps

    async def turn(self, chat: Chat, form: str, *, role: str = "actor", stop_word: str = "") -> Turn:
        """One turn: ask, read the reply, send at most one action, record the step.

        Every reply that should be an action costs one step, also an unreadable one; then nothing is sent and the observation is
        one fixed sentence. The stop word costs no step. The reply is appended to `chat` as it was read: text that the model
        wrote in the world's name is cut off.
        """
        completion, call = await self._ask(chat, role, "act", form, None)
        parsed = parse(
            completion.text,
            reasoning=completion.reasoning,
            finish_reason=completion.finish_reason,
            admissible=self.step.admissible,
            card=self.env.card,
            settings=self.parsing,
            stop_word=stop_word,
        )
        chat.assistant(parsed.kept)
        if completion.text != parsed.kept:
            call.raw = completion.text
        if parsed.status == "ok" and stop_word and parsed.action == stop_word:
            return Turn(self.step, parsed, stopped=True)
        return Turn(await self._apply(parsed, len(self.episode.calls) - 1), parsed)

    async def act(self, action: str) -> Step:
        """Send one action without a model (replays, scripted prefixes). Costs a step."""
        return await self._apply(Parsed(action=action, status="ok", kept=action), None)

    async def _apply(self, parsed: Parsed, call: int | None) -> Step:
        if self.steps_left <= 0:
            raise LimitReached("step_limit")
        started = time.perf_counter()
        await perturb_when_due(self)
        if parsed.status == "ok" and parsed.action is not None:
            step = checked(await self.world.step(parsed.action), "step")
            self._invalid_in_a_row = 0
        else:
            step = replace(self.step, observation=self._refusal(parsed), error=True, goal="", info={})
            self._invalid_in_a_row = 0 if "inadmissible" in parsed.flags else self._invalid_in_a_row + 1
        self.steps_left -= 1
        tried = parsed.action or (parsed.written if "inadmissible" in parsed.flags else "")
        if self.tracker is not None and tried:
            self.tracker.observe(tried, step)
        if parsed.action is not None and "n_actions>1" in parsed.flags and self.parsing.several:
            step = replace(step, observation=f"{step.observation}\n{self.parsing.several}")
        self.step = step
        self.history.append((tried, step))
        episode = self.episode
        episode.steps += 1
        episode.steps_by_phase[self.phase_name] += 1
        episode.trajectory.append(
            StepRecord(
                phase=self.phase_name,
                action=parsed.action,
                status=parsed.status,
                observation=step.observation,
                score=step.score,
                done=step.done,
                success=step.success,
                error=step.error,
                call=call,
                rewrite=parsed.written if parsed.rewritten or parsed.status != "ok" else "",
                flags=list(parsed.flags),
                seconds=time.perf_counter() - started,
                info=dict(step.info),
            )
        )
        if self.limits.invalid_in_a_row is not None and self._invalid_in_a_row >= self.limits.invalid_in_a_row:
            raise LimitReached("invalid_limit")
        return step

    def _refusal(self, parsed: Parsed) -> str:
        """What the agent is told when nothing is sent; for a readable action that is not possible, the world's own words."""
        if parsed.status == "ambiguous":
            return self.parsing.ambiguous
        if "inadmissible" in parsed.flags and self.env.card.refusal:
            return self.env.card.refusal
        return self.parsing.unreadable

    # -------------------------------------------------------------------------------------------------------- results

    def note(self, name: str, value: Any) -> None:
        """Keep something with the episode (JSON values): a map, a stop trace, a summary."""
        self.episode.notes[name] = value

    def finish(self, reason: str = "") -> None:
        """Settle the result from the newest step. Without a reason: won, lost or step_limit."""
        step, episode = self.step, self.episode
        episode.success = step.success
        episode.score = step.score
        episode.end_reason = reason or ("won" if step.success else "lost" if step.done else "step_limit")


Lease = Callable[[], AbstractAsyncContextManager[World]]


async def run_episode(
    task: Task,
    env: Env,
    lease: Lease,
    models: Mapping[str, Model],
    paradigm: Paradigm,
    budget: Budget,
    limits: Limits = Limits(),
    parsing: ParseSettings = ParseSettings(),
    artefacts: Mapping[str, Any] | None = None,
) -> Episode:
    """Run one task to its end and return its record, whatever happens.

    Args:
        budget: steps; a task may have its own, see `Budget.of`.
        lease: opens an engine for this episode alone; an engine that failed is replaced by whoever gave the lease.
        models: by role; a role that is missing falls back to "actor".
        artefacts: what the paradigm prepared for all episodes.

    Raises:
        FatalError: going on is pointless for the whole run. `asyncio.CancelledError` passes through as well.
        UserError: so does what the user has to change first (missing data, a policy that the world does not have).
    """
    failed: list[str] = []
    wasted = Usage()
    for attempt in range(1, limits.attempts + 1):
        episode = Episode(task=task, paradigm=paradigm.name, model=models["actor"].label, attempts=attempt, wasted=wasted)
        started = time.perf_counter()
        try:
            async with asyncio.timeout(limits.seconds), lease() as world:
                ro = Rollout(task, env, world, models, episode, budget.of(task), limits, parsing, artefacts)
                try:
                    await paradigm(ro)
                except LimitReached as limit:
                    ro.finish(limit.reason)
                except ContextOverflow as overflow:
                    ro.finish("context_limit")
                    episode.error = str(overflow)
        except (FatalError, UserError):
            raise
        except HarnessError as error:
            _failed(episode, error.end_reason, f"{type(error).__name__}: {error}")
        except TimeoutError:
            _failed(episode, "timeout", f"The attempt ran past limits.seconds={limits.seconds}.")
        except Exception:  # noqa: BLE001 - the episode boundary: a defect of ours or of a plug-in is recorded, never lost
            _failed(episode, "harness_error", traceback.format_exc(limit=-8))
        episode.seconds = time.perf_counter() - started
        if episode.status == "ok":
            break
        failed.append(episode.error)
        wasted += episode.usage
    if failed:
        episode.notes["failed_attempts"] = failed
    return episode


def _failed(episode: Episode, reason: str, error: str) -> None:
    episode.status, episode.end_reason, episode.error = "error", reason, error
    episode.success, episode.score = False, 0.0
