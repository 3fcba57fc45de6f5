"""Coverage of a map over an episode: marks, t90, t99, area under the curve, rate (appendix A.5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# The steps at which the paper reads coverage off, by (world, side of the map).
MARKS = {
    ("flat", 128): (500, 1000, 6000),
    ("flat", 384): (1000, 4000, 20000),
    ("voxel", 128): (5000, 10000),
    ("voxel", 384): (20000, 40000),
}
BUDGETS = {("flat", 128): 6000, ("flat", 384): 20000, ("voxel", 128): 10000, ("voxel", 384): 40000}


@dataclass(frozen=True, slots=True)
class Coverage:
    """Numbers of one curve. Times are steps, None where never reached.

    Attributes:
        final: share seen at the end.
        marks: share seen after so many steps.
        t90, t99: first step at which 90 and 99 % are seen.
        auc: mean share seen over the budget, in [0, 1].
        rate: share per 1,000 steps at the end of the budget.
    """

    final: float
    marks: dict[int, float]
    t90: int | None
    t99: int | None
    auc: float
    rate: float


def coverage(seen: Sequence[int] | NDArray[np.int64], total: int, budget: int, marks: Sequence[int] = ()) -> Coverage:
    """Summarise a curve.

    Args:
        seen: cells seen after 0, 1, 2 ... steps; a curve that ends early (nothing left to explore) keeps its last value.
        total: cells that can be seen.
        budget: steps allowed.
        marks: steps to read off; those beyond the budget are left out.
    """
    share = np.asarray(seen, float) / total
    share = np.concatenate((share, np.full(max(0, budget + 1 - len(share)), share[-1])))[: budget + 1]

    def first(level: float) -> int | None:
        reached = np.nonzero(share >= level - 1e-12)[0]
        return int(reached[0]) if len(reached) else None

    final = float(share[-1])
    read = {int(mark): float(share[mark]) for mark in marks if mark <= budget}
    return Coverage(final, read, first(0.9), first(0.99), float(share[1:].mean()), final / budget * 1000)
