"""What the page of a run shows: a small row per episode, and the episodes themselves in compressed blocks.

The rows are read by the browser at once; a block only when one of its episodes is opened or searched. That is what makes a page
of a thousand episodes open in a moment.
"""

from __future__ import annotations

import base64
import gzip
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from agentexp.errors import UserError
from agentexp.records import Record, dump
from agentexp.scrub import scrub
from agentexp.store import episode_files, read_episodes, read_json

BLOCK_BYTES = 384 * 1024  # of JSON: large enough to compress well, small enough to inflate within a frame or two
ROW_GOAL = 240  # characters of the goal in the list

Row = dict[str, Any]


class Blocks:
    """Episodes as gzip + base64 texts of about `BLOCK_BYTES` of JSON each.

    Args:
        run: 0 or 1; which run of the page the blocks belong to.
    """

    def __init__(self, run: int = 0) -> None:
        self.run = run
        self.done: list[bytes] = []
        self._open: list[bytes] = []
        self._size = 0

    def add(self, record: Record) -> tuple[int, int]:
        """Append an episode; returns (block, position in the block)."""
        line = dump(_shown(record))
        place = len(self.done), len(self._open)
        self._open.append(line)
        self._size += len(line)
        if self._size >= BLOCK_BYTES:
            self.close()
        return place

    def close(self) -> None:
        """Compress what is open. Safe to call twice."""
        if self._open:
            text = b"[" + b",".join(self._open) + b"]"
            self.done.append(base64.b64encode(gzip.compress(text, 6, mtime=0)))
            self._open, self._size = [], 0


def read_run(folder: Path, number: int, only: Collection[str] | None = None) -> tuple[Blocks, dict[str, Any]]:
    """Blocks and description of one run.

    Args:
        folder: the run folder.
        number: of the run on the page, 0 or 1.
        only: keys of the tasks to take; None takes all.

    Returns:
        The blocks and {"title", "labels", "rows", "summary", "kinds", "artefacts", "settings", "versions"}; JSON values.

    Raises:
        UserError: the folder is not a run folder.
    """
    if not folder.is_dir() or not ((folder / "manifest.json").is_file() or episode_files(folder)):
        raise UserError(
            f"{folder} is not a run folder (no manifest.json, no episodes.jsonl). Give the folder that the run printed."
        )
    manifest = read_json(folder / "manifest.json") or {}
    blocks, rows = Blocks(number), []
    for record in read_episodes(folder):
        row = row_of(record)
        if only is None or row["key"] in only:
            row["b"], row["p"] = blocks.add(record)
            rows.append(row)
    blocks.close()
    labels = {name: manifest.get(name, "") for name in ("command", "env", "paradigm", "model", "split", "seeds", "repeats")}
    first = rows[0] if rows else {}
    for name in ("env", "paradigm", "model"):
        labels[name] = labels[name] or first.get(name, "")
    for row in rows:  # the same in every row, except in folders merged by hand
        for name in ("env", "paradigm", "model"):
            if row[name] == labels[name]:
                del row[name]
    return blocks, {
        "title": " · ".join(str(labels[name]) for name in ("paradigm", "env", "model") if labels[name]) or folder.name,
        "folder": folder.resolve().name,
        "labels": labels,
        "rows": rows,
        "summary": _summary(folder, manifest, rows) if only is None else {},
        "kinds": by_kind(rows),
        "artefacts": _artefacts(folder),
        "settings": scrub(manifest.get("config", {})),  # of a folder that an older agentexp wrote
        "versions": {name: manifest[name] for name in ("code", "env_versions", "model_versions") if name in manifest},
    }


def row_of(record: Mapping[str, Any]) -> Row:
    """What the list of episodes shows and filters by.

    `outcome` is won | failed | completed (a phase without success criterion) | error (the harness failed, not the agent).
    """
    task, usage, trajectory = record["task"], record.get("usage", {}), record.get("trajectory", [])
    if record["status"] != "ok":
        outcome = "error"
    elif record.get("end_reason") == "completed":
        outcome = "completed"
    else:
        outcome = "won" if record.get("success") else "failed"
    return {
        "key": record.get("key") or f"{task['env']}/{task['split']}/{task['id']}#seed{task['seed']}.{task['repeat']}",
        "id": task["id"],
        "kind": task.get("kind", ""),
        "seed": task.get("seed", 0),
        "repeat": task.get("repeat", 0),
        "env": task["env"],
        "paradigm": record.get("paradigm", ""),
        "model": record.get("model", ""),
        "outcome": outcome,
        "end": record.get("end_reason", ""),
        "score": record.get("score", 0.0),
        "steps": record.get("steps", 0),
        "invalid": sum(step.get("status", "ok") != "ok" for step in trajectory),
        "refused": sum(bool(step.get("error")) and step.get("status", "ok") == "ok" for step in trajectory),
        "calls": usage.get("calls", 0),
        "tokens_in": usage.get("prompt_tokens", 0),
        "tokens_out": usage.get("completion_tokens", 0),
        "cost": usage.get("cost"),
        "seconds": round(record.get("seconds", 0.0), 3),
        "goal": record.get("goal", "")[:ROW_GOAL],
    }


def by_kind(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Success per task type with Wilson intervals; harness errors counted apart, in no rate."""
    from agentexp.metrics.stats import wilson

    rows = list(rows)
    has_criterion = any(row["outcome"] in ("won", "failed") for row in rows)  # else explored or mapped only: no rate
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row["kind"], []).append(row)
    table = []
    for kind, members in sorted(groups.items()):
        finished = [row for row in members if row["outcome"] != "error"]
        won, n = sum(row["outcome"] == "won" for row in finished), len(finished)
        line: dict[str, Any] = {"kind": kind, "n": n, "won": won, "rate": None, "interval": None, "score": None}
        if n and has_criterion:
            line |= {"rate": won / n, "interval": list(wilson(won, n)), "score": sum(row["score"] for row in finished) / n}
        line["steps"] = sum(row["steps"] for row in finished) / n if n else None
        line["invalid"] = sum(row["invalid"] for row in members)
        line["errors"] = len(members) - n
        table.append(line)
    return table


def _summary(folder: Path, manifest: Mapping[str, Any], rows: list[Row]) -> dict[str, Any]:
    """`summary.json`; computed anew where the run has gone on since (running, or killed)."""
    summary = read_json(folder / "summary.json")
    if summary is not None and summary.get("finished", 0) + summary.get("harness_errors", 0) == len(rows):
        return dict(summary)
    if not manifest:
        return dict(summary or {})
    from agentexp.summary import summarise_run

    return summarise_run(folder, manifest, stopped_by="no summary yet" if summary is None else "")


def _artefacts(folder: Path) -> dict[str, Any]:
    """What was prepared for all episodes, K_g among it; an explore run's K_g comes from its `kg.json`."""
    found = dict(read_json(folder / "artefacts.json") or {})
    document = read_json(folder / "kg.json")
    if document is not None and "k_g" not in found:
        found["k_g"] = document.get("k_g", {})
        found["k_g_from"] = {key: value for key, value in document.items() if key != "k_g"}
    return found


def _shown(record: Record) -> Record:
    """The record without what nobody reads (token ids, log-probabilities: half of a training run's bytes)."""
    calls = []
    for call in record.get("calls", []):
        heavy = {name for name in ("token_ids", "logprobs") if call.get(name)}
        kept = {name: value for name, value in call.items() if name not in heavy}
        calls.append({**kept, "left_out": sorted(heavy)} if heavy else kept)
    return {**record, "calls": calls}
