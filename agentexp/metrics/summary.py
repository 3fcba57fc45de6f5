"""The numbers of one run. Pure: episode records (one JSON line each) in, a dict out.

Headline rule: an episode that ended with a harness error says nothing about the agent and is left out of every rate; the
rate with errors counted as failures stands beside it. What the agent caused (unreadable replies, limits, a full context) is
a failure.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from agentexp.metrics.behaviour import Behaviour, behaviour, diagnose
from agentexp.metrics.ecc import Ecc, ecc_of_episode, summarise_ecc
from agentexp.metrics.map_coverage import NOTE as MAP_COVERAGE
from agentexp.metrics.map_coverage import summarise_maps
from agentexp.metrics.map_qa import NOTE as MAP_QA
from agentexp.metrics.resample import Estimate
from agentexp.metrics.stats import wilson
from agentexp.metrics.wise_tasks import NOTE as WISE
from agentexp.metrics.wise_tasks import summarise_tasks

Record = dict[str, Any]

PARSE_RATE_WARNING = 0.5  # below it a table cell says little about the paradigm
ERROR_SHARE_WARNING = 0.02


def summarise(episodes: Iterable[Record], planned: int) -> dict[str, Any]:
    """Metrics of a run; the keys are documented in the README ("Results").

    Args:
        episodes: one record per task key, finished or failed.
        planned: number of planned episodes, the denominator of `finished`.

    Returns:
        Rates in [0, 1]; None where there is nothing to count. Runs without a success criterion (end reason "completed") have no
        success rate. "on_failures" (paper 001, table 3) and "ecc" (ECC, its curve and kinds) are None where nothing failed or
        nothing was explored against checkpoints; their numbers are {"value", "low", "high", "n"}.
    """
    total = _Totals()
    for record in episodes:
        total.add(record)
    ok, won, steps = total.ok, total.won, total.steps
    scored = ok > 0 and total.reasons["completed"] < ok
    replies = sum(total.statuses.values())

    def share(status: str) -> float | None:
        return total.statuses[status] / replies if replies else None

    macro = [sum(values) / len(values) for values in total.by_kind.values() if values]
    result = {
        "planned": planned,
        "finished": ok,
        "harness_errors": total.errors,
        "success_rate": won / ok if scored else None,
        "success_interval": list(wilson(won, ok)) if scored else None,
        "success_rate_errors_as_failures": won / (ok + total.errors) if scored else None,
        "success_rate_macro": sum(macro) / len(macro) if scored and macro else None,
        "by_kind": {
            kind: {"n": len(values), "success_rate": sum(values) / len(values)}
            for kind, values in sorted(total.by_kind.items())
        }
        if scored
        else {},
        "mean_score": total.score / ok if scored else None,
        "mean_steps": steps / ok if ok else None,
        "invalid_rate": share("invalid"),
        "inadmissible_rate": total.flags["inadmissible"] / replies if replies else None,
        "truncated_rate": share("truncated"),
        "ambiguous_rate": share("ambiguous"),
        "rewritten_rate": total.rewritten / replies if replies else None,
        "empty_rate": total.flags["empty"] / replies if replies else None,
        "refusal_rate": total.flags["refusal"] / replies if replies else None,
        "refused_rate": total.refused / steps if steps else None,
        "tokens": {"prompt": total.prompt, "completion": total.completion, "cached": total.cached},
        "calls": total.calls,
        "cost": total.cost,
        "wasted": {"tokens": total.wasted_tokens, "cost": total.wasted_cost},
        "seconds": round(total.seconds, 3),
        "end_reasons": dict(total.reasons.most_common()),
        "on_failures": _plain(diagnose(total.failures)) if total.failures else None,
        "ecc": _plain(summarise_ecc(total.explorations)) if total.explorations else None,
    }
    if total.questions:
        asked = total.questions
        result["map_qa"] = {"questions": asked, "accuracy": total.right / asked, "unknown": total.unknown / asked}
    if total.shortened:
        result["shortened"] = total.shortened
    if total.maps:
        result |= summarise_maps(total.maps)
    if total.wise:
        result["wise"] = summarise_tasks(total.wise)
    return {**result, "warnings": _warnings(result, replies)}


class _Totals:
    """Running sums over records."""

    def __init__(self) -> None:
        self.ok = self.won = self.errors = self.steps = self.rewritten = self.refused = 0
        self.prompt = self.completion = self.cached = self.calls = 0
        self.score = self.seconds = 0.0
        self.cost: float | None = None
        self.wasted_tokens = 0
        self.wasted_cost: float | None = None
        self.statuses: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()
        self.flags: Counter[str] = Counter()
        self.by_kind: dict[str, list[int]] = defaultdict(list)
        self.failures: list[Behaviour] = []
        self.explorations: list[Ecc] = []
        self.maps: list[Record] = []
        self.wise: list[Record] = []
        self.questions = self.right = self.unknown = self.shortened = 0

    def add(self, record: Record) -> None:
        usage = record.get("usage") or {}
        self.prompt += usage.get("prompt_tokens", 0)
        self.completion += usage.get("completion_tokens", 0)
        self.cached += usage.get("cached_tokens", 0)
        self.calls += usage.get("calls", 0)
        if usage.get("cost") is not None:
            self.cost = (self.cost or 0.0) + usage["cost"]
        wasted = record.get("wasted") or {}
        self.wasted_tokens += wasted.get("prompt_tokens", 0) + wasted.get("completion_tokens", 0)
        if wasted.get("cost") is not None:
            self.wasted_cost = (self.wasted_cost or 0.0) + wasted["cost"]
        self.seconds += record.get("seconds", 0.0)
        self.reasons[record["end_reason"]] += 1
        if record["status"] != "ok":
            self.errors += 1
            return
        if (coverage := ecc_of_episode(record)) is not None:
            self.explorations.append(coverage)
        if (seen := record.get("notes", {}).get(MAP_COVERAGE)) is not None and "marks" in seen:
            self.maps.append({key: value for key, value in seen.items() if key not in ("curve", "path")})
        if (done := record.get("notes", {}).get(WISE)) is not None:
            self.wise.append(done)
        self.shortened += "left_out" in record.get("notes", {})
        for row in record.get("notes", {}).get(MAP_QA) or ():
            self.questions += 1
            self.right += bool(row["correct"])
            self.unknown += bool(row["unknown"])
        if record["end_reason"] != "completed" and not record["success"] and (acting := behaviour(record)).actions:
            self.failures.append(acting)
        self.ok += 1
        self.won += bool(record["success"])
        self.score += record["score"]
        self.steps += record["steps"]
        if kind := record["task"].get("kind"):
            self.by_kind[kind].append(int(record["success"]))
        for step in record.get("trajectory", ()):
            self.statuses[step["status"]] += 1
            if step.get("flags"):
                self.flags.update(step["flags"])
            if step["status"] == "ok":
                self.rewritten += bool(step.get("rewrite"))
                self.refused += bool(step.get("error"))


def _plain(summary: Any) -> Any:
    """As JSON values, without what only says how an estimate was made."""
    if isinstance(summary, Estimate):
        return {"value": summary.value, "low": summary.low, "high": summary.high, "n": summary.n}
    if isinstance(summary, dict):
        return {str(key): _plain(value) for key, value in summary.items()}
    if is_dataclass(summary):
        return {field.name: _plain(getattr(summary, field.name)) for field in fields(summary)}
    return summary


def _warnings(result: Mapping[str, Any], replies: int) -> list[str]:
    warnings = []
    impossible = (result["inadmissible_rate"] or 0.0) + (result["refused_rate"] or 0.0)
    unreadable = sum(result[key] or 0.0 for key in ("invalid_rate", "truncated_rate", "ambiguous_rate"))
    unreadable -= result["inadmissible_rate"] or 0.0
    if replies and unreadable > 1 - PARSE_RATE_WARNING:
        warnings.append(
            f"{unreadable:.0%} of the replies could not be read as an action, so the success rate says little about the "
            "paradigm. Look at the replies; a larger model.max_tokens, another paradigm.form or model.decode=rank may help."
        )
    elif replies and impossible > 1 - PARSE_RATE_WARNING:
        warnings.append(f"{impossible:.0%} of the actions were readable but not possible in the world. Look at the replies.")
    if result.get("shortened"):
        warnings.append(f"{result['shortened']} episodes lost their oldest observations (limits.context=drop_oldest).")
    full = result["end_reasons"].get("context_limit", 0)
    if full > result["finished"] / 2:
        warnings.append(
            f"{full} of {result['finished']} episodes ended because the conversation did not fit into the model's context, so "
            "the success rate says little about the paradigm. A larger context or limits.context=drop_oldest may help."
        )
    ended = result["finished"] + result["harness_errors"]
    if ended and result["harness_errors"] / ended > ERROR_SHARE_WARNING:
        warnings.append(f"{result['harness_errors']} of {ended} episodes are left out because of harness errors.")
    return warnings
