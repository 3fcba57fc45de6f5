"""What an episode costs (MAP, figure 4): turns, model calls, tokens, money and wall time.

Turns are environment steps of all phases. Calls and tokens are those of every role, the extractor included. An exploration that
was read from a file counts with what it cost when it was made: knowledge is cheaper to use again, but not free to get.

Stage 1 is paid once per world and model, not per episode: it is reported as it is, and amortised over the episodes beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from agentexp.metrics.resample import Estimate, ratio
from agentexp.records import Record


@dataclass(frozen=True, slots=True)
class Cost:
    """Costs of one episode, or of many (they add up).

    Attributes:
        turns: environment steps.
        calls: model calls.
        prompt_tokens: of all calls.
        completion_tokens: of all calls.
        dollars: None where no price is known.
        seconds: wall time.
    """

    turns: float = 0
    calls: float = 0
    prompt_tokens: float = 0
    completion_tokens: float = 0
    dollars: float | None = None
    seconds: float = 0.0

    @property
    def tokens(self) -> float:
        """Prompt and completion tokens."""
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: Cost) -> Cost:
        values: dict[str, Any] = {f.name: _sum(getattr(self, f.name), getattr(other, f.name)) for f in fields(Cost)}
        return Cost(**values)

    def per(self, n: int) -> Cost:
        """Spread over n episodes."""
        values: dict[str, Any] = {f.name: None if (v := getattr(self, f.name)) is None else v / n for f in fields(Cost)}
        return Cost(**values)


@dataclass(frozen=True, slots=True)
class Efficiency:
    """Means per episode with intervals over episodes.

    Attributes:
        turns: environment steps.
        calls: model calls.
        tokens: prompt and completion tokens.
        prompt_tokens: prompt tokens.
        completion_tokens: completion tokens.
        dollars: over the episodes whose price is known (its n).
        seconds: wall time.
        stage1: what stage 1 cost, once; None where there was none.
        stage1_per_episode: the same, spread over these episodes.
        n: episodes; harness errors are left out of the means.
        excluded: harness errors.
    """

    turns: Estimate
    calls: Estimate
    tokens: Estimate
    prompt_tokens: Estimate
    completion_tokens: Estimate
    dollars: Estimate
    seconds: Estimate
    stage1: Cost | None
    stage1_per_episode: Cost | None
    n: int
    excluded: int


def cost_of_episode(record: Record) -> Cost:
    """The cost of one record, with what a cached exploration and its summary cost when they were made."""
    usage = record["usage"]
    cost = Cost(turns=record["steps"], seconds=record["seconds"]) + _cost(usage)
    exploration = record.get("notes", {}).get("exploration", {})
    if exploration.get("cached"):
        cost += _cost(exploration["usage"]) + Cost(seconds=exploration.get("seconds", 0.0))
    if exploration.get("summary_cached"):
        cost += _cost(exploration["summary_usage"])
    return cost


def cost_of_run(records: Iterable[Record], setup: Mapping[str, Any] | None = None) -> Cost:
    """Everything that a run cost, failed episodes included: stage 1 from the records of its explore run.

    Args:
        records: all records of the run.
        setup: usage of the model calls outside the episodes, as in `summary.json`.
    """
    total = _cost(setup) if setup else Cost()
    for record in records:
        total += cost_of_episode(record)
    return total


def efficiency(records: Iterable[Record], stage1: Cost | None = None) -> Efficiency:
    """Means over the episodes of a run.

    Args:
        stage1: from `cost_of_run` over the explore run.
    """
    everything = list(records)
    costs = [cost_of_episode(record) for record in everything if record["status"] == "ok"]
    return Efficiency(
        turns=_mean([cost.turns for cost in costs]),
        calls=_mean([cost.calls for cost in costs]),
        tokens=_mean([cost.tokens for cost in costs]),
        prompt_tokens=_mean([cost.prompt_tokens for cost in costs]),
        completion_tokens=_mean([cost.completion_tokens for cost in costs]),
        dollars=_mean([cost.dollars for cost in costs if cost.dollars is not None]),
        seconds=_mean([cost.seconds for cost in costs]),
        stage1=stage1,
        stage1_per_episode=stage1.per(len(costs)) if stage1 and costs else None,
        n=len(costs),
        excluded=len(everything) - len(costs),
    )


def _mean(values: Sequence[float]) -> Estimate:
    return ratio(values, [1.0] * len(values))


def _cost(usage: Mapping[str, Any]) -> Cost:
    return Cost(
        calls=usage["calls"],
        prompt_tokens=usage["prompt_tokens"],
        completion_tokens=usage["completion_tokens"],
        dollars=usage["cost"],
    )


def _sum(a: float | None, b: float | None) -> float | None:
    return None if a is None and b is None else (a or 0) + (b or 0)
