"""Intervals and paired comparisons. Everything is deterministic: resampling uses a fixed seed.

Sources: Wilson (1927) for one rate; McNemar (1947), exact form, for two single runs on the same instances; percentile bootstrap
over instances for differences (spec: 10,000 resamples).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

RESAMPLES = 10_000
Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Difference:
    """A paired difference b - a.

    Attributes:
        mean: mean difference over the clusters' instances.
        low: lower end of the interval.
        high: upper end of the interval.
        n: paired instances.
    """

    mean: float
    low: float
    high: float
    n: int

    @property
    def resolved(self) -> bool:
        """The interval excludes 0."""
        return self.low > 0 or self.high < 0


def wilson(successes: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Wilson score interval of a rate. Raises `ValueError` without observations."""
    if n < 1 or not 0 <= successes <= n:
        raise ValueError(f"{successes} successes of {n} are not a rate.")
    from statistics import NormalDist  # scipy has it too, and takes a second to import

    z, rate = NormalDist().inv_cdf((1 + confidence) / 2), successes / n
    middle = (rate + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * (rate * (1 - rate) / n + z * z / (4 * n * n)) ** 0.5
    return (0.0 if successes == 0 else middle - half), (1.0 if successes == n else middle + half)


def paired_bootstrap(
    a: Mapping[Key, float],
    b: Mapping[Key, float],
    *,
    clusters: Mapping[Key, Hashable] | None = None,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Difference | None:
    """Mean of b - a over the instances in both, with a percentile interval; None without a common instance.

    Args:
        a: value by instance (an instance with several runs: their mean).
        b: the same for the other method.
        clusters: cluster of each instance (a game with several variants); whole clusters are resampled.
    """
    import numpy as np

    keys = [key for key in a if key in b]
    if not keys:
        return None
    groups: dict[Hashable, list[float]] = defaultdict(list)
    for key in keys:
        groups[clusters.get(key, key) if clusters else key].append(b[key] - a[key])
    sums = np.array([sum(values) for values in groups.values()])
    sizes = np.array([len(values) for values in groups.values()])
    generator = np.random.default_rng(seed)
    means = np.empty(resamples)
    block = max(1, 2_000_000 // len(sums))  # bounds the memory; blocks draw the same numbers as one big draw
    for start in range(0, resamples, block):
        draws = generator.integers(0, len(sums), size=(min(block, resamples - start), len(sums)))
        means[start : start + len(draws)] = sums[draws].sum(axis=1) / sizes[draws].sum(axis=1)
    tail = (1 - confidence) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    return Difference(float(sums.sum() / sizes.sum()), float(low), float(high), len(keys))


def mcnemar(a: Mapping[Key, bool], b: Mapping[Key, bool]) -> tuple[int, int, float]:
    """(only a succeeded, only b succeeded, exact two-sided p) over the instances in both."""
    from scipy.stats import binomtest

    keys = [key for key in a if key in b]
    only_a = sum(a[key] and not b[key] for key in keys)
    only_b = sum(b[key] and not a[key] for key in keys)
    if only_a + only_b == 0:
        return 0, 0, 1.0
    return only_a, only_b, float(binomtest(only_a, only_a + only_b, 0.5).pvalue)


def mean_and_std(values: Sequence[float]) -> tuple[float, float | None] | None:
    """Mean and standard deviation over seeds (ddof = 1); the deviation is None for one seed, the result for none."""
    if not values:
        return None
    mean = sum(values) / len(values)
    if len(values) == 1:
        return mean, None
    return mean, (sum((value - mean) ** 2 for value in values) / (len(values) - 1)) ** 0.5
