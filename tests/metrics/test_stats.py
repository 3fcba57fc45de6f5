"""Intervals and paired comparisons against closed forms, brute force and the published value."""

import itertools
import json
import math
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentexp.metrics.stats import mcnemar, mean_and_std, paired_bootstrap, wilson

SHARED = Path(os.environ.get("AGENTEXP_SHARED", Path(__file__).resolve().parents[2].parent / "shared"))
VECTORS = SHARED / "spec" / "testvectors.json"


def test_wilson_of_the_specification():
    assert wilson(78, 134) == pytest.approx((0.4974, 0.6622), abs=5e-5)


@pytest.mark.skipif(not VECTORS.is_file(), reason="the specification is not beside the checkout")
def test_wilson_of_the_test_vectors():
    vector = json.loads(VECTORS.read_text())["wilson_134"]
    assert wilson(vector["k"], vector["n"]) == pytest.approx(vector["ci"], abs=5e-5)


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
@settings(deadline=None)
def test_wilson_is_the_closed_form_and_mirrors(pair):
    k, n = pair
    low, high = wilson(k, n)
    z, p = 1.959963984540054, k / n
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    assert (low, high) == pytest.approx((centre - half, centre + half), abs=1e-9)
    assert 0 <= low <= p <= high <= 1
    assert wilson(n - k, n) == pytest.approx((1 - high, 1 - low), abs=1e-12)


@pytest.mark.parametrize(("k", "n"), [(0, 0), (-1, 3), (4, 3)])
def test_wilson_refuses_what_is_no_rate(k, n):
    with pytest.raises(ValueError, match="not a rate"):
        wilson(k, n)


def test_mcnemar_is_the_exact_binomial():
    a = dict(enumerate([True] * 12 + [False] * 3 + [True] * 5))
    b = dict(enumerate([False] * 12 + [True] * 3 + [True] * 5))
    only_a, only_b, p = mcnemar(a, b)
    tail = sum(math.comb(15, i) for i in range(4)) / 2**15
    assert (only_a, only_b) == (12, 3)
    assert p == pytest.approx(2 * tail)
    assert mcnemar(b, a) == (3, 12, pytest.approx(p))
    assert mcnemar({1: True}, {2: True}) == (0, 0, 1.0)
    assert mcnemar({1: True, 2: False}, {1: True, 2: False, 3: True}) == (0, 0, 1.0)


def test_bootstrap_of_few_instances_is_the_enumerated_distribution():
    a, b = dict.fromkeys(range(4), 0.0), {0: 1.0, 1: 1.0, 2: 0.0, 3: -1.0}
    means = sorted(sum(draw) / 4 for draw in itertools.product(b.values(), repeat=4))
    expected = np.quantile(means, [0.025, 0.975])
    found = paired_bootstrap(a, b)
    assert found is not None
    assert found.mean == 0.25
    assert (found.low, found.high) == pytest.approx(expected)
    assert not found.resolved


def test_bootstrap_pairs_by_instance_and_is_repeatable():
    rng = np.random.default_rng(1)
    a = {f"task{i}": float(x) for i, x in enumerate(rng.integers(0, 2, 134))}
    b = dict(reversed([(key, value + 1) for key, value in a.items()])) | {"only b": 5.0}
    found = paired_bootstrap(a, b)
    assert found is not None
    assert (found.mean, found.low, found.high, found.n) == (1.0, 1.0, 1.0, 134)
    assert found.resolved
    noisy = {key: value + float(rng.normal()) for key, value in a.items()}
    first, second = paired_bootstrap(a, noisy), paired_bootstrap(a, noisy)
    assert first == second
    assert paired_bootstrap({}, a) is None


def test_bootstrap_agrees_with_the_normal_approximation():
    rng = np.random.default_rng(2)
    a = {i: float(x) for i, x in enumerate(rng.random(134) < 0.5)}
    b = {i: float(x) for i, x in enumerate(rng.random(134) < 0.6)}
    found = paired_bootstrap(a, b)
    assert found is not None
    difference = np.array([b[i] - a[i] for i in a])
    half = 1.96 * difference.std() / math.sqrt(134)
    assert (found.low, found.high) == pytest.approx((difference.mean() - half, difference.mean() + half), abs=0.012)


def test_clusters_are_drawn_whole():
    # four copies of each of 20 games: as many independent observations as games, so the interval must not shrink
    rng = np.random.default_rng(3)
    games = {g: float(x) for g, x in enumerate(rng.random(20) < 0.5)}
    zero, one = dict.fromkeys(games, 0.0), games
    copies0 = {(g, c): 0.0 for g in games for c in range(4)}
    copies1 = {(g, c): games[g] for g in games for c in range(4)}
    single = paired_bootstrap(zero, one)
    clustered = paired_bootstrap(copies0, copies1, clusters={key: key[0] for key in copies0})
    naive = paired_bootstrap(copies0, copies1)
    assert single and clustered and naive
    assert (clustered.low, clustered.high) == (single.low, single.high)
    assert naive.high - naive.low < 0.7 * (clustered.high - clustered.low)
    assert clustered.n == 80


def test_blocks_do_not_change_the_draws():
    few = dict.fromkeys(range(7000), 0.0)
    many = {i: float(i % 3 == 0) for i in range(7000)}
    found = paired_bootstrap(few, many, resamples=500)  # 285 draws per block
    draws = np.random.default_rng(0).integers(0, 7000, size=(500, 7000))
    values = np.array([many[i] for i in range(7000)])
    expected = np.quantile(values[draws].mean(axis=1), [0.025, 0.975])
    assert found is not None
    assert (found.low, found.high) == pytest.approx(expected)


def test_standard_deviation_over_seeds_divides_by_n_minus_1():
    assert mean_and_std([0.5, 0.6, 0.7]) == pytest.approx((0.6, 0.1))
    assert mean_and_std([0.5]) == (0.5, None)
    assert mean_and_std([]) is None
