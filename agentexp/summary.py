"""`summary.json`: the metrics of a run folder with the labels of its manifest."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from agentexp.core import Usage
from agentexp.records import Record
from agentexp.store import read_episodes, superseded

log = logging.getLogger(__name__)

Summary = dict[str, Any]


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
        for record in read_episodes(folder, planned):
            recorded += 1
            yield record

    numbers = summarise(counted(), len(planned))
    numbers["wasted"] = _wasted(numbers["wasted"], folder)
    labels = {key: manifest.get(key, "") for key in ("command", "env", "paradigm", "model", "split", "seeds", "repeats")}
    return {**labels, **numbers, "partial": recorded < len(planned), "stopped_by": stopped_by, "setup": setup_usage(folder)}


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
