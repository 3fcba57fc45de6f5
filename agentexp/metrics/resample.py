"""Pooled ratios with a bootstrap interval over episodes.

A rate per step is pooled over all episodes (micro average), but steps of one episode are not independent: whole episodes are
resampled. Deterministic: the seed is fixed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agentexp.metrics.stats import RESAMPLES


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its interval; all three None where there is nothing to count.

    Attributes:
        value: the estimate.
        low: lower end of the percentile interval.
        high: upper end.
        n: what the denominator counts (steps, errors, episodes).
        units: episodes that were resampled.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int
    units: int


def ratio(
    numerators: Sequence[float],
    denominators: Sequence[float],
    *,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Estimate:
    """Sum of numerators over sum of denominators, one pair per episode; with denominators of 1 it is the mean over episodes.

    Raises:
        ValueError: the two have different lengths.
    """
    if len(numerators) != len(denominators):
        raise ValueError(f"{len(numerators)} numerators and {len(denominators)} denominators do not pair up.")
    total, units = sum(denominators), len(numerators)
    if not total:
        return Estimate(None, None, None, 0, units)
    import numpy as np

    tops, bottoms = np.asarray(numerators, dtype=float), np.asarray(denominators, dtype=float)
    random, values = np.random.default_rng(seed), []
    batch = max(1, 4_000_000 // units)  # at most 32 MB of draws at a time
    for start in range(0, resamples, batch):
        draws = random.integers(0, units, size=(min(batch, resamples - start), units))
        below = bottoms[draws].sum(axis=1)
        some = below > 0  # a draw of episodes that have nothing to count says nothing
        values.append(tops[draws].sum(axis=1)[some] / below[some])
    tail = (1 - confidence) / 2
    low, high = np.quantile(np.concatenate(values), [tail, 1 - tail])
    return Estimate(float(sum(numerators) / total), float(low), float(high), round(total), units)
