"""Figures from the same cells as tables: a subplot per block, a series per row, an x position per column.

Readable in grey and by the colour-blind: the palette of Okabe and Ito (2008), and every series also has a marker and a line
style, or a hatching, of its own. Every figure says n and draws the 95 % intervals.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentexp.errors import MissingDependency
from agentexp.reports.cells import MARKS, Cell
from agentexp.reports.spec import Chart
from agentexp.reports.tables import Panel, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LINES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)), (0, (8, 2, 2, 2)))
HATCHES = ("", "///", "...", "xxx", "\\\\\\", "+++", "ooo", "---")
FORMATS = ("png", "pdf", "svg")
LONGEST = 44  # characters of a legend entry


def draw(table: Table, chart: Chart, out: Path) -> list[Path]:
    """Write `out`/NAME.png, .pdf and .svg.

    Args:
        table: the cells.
        chart: how to draw them.
        out: an existing folder.

    Returns:
        The files; none where nothing was measured.

    Raises:
        MissingDependency: matplotlib is not installed.
    """
    try:
        import matplotlib
    except ImportError as error:
        raise MissingDependency(
            "Figures need matplotlib, which is not installed: pip install 'agentexp[figures]'. The table and its CSV were "
            "written all the same."
        ) from error
    if not any(cell.measured is not None for panel in table.panels for _, cells in panel.rows for cell in cells):
        return []
    settings: dict[Any, Any] = {"font.size": 9, "svg.hashsalt": table.name, "pdf.fonttype": 42, "hatch.linewidth": 0.5}
    with matplotlib.rc_context(settings):
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        wide = min(chart.wide, len(table.panels))
        rows = -(-len(table.panels) // wide)
        figure = Figure(figsize=(4.4 * wide + 0.4, 3.4 * rows + 0.9), layout="constrained")
        FigureCanvasAgg(figure)
        grid = figure.subplots(rows, wide, squeeze=False)
        labels = _series(table)
        for number, axes in enumerate(grid.flat):
            if number < len(table.panels):
                _panel(axes, table.panels[number], chart, labels)
            else:
                axes.set_axis_off()
        figure.suptitle(table.title, fontsize=10)
        figure.supxlabel(_below(table), fontsize=7)
        files = []
        for form in FORMATS:
            file = out / f"{table.name}.{form}"
            undated: dict[str, Any] = {"png": {}, "pdf": {"CreationDate": None}, "svg": {"Date": None}}[form]
            figure.savefig(file, dpi=200, metadata=undated)
            files.append(file)
    return files


def _series(table: Table) -> list[str]:
    """The series that were measured anywhere: each looks the same in every subplot."""
    measured = {label for p in table.panels for label, cells in p.rows if any(c.measured is not None for c in cells)}
    return [label for label in dict.fromkeys(label for p in table.panels for label, _ in p.rows) if label in measured]


def _panel(axes: Axes, panel: Panel, chart: Chart, labels: Sequence[str]) -> None:
    axes.set_title(panel.title, fontsize=9)
    axes.set_ylabel(chart.y)
    axes.set_xlabel(chart.x)
    axes.grid(axis="y", linewidth=0.4, color="0.85")
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    shown = [(label, cells) for label, cells in panel.rows if any(cell.measured is not None for cell in cells)]
    if not shown:
        axes.text(0.5, 0.5, "no runs", ha="center", va="center", transform=axes.transAxes, color="0.4")
        axes.set_xticks([])
        axes.set_yticks([])
        return
    for place, (label, cells) in enumerate(shown):
        number = labels.index(label)
        if chart.kind == "lines":
            _line(axes, panel, cells, label, number, (place - (len(shown) - 1) / 2))
        else:
            _bars(axes, panel, cells, label, number, place, len(shown))
    if chart.kind == "lines":
        places = [float(column) for column in panel.columns]
        margin = 0.04 * (max(places) - min(places)) or 1.0
        axes.set_xlim(min(places) - margin, max(places) + margin)
        axes.set_xticks(places)
    else:
        axes.set_xticks(range(len(panel.columns)), [column.replace(" ", "\n") for column in panel.columns], fontsize=8)
        axes.set_xlim(-0.6, len(panel.columns) - 0.4)
        top = max(max(c.measured or 0.0, c.high or 0.0) for _, cells in shown for c in cells)
        axes.set_ylim(0, 1.05 * top or 1.0)
    axes.legend(fontsize=7, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=1 if len(shown) > 3 else 2)


def _line(axes: Axes, panel: Panel, cells: Sequence[Cell], label: str, number: int, shift: float) -> None:
    xs = [float(column) for column in panel.columns]
    step = min((b - a for a, b in pairwise(xs)), default=1.0)
    points = [(x + 0.06 * step * shift, cell) for x, cell in zip(xs, cells, strict=True) if cell.measured is not None]
    axes.errorbar(
        [x for x, _ in points],
        [cell.measured or 0.0 for _, cell in points],
        yerr=_errors([cell for _, cell in points]),
        label=_legend(label, cells),
        color=COLOURS[number % len(COLOURS)],
        marker=MARKERS[number % len(MARKERS)],
        linestyle=LINES[number % len(LINES)],
        markersize=4.5,
        linewidth=1.3,
        elinewidth=0.8,
        capsize=2,
    )
    if any(cell.difference for cell in cells):
        axes.axhline(0, color="0.5", linewidth=0.6)


def _bars(axes: Axes, panel: Panel, cells: Sequence[Cell], label: str, number: int, place: int, series: int) -> None:
    width = 0.8 / series
    points = [(i, cell) for i, cell in enumerate(cells) if cell.measured is not None]
    axes.bar(
        [i + (place - (series - 1) / 2) * width for i, _ in points],
        [cell.measured or 0.0 for _, cell in points],
        width,
        yerr=_errors([cell for _, cell in points]),
        label=_legend(label, cells),
        color=COLOURS[number % len(COLOURS)],
        hatch=HATCHES[number % len(HATCHES)],
        edgecolor="black",
        linewidth=0.6,
        capsize=2,
        error_kw={"elinewidth": 0.8},
    )


def _errors(cells: Sequence[Cell]) -> list[list[float]]:
    """Distances from the value to both ends of its interval."""
    low = [max(0.0, (c.measured or 0.0) - c.low) if c.low is not None else 0.0 for c in cells]
    high = [max(0.0, c.high - (c.measured or 0.0)) if c.high is not None else 0.0 for c in cells]
    return [low, high]


def _legend(label: str, cells: Sequence[Cell]) -> str:
    sizes = sorted({cell.n for cell in cells if cell.measured is not None})
    n = f"{sizes[0]}" if len(sizes) == 1 else f"{sizes[0]}-{sizes[-1]}"
    return f"{label if len(label) <= LONGEST else label[: LONGEST - 1] + '…'} (n={n})"


def _below(table: Table) -> str:
    """The line under the figure: intervals, exclusions, marks."""
    cells = [cell for panel in table.panels for _, row in panel.rows for cell in row]
    folders = {cell.runs: cell.excluded for cell in cells if cell.runs}
    marks = dict.fromkeys(mark for mark in MARKS if any(mark in cell.marks for cell in cells if cell.measured is not None))
    parts = [f"95 % intervals; harness errors excluded: {sum(folders.values())}"]
    return "; ".join([*parts, *(MARKS[mark] for mark in marks if mark != "≈")])
