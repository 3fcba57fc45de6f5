"""The asynchronous VLM worker (paper 004, A.2): keyframes wait in a buffer and go to the vision model in batches.

The control loop calls `submit` and `poll`, which never wait. A request that fails, is too slow or makes no sense is counted and
its keyframes are given up; the agent goes on with the graph it has. Only what must stop the whole run (a wrong key) is raised.

Worlds may run faster than real time. `latency_ticks` says when in game time an answer may be used at the earliest, and `pace`
waits for answers that are due by then, so an episode does not depend on how fast the machine is.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

from agentexp.errors import AgentExpError, FatalError, ModelError, UserError
from agentexp.wise.core import Record, VisionModel
from agentexp.wise.parts import again


@runtime_checkable
class AnswersNow(Protocol):
    """A vision model that answers without waiting for anything; the worker then needs no event loop."""

    def label_now(self, keyframes: Sequence[Record]) -> Mapping[str, Any]:
        """As `VisionModel.label`."""
        ...


@runtime_checkable
class Notes(Protocol):
    """A vision model that wants to see each keyframe at the very tick when it was taken."""

    def note(self, record: Record) -> None:
        """Called once per keyframe, in the tick of the frame."""
        ...


class Answer(NamedTuple):
    """What came back for one batch."""

    keyframes: list[Record]
    content: Mapping[str, Any]


@dataclass(slots=True)
class _Request:
    keyframes: list[Record]
    tick: int
    begun: float
    task: asyncio.Task[Mapping[str, Any]] | None = None
    content: Mapping[str, Any] | None = None
    failure: str = ""
    seconds: float = 0.0

    @property
    def done(self) -> bool:
        return self.task is None or self.task.done()


class VisionWorker:
    """Asks one vision model for one episode.

    Args:
        model: the vision model; may be shared by episodes.
        batch: keyframes per request.
        flush_ticks: ticks after which a batch that is not full is sent, counted from its first keyframe; 500 are 25 s.
        flush_seconds: the same in seconds of the clock, for worlds that run in real time; None = never.
        timeout: seconds that one request may take.
        latency_ticks: ticks from sending to the earliest use of an answer; 0 = as soon as it is there.
        settle_seconds: longest wait for open requests at the end of an episode.

    Raises:
        UserError: a setting is out of range.
    """

    def __init__(
        self,
        model: VisionModel,
        *,
        batch: int = 16,
        flush_ticks: int = 500,
        flush_seconds: float | None = None,
        timeout: float = 60.0,
        latency_ticks: int = 0,
        settle_seconds: float = 60.0,
    ) -> None:
        if batch < 1 or flush_ticks < 1 or timeout <= 0 or latency_ticks < 0:
            raise UserError(
                "vlm.batch and vlm.flush_ticks must be at least 1, vlm.timeout above 0 and vlm.latency_ticks not negative."
            )
        self.model, self.batch, self.flush_ticks, self.flush_seconds = model, batch, flush_ticks, flush_seconds
        self.timeout, self.latency_ticks, self.settle_seconds = timeout, latency_ticks, settle_seconds
        self.failures: list[dict[str, Any]] = []
        self._waiting: list[Record] = []
        self._since = (0, 0.0)
        self._open: list[_Request] = []
        self._counts = Counter({"keyframes": 0, "requests": 0, "answers": 0})
        self._seconds: list[float] = []

    def fresh(self, world: object = None) -> VisionWorker:
        """A worker with the same settings for an episode in `world`; its model is bound to that where it knows how."""
        bind = getattr(self.model, "bind", None)
        return again(self, model=bind(world)) if bind else again(self)

    def submit(self, record: Record, tick: int) -> None:
        """Put a keyframe into the buffer; sends the batch when it is full."""
        if isinstance(self.model, Notes):
            self.model.note(record)
        if not self._waiting:
            self._since = (tick, time.monotonic())
        self._waiting.append(record)
        self._counts["keyframes"] += 1
        if len(self._waiting) >= self.batch:
            self._send(tick)

    def poll(self, tick: int) -> list[Answer]:
        """Send what is due, and return the answers that may be used now.

        Raises:
            FatalError: the run must stop (wrong key, no quota). Any other error of the model that is not one of ours passes
                through as well: it is a bug, not a failure.
        """
        if self._waiting:
            first, begun = self._since
            late = self.flush_seconds is not None and time.monotonic() - begun >= self.flush_seconds
            if tick - first >= self.flush_ticks or late:
                self._send(tick)
        ready = [one for one in self._open if one.done and tick - one.tick >= self.latency_ticks]
        return self._take(ready)

    async def pace(self, tick: int) -> None:
        """Let open requests move on, and wait for those whose answer is due at `tick` by `latency_ticks` (0: for none)."""
        running = [one for one in self._open if one.task]
        if running:
            due = [one.task for one in running if one.task and self.latency_ticks and tick - one.tick >= self.latency_ticks]
            if due:
                await asyncio.wait(due)
            await asyncio.sleep(0)

    async def settle(self, tick: int) -> list[Answer]:
        """Send what is left and wait for all answers, at most `settle_seconds`; requests still open then count as failed."""
        if self._waiting:
            self._send(tick)
        tasks = [one.task for one in self._open if one.task]
        if tasks:
            await asyncio.wait(tasks, timeout=self.settle_seconds)
        for one in self._open:
            if not one.done:
                one.failure = f"no reply within {self.settle_seconds:g} s after the end of the episode"
        answers = self._take([one for one in self._open if one.done or one.failure])
        self.close()
        return answers

    def close(self) -> None:
        """Cancel what is open. Safe to call twice."""
        for one in self._open:
            if one.task:
                one.task.cancel()
        self._open.clear()

    def statistics(self) -> dict[str, Any]:
        """Counts of keyframes, requests, answers and failures by kind; seconds per answered request; what the model counted."""
        spent: dict[str, Any] = getattr(self.model, "statistics", dict)()
        mean = sum(self._seconds) / len(self._seconds) if self._seconds else None
        return {**spent, **self._counts, "failures": len(self.failures), "seconds_per_request": mean}

    # ------------------------------------------------------------------------------------------------------------ inside

    def _send(self, tick: int) -> None:
        keyframes, self._waiting = self._waiting, []
        one = _Request(keyframes, tick, time.monotonic())
        self._counts["requests"] += 1
        self._open.append(one)
        if isinstance(self.model, AnswersNow):
            try:
                one.content = self.model.label_now(keyframes)
            except ModelError as error:
                one.failure = str(error)
        else:
            one.task = asyncio.get_running_loop().create_task(self._ask(one))

    async def _ask(self, one: _Request) -> Mapping[str, Any]:
        try:
            async with asyncio.timeout(self.timeout):
                return await self.model.label(one.keyframes)
        finally:
            one.seconds = time.monotonic() - one.begun

    def _take(self, ready: list[_Request]) -> list[Answer]:
        answers: list[Answer] = []
        for one in ready:
            self._open.remove(one)
            content = self._content(one)
            if content is None:
                self._counts[f"failed_{_kind(one.failure)}"] += 1
                self.failures.append({"tick": one.tick, "keyframes": len(one.keyframes), "error": one.failure})
                continue
            self._counts["answers"] += 1
            self._seconds.append(one.seconds)
            answers.append(Answer(one.keyframes, content))
        return answers

    def _content(self, one: _Request) -> Mapping[str, Any] | None:
        if one.task is not None and not one.failure:
            try:
                one.content = one.task.result()
            except FatalError:
                raise
            except TimeoutError:
                one.failure = f"no reply within {self.timeout:g} s"
            except AgentExpError as error:
                one.failure = str(error)
        elif one.task is not None:
            one.task.cancel()
        if not one.failure and not (isinstance(one.content, Mapping) and isinstance(one.content.get("frames"), list)):
            one.failure = 'malformed: the reply is no object with a list "frames"'
        return None if one.failure else one.content


def _kind(failure: str) -> str:
    return "timeout" if failure.startswith("no reply") else "malformed" if failure.startswith("malformed") else "error"
