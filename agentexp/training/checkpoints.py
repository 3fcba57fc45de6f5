"""Checkpoints that can be trusted: a checkpoint counts once a marker in it says that everything was written.

A process may be killed at any moment, also while it writes a checkpoint. What has no marker is removed when training goes on.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentexp.store import read_json, write_json

MARKER = "complete.json"
_NAME = re.compile(r"checkpoint-(\d+)")


def mark(checkpoint: Path, values: Mapping[str, Any]) -> None:
    """Say that a checkpoint is complete, and keep JSON values with it."""
    write_json(checkpoint / MARKER, dict(values))


def newest(folder: Path) -> tuple[Path, dict[str, Any]] | None:
    """The complete checkpoint of the highest step and what was kept with it; None where there is none."""
    for _, path in reversed(_found(folder)):
        values = read_json(path / MARKER)
        if values is not None:
            return path, values
    return None


def remove_incomplete(folder: Path) -> list[Path]:
    """Remove the checkpoints in the writing of which a process was killed; returns them."""
    torn = [path for _, path in _found(folder) if not (path / MARKER).is_file()]
    for path in torn:
        shutil.rmtree(path)
    return torn


def keep_newest(folder: Path, number: int) -> None:
    """Remove all complete checkpoints but the newest ones."""
    complete = [path for _, path in _found(folder) if (path / MARKER).is_file()]
    for path in complete[:-number]:
        shutil.rmtree(path)


def _found(folder: Path) -> list[tuple[int, Path]]:
    """(step, path), by step."""
    if not folder.is_dir():
        return []
    matches = [(_NAME.fullmatch(path.name), path) for path in folder.iterdir() if path.is_dir()]
    return sorted((int(match[1]), path) for match, path in matches if match)
