"""Tables of cells, printed as text, Markdown, LaTeX and CSV. Numbers are never typed: every cell comes from records."""

from __future__ import annotations

import csv
import io
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from agentexp.reports.cells import MARKS, Cell

DASH = "–"


@dataclass(frozen=True, slots=True)
class Panel:
    """A block of a table with its own columns, for example one world.

    Attributes:
        title: above the block.
        columns: names of the columns.
        rows: (label, one cell per column).
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[tuple[str, Sequence[Cell]]]


@dataclass(frozen=True, slots=True)
class Table:
    """A table: title, blocks and notes. `notes` state what every number means."""

    name: str
    title: str
    panels: Sequence[Panel]
    notes: Sequence[str] = field(default=())

    def all_notes(self) -> list[str]:
        """The notes and the legend of the marks in use."""
        used = {mark for panel in self.panels for _, cells in panel.rows for cell in cells for mark in cell.marks}
        return [*self.notes, *(f"{mark} {text}." for mark, text in MARKS.items() if mark in used)]


def measured_text(cell: Cell) -> str:
    """The measured part: "58.2 [49.7, 66.2]*", a dash where nothing was measured."""
    if cell.measured is None:
        return DASH + "".join(cell.marks)
    sign = "+" if cell.difference else ""
    form = f"{sign}.{cell.digits}f"
    text = f"{cell.measured:{form}}"
    if cell.std is not None:
        text += f" ± {cell.std:.{cell.digits}f}"
    if cell.low is not None and cell.high is not None:
        text += f" [{cell.low:{form}}, {cell.high:{form}}]"
    return text + "".join(cell.marks)


def details_text(cell: Cell) -> str:
    """The second line: size, exclusions and the paper's value."""
    parts = []
    if cell.planned:
        more = f" in {cell.episodes}" if cell.episodes else f"/{cell.planned}" if cell.n < cell.planned else ""
        parts.append(f"n={cell.n}" + ("" if cell.difference else more))
    if cell.seeds > 1:
        parts.append(f"{cell.seeds} seeds")
    if cell.excluded:
        parts.append(
            f"{cell.excluded} excluded" + (f" ({cell.as_failures:.1f} as failures)" if cell.as_failures is not None else "")
        )
    if cell.published is not None:
        parts.append(f"paper {cell.published:{'+' if cell.difference else ''}.{cell.digits}f}")
    return ", ".join(parts)


def _lines(cell: Cell) -> list[str]:
    """What a cell shows: the measured line and the line below it; only the paper's value where nothing was measured."""
    details = details_text(cell)
    if cell.measured is None and not cell.marks and details:
        return [details]
    return [measured_text(cell), details] if details else [measured_text(cell)]


def turned(table: Table) -> Table:
    """The same cells with rows and columns exchanged: many positions on an x axis read better from top to bottom."""
    panels = []
    for panel in table.panels:
        cells = [[line[i] for _, line in panel.rows] for i in range(len(panel.columns))]
        rows = list(zip(panel.columns, cells, strict=True))
        panels.append(Panel(panel.title, [label for label, _ in panel.rows], rows if panel.rows else []))
    return replace(table, panels=panels)


def to_text(table: Table) -> str:
    """For the terminal. Numbers are never cropped: a table takes the width that it needs."""
    from rich import box
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    out = io.StringIO()
    console = Console(file=out, width=1000, highlight=False, color_system=None)
    console.print(Text(table.title))
    for panel in table.panels:
        console.print(Text(panel.title))  # not as the table's title, which would be broken to the table's width
        if not panel.rows or not panel.columns:
            console.print(Text("  no runs\n"))
            continue
        grid = RichTable(box=box.SIMPLE, pad_edge=False)
        grid.add_column("")
        for column in panel.columns:
            grid.add_column(Text(column), justify="right", no_wrap=True)
        for label, cells in panel.rows:
            grid.add_row(Text(label), *(Text("\n".join(_lines(cell))) for cell in cells))
        console.print(grid)
    lines = [line.rstrip() for line in out.getvalue().splitlines()]
    return "\n".join([*lines, *(textwrap.fill(note, 120, subsequent_indent="  ") for note in table.all_notes())])


def to_markdown(table: Table) -> str:
    """GitHub Markdown, one table per block."""
    lines = [f"# {table.title}", ""]
    for panel in table.panels:
        lines += [f"## {panel.title}", "", "| | " + " | ".join(map(_md, panel.columns)) + " |"]
        lines.append("|---|" + "---:|" * len(panel.columns))
        for label, cells in panel.rows:
            texts = ("<br>".join(map(_md, _lines(cell))) for cell in cells)
            lines.append(f"| {_md(label)} | " + " | ".join(texts) + " |")
        lines.append("")
    lines += [f"- {_md(note)}" for note in table.all_notes()]
    return "\n".join(lines) + "\n"


def _md(text: str) -> str:
    return re.sub(r"([\\|*_<>`\[\]])", r"\\\1", text).replace("\n", " ")


def to_latex(table: Table) -> str:
    """One `table` environment per block; needs the package booktabs and no other."""
    lines = ["% needs \\usepackage{booktabs}"]
    for number, panel in enumerate(table.panels, 1):
        label = re.sub(r"[^A-Za-z0-9:-]", "-", table.name)
        lines += ["\\begin{table}[t]", "\\centering\\small"]
        lines += [f"\\caption{{{_tex(table.title)}: {_tex(panel.title)}}}", f"\\label{{tab:{label}-{number}}}"]
        lines += [f"\\begin{{tabular}}{{l{'r' * len(panel.columns)}}}", "\\toprule"]
        lines += [" & ".join(["", *map(_tex, panel.columns)]) + " \\\\", "\\midrule"]
        lines += [" & ".join([_tex(name), *map(_tex_cell, cells)]) + " \\\\" for name, cells in panel.rows]
        lines += ["\\bottomrule", "\\end{tabular}", "", "\\begin{minipage}{0.95\\linewidth}\\footnotesize"]
        lines += [f"{_tex(note)}\\par" for note in table.all_notes()]
        lines += ["\\end{minipage}", "\\end{table}", ""]
    return "\n".join(lines)


def _tex_cell(cell: Cell) -> str:
    lines = [_tex(text) for text in _lines(cell)]
    if len(lines) == 1:
        return lines[0]
    return f"\\shortstack[r]{{{lines[0]} \\\\ {{\\scriptsize {lines[1]}}}}}"


_TEX = {
    **{char: f"\\{char}" for char in "&%$#_{}"},
    **{
        "\\": "\\textbackslash{}",
        "~": "\\textasciitilde{}",
        "^": "\\textasciicircum{}",
        "<": "\\textless{}",
        ">": "\\textgreater{}",
    },
    **{
        "–": "--",
        "±": "$\\pm$",
        "≈": "$\\approx$",
        "†": "\\dag{}",
        "‡": "\\ddag{}",
        "§": "\\S{}",
        "−": "$-$",
        "◇": "$\\diamond$",
        "Δ": "$\\Delta$",
        "|": "\\textbar{}",
    },
    **{"[": "{[}", "]": "{]}"},  # after \\ a bracket would be read as an option
}


def _tex(text: str) -> str:
    return "".join(_TEX.get(char, char) for char in text.replace("\n", " "))


def to_csv(table: Table) -> str:
    """One line per cell, with everything that is known about it and the run folders it comes from."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(
        "table panel row column published measured low high n planned excluded as_failures seeds std marks runs".split()  # noqa: SIM905
    )
    for panel, label, column, cell in _cells(table):
        numbers = (cell.published, cell.measured, cell.low, cell.high)
        writer.writerow(
            [
                *(table.name, panel, label, column),
                *map(_number, numbers),
                *(cell.n, cell.planned, cell.excluded, _number(cell.as_failures), cell.seeds, _number(cell.std)),
                *(" ".join(cell.marks), " ".join(cell.runs)),
            ]
        )
    return out.getvalue()


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _cells(table: Table) -> Iterator[tuple[str, str, str, Cell]]:
    for panel in table.panels:
        for label, cells in panel.rows:
            for column, cell in zip(panel.columns, cells, strict=True):
                yield panel.title, label, column, cell
