"""Diagnostics of failed episodes: the spec's values and properties."""

from __future__ import annotations

import re

import pytest
from metrics_kit import episode, vectors

from agentexp.metrics.behaviour import INFO_ACTIONS, Behaviour, behaviour, diagnose, failed, looping, normalised, recovered

INFO = re.compile(INFO_ACTIONS)


def test_the_specs_values() -> None:
    """testvectors.json: a failed episode counts, a successful one does not."""
    case = vectors("diagnostics")
    records = [
        episode(list(zip(e["actions"], map(bool, e["errors"]), strict=True)), success=e["success"]) for e in case["episodes"]
    ]
    found = diagnose(failed(records))
    for name in ("repeated_action_rate", "loop_rate", "info_seeking_rate", "error_recovery_rate"):
        assert getattr(found, name).value == pytest.approx(case["value"][name], abs=5e-5)
    assert (found.loop_rate.n, found.error_recovery_rate.n) == (case["value"]["n_steps"], case["value"]["n_errors"])
    assert found.error_recovery_rate_1.value == pytest.approx(1 / 3)
    assert found.n_episodes == 1


def test_actions_are_compared_in_normalised_form() -> None:
    assert normalised("  Go  to Desk 1. ") == "go to desk 1"
    assert normalised(None) is None


def test_one_action_over_and_over_is_no_loop() -> None:
    assert looping(["a"] * 10) == set()
    assert looping(["a", "b"] * 3) == {2, 3, 4, 5}
    assert looping(["a", "b", "c", "d", "a", "b", "c", "d"]) == {4, 5, 6, 7}
    assert looping(["a", "b", "c", "d", "e", "a", "b", "c", "d", "e"]) == set()  # blocks have at most four actions


def test_unreadable_replies_are_errors_and_equal_nothing() -> None:
    found = diagnose([Behaviour((None, None, "take x", None), (True, True, False, True))])
    assert found.repeated_action_rate.value == 0
    assert found.loop_rate.value == 0
    assert found.error_recovery_rate.value == pytest.approx(2 / 3)


def test_recovery_needs_another_action_that_is_no_look() -> None:
    same = Behaviour(("open x", "open x"), (True, False))
    look = Behaviour(("open x", "look", "inventory"), (True, False, False))
    late = Behaviour(("open x", "open x", "open x", "open x", "take y"), (True, True, True, True, False))
    assert [recovered(e, 3, INFO) for e in (same, look)] == [0, 0]
    assert (recovered(late, 3, INFO), recovered(late, 1, INFO)) == (3, 1)


def test_the_worlds_own_info_actions_are_used() -> None:
    steps = [Behaviour(("help", "look", "go to x"), (False, False, False))]
    assert diagnose(steps).info_seeking_rate.value == pytest.approx(1 / 3)
    assert diagnose(steps, r"^(help|look)\b").info_seeking_rate.value == pytest.approx(2 / 3)


def test_only_the_acting_phase_counts_and_harness_errors_are_left_out() -> None:
    record = episode([("look", False)], phase="exploring")
    record["trajectory"] += episode([("take x", True)])["trajectory"]
    assert behaviour(record).actions == ("take x",)
    broken = episode([("look", False)])
    broken["status"] = "error"
    assert failed([record, broken]) == [behaviour(record)]


def test_nothing_to_count_gives_no_rate() -> None:
    found = diagnose([])
    assert found.loop_rate.value is None and found.error_recovery_rate.low is None


def test_the_interval_holds_the_rate_and_is_the_same_every_time() -> None:
    steps = [Behaviour(("a", "a", "b"), (True, False, False)), Behaviour(("a", "b", "a", "b"), (False,) * 4)] * 5
    first, second = diagnose(steps), diagnose(steps)
    assert first == second
    rate = first.repeated_action_rate
    assert rate.value is not None and rate.low is not None and rate.high is not None
    assert rate.low <= rate.value <= rate.high and rate.units == 10
