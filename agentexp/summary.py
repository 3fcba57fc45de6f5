"""`summary.json`: the metrics of a run folder with the labels of its manifest."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from agentexp.core import Usage
from agentexp.records import Record, dump
from agentexp.store import episode_files, read_episodes, read_json, superseded

log = logging.getLogger(__name__)

Summary = dict[str, Any]

SEAL_FILE = ".summary-seal"
"""Says what `summary.json` was made from, so that a finished run that is issued again need not read all its records."""

_LABELS = ("command", "env", "paradigm", "model", "split", "seeds", "repeats")


def summarise_run(folder: Path, manifest: Mapping[str, Any], stopped_by: str = "") -> Summary:
    """Compute the summary from the records on disk; for running and interrupted runs as well.

    Args:
        folder: the run folder.
        manifest: its manifest; `planned` is the denominator.
        stopped_by: "" or what ended the run early: a signal's name, "timeout", "cap" or "fatal".

    Returns:
        The metrics of `agentexp.metrics.summary.summarise`; the labels of the run; `partial`: planned episodes have no record
        yet; `stopped_by`; `setup`: model calls outside the episodes (tokens, cost), which are in no other number. `wasted`:
        what failed attempts used, also those of episodes that were run again later.
    """
    from agentexp.metrics.summary import summarise

    planned, recorded = list(manifest.get("planned", ())), 0

    def counted() -> Iterator[Record]:
        nonlocal recorded
        for record in read_episodes(folder, planned, slim=True):
            recorded += 1
            yield record

    numbers = summarise(counted(), len(planned))
    numbers["wasted"] = _wasted(numbers["wasted"], folder)
    labels = {key: manifest.get(key, "") for key in _LABELS}
    return {**labels, **numbers, "partial": recorded < len(planned), "stopped_by": stopped_by, "setup": setup_usage(folder)}


def seal(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Note what the `summary.json` that was just written says something about."""
    (folder / SEAL_FILE).write_text(_seal(folder, manifest), encoding="ascii")


def sealed_summary(folder: Path, manifest: Mapping[str, Any]) -> Summary | None:
    """The stored summary of a complete run, if it was made from just these records and this plan, by these metrics."""
    try:
        known = (folder / SEAL_FILE).read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        return None
    summary = read_json(folder / "summary.json") if known == _seal(folder, manifest) else None
    return None if summary is None or summary.get("partial") or summary.get("stopped_by") else summary


def _seal(folder: Path, manifest: Mapping[str, Any]) -> str:
    """Hash of everything that the summary depends on. Records are only ever appended, so sizes tell files apart."""
    files = [*episode_files(folder), folder / "setup.jsonl"]
    sizes = [(file.name, file.stat().st_size) for file in files if file.is_file()]
    here = Path(__file__)
    code = [here, *sorted((here.parent / "metrics").glob("*.py"))]
    digest = hashlib.blake2b(dump([sizes, [manifest.get(key) for key in (*_LABELS, "planned")]]), digest_size=16)
    for file in (folder / "summary.json", *code):
        digest.update(file.read_bytes() if file.is_file() else b"")
    return digest.hexdigest()


def _wasted(wasted: dict[str, Any], folder: Path) -> dict[str, Any]:
    """`wasted` with what the records used that were run again."""
    total = Usage(prompt_tokens=wasted["tokens"], cost=wasted["cost"])
    for record in superseded(folder):
        for name in ("usage", "wasted"):
            total += Usage(**(record.get(name) or {}))
    return {"tokens": total.prompt_tokens + total.completion_tokens, "cost": total.cost}


def setup_usage(folder: Path) -> dict[str, Any]:
    """Tokens and money of the model calls in `setup.jsonl`, of all processes that worked on the run."""
    total = Usage()
    file = folder / "setup.jsonl"
    if file.is_file():
        with file.open("rb") as lines:
            for line in lines:
                if line.endswith(b"\n"):  # a torn last line is a call whose use nobody saw
                    try:
                        total += Usage(**json.loads(line)["usage"])
                    except (ValueError, KeyError, TypeError):
                        log.warning("%s holds a line that is no record of a model call; its tokens are not counted.", file)
    return {
        "calls": total.calls,
        "prompt_tokens": total.prompt_tokens,
        "completion_tokens": total.completion_tokens,
        "cost": total.cost,
    }
