"""Metrics of the relocation experiment (MAP, appendix C.4)."""

from __future__ import annotations

from typing import Any

import pytest
from metrics_kit import episode, vectors

from agentexp.metrics.perturbation import delta_steps, perturbation, reexplored


def test_delta_steps_is_equation_10() -> None:
    case = vectors("delta_steps")
    assert delta_steps([(length, t) for length, t in case["rollouts"]]) == pytest.approx(case["value"])
    assert delta_steps([]) is None


def test_reexplored_as_in_the_spec() -> None:
    case = vectors("reexplored")
    assert reexplored(case["actions"], case["t"], case["origin"]) is case["value"]


@pytest.mark.parametrize(
    ("actions", "t", "expected"),
    [
        (["go to desk 1", "go to shelf 1", "look"], 1, False),  # the old place again, and a walk before the change
        (["go to shelf 1", "go to desk 1"], 1, True),  # the very step before which the thing moved
        (["look", None, "take mug 1 from shelf 1"], 0, False),
    ],
)
def test_only_other_places_after_the_change_count(actions: list[str | None], t: int, expected: bool) -> None:
    assert reexplored(actions, t, "shelf 1") is expected


def test_a_refused_walk_leads_nowhere() -> None:
    assert not reexplored(["go to desk 1"], 0, "shelf 1", [True])
    assert not reexplored(["go to desk 1", "go to shelf 2"], 0, ["desk 1", "shelf 2"])


def _moved(ident: str, t: int | None, success: bool, steps: list[tuple[str | None, bool]]) -> dict[str, Any]:
    record = episode(steps, success=success, ident=ident)
    record["notes"] = {"perturbation": {"step": t, "origins": ["shelf 1"]} if t is not None else None}
    return record


def test_rollouts_without_a_change_count_in_the_pass_rate_only() -> None:
    walk: list[tuple[str | None, bool]] = [("go to shelf 1", False), ("look", False), ("go to desk 1", False), ("look", False)]
    stay: list[tuple[str | None, bool]] = [("look", False)] * 6
    changed = [_moved("a", 1, True, walk), _moved("b", 2, False, stay), _moved("c", None, True, stay)]
    plain = [episode(stay, success=True, ident=i) for i in "abc"]
    broken = episode(stay, ident="d")
    broken["status"] = "error"
    found = perturbation(plain, [*changed, broken])
    assert (found.pass_1, found.pass_1_perturb) == (1.0, pytest.approx(2 / 3))
    assert found.re_exploration == 0.5
    assert found.delta_steps.value == pytest.approx(((4 - 1 - 1) + (6 - 2 - 1)) / 2)
    assert found.n == (3, 3, 2) and found.excluded == (0, 1)
    assert found.drop is not None and found.drop.mean == pytest.approx(-1 / 3)


def test_no_rollout_at_all() -> None:
    found = perturbation([], [])
    assert found.pass_1 is None and found.re_exploration is None and found.delta_steps.value is None
