"""Advantages inside a group (paper 001, eq. 4): A = (R - mean) / (std + eps), with the population's std.

A group holds rollouts of one instance and one kind, so the two rewards never meet. Rollouts without a usable reward (a crashed
engine, NaN, an instance without checkpoints) take no part: they are not failures of the policy and do not count as 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

EPS = 1e-4


def advantages(rewards: Sequence[float], eps: float = EPS) -> list[float]:
    """Eq. 4. Exactly 0 where all rewards are equal.

    Args:
        rewards: finite.
        eps: added to the std.
    """
    if not rewards or min(rewards) == max(rewards):  # rounding of the mean must not make a signal
        return [0.0] * len(rewards)
    mean = math.fsum(rewards) / len(rewards)
    std = math.sqrt(math.fsum((reward - mean) ** 2 for reward in rewards) / len(rewards))
    return [(reward - mean) / (std + eps) for reward in rewards]


def is_usable(reward: float | None) -> bool:
    """Whether a reward can be learnt from."""
    return reward is not None and math.isfinite(reward)


@dataclass(frozen=True, slots=True)
class Judged:
    """A group's advantages.

    Attributes:
        values: one per rollout; None where it takes no part.
        fate: "signal"; "flat": the usable rewards are equal; "small": fewer than two are usable, so nothing can be compared.
    """

    values: list[float | None]
    fate: str


def judge(rewards: Sequence[float | None], eps: float = EPS) -> Judged:
    """Advantages of a group some of whose rollouts may have no usable reward."""
    usable = [reward for reward in rewards if reward is not None and math.isfinite(reward)]
    if len(usable) < 2:
        return Judged([None] * len(rewards), "small")
    found = iter(advantages(usable, eps))
    values = [next(found) if is_usable(reward) else None for reward in rewards]
    return Judged(values, "flat" if min(usable) == max(usable) else "signal")
