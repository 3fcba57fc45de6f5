"""Tables and comparisons from run folders.

runs.py        run folders as rows; runs of one cell pooled over seeds
cells.py       rates, intervals and paired differences of one cell
tables.py      a table as text, Markdown, LaTeX, CSV
published.py   the papers' values
map_table1.py  one builder per table
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agentexp.errors import UserError

if TYPE_CHECKING:
    from agentexp.reports.runs import RunData
    from agentexp.reports.tables import Table

__all__ = ["compare", "report"]


def report(name: str, runs: Sequence[Path], out: Path | None = None) -> str:
    """Build a table from run folders.

    Args:
        name: "table1" (MAP, table 1) or "runs" (a list of what is there).
        runs: run folders, or folders above them.
        out: folder for NAME.md, NAME.tex and NAME.csv; None writes nothing.

    Returns:
        The table for the terminal.

    Raises:
        UserError: an unknown name, or a folder that does not exist.
    """
    from agentexp.reports.runs import load_runs
    from agentexp.reports.tables import to_csv, to_latex, to_markdown, to_text

    builders = _builders()
    if name not in builders:
        raise UserError(f"There is no report {name!r}; choose one of: {', '.join(builders)}.")
    table = builders[name](load_runs(runs))
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        for suffix, text in ((".md", to_markdown(table)), (".tex", to_latex(table)), (".csv", to_csv(table))):
            (out / (name + suffix)).write_text(text, encoding="utf-8")
    return to_text(table)


def _builders() -> dict[str, Callable[[Sequence[RunData]], Table]]:
    from agentexp.reports.map_table1 import build_table1
    from agentexp.reports.run_list import build_run_list

    return {"table1": build_table1, "runs": build_run_list}


def compare(a: Path, b: Path) -> str:
    """Compare two runs on the tasks they share; see `agentexp.reports.pairs.compare_runs`.

    Raises:
        UserError: a folder holds no run, or the runs share no finished task.
    """
    from agentexp.reports.pairs import compare_runs, comparison_text

    return comparison_text(compare_runs(a, b))
