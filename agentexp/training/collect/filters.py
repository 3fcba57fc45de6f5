"""Which episodes become training data (MAP, appendix B.2), and the reasons against the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentexp.paradigms.checks import is_test_split
from agentexp.records import Record

MAP_PARADIGM = "map2k"
ACT_PARADIGM = "react"


@dataclass(frozen=True, slots=True)
class Thresholds:
    """What a map-then-act episode has to reach. The paper has thresholds on both and does not print them; these are ours.

    Attributes:
        accuracy: of the map before wrong entries are deleted: right / (right + wrong).
        coverage: share of the instance's places (ALFWorld: receptacles, ScienceWorld: rooms, TextCraft: what must be fetched)
            that the map knows from inside.
    """

    accuracy: float = 0.95
    coverage: float = 0.5


@dataclass(frozen=True, slots=True)
class Quality:
    """The map of an episode beside the engine; None where nothing was judged or nothing could be found."""

    accuracy: float | None
    coverage: float | None


def quality(record: Record) -> Quality:
    """Accuracy before deletion and coverage of an episode's map."""
    found: Mapping[str, Any] = record.get("notes", {}).get("alignment") or {}
    judged = found.get("right", 0) + len(found.get("wrong", ()))
    accuracy = found["right"] / judged if judged else None
    coverage = found["found"] / found["places"] if found.get("places") else None
    return Quality(accuracy, coverage)


def reason_against(record: Record, thresholds: Thresholds) -> str:
    """Why an episode is no training data, in a few words; empty if it is."""
    if record["status"] != "ok":
        return "harness error"
    if is_test_split(record["task"]["split"]):
        return "test split"
    if not record.get("success"):
        return "not solved"
    if any(_unreadable(step) for step in record.get("trajectory", ())):
        return "unreadable reply"
    if record.get("paradigm") != MAP_PARADIGM:
        return ""
    if "map" not in record.get("notes", {}):
        return "no map"
    found = quality(record)
    if found.accuracy is None or found.accuracy < thresholds.accuracy:
        return f"map accuracy below {thresholds.accuracy:g}"
    if found.coverage is None or found.coverage < thresholds.coverage:
        return f"map coverage below {thresholds.coverage:g}"
    return ""


def _unreadable(step: Mapping[str, Any]) -> bool:
    """A reply in a wrong form. One that asked for an action that is not possible now is a mistake, but in the right form."""
    return step.get("status", "ok") != "ok" and "inadmissible" not in step.get("flags", ())
