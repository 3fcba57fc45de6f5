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

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Times one decision."""
        start = time.perf_counter()
        yield
        self.seconds.append(time.perf_counter() - start)

    def report(self) -> dict[str, Any]:
        """`decisions` by tier, `decision_ms` as {"mean", "p50", "p99", "max"} (empty before the first decision)."""
        times = np.array(self.seconds) * 1000
        ms = {}
        if len(times):
            p50, p99 = np.percentile(times, [50, 99])
            ms = {"mean": float(times.mean()), "p50": float(p50), "p99": float(p99), "max": float(times.max())}
        return {"decisions": dict(self.tiers), "decision_ms": ms}
