"""The only retry layer of model calls: slots that adapt, backoff, Retry-After, and one wall-clock cap per call.

A backend raises `Transient` for a failed attempt when a later one may succeed; every other exception passes through at once.
A call keeps its slot while it waits, so a server in trouble sees fewer requests rather than more.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import TypeVar

from agentexp.errors import ModelError

T = TypeVar("T")

# Not the module-level generator: worlds that run in this process may have seeded that one.
_jitter = random.Random()


class Transient(Exception):
    """An attempt failed in a way that may pass.

    Args:
        message: one clause for the error text should no attempt succeed.
        wait: seconds that the server asked to wait; None where it said nothing.
        overload: the server has more requests than it serves.
    """

    def __init__(self, message: str, wait: float | None = None, *, overload: bool = False) -> None:
        super().__init__(message)
        self.wait, self.overload = wait, overload


class Limiter:
    """At most `concurrency` calls at once, fewer while the server is overloaded. Belongs to one event loop.

    Additive increase, multiplicative decrease: an overload halves the number of calls that may start, every reply gives a
    share of a call back, so that about as many replies as there are calls in flight allow one more. Calls that flew before
    the last decrease say nothing about the number since then and do not halve it again.
    """

    def __init__(self, concurrency: int) -> None:
        self.most = concurrency
        self._allowed = float(concurrency)
        self._flying = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._resume = 0.0
        self._decreased = 0.0

    @property
    def allowed(self) -> int:
        """Calls that may be in flight now, from 1 to `concurrency`."""
        return max(1, int(self._allowed))

    async def __aenter__(self) -> Limiter:
        if self._flying < self.allowed and not self._waiting:
            self._flying += 1
            return self
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # it had been given a slot, which somebody else gets now
                self._flying -= 1
            elif turn in self._waiting:
                self._waiting.remove(turn)
            self._wake()
            raise
        return self

    async def __aexit__(self, *error: object) -> None:
        self._flying -= 1
        self._wake()

    def _wake(self) -> None:
        while self._waiting and self._flying < self.allowed:
            turn = self._waiting.popleft()
            if not turn.done():
                self._flying += 1
                turn.set_result(None)

    def answered(self) -> None:
        """A call got its reply."""
        self._allowed = min(float(self.most), self._allowed + 1 / max(1.0, self._allowed))
        self._wake()

    def overloaded(self, since: float) -> None:
        """An attempt that began at `since` (monotonic seconds) was refused or not answered in time."""
        if since >= self._decreased:
            self._allowed = max(1.0, min(self._allowed, self._flying) / 2)
            self._decreased = time.monotonic()

    def hold(self, seconds: float) -> None:
        """Let no new attempt of any call start for `seconds`."""
        self._resume = max(self._resume, time.monotonic() + seconds)

    @property
    def pause(self) -> float:
        """Seconds until new attempts may start."""
        return max(0.0, self._resume - time.monotonic())


@dataclass(frozen=True, slots=True)
class Retry:
    """When to try again and when to give up.

    Attributes:
        max_retries: attempts after the first one.
        request_timeout: seconds of one attempt.
        total_timeout: seconds of one call with all its attempts and waits, counted from the moment it got a slot.
        base: seconds of the first backoff; it doubles with every attempt.
        ceiling: longest backoff in seconds.
        request_setting: name of the setting behind `request_timeout`, for error texts.
        total_setting: name of the setting behind `total_timeout`.
    """

    max_retries: int = 8
    request_timeout: float = 120.0
    total_timeout: float = 300.0
    base: float = 0.5
    ceiling: float = 30.0
    request_setting: str = "request_timeout"
    total_setting: str = "total_timeout"

    async def run(self, attempt: Callable[[], Awaitable[T]], limiter: Limiter) -> tuple[T, int]:
        """Call `attempt` until it succeeds; return its result and the number of retries.

        Raises:
            ModelError: the retries or the time are used up. Exceptions of `attempt` other than `Transient` pass through.
        """
        async with limiter:
            deadline = time.monotonic() + self.total_timeout
            retries = 0
            while True:
                if (pause := limiter.pause) > 0:
                    # Spread over a quarter of the pause, or all waiting calls come back in the same millisecond.
                    await self._sleep(pause * (1 + 0.25 * _jitter.random()), deadline, "the server asked for a pause", retries)
                began = time.monotonic()
                seconds = min(self.request_timeout, deadline - began)
                try:
                    async with asyncio.timeout(seconds):
                        reply = await attempt()
                    limiter.answered()
                    return reply, retries
                except TimeoutError:
                    said = f"no complete reply within {seconds:.3g} s (model.{self.request_setting})"
                    failure = Transient(said, overload=True)
                except Transient as error:
                    failure = error
                if failure.overload:
                    limiter.overloaded(began)
                if retries >= self.max_retries:
                    raise ModelError(
                        f"The model call failed {retries + 1} times (model.max_retries={self.max_retries}): {failure}."
                    )
                if failure.wait is not None:
                    limiter.hold(failure.wait)
                    wait = failure.wait * (1 + 0.1 * _jitter.random())
                else:
                    wait = min(self.ceiling, self.base * 2**retries) * (0.5 + 0.5 * _jitter.random())
                await self._sleep(wait, deadline, str(failure), retries)
                retries += 1

    async def _sleep(self, wait: float, deadline: float, why: str, retries: int) -> None:
        # Giving up before the wait instead of after it: the call is lost either way and the episode learns it at once.
        if time.monotonic() + wait >= deadline:
            raise ModelError(
                f"The model call failed {retries + 1} times and the next wait of {wait:.3g} s would pass "
                f"model.{self.total_setting}={self.total_timeout:g} s: {why}."
            )
        await asyncio.sleep(wait)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait according to `retry-after-ms` or `Retry-After` (seconds or HTTP date); None where neither is usable."""
    for name, scale in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        text = headers.get(name, "").strip()
        if not text:
            continue
        try:
            seconds = float(text) * scale
        except ValueError:
            try:
                when = parsedate_to_datetime(text)
            except ValueError:
                continue
            if when.tzinfo is None:
                when = when.replace(tzinfo=UTC)
            return max(0.0, (when - datetime.now(UTC)).total_seconds())
        if isfinite(seconds) and seconds >= 0:
            return seconds
    return None
