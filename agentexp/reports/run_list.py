"""`agentexp report runs`: what lies in the run folders, one row per folder."""

from __future__ import annotations

from collections.abc import Sequence

from agentexp.reports.cells import Cell, rate_cell
from agentexp.reports.runs import Group, RunData
from agentexp.reports.tables import Panel, Table

NOTES = (
    "Success rate in percent with its 95 % interval; steps per finished episode; unreadable replies in percent of all replies. "
    "Episodes that ended with a harness error are left out and counted as excluded.",
)


def build_run_list(runs: Sequence[RunData]) -> Table:
    """A block per command and world, a row per run folder."""
    panels: dict[str, list[tuple[str, list[Cell]]]] = {}
    for run in runs:
        title = f"{run.manifest.get('command', '?')} {run.env} ({run.manifest.get('split', '?')})"
        panels.setdefault(title, []).append((f"{run.paradigm}  {run.folder.name}", _row(run)))
    return Table("runs", "Runs", [Panel(t, ("success rate", "steps", "unreadable"), rows) for t, rows in panels.items()], NOTES)


def _row(run: RunData) -> list[Cell]:
    group = Group((run,))
    rows = group.finished
    replies = sum(row.replies for row in rows)
    return [
        rate_cell(group, comparable=True),
        Cell(measured=sum(row.steps for row in rows) / len(rows)) if rows else Cell(),
        Cell(measured=100 * sum(row.unreadable for row in rows) / replies) if replies else Cell(),
    ]
