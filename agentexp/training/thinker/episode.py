"""One trajectory of the thinker's training: replay to the node, think once, act alone.

The world is restored by doing again what was done: the same instance, the same replies, and every answer compared with the one
that was recorded. Where one differs the world is not where it should be; the episode ends there and says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from agentexp.core import Completion, Model, Request, Sampling, Step, Usage
from agentexp.models.scripted import ScriptedModel
from agentexp.paradigms.ttexplore import THOUGHTS, TTExplore
from agentexp.rollout import Rollout
from agentexp.training.thinker.nodes import Move
from agentexp.training.thinker.subtasks import EPS

NODE = "node"
"""Note of an episode that reached the node: {"step", "start", "score", "best"}; `start` is the score at the reset, `best` the
highest after the node."""
MISMATCH = "mismatch"
"""Note of an episode that could not be restored: {"step", "expected", "found"}."""


class Replayed:
    """The frozen actor, whose first replies are given.

    A scripted actor, which keeps its state from turn to turn, is asked for those as well, and not listened to.

    Args:
        actor: answers once the given replies are used up.
        replies: oldest first.
        temperature: of the actor's replies.
    """

    def __init__(self, actor: Model, replies: Sequence[str], temperature: float) -> None:
        self.label = actor.label
        self.sampling: Sampling = replace(actor.sampling, temperature=temperature)
        self._actor, self._left = actor, list(reversed(replies))

    async def start(self) -> None:
        """Whoever owns the actor starts it."""

    async def close(self) -> None:
        """Whoever owns the actor closes it."""

    def versions(self) -> dict[str, str]:
        """See `Model`."""
        return self._actor.versions()

    async def chat(self, request: Request) -> Completion:
        """See `Model.chat`."""
        if request.purpose != "act" or not self._left:
            return await self._actor.chat(request)
        if isinstance(self._actor, ScriptedModel):
            await self._actor.chat(request)
        return Completion(self._left.pop(), usage=Usage())


class AtNode:
    """The paradigm of such an episode. The budget must have room for the replay and the horizon.

    Args:
        ttx: prompts of actor and thinker.
        moves: to replay, by a `Replayed` actor.
        first: the answer to the reset, as recorded; None: not known.
        horizon: steps of the actor after the replay.
        thinks: whether the thinker is asked, once, after the replay. If its thought cannot be read, nobody acts.
        until_rise: end as soon as the score rises above its value at the node.
    """

    name = "thinker-node"
    roles: tuple[str, ...] = ("thinker",)

    def __init__(
        self,
        ttx: TTExplore,
        moves: Sequence[Move],
        first: str | None,
        horizon: int,
        thinks: bool = False,
        until_rise: bool = True,
    ) -> None:
        self.ttx, self.moves, self.first, self.horizon = ttx, moves, first, horizon
        self.thinks, self.until_rise = thinks, until_rise

    async def __call__(self, ro: Rollout) -> None:
        """See the class."""
        with ro.phase("acting", len(self.moves) + self.horizon):
            start = await ro.reset()
            await self._play(ro, start)
        ro.finish("won" if ro.step.success else "completed")

    async def _play(self, ro: Rollout, start: Step) -> None:
        actor, talk = self.ttx.actor, self.ttx.dialogue(ro)
        ro.note("first", start.observation)
        if self.first is not None and start.observation != self.first:
            return _differs(ro, 0, self.first, start.observation)
        best, text = start.score, actor.first(start, ro.steps_left, ro.goal)
        for number, move in enumerate(self.moves, 1):
            if ro.step.done:
                return _differs(ro, number, move.observation, "The world had ended before.")
            turn = await ro.turn(talk.say(text), actor.form)
            if turn.parsed.action != move.action or not _same(turn.step, move):
                return _differs(ro, number, f"[{move.score:g}] {move.observation}", _shown(turn.step, turn.parsed.action))
            best, text = max(best, turn.step.score), actor.next(turn.step, ro.steps_left)
        node: dict[str, Any] = {"step": len(self.moves), "start": start.score, "score": best, "best": best}
        ro.note(NODE, node)
        guidance = ""
        if self.thinks:
            thoughts: list[dict[str, Any]] = []
            ro.note(THOUGHTS, thoughts)
            guidance = await self.ttx.advise(ro, start, "node", thoughts)
            if not guidance:
                return None
        for _ in range(self.horizon):
            if ro.step.done or (self.until_rise and node["best"] > node["score"] + EPS):
                break
            turn = await ro.turn(talk.say(text, guidance), actor.form)
            guidance, text = "", actor.next(turn.step, ro.steps_left)
            node["best"] = max(node["best"], turn.step.score)
        return None


def _same(step: Step, move: Move) -> bool:
    alike = move.observation.startswith(step.observation) if move.loose else move.observation == step.observation
    return alike and abs(step.score - move.score) <= 1e-6  # records may be rounded


def _shown(step: Step, action: str | None) -> str:
    return f"[{step.score:g}] {step.observation} (action: {action})"


def _differs(ro: Rollout, step: int, expected: str, found: str) -> None:
    ro.note(MISMATCH, {"step": step, "expected": expected, "found": found})
