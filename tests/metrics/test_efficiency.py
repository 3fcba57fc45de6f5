"""Costs per episode, with stage 1 and with cached explorations."""

from __future__ import annotations

from typing import Any

import pytest
from metrics_kit import episode, usage

from agentexp.metrics.efficiency import Cost, cost_of_episode, cost_of_run, efficiency
from agentexp.metrics.resample import ratio


def _run(**uses: Any) -> dict[str, Any]:
    return episode([("look", False)] * 4) | {"usage": usage(**uses)}


def test_means_leave_harness_errors_out_but_the_runs_total_does_not() -> None:
    broken = _run(prompt=1000, calls=9) | {"status": "error"}
    records = [_run(prompt=100, completion=10, calls=2), _run(prompt=300, completion=30, calls=4), broken]
    found = efficiency(records)
    assert (found.turns.value, found.calls.value, found.tokens.value) == (4, 3, 220)
    assert (found.n, found.excluded) == (2, 1)
    assert found.dollars.value is None and found.dollars.n == 0
    assert cost_of_run(records).tokens == 1440


def test_stage_1_is_shown_once_and_spread() -> None:
    stage1 = cost_of_run([_run(prompt=100, calls=1, cost=0.5)], setup=usage(prompt=60, calls=1, cost=0.25))
    assert stage1 == Cost(turns=4, calls=2, prompt_tokens=160, dollars=0.75, seconds=2.0)
    found = efficiency([_run(), _run()], stage1)
    assert found.stage1 is stage1
    assert found.stage1_per_episode == Cost(turns=2, calls=1, prompt_tokens=80, dollars=0.375, seconds=1.0)


def test_an_exploration_from_a_file_counts_with_what_it_cost() -> None:
    fresh, cached = _run(prompt=100, calls=5), _run(prompt=20, calls=1)
    cached["notes"]["exploration"] = {
        "cached": True,
        "usage": usage(prompt=70, calls=3),
        "seconds": 1.5,
        "summary_cached": True,
        "summary_usage": usage(prompt=10, calls=1),
    }
    assert cost_of_episode(cached).prompt_tokens == cost_of_episode(fresh).prompt_tokens == 100
    assert cost_of_episode(cached).calls == 5 and cost_of_episode(cached).seconds == 3.5


def test_a_ratio_resamples_whole_episodes() -> None:
    same = ratio([1, 2, 3], [2, 4, 6])
    assert (same.value, same.low, same.high, same.n, same.units) == (0.5, 0.5, 0.5, 12, 3)
    assert ratio([0, 0], [0, 0]).value is None
    some = ratio([0, 1], [0, 2])  # an episode without errors changes no error rate
    assert (some.low, some.high) == (0.5, 0.5)
    with pytest.raises(ValueError):
        ratio([1], [1, 2])
