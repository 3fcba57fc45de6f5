"""Sparse tasks of paper 004 over the episodes of a run: beyond success and steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

NOTE = "wise"  # the note of an episode that holds its record
VIEWS = "viewpoints"  # the note that holds a scene of the viewpoint test (table 7)
RUN_LENGTH = 50  # the paper's runs: seeds 0 to 49 are the first, 50 to 99 the second


def run_of(record: Mapping[str, Any]) -> int:
    """Which of the paper's runs an episode belongs to, from 0."""
    return int(record["seed"]) // RUN_LENGTH


def summarise_tasks(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Means and counts over episodes.

    Args:
        records: `notes["wise"]` of the finished episodes, at least one.

    Returns:
        "completion_steps": mean over successful episodes; "return_localisation": mean ticks over those that got back (ABA);
        "subtasks_done": share of episodes by item; "runs": [successes, episodes] of each run; "keyframes", "vision_requests",
        "vision_failures", "graph_nodes": means per episode, None where the method has none; "mode_share"; "step_cpu_ms_p99" and
        "choice_cpu_ms_p99": the worst episode's.
    """
    won = [record["steps"] for record in records if record["success"]]
    back = [record["returned"] for record in records if record["returned"] is not None]
    runs: dict[int, list[int]] = {}
    for record in records:
        counts = runs.setdefault(run_of(record), [0, 0])
        counts[0] += bool(record["success"])
        counts[1] += 1
    modes = records[0]["agent"]["mode_share"]
    return {
        "completion_steps": mean(won),
        "return_localisation": mean(back),
        "subtasks_done": {
            f"{i + 1} {row['target']}": mean([float(record["done"][i]["tick"] is not None) for record in records])
            for i, row in enumerate(records[0]["done"])
        },
        "runs": [runs[i] for i in sorted(runs)],
        "keyframes": _of_memory(records, "keyframes"),
        "vision_requests": _of_memory(records, "requests"),
        "vision_failures": _of_memory(records, "failures"),
        "graph_nodes": _of_memory(records, "nodes"),
        "mode_share": {mode: mean([record["agent"]["mode_share"][mode] for record in records]) for mode in modes},
        "step_cpu_ms_p99": max(record["agent"]["step_cpu_ms"].get("p99", 0.0) for record in records),
        "choice_cpu_ms_p99": max(record["agent"]["choice_cpu_ms"].get("p99", 0.0) for record in records),
    }


def mean(values: Sequence[float]) -> float | None:
    """None for no values."""
    return sum(values) / len(values) if values else None


def _of_memory(records: Sequence[Mapping[str, Any]], name: str) -> float | None:
    return mean([record["memory"][name] for record in records if name in record["memory"]])
