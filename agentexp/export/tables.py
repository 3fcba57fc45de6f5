"""The frames as files: `runs`, `episodes`, `steps` and `calls`, each as Parquet, CSV or JSON lines in one folder."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from agentexp.export.frames import all_frames
from agentexp.export.sources import Source, optional
from agentexp.records import dump

if TYPE_CHECKING:
    from pandas import DataFrame

TableFormat = Literal["parquet", "csv", "jsonl"]


def write_tables(sources: list[Source], folder: Path, form: TableFormat) -> dict[Path, int]:
    """Write all tables into `folder`, replacing those of an earlier export.

    CSV cannot tell an empty text from a missing value; Parquet and JSON lines can.

    Returns:
        File to number of rows.

    Raises:
        MissingDependency: Parquet without pyarrow.
        OSError: the folder cannot be written.
    """
    if form == "parquet":
        optional("pyarrow", "pyarrow", "export", "Or choose --format csv or --format jsonl.")
    written = {}
    for name, frame in all_frames(sources).items():
        file = folder / f"{name}.{form}"
        temporary = file.with_name(f".{file.name}.tmp")
        _write(frame, temporary, form)
        temporary.replace(file)
        written[file] = len(frame)
    return written


def _write(frame: DataFrame, file: Path, form: TableFormat) -> None:
    if form == "parquet":
        frame.to_parquet(file, index=False, engine="pyarrow")
    elif form == "csv":  # quoting all text: Python's csv would leave a carriage return bare, which readers take for a new row
        frame.to_csv(file, index=False, encoding="utf-8", quoting=csv.QUOTE_NONNUMERIC)
    else:
        columns = [str(name) for name in frame.columns]
        with file.open("wb") as lines:
            for row in frame.astype(object).where(frame.notna(), None).itertuples(index=False, name=None):
                lines.write(dump(dict(zip(columns, row, strict=True))) + b"\n")
