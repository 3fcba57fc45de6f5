"""What an explorer reports about its decisions."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np


class Decisions:
    """Counts and times the choices of a goal."""

    def __init__(self) -> None:
        self.tiers: Counter[str] = Counter()
        self.seconds: list[float] = []
        self.cpu: list[float] = []

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Times one decision."""
        start, cpu = time.perf_counter(), time.thread_time()
        yield
        self.seconds.append(time.perf_counter() - start)
        self.cpu.append(time.thread_time() - cpu)

    def report(self) -> dict[str, Any]:
        """`decisions` by tier; `decision_ms` by the clock and `decision_cpu_ms` of this thread.

        A busy machine lengthens the first, not the second.
        """
        return {"decisions": dict(self.tiers), "decision_ms": spread(self.seconds), "decision_cpu_ms": spread(self.cpu)}


def spread(seconds: list[float]) -> dict[str, float]:
    """Mean, p50, p99 and max in milliseconds; empty for no values."""
    if not seconds:
        return {}
    ms = np.array(seconds) * 1000
    p50, p99 = np.percentile(ms, [50, 99])
    return {"mean": float(ms.mean()), "p50": float(p50), "p99": float(p99), "max": float(ms.max())}
