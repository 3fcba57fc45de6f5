"""The only retry layer of model calls: slots, backoff, Retry-After, and one wall-clock cap per call.

A backend raises `Transient` for a failed attempt when a later one may succeed; every other exception passes through at once.
A call keeps its slot while it waits, so a server in trouble sees fewer requests rather than more.
"""

from __future__ import annotations

import asyncio
import random
import time
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
    """

    def __init__(self, message: str, wait: float | None = None) -> None:
        super().__init__(message)
        self.wait = wait


class Limiter:
    """At most `concurrency` calls at once, all held back while the server asked for a pause. Belongs to one event loop."""

    def __init__(self, concurrency: int) -> None:
        self._slots = asyncio.Semaphore(concurrency)
        self._resume = 0.0

    async def __aenter__(self) -> Limiter:
        await self._slots.acquire()
        return self

    async def __aexit__(self, *error: object) -> None:
        self._slots.release()

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
                seconds = min(self.request_timeout, deadline - time.monotonic())
                try:
                    async with asyncio.timeout(seconds):
                        return await attempt(), retries
                except TimeoutError:
                    failure = Transient(f"no complete reply within {seconds:.3g} s (model.{self.request_setting})")
                except Transient as error:
                    failure = error
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
