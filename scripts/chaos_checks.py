"""What must be true of a run folder after the chaos: nothing lost, twice or changed, and every token accounted for."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentexp.core import END_REASONS
from agentexp.store import episode_files, read_episodes

Record = dict[str, Any]

TOKENS = ("calls", "prompt_tokens", "completion_tokens")
# What faults may change without having changed the episode: time, attempts, and what a server said besides its reply.
_OF_RECORD = {"seconds", "attempts", "wasted", "error", "usage", "usage_by_role", "calls", "trajectory", "notes"}
_OF_SUMMARY = {"seconds", "tokens", "calls", "cost", "wasted", "setup"}


@dataclass(frozen=True)
class Outcome:
    """What a run left behind."""

    folder: Path
    records: dict[str, Record]
    lines: list[Record]
    summary: Record
    planned: list[str]

    @classmethod
    def of(cls, root: Path) -> Outcome:
        """Read the one run folder below `root`."""
        (manifest,) = root.glob("eval/**/manifest.json")
        folder = manifest.parent
        return cls(
            folder,
            {record["key"]: record for record in read_episodes(folder)},
            list(_lines(folder)),
            json.loads((folder / "summary.json").read_text()),
            json.loads(manifest.read_text())["planned"],
        )


def _lines(folder: Path) -> Iterator[Record]:
    """Every line of every episode file; one that is torn or damaged raises `ValueError`."""
    for file in episode_files(folder):
        for line in file.read_bytes().splitlines():
            yield json.loads(line)


def complete(outcome: Outcome) -> dict[str, list[str]]:
    """Faults of the plan: keys lost, unplanned, or finished more than once; leftovers of interrupted writes."""
    finished = Counter(line["key"] for line in outcome.lines if line["status"] == "ok")
    return {
        "lost": sorted(set(outcome.planned) - set(outcome.records)),
        "unplanned": sorted(set(finished) - set(outcome.planned)),
        "twice": sorted(key for key, n in finished.items() if n > 1),
        # a shard cannot know whether another one is writing such a file just now, and lets it be
        "leftovers": []
        if len(episode_files(outcome.folder)) > 1
        else sorted(path.name for path in outcome.folder.rglob("*.tmp")),
    }


def unchanged(calm: Outcome, chaos: Outcome) -> dict[str, list[str]]:
    """Differences between the undisturbed run and the other one."""
    changed = []
    for key, record in calm.records.items():
        if key in chaos.records and (where := difference(essence(record), essence(chaos.records[key]))):
            changed.append(f"{key}: {where}")
    numbers = [{k: v for k, v in outcome.summary.items() if k not in _OF_SUMMARY} for outcome in (calm, chaos)]
    where = difference(*numbers)
    return {
        "plan": [] if calm.planned == chaos.planned else ["another plan"],
        "changed": changed,
        "summary": [where] if where else [],
    }


def essence(record: Mapping[str, Any]) -> Record:
    """Everything of a record that a fault must not change: results, every message, every step."""
    kept = {name: value for name, value in record.items() if name not in _OF_RECORD}
    kept["notes"] = {name: value for name, value in record["notes"].items() if name != "failed_attempts"}
    kept["trajectory"] = [_without(step, {"seconds"}) for step in record["trajectory"]]
    kept["calls"] = []
    for call in record["calls"]:
        same = _without(call, {"seconds", "retries", "usage", "info"})
        same["info"] = _without(call.get("info") or {}, {"usage_missing", "served_model"})
        kept["calls"].append(same)
    return kept


def difference(a: Any, b: Any, where: str = "") -> str:
    """Where two JSON values differ first; empty if they do not."""
    if isinstance(a, dict) and isinstance(b, dict):
        for name in sorted({*a, *b}):
            if name not in a or name not in b:
                return f"{where}.{name} is only in one"
            if found := difference(a[name], b[name], f"{where}.{name}"):
                return found
        return ""
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        return next(
            (found for i, pair in enumerate(zip(a, b, strict=True)) if (found := difference(*pair, f"{where}[{i}]"))), ""
        )
    return "" if a == b else f"{where}: {str(a)[:80]} became {str(b)[:80]}"


def accounted(outcome: Outcome, delivered: Mapping[str, int], *, exact: bool) -> dict[str, list[str]]:
    """Faults of end reasons and token counts.

    Args:
        outcome: of a run without price or cache.
        delivered: calls and tokens that the server has answered with.
        exact: nothing was killed in the middle of an episode, so every one of them must be recorded.
    """
    bad = []
    for record in outcome.records.values():
        if record["end_reason"] not in END_REASONS or (record["status"] == "error") != bool(record["error"]):
            bad += [record["key"]] if record["end_reason"] != "context_limit" else []
    sums = [
        line["key"]
        for line in outcome.lines
        if not _same(line["usage"], total(call["usage"] for call in line["calls"]))
        or not _same(line["usage"], total(line["usage_by_role"].values()))
    ]
    recorded = total(usage for line in outcome.lines for usage in (line["usage"], line["wasted"]))
    kept = total(record["usage"] for record in outcome.records.values())
    tokens = outcome.summary["tokens"]
    of_summary = (outcome.summary["calls"], tokens["prompt"], tokens["completion"])
    right = all(recorded[name] == delivered[name] if exact else recorded[name] <= delivered[name] for name in TOKENS)
    return {
        "end reason": sorted(bad),
        "sums": sorted(sums),
        "summary tokens": [] if of_summary == tuple(kept[name] for name in TOKENS) else [f"{of_summary} for {dict(kept)}"],
        "server's tokens": [] if right else [f"{dict(recorded)} recorded, {dict(delivered)} delivered"],
    }


def total(usages: Iterable[Mapping[str, Any]]) -> Counter[str]:
    """Calls and tokens added up."""
    sums = Counter(dict.fromkeys(TOKENS, 0))
    for usage in usages:
        sums.update({name: usage[name] for name in TOKENS})
    return sums


def _same(usage: Mapping[str, Any], sums: Mapping[str, int]) -> bool:
    return all(usage[name] == sums[name] for name in TOKENS)


def _without(values: Mapping[str, Any], names: set[str]) -> Record:
    return {name: value for name, value in values.items() if name not in names}
