"""How much of a map was seen, over the episodes of a WISE run (paper 004, appendix A.5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

NOTE = "coverage"  # the note of an episode that holds its record


def summarise_maps(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Means over episodes.

    Args:
        records: `notes["coverage"]` of the finished episodes, at least one.

    Returns:
        "method"; "coverage": share seen at the end, in [0, 1]; "coverage_at": by mark in steps; "coverage_auc"; "t90" and
        "t99": mean steps, None unless every episode got there, since a mean of the others would flatter; "t90_reached" and
        "t99_reached": episodes that did; "decision_cpu_ms_p99": the worst episode's.
    """

    def mean(values: Sequence[float]) -> float:
        return sum(values) / len(values)

    times = {}
    for name in ("t90", "t99"):
        reached = [record[name] for record in records if record[name] is not None]
        times[name] = mean(reached) if len(reached) == len(records) else None
        times[f"{name}_reached"] = len(reached)
    marks = [mark for mark in records[0]["marks"] if all(mark in record["marks"] for record in records)]
    return {
        "method": records[0].get("method", ""),
        "coverage": mean([record["final"] for record in records]),
        "coverage_at": {mark: mean([record["marks"][mark] for record in records]) for mark in marks},
        "coverage_auc": mean([record["auc"] for record in records]),
        **times,
        "decision_cpu_ms_p99": max(record["explorer"]["decision_cpu_ms"].get("p99", 0.0) for record in records),
    }
