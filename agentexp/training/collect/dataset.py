"""Training conversations on disk: one folder per data set, with its card.

A folder is a Hugging Face dataset (`datasets.load_from_disk(folder)`), or `rows.jsonl` where `datasets` is not installed. Both
have the columns of `COLUMNS`, in the same order. `collect.json` beside them says what the card says, for programs.
"""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from agentexp.errors import MissingDependency, UserError
from agentexp.export.sources import all_encodable, optional
from agentexp.records import dump
from agentexp.store import write_json

log = logging.getLogger(__name__)

Row = dict[str, Any]

ROWS_FILE = "rows.jsonl"
FACTS_FILE = "collect.json"
CARD_FILE = "README.md"

COLUMNS = {
    "messages": "the conversation: [{role, content}, ...]; it ends with the assistant",
    "kind": "map: map-then-act; act: the expert's execution alone",
    "stage": "explore, map, act; all: one conversation with all stages",
    "env": "world",
    "split": "split of the world",
    "id": "name of the instance in its split",
    "key": "env/split/id#seedS.R: the same for all stages of an instance, and for both kinds",
    "task_kind": "task type; empty where the world has none",
    "seed": "of the instance",
    "steps": "environment steps of the whole episode (all stages)",
    "tokens": "length of this conversation",
    "trained_tokens": "tokens of it that are trained on",
    "repetition": "0-based; above 0 only in ACT data that was repeated up to the token budget of the MAP data",
    "accuracy": "of the episode's map before wrong entries were deleted; null for act",
    "coverage": "of the episode's map; null for act",
    "teacher": "label of the model that wrote it",
    "style": "of the prompts: compact or full",
    "run": "name of the run among those collected",
}
"""Every column with its meaning. Frozen: trainers are written against them."""

_NUMBERS = ("seed", "steps", "tokens", "trained_tokens", "repetition")
_REALS = ("accuracy", "coverage")


def checksum(rows: Sequence[Row]) -> str:
    """sha256 over all rows in their order, independent of how they are stored."""
    digest = hashlib.sha256()
    for row in rows:
        digest.update(dump({name: row[name] for name in COLUMNS}) + b"\n")
    return digest.hexdigest()


def write_rows(rows: Sequence[Row], folder: Path, facts: Mapping[str, Any], card: str) -> str:
    """Write one data set, replacing an earlier one in `folder`.

    Args:
        rows: with all of `COLUMNS`.
        folder: its own; made.
        facts: for `collect.json`.
        card: for `README.md`.

    Returns:
        How the rows were stored: "dataset" or "jsonl".

    Raises:
        UserError: `folder` holds something else, or cannot be written.
    """
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder} is a file, not a folder. Choose another folder with --out.")
    if folder.exists() and any(folder.iterdir()) and not (folder / FACTS_FILE).is_file():
        raise UserError(f"{folder} is not empty and holds no collected data. Choose another folder with --out.")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as name:
            made = Path(name) / "data"
            stored = _store(rows, made)
            write_json(made / FACTS_FILE, {**facts, "stored": stored, "sha256": checksum(rows), "rows": len(rows)})
            (made / CARD_FILE).write_text(card, encoding="utf-8")
            if folder.exists():
                shutil.rmtree(folder)
            made.rename(folder)
    except OSError as error:
        raise UserError(f"{folder} cannot be written: {error.strerror}. Choose another folder with --out.") from error
    return stored


def read_rows(folder: Path) -> list[Row]:
    """The rows of a data set written by `write_rows`, however they are stored.

    Raises:
        UserError: there is no data set.
        MissingDependency: it needs `datasets`.
    """
    if (folder / ROWS_FILE).is_file():
        return list(_lines(folder / ROWS_FILE))
    if not (folder / "dataset_info.json").is_file():
        raise UserError(f"{folder} holds no training data. Give a folder that `agentexp collect` made, for example data/map.")
    datasets = optional("datasets", "datasets", "hf")
    return [dict(row) for row in datasets.load_from_disk(str(folder))]


def _store(rows: Sequence[Row], folder: Path) -> str:
    folder.mkdir()
    clean = [all_encodable({name: row[name] for name in COLUMNS}) for row in rows]
    try:
        datasets = optional("datasets", "datasets", "hf", "The rows were written as JSON lines, which trainers read as well.")
    except MissingDependency as missing:
        log.warning("%s", missing)
        with (folder / ROWS_FILE).open("wb") as lines:
            lines.writelines(dump(row) + b"\n" for row in clean)
        return "jsonl"
    bars = datasets.are_progress_bars_disabled()
    datasets.disable_progress_bars()
    try:
        datasets.Dataset.from_list(clean, features=_features(datasets)).save_to_disk(str(folder))
    finally:
        if not bars:
            datasets.enable_progress_bars()
    return "dataset"


def _features(datasets: Any) -> Any:
    text = datasets.Value("string")
    kinds = dict.fromkeys(_NUMBERS, datasets.Value("int64")) | dict.fromkeys(_REALS, datasets.Value("float64"))
    plain = {name: kinds.get(name, text) for name in COLUMNS if name != "messages"}
    return datasets.Features({"messages": [{"role": text, "content": text}], **plain})


def _lines(file: Path) -> Iterator[Row]:
    with file.open("rb") as lines:
        for line in lines:
            yield json.loads(line)
