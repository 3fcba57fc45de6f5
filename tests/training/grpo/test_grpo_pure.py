"""Advantages, interleaving, order of instances, batches: no torch."""

from __future__ import annotations

import itertools
import json
import math
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentexp.core import Task
from agentexp.errors import UserError
from agentexp.training.core import Row
from agentexp.training.grpo.advantages import advantages, judge
from agentexp.training.grpo.batches import fit, micro_batches, token_weights
from agentexp.training.grpo.draws import Draws
from agentexp.training.grpo.interleave import TABLE_5, Ratio, exploration_groups, explored_before
from agentexp.training.grpo.watch import SignalWatch

SHARED = Path(os.environ.get("AGENTEXP_SHARED", Path(__file__).resolve().parents[3].parent / "shared"))


@pytest.fixture(scope="module")
def vectors() -> dict[str, Any]:
    file = SHARED / "spec" / "testvectors.json"
    if not file.is_file():
        pytest.skip("the specification's test vectors are not here")
    return json.loads(file.read_text())


# --------------------------------------------------------------------------------------------------------- advantages


@pytest.mark.parametrize("name", ["grpo_adv", "grpo_adv_const"])
def test_advantages_equal_the_test_vectors(vectors: dict[str, Any], name: str) -> None:
    case = vectors[name]
    found = advantages(case["rewards"], case.get("eps", 1e-4))
    assert found == pytest.approx(case["adv"], abs=1e-6)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=12))
def test_advantages_sum_to_nothing_and_keep_the_order(rewards: list[float]) -> None:
    found = advantages(rewards)
    assert math.fsum(found) == pytest.approx(0, abs=1e-6)
    ranked = sorted(range(len(rewards)), key=lambda i: rewards[i])
    assert all(found[a] <= found[b] for a, b in itertools.pairwise(ranked))


def test_equal_rewards_give_exactly_nothing_whatever_rounding_does() -> None:
    assert advantages([0.1] * 7) == [0.0] * 7


def test_rollouts_without_a_usable_reward_take_no_part() -> None:
    judged = judge([1.0, None, 0.0, float("nan"), float("inf")])
    assert [value is None for value in judged.values] == [False, True, False, True, True]
    assert judged.fate == "signal"
    assert judged.values[0] == pytest.approx(0.5 / 0.5001)
    assert judge([1.0, 1.0, None]).fate == "flat"
    assert judge([1.0, None, None]).values == [None, None, None]
    assert judge([1.0, None]).fate == judge([]).fate == "small"


# ------------------------------------------------------------------------------------------------------- interleaving


def test_counts_equal_the_test_vectors(vectors: dict[str, Any]) -> None:
    for name in ("mixed", "alternate"):
        case = vectors[f"interleave_{name}"]
        ratio = Ratio(*case["ratio"])
        found = [exploration_groups(s, case["groups"], ratio, name) for s in range(len(case["exploration_groups"]))]
        assert found == case["exploration_groups"]
        assert sum(found) == case["total"]
    assert [exploration_groups(s, 16, Ratio.of("1:10")) for s in range(11)] == vectors["interleave_1_10"]


@pytest.mark.parametrize("text", TABLE_5)
@pytest.mark.parametrize("schedule", ["mixed", "alternate"])
def test_every_ratio_of_table_5_is_exact_over_its_period(text: str, schedule: Any) -> None:
    ratio, groups = Ratio.of(text), 16
    period = ratio.task + ratio.explore
    counts = [exploration_groups(step, groups, ratio, schedule) for step in range(5 * period)]
    assert sum(counts) == 5 * groups * ratio.explore
    share = groups * ratio.explore / period
    if schedule == "mixed":
        assert all(abs(count - share) < 1 for count in counts)
    else:
        assert set(counts) <= {0, groups}
    for step in range(5 * period):
        assert explored_before(step, groups, ratio, schedule) == sum(counts[:step])


def test_the_two_ends_are_pure() -> None:
    assert Ratio.of("1:0").kinds == ("task",)
    assert Ratio.of("0:1").kinds == ("explore",)
    assert {exploration_groups(s, 16, Ratio.of("1:0")) for s in range(50)} == {0}
    assert {exploration_groups(s, 16, Ratio.of("0:1")) for s in range(50)} == {16}


@pytest.mark.parametrize("text", ["5", "0:0", "a:b", "5:1:2", "-1:2", ""])
def test_a_wrong_ratio_is_refused_with_the_form_to_write(text: str) -> None:
    with pytest.raises(UserError, match="5:1"):
        Ratio.of(text)


# -------------------------------------------------------------------------------------------------------------- order


def tasks(n: int) -> list[Task]:
    return [Task(f"t{i}", "toy", "train") for i in range(n)]


def test_the_order_depends_on_the_step_alone() -> None:
    whole = [Draws(tasks(7), 4, Ratio.of("5:1"), seed=3).step(step) for step in range(30)]
    draws = Draws(tasks(7), 4, Ratio.of("5:1"), seed=3)
    assert [draws.step(step) for step in (29, 0, 17)] == [whole[29], whole[0], whole[17]]
    assert whole != [Draws(tasks(7), 4, Ratio.of("5:1"), seed=4).step(step) for step in range(30)]


def test_each_kind_passes_over_all_instances_before_any_comes_again() -> None:
    draws = Draws(tasks(7), 4, Ratio.of("3:1"), seed=0)
    every = [group for step in range(28) for group in draws.step(step)]
    for kind, n in (("task", 84), ("explore", 28)):
        drawn = [group.task.id for group in every if group.kind == kind]
        assert len(drawn) == n
        for start in range(0, n, 7):
            assert sorted(drawn[start : start + 7]) == sorted(task.id for task in tasks(7))


def test_no_two_rollouts_of_a_training_have_one_key() -> None:
    draws = Draws(tasks(3), 4, Ratio.of("1:1"), seed=0)
    keys = [task.key for step in range(20) for group in draws.step(step) for task in group.tasks(8)]
    assert len(set(keys)) == len(keys) == 20 * 4 * 8
    group = draws.step(5)[0]
    assert {task.instance_seed for task in group.tasks(8)} == {group.task.instance_seed}


def test_nothing_to_train_on_is_refused() -> None:
    with pytest.raises(UserError, match="nothing to train on"):
        Draws([], 4, Ratio.of("5:1"))


# ------------------------------------------------------------------------------------------------------------ batches


def test_weights_average_over_a_trajectory_then_over_trajectories() -> None:
    weights = token_weights([4, 6, 5], ["a", "a", "b"], "sequence", 2)
    assert weights == pytest.approx([1 / 20, 1 / 20, 1 / 10])
    assert 4 * weights[0] + 6 * weights[1] == pytest.approx(1 / 2)
    assert token_weights([4, 6, 5], ["a", "a", "b"], "sum", 2) == [0.5, 0.5, 0.5]
    assert token_weights([0], ["a"], "sequence", 1) == [0.0]


@given(st.lists(st.integers(1, 900), max_size=40), st.integers(1, 2000))
def test_micro_batches_hold_every_row_once_within_the_padded_size(lengths: list[int], most: int) -> None:
    batches = micro_batches(lengths, most)
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(lengths[i] for i in batch) <= most


def test_a_trajectory_is_cut_at_its_cap() -> None:
    rows = [Row([1, 2, 3], [False, True, True], [0.0, -1.0, -2.0]), Row([4, 5, 6], [False, False, True], [0.0, 0.0, -3.0])]
    assert fit(rows, 6) == (rows, False)
    kept, cut = fit(rows, 5)  # the second row has lost what was trained in it
    assert cut and [row.ids for row in kept] == [[1, 2, 3]]
    kept, cut = fit(rows, 2)
    assert cut and kept == [Row([1, 2], [False, True], [0.0, -1.0])]


# -------------------------------------------------------------------------------------------------------- case R04


def test_no_signal_for_five_steps_names_the_likely_cause() -> None:
    watch = SignalWatch(5)
    assert [bool(watch.look(1.0, 1.0, 0.0)) for _ in range(5)] == [False] * 4 + [True]
    assert not watch.look(1.0, 1.0, 0.0)  # and is quiet again for a while
    for cut, reward, word in (
        (1.0, 0.0, "cut"),
        (0.0, 0.0, "fails"),
        (0.0, 1.0, "wins"),
        (0.0, 0.5, "the same"),
        (0.0, math.nan, "no"),
    ):
        watch = SignalWatch(2)
        watch.look(1.0, cut, reward)
        assert word in watch.look(1.0, cut, reward)


def test_one_group_with_a_signal_is_enough() -> None:
    watch = SignalWatch(3)
    assert not any(watch.look(share, 1.0, 0.0) for share in (1.0, 1.0, 0.9, 1.0, 1.0, 0.9) * 3)
