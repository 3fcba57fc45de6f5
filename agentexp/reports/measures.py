"""What a cell can show: each measure reads one episode record as a fraction (part, whole), and a cell is sum over sum.

With a whole of 1 that is a mean over episodes; otherwise a rate per step, per error or per question. Episodes that a measure
returns None for do not belong to its population (ECC without checkpoints, delta steps without a change).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from agentexp.metrics.arc import levels_of_episode, rhae_of_episode
from agentexp.metrics.behaviour import INFO_ACTIONS, Behaviour, behaviour, looping, recovered, repeated
from agentexp.metrics.ecc import ecc_of_episode
from agentexp.metrics.efficiency import cost_of_episode
from agentexp.metrics.map_coverage import NOTE as MAP_COVERAGE
from agentexp.metrics.map_qa import NOTE as MAP_QA
from agentexp.metrics.perturbation import NOTE as PERTURBATION
from agentexp.metrics.perturbation import reexplored
from agentexp.records import Record
from agentexp.reports import thinking, wise_measures

Part = tuple[float, float]
Key = tuple[str, Any]
"""(name, parameter) of a measure as a cell uses it."""


@dataclass(frozen=True, slots=True)
class Measure:
    """One measure.

    Attributes:
        of: (record, parameter) -> (part, whole), or None.
        counts: what n counts.
        percent: printed in percent.
        binary: the part is 0 or 1 and the whole 1: a rate with a Wilson interval.
        total: the sum is shown, not the mean.
        digits: decimals.
        pooled: the wholes are counts of something in the episode (steps, questions), which n counts.
    """

    of: Callable[[Record, Any], Part | None]
    counts: str = "episodes"
    percent: bool = False
    binary: bool = False
    total: bool = False
    digits: int = 1
    pooled: bool = False


def read(record: Record, keys: Collection[Key]) -> Mapping[Key, Part]:
    """The values of some measures for one finished episode."""
    found = {key: MEASURES[key[0]].of(record, key[1]) for key in keys}
    return {key: value for key, value in found.items() if value is not None}


def _success(record: Record, at: Any) -> Part:
    return float(bool(record["success"])), 1.0


def _steps(record: Record, at: Any) -> Part:
    """`at`: a phase; None: all of them."""
    return float(record["steps"] if at is None else record["steps_by_phase"].get(at, 0)), 1.0


def _explored(record: Record, at: Any) -> Part | None:
    """Steps whose knowledge was used."""
    note = record["notes"].get("exploration")
    return (float(note["steps"]), 1.0) if note else None


def _premature(record: Record, at: Any) -> Part | None:
    note = record["notes"].get("exploration")
    return (float(note["premature"]), 1.0) if note else None


def _ecc(record: Record, at: Any) -> Part | None:
    """`at`: coverage after so many steps; None: at the end of the steps that were used."""
    ecc, note = ecc_of_episode(record), record["notes"].get("exploration") or {}
    value = ecc.at(int(note.get("budget", 10**9) if at is None else at)) if ecc else None
    return (value, 1.0) if value is not None else None


def _reexplored(record: Record, at: Any) -> Part | None:
    note = record["notes"].get(PERTURBATION)
    if not note:
        return None
    seen = behaviour(record)
    return float(reexplored(seen.actions, int(note["step"]), list(note["origins"]), seen.errors)), 1.0


def _delta_steps(record: Record, at: Any) -> Part | None:
    """L - t - 1 of eq. 10."""
    note = record["notes"].get(PERTURBATION)
    return (float(len(behaviour(record).actions) - int(note["step"]) - 1), 1.0) if note else None


def _trace(name: str) -> Callable[[Record, Any], Part | None]:
    def of(record: Record, at: Any) -> Part | None:
        """`at`: mapping step, from 1. Episodes that stopped earlier are left out."""
        rows = record["notes"].get("stop_trace") or ()
        return next(((float(row[name]), 1.0) for row in rows if row["t"] == at), None)

    return of


def _stopped(record: Record, at: Any) -> Part | None:
    """Whether mapping had ended by step `at` by the rule (converged) and not by the budget."""
    stop = record["notes"].get("stop")
    return (float(stop["reason"] == "converged" and stop["t"] <= at), 1.0) if stop else None


def _questions(name: str) -> Callable[[Record, Any], Part | None]:
    def of(record: Record, at: Any) -> Part | None:
        """`at`: a category of `agentexp.metrics.map_qa`; None: all."""
        rows = [row for row in record["notes"].get(MAP_QA) or () if at is None or row["category"] == at]
        return (float(sum(bool(row[name]) for row in rows)), float(len(rows))) if rows else None

    return of


def _cost(name: str) -> Callable[[Record, Any], Part | None]:
    def of(record: Record, at: Any) -> Part | None:
        value = getattr(cost_of_episode(record), name)
        return (float(value), 1.0) if value is not None else None

    return of


def _map_seen(record: Record, at: Any) -> Part | None:
    """`at`: share seen after so many steps; None: at the end of the episode."""
    note = record["notes"].get(MAP_COVERAGE)
    if note is None or (at is not None and int(at) > note["budget"]):
        return None
    if at is None:
        return float(note["final"]), 1.0
    if str(at) in note["marks"]:
        return float(note["marks"][str(at)]), 1.0
    curve = note["curve"]  # every 10th step; an episode with nothing left to explore keeps its last value
    return curve[min(int(at) // 10, len(curve) - 1)] / note["total"], 1.0


def _map_number(name: str) -> Callable[[Record, Any], Part | None]:
    def of(record: Record, at: Any) -> Part | None:
        value = record["notes"].get(MAP_COVERAGE, {}).get(name)
        return (float(value), 1.0) if value is not None else None

    return of


def _rhae(*, completion_cap: bool) -> Callable[[Record, Any], Part | None]:
    def of(record: Record, at: Any) -> Part | None:
        """`at`: a game by its kind ("tu93"); None: all."""
        value = rhae_of_episode(record, completion_cap=completion_cap) if _is_kind(record, at) else None
        return (value, 1.0) if value is not None else None

    return of


def _levels(record: Record, at: Any) -> Part | None:
    """`at`: a game by its kind; None: all."""
    found = levels_of_episode(record) if _is_kind(record, at) else None
    return (float(found[0]), 1.0) if found else None


def _levels_share(record: Record, at: Any) -> Part | None:
    """`at`: a game by its kind; None: all."""
    found = levels_of_episode(record) if _is_kind(record, at) else None
    return (found[0] / found[1], 1.0) if found else None


def _is_kind(record: Record, kind: Any) -> bool:
    return kind is None or record["task"].get("kind") == kind


def _of_failed(count: Callable[[Behaviour, re.Pattern[str]], Part]) -> Callable[[Record, Any], Part | None]:
    def of(record: Record, at: Any) -> Part | None:
        """`at`: regular expression of actions that only gather information, as in the world's card."""
        return None if record["success"] else count(behaviour(record), re.compile(at or INFO_ACTIONS))

    return of


MEASURES: Mapping[str, Measure] = {
    "success": Measure(_success, percent=True, binary=True),
    "instances": Measure(lambda record, at: (1.0, 1.0), total=True, digits=0),
    "steps": Measure(_steps),
    "explored_steps": Measure(_explored, "explorations"),
    "premature": Measure(_premature, "explorations", percent=True, binary=True),
    "ecc": Measure(_ecc, "explorations of instances with checkpoints", percent=True),
    "reexplored": Measure(_reexplored, "rollouts in which the target was moved", percent=True, binary=True),
    "delta_steps": Measure(_delta_steps, "rollouts in which the target was moved"),
    "delta_k": Measure(_trace("delta_k"), "episodes still mapping at that step", digits=2),
    "novelty": Measure(_trace("novelty"), "episodes still mapping at that step", digits=2),
    "window_mean": Measure(_trace("window_mean"), "episodes still mapping at that step", digits=2),
    "converged": Measure(_stopped, "mapped episodes", percent=True, binary=True),
    "map_qa": Measure(_questions("correct"), "questions", percent=True, pooled=True),
    "map_qa_unknown": Measure(_questions("unknown"), "questions", percent=True, pooled=True),
    "map_seen": Measure(_map_seen, "maps", percent=True),
    "map_rate": Measure(_map_number("rate"), "maps", percent=True, digits=2),
    "map_auc": Measure(_map_number("auc"), "maps", percent=True),
    "map_t90": Measure(_map_number("t90"), "maps of which 90 % were seen", digits=0),
    "map_t99": Measure(_map_number("t99"), "maps of which 99 % were seen", digits=0),
    "won_steps": Measure(wise_measures.won_steps, "successful episodes", digits=0),
    "returned": Measure(wise_measures.returned, "episodes that got back", digits=0),
    "wins": Measure(wise_measures.wins, total=True, digits=0),
    "run_size": Measure(wise_measures.run_size, total=True, digits=0),
    "subtask": Measure(wise_measures.subtask, percent=True, binary=True),
    "keyframes": Measure(wise_measures.memory("keyframes"), digits=0),
    "vision_requests": Measure(wise_measures.memory("requests")),
    "vision_failures": Measure(wise_measures.memory("failures")),
    "vision_seconds": Measure(wise_measures.memory("seconds_per_request"), digits=2),
    "vision_cost": Measure(wise_measures.memory("cost"), digits=2),
    "vision_tokens_in": Measure(wise_measures.per_call("prompt_tokens"), "requests", digits=0, pooled=True),
    "vision_tokens_out": Measure(wise_measures.per_call("completion_tokens"), "requests", digits=0, pooled=True),
    "graph_nodes": Measure(wise_measures.memory("nodes"), digits=0),
    "graph_edges": Measure(wise_measures.memory("edges"), digits=0),
    "entity_precision": Measure(
        wise_measures.right("right_entities", "entities"), "predicted entities", percent=True, pooled=True
    ),
    "entity_recall": Measure(wise_measures.right("right_entities", "shown"), "entities shown", percent=True, pooled=True),
    "relation_precision": Measure(
        wise_measures.right("right_relations", "relations"), "predicted relations", percent=True, pooled=True
    ),
    "view_features": Measure(wise_measures.view("features"), "views", percent=True, pooled=True),
    "view_stored": Measure(wise_measures.view("stored"), "views", percent=True, pooled=True),
    "view_labels": Measure(wise_measures.view("labels"), "views", percent=True, pooled=True),
    "view_features_false": Measure(wise_measures.view("features_false"), "views without water", percent=True, pooled=True),
    "view_labels_false": Measure(wise_measures.view("labels_false"), "views without water", percent=True, pooled=True),
    "view_visible": Measure(wise_measures.view("visible"), "views", percent=True, pooled=True),
    "view_pixels": Measure(wise_measures.view("pixels"), "views", pooled=True),
    "step_p99": Measure(wise_measures.step_p99, digits=2),
    "turns": Measure(_cost("turns")),
    "calls": Measure(_cost("calls")),
    "tokens": Measure(_cost("tokens"), digits=0),
    "rhae": Measure(_rhae(completion_cap=True), "games", digits=2),
    "rhae_uncapped": Measure(_rhae(completion_cap=False), "games", digits=2),
    "levels": Measure(_levels, "games", digits=2),
    "levels_share": Measure(_levels_share, "games", percent=True),
    "seconds": Measure(_cost("seconds")),
    "progress": Measure(thinking.progress, percent=True),
    "action_diversity": Measure(thinking.counts("actions"), "acting steps", percent=True, pooled=True),
    "observation_diversity": Measure(thinking.counts("observations"), "acting steps", percent=True, pooled=True),
    "repetition": Measure(thinking.counts("repeated"), "acting steps", percent=True, pooled=True),
    "invalid": Measure(thinking.counts("invalid"), "acting steps", percent=True, pooled=True),
    "role_tokens": Measure(thinking.tokens_of_role, digits=0),
    "thoughts": Measure(thinking.thoughts),
    "unreadable_thoughts": Measure(thinking.unreadable, "thoughts", percent=True, pooled=True),
    "rule_met": Measure(thinking.rule_met, percent=True, binary=True),
    "rule_hit": Measure(thinking.rule_hit, "episodes that met the rule", percent=True, binary=True),
    "success_hit": Measure(thinking.success_given(True), "episodes that met the rule and said it", percent=True, binary=True),
    "success_no_hit": Measure(
        thinking.success_given(False), "episodes that met the rule and did not say it", percent=True, binary=True
    ),
    "first_success": Measure(thinking.first_success, "attempts", percent=True, pooled=True),
    "repeated": Measure(
        _of_failed(lambda b, info: (float(repeated(b.actions)), float(max(len(b.actions) - 1, 0)))),
        "steps of failed episodes that have a step before them",
        percent=True,
        pooled=True,
    ),
    "loop": Measure(
        _of_failed(lambda b, info: (float(len(looping(b.actions))), float(len(b.actions)))),
        "steps of failed episodes",
        percent=True,
        pooled=True,
    ),
    "info_seeking": Measure(
        _of_failed(lambda b, info: (float(sum(bool(a and info.search(a)) for a in b.actions)), float(len(b.actions)))),
        "steps of failed episodes",
        percent=True,
        pooled=True,
    ),
    "recovery": Measure(
        _of_failed(lambda b, info: (float(recovered(b, 3, info)), float(sum(b.errors)))),
        "errors in failed episodes",
        percent=True,
        pooled=True,
    ),
    "recovery_1": Measure(
        _of_failed(lambda b, info: (float(recovered(b, 1, info)), float(sum(b.errors)))),
        "errors in failed episodes",
        percent=True,
        pooled=True,
    ),
}
