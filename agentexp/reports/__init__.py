"""Tables, figures and comparisons from run folders.

specs/         one YAML file per table or figure; `specs/README.md` is the reference
spec.py        reads them
measures.py    what a cell can show, read from episode records
runs.py        run folders as rows; runs of one cell pooled over seeds
cells.py       values, intervals and paired differences of one cell
build.py       specification + runs -> table
tables.py      a table as text, Markdown, LaTeX, CSV
figures.py     a table as a figure
published.py   the papers' values
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from agentexp.errors import UserError

__all__ = ["compare", "report"]


def report(name: str, runs: Sequence[Path], out: Path | None = None) -> str:
    """Build a table or figure from run folders.

    Args:
        name: "table1", "ecc-fig4" ... (`agentexp.reports.spec.names`), the path of a specification of your own, or "runs" (a
            list of what is there).
        runs: run folders, or folders above them.
        out: folder for NAME.md, NAME.tex, NAME.csv, and NAME.png, .pdf and .svg of a figure; None writes nothing.

    Returns:
        The table for the terminal.

    Raises:
        UserError: an unknown name, or a folder that does not exist.
        MissingDependency: a figure without matplotlib; its table has been written all the same.
    """
    from agentexp.reports.build import build, wanted
    from agentexp.reports.run_list import build_run_list
    from agentexp.reports.runs import load_runs
    from agentexp.reports.spec import load_spec
    from agentexp.reports.tables import to_csv, to_latex, to_markdown, to_text, turned

    spec = None if name == "runs" else load_spec(name)
    table = build(spec, load_runs(runs, wanted(spec))) if spec else build_run_list(load_runs(runs))
    lines = [to_text(turned(table) if spec and spec.chart and spec.chart.kind == "lines" else table)]
    if out is not None:
        try:
            out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"--out {out} cannot be written: {error.strerror}.") from error
        for suffix, text in ((".md", to_markdown(table)), (".tex", to_latex(table)), (".csv", to_csv(table))):
            (out / (table.name + suffix)).write_text(text, encoding="utf-8")
        if spec and spec.chart:
            from agentexp.reports.figures import draw

            files = draw(table, spec.chart, out)
            lines += [str(file) for file in files] or ["Nothing was measured, so no figure was drawn."]
    return "\n".join(lines)


def compare(a: Path, b: Path) -> str:
    """Compare two runs on the tasks they share; see `agentexp.reports.pairs.compare_runs`.

    Raises:
        UserError: a folder holds no run, or the runs share no finished task.
    """
    from agentexp.reports.pairs import compare_runs, comparison_text

    return comparison_text(compare_runs(a, b))
