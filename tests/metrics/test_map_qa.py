"""Map QA without a world: what is asked, how a reply is graded, what a run amounts to."""

from __future__ import annotations

from typing import Any

import pytest

from agentexp.capabilities import Alignment, Question
from agentexp.metrics.map_qa import (
    CATEGORIES,
    accuracy,
    choose,
    fidelity,
    figure3,
    grade,
    observed,
    row,
    summarise_map_qa,
    turn_text,
)

PLACES = ("desk 1", "desk 10", "drawer 2", "kitchen", "kitchen cupboard")
WHERE = Question("object_location", "Where is mug 1?", ("desk 1", "drawer 2"), names=PLACES, entity="mug 1")
THERE = Question("negative", "Is there a mug in desk 1?", ("no",), choices=("yes", "no"), entity="desk 1")
OPENS = ("it opens and shows things", "it opens and is empty", "it cannot be opened")
DOOR = Question("affordance", "What happens if you open drawer 2?", (OPENS[1],), choices=OPENS, entity="drawer 2")
WHICH = Question(
    "task_reasoning", "Which mug can be taken?", ("mug 1", "mug 2"), names=("mug 1", "mug 2", "pen 1"), entity="mug"
)


@pytest.mark.parametrize(
    ("question", "reply", "correct", "unknown"),
    [
        (WHERE, "desk 1", True, False),
        (WHERE, "Desk 1.", True, False),
        (WHERE, '"the desk 1"', True, False),
        (WHERE, "Answer: in/on drawer 2", True, False),
        (WHERE, "The mug 1 is on desk 1.", True, False),
        (WHERE, "desk 1 or drawer 2", True, False),
        (WHERE, "desk 1 or desk 10", False, False),  # a hedge
        (WHERE, "desk 10", False, False),
        (WHERE, "on the kitchen cupboard", False, False),
        (WHERE, "somewhere", False, False),
        (WHERE, "", False, False),
        (WHERE, "Unknown", False, True),
        (WHERE, "unknown.", False, True),
        (WHERE, "The map does not tell.", False, True),
        (WHERE, "It is unknown where mug 1 is", False, True),
        (WHERE, "I look at the map.\n\ndesk 1\n", True, False),
        (THERE, "No.", True, False),
        (THERE, "No, there is a pen, yes.", True, False),
        (THERE, "yes", False, False),
        (THERE, "There is no mug.", False, False),  # neither yes nor no comes first
        (THERE, "unknown", False, True),
        (DOOR, "It opens and is empty", True, False),
        (DOOR, "Answer: it opens and is empty.", True, False),
        (DOOR, "it opens", False, False),
        (DOOR, "it opens and is empty or it cannot be opened", False, False),
        (WHICH, "mug 2", True, False),
        (WHICH, "a pen 1", False, False),
    ],
)
def test_string_grading(question: Question, reply: str, correct: bool, unknown: bool) -> None:
    graded = grade(question, reply)
    assert (graded.correct, graded.unknown) == (correct, unknown)


def test_a_question_that_was_not_put_is_unanswered() -> None:
    assert row(WHERE, "all") == {
        "category": "object_location",
        "question": "Where is mug 1?",
        "answer": None,
        "expected": ["desk 1", "drawer 2"],
        "correct": False,
        "unknown": True,
        "scope": "all",
    }


def test_observed_needs_every_evidence_in_some_turn() -> None:
    question = Question("affordance", "?", ("yes",), evidence=(r"^> heat egg \d+ with oven\nYou heat", r"you see an egg"))
    turns = ["you see an egg 1", turn_text("heat egg 1 with oven", "You heat the egg 1.")]
    assert observed(question, turns) and not observed(question, turns[1:]) and not observed(question, turns[:1])
    assert not observed(question, ["you see an egg", turn_text("heat egg 1 with oven", "Nothing happens.")])
    assert not observed(Question("negative", "?", ("no",)), turns)  # nothing can show it
    assert turn_text("", "start") == "start"


def _pool() -> list[Question]:
    pool = [
        Question("negative", f"Is {i} there?", (answer,), ("yes", "no"), evidence=("seen",))
        for answer, n in (("yes", 30), ("no", 3))
        for i in range(n)
    ]
    pool += [Question("object_location", f"Where is {i}?", ("x",), evidence=("hidden",), query=("where",)) for i in range(5)]
    return pool


def test_at_most_so_many_per_category_and_answers_take_turns() -> None:
    chosen = choose(_pool(), ["seen"], per_category=4)
    assert [q.category for q in chosen] == ["negative"] * 4
    assert sorted(q.answers[0] for q in chosen) == ["no", "no", "yes", "yes"]
    everything = choose(_pool(), [], scope="all")
    assert [q.category for q in everything] == ["object_location"] * 3 + ["negative"] * 3
    assert choose(_pool(), []) == []
    first = [choose(_pool(), ["seen"], per_category=1, seed=seed)[0].answers[0] for seed in range(40)]
    assert 8 <= first.count("no") <= 32  # over instances both come first


def test_choice_is_determined_by_pool_and_seed() -> None:
    assert choose(_pool(), ["seen"], seed=7) == choose(_pool(), ["seen"], seed=7)


# ----------------------------------------------------------------------------------------------------------------- summary


def _record(instance: str, *rows: tuple[str, bool, bool], status: str = "ok", **notes: Any) -> dict[str, Any]:
    entries = [{"category": c, "correct": right, "unknown": unknown} for c, right, unknown in rows]
    return {"status": status, "task": {"id": instance, "seed": 0}, "notes": {"map_qa": entries, **notes}}


def test_summary_counts_unknown_apart() -> None:
    records = [
        _record("a", ("negative", True, False), ("negative", False, True), ("affordance", True, False)),
        _record("b", ("negative", False, False), ("negative", False, True)),
        _record("c", ("negative", True, False), status="error"),
    ]
    summary = summarise_map_qa(records)
    negative = summary.by_category["negative"]
    assert (negative.n, negative.instances, negative.unknown, negative.accuracy.value) == (4, 2, 0.5, 0.25)
    assert summary.excluded == 1 and summary.overall.n == 5
    assert negative.wilson is not None and negative.wilson[0] < 0.25 < negative.wilson[1]
    left_out = summarise_map_qa(records, "left_out").by_category["negative"]
    assert (left_out.accuracy.value, left_out.n, left_out.unknown) == (0.5, 4, 0.5)
    empty = summary.by_category["task_reasoning"]
    assert (empty.n, empty.accuracy.value, empty.wilson, empty.unknown) == (0, None, None, None)


def test_the_interval_resamples_instances_not_questions() -> None:
    """All questions of an instance agree here, so the interval over instances must be wider than over single questions."""
    records = [_record(str(i), *[("negative", i % 2 == 0, False)] * 10) for i in range(10)]
    result = summarise_map_qa(records).by_category["negative"]
    assert result.accuracy.low is not None and result.accuracy.high is not None and result.wilson is not None
    assert result.accuracy.high - result.accuracy.low > 1.5 * (result.wilson[1] - result.wilson[0])
    again = summarise_map_qa(records * 3).by_category["negative"]  # repeats are no new instances
    assert again.instances == 10 and again.accuracy.low == pytest.approx(result.accuracy.low)


def test_figure_3_has_a_bar_per_reader_and_category() -> None:
    bars = figure3({"rules": [_record("a", ("negative", True, False))], "small": [_record("a", ("negative", False, True))]})
    assert [(bar["reader"], bar["category"]) for bar in bars] == [(r, c) for r in ("rules", "small") for c in CATEGORIES]
    values = {(bar["reader"], bar["category"]): (bar["accuracy"], bar["unknown"], bar["n"]) for bar in bars}
    assert values["rules", "negative"] == (1.0, 0.0, 1) and values["small", "negative"] == (0.0, 1.0, 1)
    assert values["small", "affordance"] == (None, None, 0)


def test_accuracy_of_an_episode() -> None:
    rows = [{"correct": True, "unknown": False}, {"correct": False, "unknown": True}]
    assert accuracy(rows) == 0.5 and accuracy(rows, "left_out") == 1.0 and accuracy([]) is None


# --------------------------------------------------------------------------------------------------------------- alignment


def test_fidelity_is_the_share_of_what_can_be_judged() -> None:
    verdict = Alignment(right=1, wrong=(("spatial", 1), ("absent", 0)), unjudged=0, found=1, places=2)
    assert fidelity(verdict) == pytest.approx(1 / 3)
    assert fidelity(Alignment(0, (), 3, 0, 0)) is None


def test_fidelity_and_coverage_of_a_run() -> None:
    aligned = {"right": 9, "wrong": [["spatial", 0]], "unjudged": 2, "found": 1, "places": 4}
    summary = summarise_map_qa([_record("a", alignment=aligned), _record("b", alignment={**aligned, "found": 3})])
    assert summary.fidelity.value == 0.9 and summary.coverage.value == 0.5
