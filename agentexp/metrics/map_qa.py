"""Map QA: what a map says about its instance, asked question by question (MAP, appendix C.3 and figure 3).

The world makes the questions from the engine's own state at reset (`HasQuestions`). A question is in scope "observed" when the
exploration saw what it is about, so that it measures the map alone; scope "all" also measures what was explored. Up to three
per category are asked. Answers are graded by string rules; no model judges. "unknown" is counted apart, and is wrong.

The record of an episode holds one note, "map_qa": a list of {"category", "question", "answer", "expected", "correct",
"unknown", "scope"}; "answer" is null for a question that was never put because a limit ended the episode.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Literal

from agentexp.capabilities import Alignment, Question
from agentexp.metrics.resample import Estimate, ratio
from agentexp.metrics.stats import wilson
from agentexp.records import Record

CATEGORIES = ("object_location", "affordance", "negative", "task_reasoning")
PER_CATEGORY = 3
NOTE = "map_qa"

Scope = Literal["observed", "all"]
CountsAs = Literal["wrong", "left_out"]

_NOT_TOLD = re.compile(
    r"\b(?:does(?: not|n't) (?:tell|say|show)|(?:not|n't) (?:know|known|shown|given|stated)|cannot be determined)\b"
)
_LEAD = re.compile(r"^(?:the )?(?:answer|a)(?: is)?\s*:?\s+(?=\S)|^answer:\s*")
_PLACED = re.compile(r"^(?:it is |it's )?(?:(?:in|on|at|to)(?:/on)? )?(?:(?:the|a|an) )?")


# ---------------------------------------------------------------------------------------------------------- what is asked


def turn_text(action: str, observation: str) -> str:
    """One turn of an exploration in the form that `Question.evidence` is written for; the reset has action ""."""
    return f"> {action}\n{observation}" if action else observation


def observed(question: Question, turns: Sequence[str]) -> bool:
    """Whether the exploration has seen what the question is about.

    Args:
        question: must have evidence; one without is never observed.
        turns: from `turn_text`, the reset first.
    """
    patterns = [re.compile(pattern, re.MULTILINE) for pattern in question.evidence]
    return bool(patterns) and all(any(pattern.search(turn) for turn in turns) for pattern in patterns)


def choose(
    pool: Iterable[Question],
    turns: Sequence[str],
    *,
    scope: Scope = "observed",
    per_category: int = PER_CATEGORY,
    seed: int = 0,
) -> list[Question]:
    """The questions to ask: at most so many per category, in the order of the categories.

    Of questions with choices the right answers take turns in an order drawn from `seed`, so that half of the yes/no questions
    over many instances are to be answered with no wherever the exploration allows it.

    Args:
        pool: all questions, in drawn order.
        turns: of the exploration, see `observed`.
    """
    rng, kept = Random(seed), [q for q in pool if scope == "all" or observed(q, turns)]
    chosen: list[Question] = []
    for category in CATEGORIES:
        groups: dict[tuple[str, ...], list[Question]] = {}
        for question in kept:
            if question.category == category:
                key = (*question.choices, question.answers[0]) if question.choices else question.query[:1]
                groups.setdefault(key, []).append(question)
        rows = [groups[key] for key in sorted(groups)]
        rng.shuffle(rows)
        turns_taken = [row[i] for i in range(max(map(len, rows), default=0)) for row in rows if i < len(row)]
        chosen += turns_taken[:per_category]
    return chosen


# ----------------------------------------------------------------------------------------------------------------- grading


@dataclass(frozen=True, slots=True)
class Grade:
    """A graded reply: the answer as it was understood, whether it is right, whether it declines to answer."""

    answer: str
    correct: bool
    unknown: bool


def grade(question: Question, reply: str) -> Grade:
    """Grade a reply by string rules.

    The last line that is not empty counts, in lower case, without quotes, "Answer:", articles and prepositions. It is right if
    it equals a right answer, or if all names (or choices) that it mentions are right ones: "mug 1 is on desk 1". Several
    names of which one is wrong are a hedge, and wrong. Of yes and no the first word counts.
    """
    line = next((part for part in reversed(reply.lower().splitlines()) if part.strip()), "")
    text = _LEAD.sub("", " ".join(line.split()).strip("\"'`*.- ")).strip("\"'`*. ")
    right = {answer.lower() for answer in question.answers}
    options = [name.lower() for name in question.choices or question.names]
    if set(options) == {"yes", "no"}:
        first = re.match(r"\w+", text)
        said = {first[0]} & set(options) if first else set()
    else:
        plain = _PLACED.sub("", text, count=1)
        said = {plain} if plain in right else _mentioned(text, options, question.entity.lower())
    if said:
        return Grade(text, said <= right, False)
    return Grade(text, False, text.startswith("unknown") or "unknown" in text.split() or bool(_NOT_TOLD.search(text)))


def _mentioned(text: str, options: Sequence[str], entity: str) -> set[str]:
    """The options that occur as whole words, longest first, each stretch of text once. What was asked about is no answer."""
    found = set[str]()
    if entity and not any(entity in option for option in options):
        text = re.sub(rf"\b{re.escape(entity)}\b", " ", text)
    for option in sorted(set(options), key=len, reverse=True):
        pattern = rf"(?<!\w){re.escape(option)}(?!\w)"
        if re.search(pattern, text):
            found.add(option)
            text = re.sub(pattern, "\0", text)
    return found


def row(question: Question, scope: Scope, reply: str | None = None) -> dict[str, Any]:
    """One entry of the note; without a reply, of a question that was not put."""
    graded = grade(question, reply) if reply is not None else Grade("", False, True)
    return {
        "category": question.category,
        "question": question.text,
        "answer": graded.answer if reply is not None else None,
        "expected": list(question.answers),
        "correct": graded.correct,
        "unknown": graded.unknown,
        "scope": scope,
    }


def accuracy(rows: Iterable[Mapping[str, Any]], unknown_counts_as: CountsAs = "wrong") -> float | None:
    """Share of right answers; None without a question."""
    counted = [r for r in rows if unknown_counts_as == "wrong" or not r["unknown"]]
    return sum(bool(r["correct"]) for r in counted) / len(counted) if counted else None


# ----------------------------------------------------------------------------------------------------------------- summary


@dataclass(frozen=True, slots=True)
class CategoryResult:
    """One category over a run (a bar of figure 3).

    Attributes:
        accuracy: pooled over questions, with a bootstrap over instances (their questions are not independent).
        wilson: 95 % interval as if they were; None without a question.
        unknown: share of "unknown" among all questions; None without one.
        n: questions.
        instances: instances with at least one.
    """

    accuracy: Estimate
    wilson: tuple[float, float] | None
    unknown: float | None
    n: int
    instances: int


@dataclass(frozen=True, slots=True)
class MapQaSummary:
    """Map QA of one run.

    Attributes:
        by_category: every category, also those without a question.
        overall: all questions together.
        fidelity: right entries of the maps among the judged ones, pooled; bootstrap over instances.
        coverage: places that the maps know among all there are, mean over instances.
        excluded: episodes left out because of harness errors.
    """

    by_category: dict[str, CategoryResult]
    overall: CategoryResult
    fidelity: Estimate
    coverage: Estimate
    excluded: int


def summarise_map_qa(records: Iterable[Record], unknown_counts_as: CountsAs = "wrong") -> MapQaSummary:
    """The numbers of figure 3 from the episodes of one run.

    Repeats and seeds of an instance are one cluster of the bootstrap.
    """
    everything = list(records)
    finished = [record for record in everything if record["status"] == "ok"]
    noted = [(record["task"]["id"], record["notes"].get(NOTE) or []) for record in finished]
    checked = [record["notes"]["alignment"] for record in finished if record["notes"].get("alignment")]
    judged = [a["right"] + len(a["wrong"]) for a in checked]
    seen = [a["found"] / a["places"] for a in checked if a["places"]]
    return MapQaSummary(
        by_category={name: _result(noted, name, unknown_counts_as) for name in CATEGORIES},
        overall=_result(noted, "", unknown_counts_as),
        fidelity=ratio([a["right"] for a in checked], judged),
        coverage=ratio(seen, [1.0] * len(seen)),
        excluded=len(everything) - len(finished),
    )


def _result(noted: Sequence[tuple[str, list[dict[str, Any]]]], category: str, counts_as: CountsAs) -> CategoryResult:
    right: dict[str, int] = {}
    counted: dict[str, int] = {}
    unknown = asked = 0
    for instance, rows in noted:
        for entry in rows:
            if category and entry["category"] != category:
                continue
            asked, unknown = asked + 1, unknown + bool(entry["unknown"])
            if counts_as == "left_out" and entry["unknown"]:
                continue
            right[instance] = right.get(instance, 0) + bool(entry["correct"])
            counted[instance] = counted.get(instance, 0) + 1
    total = sum(counted.values())
    return CategoryResult(
        accuracy=ratio([right[key] for key in counted], list(counted.values())),
        wilson=wilson(sum(right.values()), total) if total else None,
        unknown=unknown / asked if asked else None,
        n=asked,
        instances=len(counted),
    )


def figure3(runs: Mapping[str, Iterable[Record]], unknown_counts_as: CountsAs = "wrong") -> list[dict[str, Any]]:
    """The bars of figure 3: one row per reader and category, {"reader", "category", "accuracy", "low", "high", "unknown", "n",
    "instances"}. Values in [0, 1]; None where nothing was asked.

    Args:
        runs: label of the bar -> its episodes; several worlds in one run are pooled, so give one world at a time.
    """
    bars = []
    for reader, records in runs.items():
        for category, result in summarise_map_qa(records, unknown_counts_as).by_category.items():
            estimate = result.accuracy
            bars.append(
                {
                    "reader": reader,
                    "category": category,
                    "accuracy": estimate.value,
                    "low": estimate.low,
                    "high": estimate.high,
                    "unknown": result.unknown,
                    "n": result.n,
                    "instances": result.instances,
                }
            )
    return bars


# --------------------------------------------------------------------------------------------------------------- alignment


def fidelity(alignment: Alignment) -> float | None:
    """right / (right + wrong) of a map (appendix B.2); None where nothing can be judged."""
    judged = alignment.right + len(alignment.wrong)
    return alignment.right / judged if judged else None
