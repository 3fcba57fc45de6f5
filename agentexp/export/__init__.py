"""Run folders in the forms that other tools read.

sources.py        the run folders of an export
columns.py        names and meaning of the tables' columns
frames.py         pandas frames: `episodes_frame`, `steps_frame`, `calls_frame`, `runs_frame`
tables.py         the frames as Parquet, CSV, JSON lines
conversations.py  fine-tuning conversations: chat messages, ShareGPT
hf.py             the same as a Hugging Face dataset on disk
inspect_log.py    logs of Inspect AI
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from agentexp.errors import UserError
from agentexp.export.conversations import Filters, count_lines, write_conversations
from agentexp.export.sources import Source, find_sources

__all__ = ["FORMATS", "Exported", "Filters", "export"]

Format = Literal["parquet", "csv", "jsonl", "messages", "sharegpt", "hf", "inspect"]
FORMATS: tuple[str, ...] = get_args(Format)

_FILTERED = ("messages", "sharegpt", "hf")


class Exported(NamedTuple):
    """What an export wrote: the file or folder, and what to tell the user (rows, what was left out, partial runs)."""

    path: Path
    lines: list[str]


def export(runs: Sequence[Path], form: str, out: Path | None = None, filters: Filters = Filters()) -> Exported:
    """Export run folders, finished, partial or running.

    Args:
        runs: run folders, or folders above them.
        form: one of `FORMATS`.
        out: a folder; for conversations also a `.jsonl` file, for Inspect also an `.eval` or `.json` file (one run). None: the
            folder `export` in the run folder, where only one was given.
        filters: which conversations to take; only for messages, sharegpt and hf.

    Raises:
        UserError: an unknown format, no run, filters with another format, or the place cannot be written.
        MissingDependency: the format needs a package that is not installed.
    """
    if form not in FORMATS:
        raise UserError(f"There is no --format {form}; choose one of: {', '.join(FORMATS)}.")
    if filters.given and form not in _FILTERED:
        raise UserError(
            f"--only-success, --role, --phase and --with-errors choose conversations ({', '.join(_FILTERED)}); "
            f"--format {form} always holds everything. Leave them out, or filter its rows by their columns."
        )
    sources = find_sources(runs)
    if out is None:
        if len(runs) > 1 or len(sources) > 1:
            raise UserError("Several runs are exported together: say where to with --out.")
        out = sources[0].folder / "export"
    try:
        path, lines = _write(sources, form, out, filters)
    except OSError as error:
        raise UserError(
            f"{error.filename or out} cannot be written ({error.strerror}). Choose another place with --out."
        ) from error
    return Exported(path, lines + _marks(sources))


def _write(sources: list[Source], form: str, out: Path, filters: Filters) -> tuple[Path, list[str]]:
    if form == "inspect":
        from agentexp.export.inspect_log import write_logs

        return out, write_logs(sources, out)
    if form == "hf":
        from agentexp.export.hf import write_dataset

        folder = out / "hf" if out.name == "export" else out
        folder.parent.mkdir(parents=True, exist_ok=True)
        counts = write_dataset(sources, folder, filters)
        return folder, [f"{counts.rows} conversations of {counts.episodes} episodes.", *count_lines(counts, filters)]
    if form in _FILTERED:
        file = out if out.suffix in (".jsonl", ".json") else out / f"{form}.jsonl"
        file.parent.mkdir(parents=True, exist_ok=True)
        counts = write_conversations(sources, file, filters, sharegpt=form == "sharegpt")
        return file, [f"{counts.rows} conversations of {counts.episodes} episodes.", *count_lines(counts, filters)]
    from agentexp.export.tables import write_tables

    out.mkdir(parents=True, exist_ok=True)
    written = write_tables(sources, out, form)  # type: ignore[arg-type]  # the three table formats are left
    return out, [f"{file.name}: {rows} rows" for file, rows in written.items()]


def _marks(sources: list[Source]) -> list[str]:
    """Sentences about runs that lack episodes."""
    lines = []
    for source in sources:
        if source.partial:
            lines.append(
                f"{source.name} is partial: {source.recorded} of {len(source.planned)} planned episodes have a record."
            )
        if source.harness_errors:
            lines.append(f"{source.name}: {source.harness_errors} episodes ended with a harness error (status error).")
    return lines
