"""Many episodes are resampled by how often each different one is drawn: the interval stays what it was."""

from __future__ import annotations

import random
import time

import pytest

from agentexp.metrics import resample
from agentexp.metrics.resample import ratio


def steps_and_errors(n: int) -> tuple[list[float], list[float]]:
    rng = random.Random(1)
    steps = [float(rng.randint(5, 50)) for _ in range(n)]
    return [float(rng.randint(0, int(s) // 3)) for s in steps], steps


def test_both_ways_of_drawing_give_the_same_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    errors, steps = steps_and_errors(400)
    each = ratio(errors, steps)
    monkeypatch.setattr(resample, "_MANY", 10)
    alike = ratio(errors, steps)
    assert each.low is not None and each.high is not None and alike.low is not None and alike.high is not None
    width = each.high - each.low
    assert (alike.value, alike.n, alike.units) == (each.value, each.n, each.units)
    assert abs(alike.low - each.low) < 0.1 * width and abs(alike.high - each.high) < 0.1 * width


def test_rare_events_have_an_interval_that_stays_above_zero() -> None:
    found = ratio([1.0] * 4 + [0.0] * 5_000, [1.0] * 5_004)
    assert found.value == pytest.approx(4 / 5_004)
    assert found.low is not None and found.high is not None
    assert 0 <= found.low < found.value < found.high < 4 * found.value


def test_it_is_deterministic_and_takes_no_longer_with_more_episodes_of_the_same_kinds() -> None:
    small, large = steps_and_errors(1_000), steps_and_errors(1_000)
    large = (large[0] * 20, large[1] * 20)
    assert ratio(*large) == ratio(*large)
    seconds = []
    for numerators, denominators in (small, large):
        started = time.process_time()
        ratio(numerators, denominators)
        seconds.append(time.process_time() - started)
    assert seconds[1] < 8 * seconds[0]  # each episode drawn anew it would be twenty times as long
