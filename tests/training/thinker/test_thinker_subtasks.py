"""Where a trajectory is divided."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentexp.training.thinker.subtasks import best_so_far, subtasks

SHARED = Path(os.environ.get("AGENTEXP_SHARED", Path(__file__).resolve().parents[3].parent / "shared"))


@pytest.mark.skipif(not (SHARED / "spec" / "testvectors.json").is_file(), reason="the specification is not beside the checkout")
def test_the_specifications_vector():
    vector = json.loads((SHARED / "spec" / "testvectors.json").read_text())["subtasks"]
    assert [list(part) for part in subtasks(vector["scores"])] == vector["value"]


def test_a_score_that_falls_divides_only_where_the_best_rises():
    assert [tuple(part) for part in subtasks([0, 0.5, 0, 0.5, 0.5, 1])] == [(0, 1), (1, 5)]


def test_no_rise_no_subtask():
    assert subtasks([]) == [] and subtasks([0.5]) == [] and subtasks([0.5, 0.5, 0.25]) == []


def test_the_actor_gets_five_steps_at_least():
    assert [part.horizon for part in subtasks([0, 1] + [1] * 9 + [2])] == [5, 10]


@given(st.lists(st.integers(0, 4), max_size=30))
def test_subtasks_meet_and_every_one_ends_with_a_rise(scores):
    parts, best = subtasks(scores), best_so_far(scores)
    assert [part.x for part in parts] == [0, *(part.y for part in parts)][: len(parts)]
    for x, y in parts:
        assert x < y and best[x] == best[y - 1] < best[y]
    if scores:
        assert len(parts) == len({*best}) - 1
