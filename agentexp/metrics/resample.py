"""Pooled ratios with a bootstrap interval over episodes.

A rate per step is pooled over all episodes (micro average), but steps of one episode are not independent: whole episodes are
resampled. Deterministic: the seed is fixed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentexp.metrics.stats import RESAMPLES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MANY = 500
"""More episodes than this are resampled by how often each different one is drawn: the same distribution, much faster."""


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
    first = next(i for i, below in enumerate(denominators) if below)
    if all(top * denominators[first] == below * numerators[first] for top, below in zip(numerators, denominators, strict=True)):
        same = float(numerators[first] / denominators[first])  # every draw gives this one value
        return Estimate(same, same, same, round(total), units)
    import numpy as np

    pairs = np.column_stack([np.asarray(numerators, dtype=float), np.asarray(denominators, dtype=float)])
    draw = _draw_each if units <= _MANY else _draw_alike
    sums = draw(pairs, resamples, np.random.default_rng(seed))
    some = sums[:, 1] > 0  # a draw of episodes that have nothing to count says nothing
    tail = (1 - confidence) / 2
    low, high = np.quantile(sums[some, 0] / sums[some, 1], [tail, 1 - tail])
    return Estimate(float(sum(numerators) / total), float(low), float(high), round(total), units)


def _draw_each(pairs: NDArray[np.float64], resamples: int, random: np.random.Generator) -> NDArray[np.float64]:
    """Sums of both columns over rows drawn with replacement, one line per resample."""
    import numpy as np

    units, sums = len(pairs), []
    batch = max(1, 4_000_000 // units)  # at most 32 MB of draws at a time
    for start in range(0, resamples, batch):
        draws = random.integers(0, units, size=(min(batch, resamples - start), units))
        sums.append(np.column_stack([pairs[:, column][draws].sum(axis=1) for column in (0, 1)]))
    return np.concatenate(sums)


def _draw_alike(pairs: NDArray[np.float64], resamples: int, random: np.random.Generator) -> NDArray[np.float64]:
    """The same distribution for many rows: how often each different row is drawn is multinomial.

    Where there are many different ones too, fewer resamples are made, at least a thousand: the interval is narrow then, and its
    ends move by a twentieth of its width.
    """
    import numpy as np

    different, counts = np.unique(pairs, axis=0, return_counts=True)
    enough = max(1_000, min(resamples, 1_000_000 // len(different)))
    drawn: NDArray[np.float64] = random.multinomial(len(pairs), counts / len(pairs), size=enough) @ different
    return drawn
