"""Continuous batching in a thread: calls join the running batch between two tokens and leave it when they are done."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from agentexp.errors import ModelError
from agentexp.models.transformers_forward import Forward
from agentexp.models.transformers_rank import Scored, score
from agentexp.models.transformers_rows import ParkedChats, shared
from agentexp.models.transformers_sampling import Choice, choose

_PREFILL_TOKENS = 2048  # per forward pass: bounds the memory of activations
_WORTH_WAITING = 32  # tokens of a beginning that another call of the same moment is about to compute


@dataclass(slots=True)
class Done:
    """What the engine made of a call.

    Attributes:
        tokens: what it sampled, the token that ended the turn included.
        logprobs: of these tokens.
        cut: the limit ended it.
        text: the reply where a stop string ended it; otherwise None.
        cached: tokens of the prompt that were not computed again.
        scored: with candidates, their scores.
    """

    tokens: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    cut: bool = False
    text: str | None = None
    cached: int = 0
    scored: list[Scored] = field(default_factory=list)


@dataclass(slots=True)
class Job:
    """One call.

    Attributes:
        chat: name of the conversation.
        prompt: token ids.
        limit: most tokens to sample.
        choice: how to sample.
        stop: strings that end the reply.
        candidates: instead of sampling, score these continuations.
        future: takes the result.
    """

    chat: str
    prompt: list[int]
    limit: int
    choice: Choice
    stop: tuple[str, ...] = ()
    candidates: Sequence[Sequence[int]] = ()
    future: Future[Done] = field(default_factory=Future)
    done: Done = field(default_factory=Done)

    @property
    def ids(self) -> list[int]:
        """Prompt and sampled tokens."""
        return self.prompt + self.done.tokens


class Engine:
    """Runs the calls of many conversations on one model, in a thread of its own.

    Args:
        forward: the model.
        batch: most conversations at once.
        cache_bytes: memory for the computed beginnings of conversations that wait for their next turn.
        ends: token ids that end a reply.
        decode: token ids to text, for stop strings.
        threads: torch's threads; None = as they are.
    """

    def __init__(
        self,
        forward: Forward,
        batch: int,
        cache_bytes: int,
        ends: frozenset[int],
        decode: Callable[[Sequence[int]], str],
        threads: int | None = None,
    ) -> None:
        self.forward, self.batch, self.ends, self._decode, self._threads = forward, batch, ends, decode, threads
        self.parked = ParkedChats(cache_bytes)
        self._waiting: deque[Job] = deque()
        self._rows: list[Job] = []
        self._ready = threading.Condition()
        self._closing = False
        self._thread = threading.Thread(target=self._work, name="transformers", daemon=True)
        self._thread.start()

    def submit(self, job: Job) -> Future[Done]:
        """Queue a call; cancelling the future takes it out again."""
        with self._ready:
            if self._closing:
                raise ModelError("The transformers engine has been closed.")
            self._waiting.append(job)
            self._ready.notify_all()
        return job.future

    def change(self, action: Callable[[], None]) -> None:
        """Change the weights by `action` while nothing runs, and forget what was computed with the old ones.

        Raises:
            ModelError: calls are in flight.
        """
        with self._ready:
            if not all(job.future.cancelled() for job in (*self._rows, *self._waiting)):
                raise ModelError("Weights cannot be changed while calls are in flight.")
            self._ready.wait_for(lambda: not self._rows and not self._waiting)  # the thread drops calls that were given up
            action()
            self.parked.clear()
            self.forward.cache.clear()

    def close(self) -> None:
        """Fail what waits and runs, and end the thread."""
        with self._ready:
            self._closing = True
            self._ready.notify_all()
        self._thread.join()
        self.parked.clear()
        self.forward.cache.clear()

    # --------------------------------------------------------------------------------------------------- the thread

    def _work(self) -> None:
        if self._threads is not None:
            import torch

            torch.set_num_threads(self._threads)  # this thread's own setting
        while True:
            with self._ready:
                self._ready.wait_for(lambda: self._waiting or self._rows or self._closing)
                if self._closing:
                    self._fail(ModelError("The transformers engine has been closed."))
                    return
            try:
                self._admit()
                self._step()
            except Exception as error:  # noqa: BLE001 - a request loop: whatever torch raises belongs to those who wait
                self._fail(ModelError(f"transformers failed ({type(error).__name__}): {error}"))
                self.parked.clear()
                self.forward.cache.clear()

    def _fail(self, error: ModelError) -> None:
        with self._ready:
            jobs = [*self._rows, *self._waiting]
            self._rows.clear()
            self._waiting.clear()
            self._ready.notify_all()
        for job in jobs:
            if job.future.set_running_or_notify_cancel():
                job.future.set_exception(error)

    def _admit(self) -> None:
        """Let waiting calls join, a group at a time, until the batch is full."""
        for row in reversed(range(len(self._rows))):
            if self._rows[row].future.cancelled():
                self._leave(row)
        while len(self._rows) < self.batch:
            with self._ready:
                for job in [job for job in self._waiting if job.future.cancelled()]:
                    self._waiting.remove(job)
                self._ready.notify_all()
                group = self._group(list(self._waiting))
                for job in group:
                    self._waiting.remove(job)
                self._rows += group  # here, so that a failure reaches them
            if not group:
                return
            self._prefill(group)

    def _group(self, waiting: Sequence[Job]) -> list[Job]:
        """Calls whose prompts are computed together: of similar length, and none that another one's prompt would shorten."""
        group: list[Job] = []
        news: list[int] = []
        for job in waiting:
            if len(self._rows) + len(group) == self.batch:
                break
            known = self._known(job)
            if any(shared(job.prompt, other.prompt) >= known + _WORTH_WAITING for other in group):
                continue
            new = len(job.prompt) - known
            widest, n = max([*news, new]), len(group) + 1
            if group and (n * widest > _PREFILL_TOKENS or (widest > _WORTH_WAITING and n * widest > 2 * (sum(news) + new))):
                continue
            group.append(job)
            news.append(new)
        return group

    def _known(self, job: Job) -> int:
        """Tokens of the prompt that need not be computed. The last one always is: its logits are wanted."""
        parked = self.parked.best(job.chat, job.prompt)[1]
        running = max((shared(other.ids[:-1], job.prompt) for other in self._rows), default=0)
        return min(max(parked, running), len(job.prompt) - 1)

    def _prefill(self, group: list[Job]) -> None:
        cache, first = self.forward.cache, len(self._rows) - len(group)
        starts: list[int] = []
        for row, job in enumerate(group, first):
            parked, n = self.parked.best(job.chat, job.prompt)
            beside = [shared(other.ids[:-1], job.prompt) for other in self._rows[:first]]
            n = min(n, len(job.prompt) - 1)
            if beside and min(max(beside), len(job.prompt) - 1) > n:
                n = min(max(beside), len(job.prompt) - 1)
                cache.copy(beside.index(max(beside)), row, n)
            elif parked is not None and n:
                cache.put(row, parked, n)
            starts.append(n)
            job.done.cached = n
        for job in group:
            self.parked.drop(job.chat)  # it is parked again when the call is done
        news = [job.prompt[start:] for job, start in zip(group, starts, strict=True)]
        while max(map(len, news)) > _PREFILL_TOKENS:  # then the group is a single call
            self.forward.append(first, starts, [news[0][:_PREFILL_TOKENS]])
            starts, news = [starts[0] + _PREFILL_TOKENS], [news[0][_PREFILL_TOKENS:]]
        logits = self.forward.append(first, starts, news)
        tokens, logprobs = choose(logits, [job.choice for job in group])
        for i in reversed(range(len(group))):
            job = group[i]
            if job.candidates:
                job.done.scored = score(self.forward, first + i, len(job.prompt), logits[i], job.candidates)
                self._finish(first + i)
            elif self._accept(job, tokens[i], logprobs[i]):
                self._finish(first + i)

    def _step(self) -> None:
        """One more token for every running call."""
        if not self._rows:
            return
        jobs = list(self._rows)
        starts = [len(job.prompt) + len(job.done.tokens) - 1 for job in jobs]
        logits = self.forward.append(0, starts, [job.done.tokens[-1:] for job in jobs])
        tokens, logprobs = choose(logits, [job.choice for job in jobs])
        for row in reversed(range(len(jobs))):
            if self._accept(jobs[row], tokens[row], logprobs[row]):
                self._finish(row)

    def _accept(self, job: Job, token: int, logprob: float) -> bool:
        """Add a sampled token; True if it was the last one."""
        done = job.done
        done.tokens.append(token)
        done.logprobs.append(logprob)
        if token in self.ends:
            return True
        if job.stop:
            text = self._decode(done.tokens)
            if found := [at for stop in job.stop if (at := text.find(stop)) >= 0]:
                done.text = text[: min(found)]
                return True
        done.cut = len(done.tokens) >= job.limit
        return done.cut

    def _finish(self, row: int) -> None:
        job = self._rows[row]
        tokens = job.ids if job.candidates else job.ids[:-1]  # the last sampled token has not been computed
        self.parked.add(job.chat, self.forward.cache.park(row, tokens))
        self._leave(row)
        if job.future.set_running_or_notify_cancel():
            job.future.set_result(job.done)

    def _leave(self, row: int) -> None:
        """Take a row out; the last one moves into its place."""
        with self._ready:
            last = len(self._rows) - 1
            if row != last:
                moved = self._rows[last]
                self.forward.cache.copy(last, row, len(moved.ids) - (0 if moved.candidates else 1))
                self._rows[row] = moved
            self._rows.pop()
            self._ready.notify_all()
