"""RHAE against the values of the official scorecard, and AgentBoard's progress."""

from __future__ import annotations

import pytest
from metrics_kit import vectors

from agentexp.metrics.progress import agentboard_progress
from agentexp.metrics.rhae import rhae_game


def test_the_specs_values() -> None:
    for case in vectors("rhae"):
        levels = case["human"], case["used"], case["completed"]
        assert rhae_game(*levels) == pytest.approx(case.get("score", case.get("score_official")), abs=1e-4)
        if "score_no_completion_cap" in case:
            assert rhae_game(*levels, completion_cap=False) == pytest.approx(case["score_no_completion_cap"], abs=1e-4)


def test_without_the_cap_a_fast_player_passes_100() -> None:
    assert rhae_game([10], [5], [True], completion_cap=False) == pytest.approx(115)
    assert rhae_game([10], [5], [True]) == 100


def test_mapping_actions_count_in_level_1() -> None:
    assert rhae_game([10, 10], [10, 10], [True, True], mapping_actions=10) == rhae_game([10, 10], [20, 10], [True, True])


@pytest.mark.parametrize(
    ("human", "used", "completed"), [([], [], []), ([10], [0], [True]), ([10], [1, 2], [True]), ([0], [1], [True])]
)
def test_impossible_games_are_refused(human: list[int], used: list[int], completed: list[bool]) -> None:
    with pytest.raises(ValueError):
        rhae_game(human, used, completed)


def test_agentboard_progress_as_in_the_spec() -> None:
    for case in vectors("agentboard_progress"):
        assert agentboard_progress(case["hits"], case["done"]) == case["value"]
