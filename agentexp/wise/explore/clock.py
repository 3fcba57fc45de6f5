"""What an explorer reports about its decisions."""

from __future__ import annotations

import time
from collections import Counter
from types import TracebackType
from typing import Any, Self

import numpy as np


class Stopwatch:
    """Times what is done in it, by the clock, and a sample of it by the CPU time of this thread.

    A busy machine lengthens the first and not the second. The second is sampled because asking for it is a system call that
    may itself take longer than what is timed.
    """

    def __init__(self, every: int = 8) -> None:
        self.every = every
        self.seconds: list[float] = []
        self.cpu: list[float] = []

    def timed(self) -> Self:
        """Times what is done in a `with` of it, unless that fails; not one within another."""
        return self

    def __enter__(self) -> None:
        self._sample = len(self.seconds) % self.every == 0
        self._cpu = time.thread_time() if self._sample else 0.0
        self._start = time.perf_counter()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is None:
            self.seconds.append(time.perf_counter() - self._start)
            if self._sample:
                self.cpu.append(time.thread_time() - self._cpu)


class Decisions(Stopwatch):
    """Counts and times the choices of a goal."""

    def __init__(self) -> None:
        super().__init__()
        self.tiers: Counter[str] = Counter()

    def report(self) -> dict[str, Any]:
        """`decisions` by tier, `decision_ms` by the clock, `decision_cpu_ms` of this thread."""
        return {"decisions": dict(self.tiers), "decision_ms": spread(self.seconds), "decision_cpu_ms": spread(self.cpu)}


def spread(seconds: list[float]) -> dict[str, float]:
    """Mean, p50, p99 and max in milliseconds; empty for no values."""
    if not seconds:
        return {}
    ms = np.array(seconds) * 1000
    p50, p99 = np.percentile(ms, [50, 99])
    return {"mean": float(ms.mean()), "p50": float(p50), "p99": float(p99), "max": float(ms.max())}
