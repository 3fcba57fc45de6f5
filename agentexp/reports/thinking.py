"""What episodes say of exploring, thinking and trying again (paper 003), as (part, whole) for `agentexp.reports.measures`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from agentexp.metrics.exploration import TRIALS, exploration
from agentexp.records import Record

Part = tuple[float, float]

THOUGHTS = "thoughts"
"""The note of a thinker's thoughts, see `agentexp.paradigms.ttexplore`."""
CHOSEN = "chosen_trial"
"""The note of the attempt that is the result, see `agentexp.paradigms.trials`."""


def progress(record: Record, at: Any) -> Part:
    """The process score: the best score of the acting phase, of the attempt that counts where there were several.

    The worlds' scores are AgentBoard's progress rates; taking the best makes the rate monotone where a world can take points.
    """
    notes = record["notes"]
    if trials := notes.get(TRIALS):
        return float(trials[notes.get(CHOSEN, -1)]["score"]), 1.0
    scores = [step["score"] for step in record["trajectory"] if step["phase"] == "acting"]
    return float(max([record["score"], *scores])), 1.0


def counts(name: str) -> Callable[[Record, Any], Part | None]:
    """A rate per acting step, see `agentexp.metrics.exploration`."""

    def of(record: Record, at: Any) -> Part | None:
        found = exploration(record)
        return (float(getattr(found, name)), float(found.steps)) if found.steps else None

    return of


def tokens_of_role(record: Record, at: Any) -> Part | None:
    """Prompt and completion tokens of a role; `at`: the role."""
    if at is None:
        return None
    usage = record.get("usage_by_role", {}).get(at) or {}
    return float(usage.get("prompt_tokens", 0) + usage.get("completion_tokens", 0)), 1.0


def thoughts(record: Record, at: Any) -> Part | None:
    """How often the thinker was asked, where there was one."""
    return (float(len(_thoughts(record))), 1.0) if THOUGHTS in record["notes"] else None


def unreadable(record: Record, at: Any) -> Part | None:
    """Thoughts that could not be read, or whose history did not fit, of all."""
    found = _thoughts(record)
    return (float(sum(not thought["text"] for thought in found)), float(len(found))) if found else None


def rule_met(record: Record, at: Any) -> Part | None:
    """Whether the episode ran into a hidden rule; `at`: see `_rule`."""
    met, _ = _rule(record, at)
    return (float(met), 1.0) if at is not None else None


def rule_hit(record: Record, at: Any) -> Part | None:
    """Whether a thought says the rule, of the episodes that ran into it and had a thinker."""
    met, hit = _rule(record, at)
    return (float(hit), 1.0) if met and THOUGHTS in record["notes"] else None


def success_given(hit: bool) -> Callable[[Record, Any], Part | None]:
    """Success of the episodes that ran into the rule and whose thoughts say it (or do not)."""

    def of(record: Record, at: Any) -> Part | None:
        met, said = _rule(record, at)
        return (float(bool(record["success"])), 1.0) if met and THOUGHTS in record["notes"] and said is hit else None

    return of


def first_success(record: Record, at: Any) -> Part:
    """Success of an attempt, mean over the attempts of an episode (pass@1); the episode's own where there was only one."""
    trials = record["notes"].get(TRIALS)
    return (float(sum(trial["success"] for trial in trials)), float(len(trials))) if trials else (float(record["success"]), 1.0)


def _thoughts(record: Record) -> list[Mapping[str, Any]]:
    return list(record["notes"].get(THOUGHTS) or ())


def _rule(record: Record, at: Any) -> tuple[bool, bool]:
    """(the rule was met, a thought said it).

    Args:
        at: "REFUSED => SAID", two regular expressions: an action that is refused where the rule holds, and how it is said.
    """
    if at is None:
        return False, False
    refused, _, said = str(at).partition(" => ")
    met = any(
        (step["error"] or step["status"] != "ok") and re.search(refused, step["action"] or step.get("rewrite") or "", re.I)
        for step in record["trajectory"]
    )
    return met, any(re.search(said, thought["text"], re.I) for thought in _thoughts(record))
