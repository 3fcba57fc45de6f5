"""Measures of sparse tasks (paper 004): completion steps, return localisation, what the vision model was asked and said."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agentexp.metrics.wise_tasks import NOTE, VIEWS, run_of
from agentexp.records import Record

Part = tuple[float, float]
Of = Callable[[Record, Any], Part | None]


def won_steps(record: Record, at: Any) -> Part | None:
    """Ticks of a successful episode."""
    return (float(record["steps"]), 1.0) if NOTE in record["notes"] and record["success"] else None


def returned(record: Record, at: Any) -> Part | None:
    """Ticks from collecting B to the place of A, over the episodes that got there."""
    ticks = record["notes"].get(NOTE, {}).get("returned")
    return None if ticks is None else (float(ticks), 1.0)


def wins(record: Record, at: Any) -> Part | None:
    """Successes; `at`: of one run of 50 episodes, from 0; None: of all."""
    note = record["notes"].get(NOTE)
    return (float(bool(record["success"])), 1.0) if note and at in (None, run_of(note)) else None


def run_size(record: Record, at: Any) -> Part | None:
    """Episodes; `at` as of `wins`."""
    found = wins(record, at)
    return None if found is None else (1.0, 1.0)


def subtask(record: Record, at: Any) -> Part | None:
    """Whether an item was obtained; `at`: its place in the task's own order, from 1."""
    rows = record["notes"].get(NOTE, {}).get("done", ())
    return (float(rows[at - 1]["tick"] is not None), 1.0) if at is not None and len(rows) >= at else None


def memory(name: str) -> Of:
    """A count of the memory's statistics."""

    def of(record: Record, at: Any) -> Part | None:
        value = record["notes"].get(NOTE, {}).get("memory", {}).get(name)
        return None if value is None else (float(value), 1.0)

    return of


def per_call(name: str) -> Of:
    """Tokens per request of a vision model that counts them."""

    def of(record: Record, at: Any) -> Part | None:
        spent = record["notes"].get(NOTE, {}).get("memory", {})
        return (float(spent[name]), float(spent["vlm_calls"])) if spent.get("vlm_calls") and name in spent else None

    return of


def right(part: str, whole: str) -> Of:
    """Precision or recall of labels, where the vision model knows the truth."""

    def of(record: Record, at: Any) -> Part | None:
        labels = record["notes"].get(NOTE, {}).get("labels")
        return (float(labels[part]), float(labels[whole])) if labels and labels[whole] else None

    return of


def step_p99(record: Record, at: Any) -> Part | None:
    """p99 of a control step in CPU milliseconds; a cell is the mean over episodes."""
    value = record["notes"].get(NOTE, {}).get("agent", {}).get("step_cpu_ms", {}).get("p99")
    return None if value is None else (float(value), 1.0)


def view(name: str) -> Of:
    """A value of the views of a scene; `at`: name of one view; None: all that the scene offers."""

    def of(record: Record, at: Any) -> Part | None:
        views = record["notes"].get(VIEWS, {}).get("views", {})
        values = [float(one[name]) for key, one in views.items() if one is not None and at in (None, key)]
        return (sum(values), float(len(values))) if values else None

    return of
