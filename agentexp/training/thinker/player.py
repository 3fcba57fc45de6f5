"""Plays from nodes through `run_episode`, tells what the harness failed from what the actor failed, and counts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar

from agentexp.actions import ParseSettings
from agentexp.core import Env, Episode, Message, Model, Task
from agentexp.errors import first_of
from agentexp.paradigms.ttexplore import THOUGHTS, TTExplore
from agentexp.rollout import Budget, Lease, Limits, run_episode
from agentexp.training.grpo.rollouts import Capped
from agentexp.training.thinker.episode import MISMATCH, NODE, AtNode, Replayed
from agentexp.training.thinker.nodes import Move, Node
from agentexp.training.thinker.subtasks import EPS

Fate = Literal["ok", "mismatch", "harness"]
T = TypeVar("T")


@dataclass(slots=True)
class Outcome:
    """What came of one episode from a node.

    Attributes:
        fate: "ok"; "mismatch": the world could not be restored to the node; "harness": every attempt failed. Only with "ok"
            does the rest mean anything.
        first: answer to the reset.
        start: score at the reset.
        moves: all steps, those that were replayed included.
        score: process score at the node.
        best: highest process score after it.
        done: the world has ended.
        status: of the thought, see `agentexp.paradigms.deepthink.Thought`; empty where nobody thought.
        thought: its text; empty where it could not be read.
        prompt: what the thinker was asked.
        error: of the harness, or where the world differed.
    """

    fate: Fate = "ok"
    first: str = ""
    start: float = 0.0
    moves: tuple[Move, ...] = ()
    score: float = 0.0
    best: float = 0.0
    done: bool = False
    status: str = ""
    thought: str = ""
    prompt: list[Message] = field(default_factory=list)
    error: str = ""

    @property
    def reached(self) -> bool:
        """The process score rose above its value at the node."""
        return self.fate == "ok" and self.best > self.score + EPS


@dataclass(slots=True, kw_only=True)
class Player:
    """Everything that does not change from node to node.

    Attributes:
        env: the parent-side world.
        lease: opens an engine.
        ttx: prompts of actor and thinker.
        actor: frozen.
        parsing: how replies are read.
        attempts: tries of an episode that the harness failed.
        seconds: time limit of an attempt.
        concurrency: episodes in flight.
    """

    env: Env
    lease: Lease
    ttx: TTExplore
    actor: Model
    parsing: ParseSettings = field(default_factory=ParseSettings)
    attempts: int = 2
    seconds: float | None = None
    concurrency: int = 4
    _slots: asyncio.Semaphore | None = None
    _loop: asyncio.AbstractEventLoop | None = None

    async def play(
        self,
        task: Task,
        moves: Sequence[Move],
        horizon: int,
        *,
        first: str | None = None,
        thinker: Model | Capped | None = None,
        temperature: float = 0.0,
        until_rise: bool = True,
    ) -> Outcome:
        """One episode from a node.

        Args:
            task: the instance; `Task.repeat` tells episodes from the same node apart and seeds what is sampled.
            moves: how to get there.
            horizon: the actor's steps from there.
            first: answer to the reset, to compare with.
            thinker: is asked once at the node; None: nobody is. What a `Capped` one sampled is left for its `take`.
            temperature: of the actor.
            until_rise: end as soon as the score rises.

        Raises:
            FatalError, UserError: as `run_episode`.
        """
        loop = asyncio.get_running_loop()
        if self._slots is None or loop is not self._loop:
            self._slots, self._loop = asyncio.Semaphore(self.concurrency), loop
        paradigm = AtNode(self.ttx, moves, first, horizon, thinker is not None, until_rise)
        limits = Limits(attempts=1, seconds=self.seconds)  # so that the calls of a failed attempt can be dropped in between
        async with self._slots:
            for _ in range(self.attempts):
                if isinstance(thinker, Capped):
                    thinker.take(task)
                models: dict[str, Any] = {"actor": Replayed(self.actor, [move.reply for move in moves], temperature)}
                if thinker is not None:
                    models["thinker"] = thinker
                budget = Budget(0, len(moves) + horizon)
                episode = await run_episode(task, self.env, self.lease, models, paradigm, budget, limits, self.parsing)
                if episode.status == "ok":
                    break
        return _outcome(episode)

    async def from_node(self, node: Node, repeat: int, **how: Any) -> Outcome:
        """As `play`, from a node."""
        return await self.play(
            replace(node.task, repeat=repeat), node.moves, how.pop("horizon", node.horizon), first=node.first, **how
        )


async def each(items: Iterable[T], work: Callable[[T], Awaitable[None]], at_once: int, stopping: Callable[[], bool]) -> None:
    """Do `work` for every item, some at a time, in their order; asked to stop, finish what has begun and return.

    Raises:
        Exception: what the first failing work raised; the others are cancelled.
    """
    left = iter(items)

    async def worker() -> None:
        for item in left:  # one iterator for all workers
            if stopping():
                return
            await work(item)

    try:
        async with asyncio.TaskGroup() as tasks:
            for _ in range(at_once):
                tasks.create_task(worker())
    except ExceptionGroup as errors:
        raise first_of(errors) from errors


def _outcome(episode: Episode) -> Outcome:
    notes = episode.notes
    if episode.status != "ok":
        return Outcome("harness", error=episode.error)
    if NODE not in notes:
        where = notes.get(MISMATCH) or {"step": len(episode.trajectory), "expected": "to go on", "found": episode.end_reason}
        told = f"Step {where['step']}: expected {where['expected']!r}, found {where['found']!r}."
        return Outcome("mismatch", first=str(notes.get("first", "")), error=told)
    thought: Mapping[str, Any] = (notes.get(THOUGHTS) or [{}])[-1]
    asked = [messages for name, messages in episode.chats.items() if name.startswith("thinking")]
    return Outcome(
        first=str(notes["first"]),
        start=float(notes[NODE]["start"]),
        moves=_moves(episode),
        score=float(notes[NODE]["score"]),
        best=float(notes[NODE]["best"]),
        done=bool(episode.trajectory and episode.trajectory[-1].done),
        status=str(thought.get("status", "")),
        thought=str(thought.get("text", "")),
        prompt=[message for message in asked[-1] if message.role != "assistant"] if asked else [],
    )


def _moves(episode: Episode) -> tuple[Move, ...]:
    made = []
    for step in episode.trajectory:
        call = episode.calls[step.call] if step.call is not None else None
        reply = episode.chats[call.chat][call.upto].content if call else ""
        made.append(Move(reply, step.action, step.observation, step.score))
    return tuple(made)
