"""The stop rule against the golden vectors, and its measured properties (SPEC 000, section 4)."""

import json
import os
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import pytest

from agentexp.core import Fact
from agentexp.errors import UserError
from agentexp.paradigms.map.stopping import DualConvergence, FixedSteps, NoStopping, Watch

SHARED = Path(os.environ.get("AGENTEXP_SHARED", Path(__file__).resolve().parents[2].parent / "shared"))
VECTORS = SHARED / "spec" / "testvectors.json"
NAMES = ["stop_same_obs", "stop_three_keys", "stop_three_keys_tmax10", "stop_never_cond_a"]


def feed(watch: Watch, keys: list[str], new_facts: list[list[str]]) -> Watch:
    for key, new in zip(keys, new_facts, strict=False):
        if watch.reason:
            break
        watch.update(key, [Fact("f", (name,)) for name in new])
    return watch


@pytest.mark.skipif(not VECTORS.is_file(), reason="the golden vectors are not beside the checkout")
@pytest.mark.parametrize("name", NAMES)
def test_golden_vectors(name: str) -> None:
    vector: dict[str, Any] = json.loads(VECTORS.read_text())[name]
    p = vector.get("params", {"w_k": 3, "w_n": 5, "eps": 0.5, "t_min": 3, "t_max": 15})
    rule = DualConvergence(w_k=p["w_k"], w_n=p["w_n"], epsilon=p["eps"], t_min=p["t_min"], t_max=p["t_max"])
    watch = feed(rule.start(budget=15), vector["keys"], vector["new_facts"])
    log = [[r.t, r.delta_k, round(r.novelty, 4), bool(r.reason), r.reason] for r in watch.trace]
    assert log == vector["log"]


@pytest.mark.parametrize(("m", "step"), [(1, 7), (2, 10), (3, 14), (4, 17), (5, 21)])
def test_first_stop_when_m_keys_recur(m: int, step: int) -> None:
    watch = feed(DualConvergence().start(30), list(islice(cycle("abcde"[:m]), 30)), [[]] * 30)
    assert (watch.t, watch.reason) == (step, "converged")


def test_consecutive_reading_of_the_paper() -> None:
    watch = feed(DualConvergence(novelty="consecutive").start(15), ["x"] * 15, [[]] * 15)
    assert (watch.t, watch.reason) == (7, "converged")  # r < 0.5 from t = 5 on, three times


def test_a_fact_that_comes_back_is_not_new_again() -> None:
    watch = DualConvergence().start(10)
    watch.begin([Fact("state", ("door",), "closed")])
    deltas = [watch.update("k", [Fact("state", ("door",), value)]).delta_k for value in ("open", "closed", "open", "ajar")]
    assert deltas == [1, 0, 0, 1]
    assert watch.trace[-1].known == 3


def test_t_min_delays_and_the_budget_caps() -> None:
    eager = {"w_k": 1, "w_n": 1, "epsilon": 2.0}
    assert feed(DualConvergence(**eager, t_min=4).start(9), ["x"] * 9, [[]] * 9).t == 4  # type: ignore[arg-type]
    watch = feed(DualConvergence(t_max=15).start(6), ["x"] * 9, [[]] * 9)
    assert (watch.t, watch.reason) == (6, "t_max")
    assert DualConvergence().start(0).reason == "t_max"


def test_controls() -> None:
    fixed = feed(FixedSteps(4).start(9), ["x"] * 20, [[]] * 20)
    assert (fixed.t, fixed.reason) == (4, "fixed")
    assert feed(FixedSteps(12).start(9), ["x"] * 20, [[]] * 20).reason == "t_max"
    endless = feed(NoStopping().start(9), ["x"] * 20, [[]] * 20)
    assert (endless.t, endless.reason) == (9, "t_max")


def test_counts_of_one_episode_do_not_reach_another() -> None:
    rule = DualConvergence()
    feed(rule.start(15), ["x"] * 15, [[]] * 15)
    assert rule.start(15).trace == []


def test_bad_settings_are_named() -> None:
    with pytest.raises(UserError, match=r"stopping\.key=exakt .* masked, exact, place"):
        DualConvergence(key="exakt")  # type: ignore[arg-type]
    with pytest.raises(UserError, match=r"stopping\.w_k=0"):
        DualConvergence(w_k=0)
