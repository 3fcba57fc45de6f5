"""Rolling out: groups of episodes through `run_episode`, with what the policy sampled, token by token, and a reward each.

    task      the goal is known; the reward is success (paper 001, section 3.3)
    explore   goal-free; the reward is ECC, from the engine's checkpoints (eq. 3)

What the harness failed (an engine that died, a call that failed) is tried again and then left out: it is no failure of the
policy and never a reward of 0. What the policy failed by itself (a history that no longer fits) counts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

from agentexp.actions import ParseSettings
from agentexp.core import Completion, Env, Episode, Model, Paradigm, Request, Sampling, Task
from agentexp.errors import ContextOverflow, first_of
from agentexp.rollout import Budget, Lease, Limits, run_episode
from agentexp.training.core import RecordsTokens, Row, Sampled, rows
from agentexp.training.grpo.advantages import is_usable
from agentexp.training.grpo.batches import fit
from agentexp.training.grpo.draws import Group
from agentexp.training.grpo.interleave import Kind
from agentexp.training.grpo.rewards import Reward

Fate = Literal["ok", "harness", "no_reward", "no_tokens"]


class Sampler(Model, RecordsTokens, Protocol):
    """A model backend that remembers its tokens."""


@dataclass(frozen=True, slots=True)
class Way:
    """How episodes of one kind are played."""

    paradigm: Paradigm
    budget: Budget
    reward: Reward
    artefacts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Played:
    """One rollout.

    Attributes:
        kind: task or explore.
        task: instance and repetition.
        rows: what can be trained; empty where it takes no part.
        reward: None where there is none.
        fate: "ok"; "harness": every attempt failed; "no_reward": the reward is missing or no finite number; "no_tokens".
        truncated: the token cap or the context ended it, or its last reply was cut.
        cut_replies: replies that reached their token limit.
        replies: of the policy.
        tokens: of all rows.
        steps: in the environment.
        end_reason: of the episode.
        success: of the episode.
        error: of the harness.
    """

    kind: Kind
    task: Task
    rows: list[Row] = field(default_factory=list)
    reward: float | None = None
    fate: Fate = "ok"
    truncated: bool = False
    cut_replies: int = 0
    replies: int = 0
    tokens: int = 0
    steps: int = 0
    end_reason: str = ""
    success: bool = False
    error: str = ""

    def fill(self, calls: Mapping[str, Sequence[Sampled]], cap: int, **tags: Any) -> bool:
        """Set rows, tokens and replies from what was sampled.

        Args:
            calls: by conversation.
            cap: tokens of all rows together.
            tags: of the rows, beside "task" and "chat".

        Returns:
            Whether the cap cut anything off.
        """
        every = [call for sampled in calls.values() for call in sampled]
        found = [row for chat, sampled in calls.items() for row in rows(sampled, task=self.task.key, **tags, chat=chat)]
        self.rows, cut = fit(found, cap)
        self.tokens = sum(len(row.ids) for row in self.rows)
        self.replies, self.cut_replies = len(every), sum(not call.ended for call in every)
        return cut


class Capped:
    """The policy during rollouts: its own sampling settings, and an end for conversations that grow beyond the token cap.

    Args:
        model: the sampler.
        sampling: replaces its settings; a seed per call is set by `run_episode`.
        cap: tokens of a rollout, all its conversations together. One that has reached it gets `ContextOverflow`.
    """

    def __init__(self, model: Sampler, sampling: Sampling, cap: int) -> None:
        self.label, self.sampling = model.label, sampling
        self._model, self._cap = model, cap
        self._lengths: dict[str, dict[str, int]] = {}

    async def start(self) -> None:
        """The trainer owns the model."""

    async def close(self) -> None:
        """The trainer owns the model."""

    def versions(self) -> dict[str, str]:
        """See `Model`."""
        return self._model.versions()

    async def chat(self, request: Request) -> Completion:
        """See `Model.chat`."""
        lengths = self._lengths.setdefault(request.view.task.key, {})
        if sum(lengths.values()) >= self._cap:
            raise ContextOverflow(f"The rollout has reached trainer.max_rollout_tokens={self._cap}.")
        completion = await self._model.chat(request)
        lengths[request.chat] = completion.usage.prompt_tokens + completion.usage.completion_tokens
        return completion

    def take(self, task: Task) -> dict[str, list[Sampled]]:
        """What was sampled for this rollout; forgotten here."""
        self._lengths.pop(task.key, None)
        return self._model.take(f"{task.key}|")


@dataclass(slots=True, kw_only=True)
class Rollouts:
    """Plays groups of rollouts.

    Attributes:
        env: the parent-side world.
        lease: opens an engine.
        ways: how each kind is played.
        parsing: how replies are read.
        limits: per attempt; `attempts` is how often a rollout is tried that the harness failed.
        cap: tokens of one rollout.
        concurrency: rollouts in flight.
    """

    env: Env
    lease: Lease
    ways: Mapping[Kind, Way]
    parsing: ParseSettings = field(default_factory=ParseSettings)
    limits: Limits = field(default_factory=Limits)
    cap: int = 32768
    concurrency: int = 8

    async def play(self, model: Sampler, sampling: Sampling, groups: Sequence[Group], size: int) -> list[list[Played]]:
        """Roll out every group `size` times.

        Raises:
            FatalError, UserError: as `run_episode`.
        """
        policy, slots = Capped(model, sampling, self.cap), asyncio.Semaphore(self.concurrency)

        async def one(kind: Kind, task: Task) -> Played:
            async with slots:
                return await self._one(policy, kind, task)

        try:
            async with asyncio.TaskGroup() as tasks:
                started = [[tasks.create_task(one(group.kind, task)) for task in group.tasks(size)] for group in groups]
        except ExceptionGroup as errors:
            raise first_of(errors) from errors
        return [[task.result() for task in group] for group in started]

    async def _one(self, policy: Capped, kind: Kind, task: Task) -> Played:
        way = self.ways[kind]
        once = replace(self.limits, attempts=1)  # so that the calls of a failed attempt can be dropped in between
        for _ in range(self.limits.attempts):
            policy.take(task)
            episode = await run_episode(
                task, self.env, self.lease, {"actor": policy}, way.paradigm, way.budget, once, self.parsing, way.artefacts
            )
            if episode.status == "ok":
                break
        return self._judged(kind, episode, policy.take(task))

    def _judged(self, kind: Kind, episode: Episode, calls: Mapping[str, Sequence[Sampled]]) -> Played:
        played = Played(kind, episode.task, end_reason=episode.end_reason, steps=episode.steps, success=episode.success)
        if episode.status != "ok":
            played.fate, played.error = "harness", episode.error
            return played
        played.reward = self.ways[kind].reward(episode)
        cut = played.fill(calls, self.cap, kind=kind)
        every = [call for sampled in calls.values() for call in sampled]
        played.truncated = cut or _out_of_context(episode) or bool(every and not every[-1].ended)
        if not is_usable(played.reward):
            played.fate = "no_reward"
        elif not played.rows:
            played.fate = "no_tokens"
        return played


def _out_of_context(episode: Episode) -> bool:
    return "context_limit" in (episode.end_reason, episode.notes.get("exploration", {}).get("stopped"))
