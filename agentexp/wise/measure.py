"""Exploration of many seeds: which explorer a method's name means, one record per episode, means over seeds, tables.

from agentexp.wise.measure import measure, table
text = table(measure("wise", size=128, seeds=range(10)))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from agentexp.errors import UserError
from agentexp.wise.core import Explorer
from agentexp.wise.explore.count_based import CountBased
from agentexp.wise.explore.sweep import Sweep
from agentexp.wise.explore.walk import Walk
from agentexp.wise.explore.wise import WiseExplorer
from agentexp.wise.explore_task import Exploration, explore
from agentexp.wise.navigate import WALK_WITHIN, Navigator
from agentexp.wise.worlds.flat import FlatWorld

METHODS = ("wise", "wise_regional", "wise_quadtree", "mrsteve", "steve1", "sweep")
SWEEP_WALK_WITHIN = 20.0


def explorer(method: str, turn_per_step: float | None = 30.0, **settings: Any) -> Explorer:
    """The explorer of a method of tables 1 and 3a, with `settings` for its constructor.

    Raises:
        UserError: for an unknown name.
    """
    tiers = {"wise": "all", "wise_regional": "global+regional", "wise_quadtree": "global"}
    if method in tiers:
        return WiseExplorer(tiers=tiers[method], turn_per_step=turn_per_step, **settings)  # type: ignore[arg-type]
    if method == "mrsteve":
        return CountBased(**settings)
    if method == "steve1":
        return Walk(**settings)
    if method == "sweep":
        return Sweep(**settings)
    raise UserError(f"method={method!r} explores in no way; choose one of {', '.join(METHODS)}.")


def measure(
    method: str,
    size: int = 128,
    seeds: Iterable[int] = range(10),
    budget: int | None = None,
    world: dict[str, Any] | None = None,
    settings: dict[str, Any] | None = None,
    each: Callable[[Exploration], None] | None = None,
) -> list[dict[str, Any]]:
    """Records of one method over seeds in the flat world, one after the other.

    Args:
        method: of `METHODS`.
        size: side of the map.
        seeds: of world and explorer alike; the same for every method makes them paired.
        budget: steps; the paper's by default.
        world: further settings of `FlatWorld`.
        settings: of the explorer.
        each: called with every finished episode, for pictures and progress.
    """
    world = world or {}
    turn = world.get("turn_per_step", 30.0)
    walk_within = SWEEP_WALK_WITHIN if method == "sweep" else WALK_WITHIN
    records = []
    for seed in seeds:
        episode = explore(
            FlatWorld(size=size, **world),
            explorer(method, turn, **(settings or {})),
            seed,
            budget,
            Navigator(turn, walk_within),
        )
        if each is not None:
            each(episode)
        records.append({"method": method, **episode.record()})
    return records


def mean(values: Sequence[float | None]) -> tuple[float, float] | None:
    """Mean and its standard error; None when any value is missing, since a mean of the others would flatter."""
    if not values or any(value is None for value in values):
        return None
    numbers = np.array(values, float)
    error = float(numbers.std(ddof=1) / np.sqrt(len(numbers))) if len(numbers) > 1 else float("nan")
    return float(numbers.mean()), error


def summary(records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Mean and standard error of everything, with how many episodes reached t90 and t99."""
    first = records[0]
    result: dict[str, Any] = {"method": first["method"], "size": first["size"], "episodes": len(records)}
    for mark in first["marks"]:
        result[f"at_{mark}"] = mean([record["marks"][mark] for record in records])
    for name in ("final", "t90", "t99", "auc", "rate"):
        result[name] = mean([record[name] for record in records])
    for name in ("t90", "t99"):
        result[f"{name}_reached"] = sum(record[name] is not None for record in records)
    for name in ("decision_ms", "decision_cpu_ms"):
        result[f"{name}_p99"] = max(record["explorer"][name].get("p99", 0.0) for record in records)
    return result


def table(*groups: Sequence[dict[str, Any]]) -> str:
    """Markdown, one row per group of records (of one size); shares in percent, mean ± standard error."""
    rows = [summary(group) for group in groups]
    marks = [name for name in rows[0] if name.startswith("at_")]
    head = ["method", "n", *(name.removeprefix("at_") for name in marks), "t90", "t99", "AUC", "decision p99, CPU ms"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for row in rows:
        cells = [row["method"], str(row["episodes"])]
        cells += [_show(row[name], 100, 1) for name in marks]
        cells += [_show(row[name], 1, 0, row["episodes"], row[f"{name}_reached"]) for name in ("t90", "t99")]
        cells += [_show(row["auc"], 1, 3), f"{row['decision_cpu_ms_p99']:.2f}"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _show(value: tuple[float, float] | None, scale: float, digits: int, episodes: int = 0, reached: int = 0) -> str:
    if value is None:
        return f"reached by {reached} of {episodes}"
    return f"{value[0] * scale:.{digits}f} ± {value[1] * scale:.{digits}f}"
