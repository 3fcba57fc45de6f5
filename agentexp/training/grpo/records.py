"""JSON lines beside `metrics.jsonl`: what every group and every held-out episode came to, each step once."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from agentexp.records import dump
from agentexp.scrub import clean, clean_line
from agentexp.training.core import Row
from agentexp.training.grpo.advantages import is_usable
from agentexp.training.grpo.rollouts import Played


def rewind(path: Path, step: int) -> None:
    """Drop the lines of steps from `step` on, which come again, and a torn last line."""
    if not path.is_file():
        return
    kept = [line for line in path.read_bytes().split(b"\n") if _step_of(line) < step]
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_bytes(b"".join(line + b"\n" for line in kept))
    os.replace(temporary, path)


def append(path: Path, lines: Iterable[Mapping[str, Any]]) -> None:
    """Add lines."""
    with path.open("ab") as file:
        file.write(b"".join(clean_line(dump(line)) + b"\n" for line in lines))


def group_line(step: int, number: int, played: Sequence[Played]) -> dict[str, Any]:
    """One line of `rollouts.jsonl`: a group of a step."""
    task = played[0].task
    return {
        "step": step,
        "group": number,
        "kind": played[0].kind,
        "task": task.id,
        "rewards": [one.reward if is_usable(one.reward) else None for one in played],
        "fates": [one.fate for one in played],
        "ends": [one.end_reason for one in played],
        "truncated": [one.truncated for one in played],
        "steps": [one.steps for one in played],
        "tokens": [one.tokens for one in played],
        **({"errors": errors} if (errors := [one.error for one in played if one.error]) else {}),
    }


def write(
    folder: Path, step: int, lines: Iterable[Mapping[str, Any]], played: Sequence[Sequence[Played]], every: int, tokenizer: Any
) -> None:
    """Add a step's groups to `rollouts.jsonl`, and now and then a rollout as text to `samples/`.

    Args:
        folder: of the run.
        step: from 0.
        lines: of all groups, as of `group_line`.
        played: rollouts of this process.
        every: steps between two samples; 0: none.
        tokenizer: to read them.
    """
    append(folder / "rollouts.jsonl", sorted(lines, key=lambda line: int(line["group"])))
    row = next((row for group in played for one in group for row in one.rows), None)
    if every and step % every == 0 and row is not None:
        file = folder / "samples" / f"step-{step + 1:06}.txt"
        file.parent.mkdir(exist_ok=True)
        file.write_text(clean(sample_text(row, tokenizer)), encoding="utf-8")


def sample_text(row: Row, tokenizer: Any) -> str:
    """A row as text, what is trained between » and «: a look at it shows a wrong mask at once."""
    parts: list[str] = []
    start = 0
    for i in range(1, len(row.ids) + 1):
        if i == len(row.ids) or row.trained[i] != row.trained[start]:
            text = str(tokenizer.decode(row.ids[start:i]))
            parts.append(f"»{text}«" if row.trained[start] else text)
            start = i
    return f"{row.tags}\n\n{''.join(parts)}\n"


def _step_of(line: bytes) -> float:
    try:
        return float(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):
        return float("inf")
