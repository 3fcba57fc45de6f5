"""The conversations as a Hugging Face dataset on disk (`datasets.load_from_disk`)."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agentexp.errors import UserError
from agentexp.export.conversations import METADATA, Counts, Filters, write_conversations
from agentexp.export.sources import Source, all_encodable, optional


def write_dataset(sources: list[Source], folder: Path, filters: Filters) -> Counts:
    """Write one dataset whose columns are those of the chat format, replacing a dataset in `folder`.

    Raises:
        MissingDependency: `datasets` is not installed.
        UserError: `folder` holds something that is no dataset, or as `write_conversations`.
        OSError: the folder cannot be written.
    """
    datasets = optional("datasets", "datasets", "hf", "Or choose --format messages, which datasets can load as JSON.")
    if folder.exists() and any(folder.iterdir()) and not (folder / "dataset_info.json").is_file():
        raise UserError(f"{folder} is not empty and holds no dataset. Choose another folder with --out.")
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as name:
        work = Path(name)
        counts = write_conversations(sources, work / "rows.jsonl", filters)
        bars = datasets.are_progress_bars_disabled()
        datasets.disable_progress_bars()
        try:
            # through Arrow files in the work folder, so that neither memory nor the user's cache holds the rows
            rows = datasets.Dataset.from_generator(
                _rows,
                features=_features(datasets),
                cache_dir=str(work / "cache"),
                gen_kwargs={"file": str(work / "rows.jsonl")},
            )
            rows.save_to_disk(str(work / "dataset"))
        finally:
            if not bars:
                datasets.enable_progress_bars()
        del rows
        if folder.exists():
            shutil.rmtree(folder)
        (work / "dataset").rename(folder)
    return counts


def _rows(file: str) -> Iterator[dict[str, Any]]:
    with Path(file).open("rb") as lines:
        for line in lines:
            yield all_encodable(json.loads(line))


def _features(datasets: Any) -> Any:
    text, number, flag, real = (datasets.Value(name) for name in ("string", "int64", "bool", "float64"))
    kinds = {"seed": number, "repeat": number, "replies": number, "unreadable": number, "score": real, "roles": [text]}
    kinds |= {"success": flag, "recalled": flag, "partial": flag}
    return datasets.Features(
        {"messages": [{"role": text, "content": text}], **{name: kinds.get(name, text) for name in METADATA}}
    )
