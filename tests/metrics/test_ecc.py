"""ECC as a function: eq. 2, first hits, the curve, records."""

from __future__ import annotations

from typing import Any

import pytest
from metrics_kit import vectors

from agentexp.capabilities import Checkpoint
from agentexp.core import Step
from agentexp.envs.toy import ToyRooms
from agentexp.metrics.ecc import CURVE, Coverage, Ecc, cover, ecc_of_episode, score, summarise_ecc

HALL, KEY, TAKE = Checkpoint("location", "red hall"), Checkpoint("object", "key"), Checkpoint("affordance", "take key")
LOOK = "You are in the red hall. You see a key. Doors lead east."


def _rows(*steps: tuple[str | None, str, bool], phase: str = "exploring") -> list[dict[str, Any]]:
    return [{"phase": phase, "action": a, "observation": text, "error": error} for a, text, error in steps]


def test_the_specs_value() -> None:
    case = vectors("ecc")
    assert score(case["checkpoints"], case["covered"]) == pytest.approx(case["value"], abs=1e-6)
    assert score([], ["x"]) is None


def test_first_hits_and_the_curve() -> None:
    steps = _rows(("look", LOOK, False), ("take key", "That is not possible.", True), ("take key", "You take the key.", False))
    ecc = cover([HALL, KEY, TAKE, TAKE], ToyRooms().checkpoint_matcher(), LOOK, steps).result()
    assert dict(ecc.hits) == {HALL: 1, KEY: 1, TAKE: 3}
    assert (ecc.total, ecc.covered, ecc.value) == (3, 3, 1.0)
    assert [ecc.at(k) for k in (0, 1, 2, 3, 100)] == pytest.approx([0, 2 / 3, 2 / 3, 1, 1])
    assert ecc.by_kind() == {"location": (1, 1), "object": (1, 1), "affordance": (1, 1)}


def test_the_reset_and_unreadable_replies_prove_nothing() -> None:
    coverage = Coverage([HALL, KEY], ToyRooms().checkpoint_matcher())
    assert coverage.observe(0, None, Step(LOOK)) == []
    assert coverage.observe(1, None, Step(LOOK)) == []
    assert coverage.result().value == 0
    assert coverage.observe(2, "look", Step(LOOK)) == [HALL, KEY]
    assert coverage.observe(3, "look", Step(LOOK)) == []


def test_what_is_no_checkpoint_does_not_count() -> None:
    coverage = Coverage([TAKE], ToyRooms().checkpoint_matcher())
    assert coverage.observe(1, "look", Step(LOOK)) == []


def test_no_checkpoints_no_coverage() -> None:
    empty = Coverage([], ToyRooms().checkpoint_matcher()).result()
    assert empty.value is None and empty.at(10) is None


def test_from_the_records_note_or_read_again() -> None:
    steps = _rows(("look", LOOK, False), ("take key", "You take the key.", False))
    coverage = cover([HALL, KEY, TAKE], ToyRooms().checkpoint_matcher(), LOOK, steps)
    record = {"trajectory": steps + _rows(("look", LOOK, False), phase="acting"), "notes": {"checkpoints": coverage.note()}}
    assert record["notes"]["checkpoints"][0] == {"kind": "location", "name": "red hall", "step": 1}
    noted = ecc_of_episode(record)
    again = ecc_of_episode(record, matcher=ToyRooms().checkpoint_matcher())
    assert noted is not None and again is not None and noted.hits == again.hits
    fewer = ecc_of_episode(record, [TAKE])
    assert fewer is not None and dict(fewer.hits) == {TAKE: 2}
    assert ecc_of_episode({"trajectory": steps, "notes": {}}) is None
    assert ecc_of_episode({"trajectory": [], "notes": {}}, [TAKE], ToyRooms().checkpoint_matcher()) is None


def test_means_over_instances() -> None:
    half, full, none = Ecc({HALL: 4, KEY: None}), Ecc({HALL: 2, TAKE: 60}), Ecc({})
    found = summarise_ecc([half, full, none])
    assert found.ecc.value == 0.75 and found.ecc.n == 2 and found.without == 1 and found.checkpoints == 2
    assert list(found.curve) == list(CURVE)
    assert found.curve[10].value == 0.5 and found.curve[100].value == 0.75
    assert found.by_kind["object"].value == 0.0 and found.by_kind["affordance"].n == 1
    assert summarise_ecc([]).ecc.value is None
