"""Sub-task division (paper 003): a trajectory is split at the steps where its process score rises."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

EPS = 1e-9  # scores are fractions; what differs by less is equal
LEAST_HORIZON = 5  # steps that an actor gets at least


class Subtask(NamedTuple):
    """From step `x`, where the score rose last (or the start), to step `y`, where it rises next."""

    x: int
    y: int

    @property
    def horizon(self) -> int:
        """Steps that an actor gets for it."""
        return max(LEAST_HORIZON, self.y - self.x)


def best_so_far(scores: Sequence[float]) -> list[float]:
    """The process score: what was reached stays reached, also in a world whose score can fall."""
    return list(accumulate(scores, max))


def subtasks(scores: Sequence[float]) -> list[Subtask]:
    """The sub-tasks of a trajectory.

    Args:
        scores: after 0, 1, 2 ... steps.

    Returns:
        In their order; what follows the last rise is part of none.
    """
    best = best_so_far(scores)
    found: list[Subtask] = []
    for t in range(1, len(best)):
        if best[t] > best[t - 1] + EPS:
            found.append(Subtask(found[-1].y if found else 0, t))
    return found
