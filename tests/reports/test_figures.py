"""Figures: files, legends, and that nothing depends on colour alone."""

import subprocess
import sys

import pytest
from report_kit import record, write_run

from agentexp.errors import MissingDependency
from agentexp.reports import report
from agentexp.reports.cells import Cell
from agentexp.reports.figures import COLOURS, FORMATS, HATCHES, LINES, MARKERS, draw
from agentexp.reports.spec import Chart
from agentexp.reports.tables import Panel, Table

SERIES = [
    ("react", [Cell(measured=20.0, low=10.0, high=35.0, n=20, marks=("*",), runs=("a",)), Cell()]),
    ("map", [Cell(measured=50.0, low=35.0, high=70.0, n=20, excluded=2, runs=("b",)), Cell(measured=60.0, n=18)]),
]


@pytest.mark.parametrize("kind", ["lines", "bars"])
def test_three_formats_that_are_not_empty_and_say_n(tmp_path, kind):
    table = Table("fig", "Title & more", [Panel("one", ("0", "10"), SERIES), Panel("two", ("0", "10"), [])])
    files = draw(table, Chart(kind=kind, x="steps", y="rate", wide=2), tmp_path)
    assert [file.name for file in files] == [f"fig.{form}" for form in FORMATS]
    assert all(file.stat().st_size > 3000 for file in files)
    assert (tmp_path / "fig.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "fig.pdf").read_bytes().startswith(b"%PDF")
    first = (tmp_path / "fig.svg").read_bytes()
    draw(table, Chart(kind=kind, x="steps", y="rate", wide=2), tmp_path)
    assert (tmp_path / "fig.svg").read_bytes() == first


def test_text_of_a_figure(tmp_path):
    import matplotlib

    with matplotlib.rc_context({"svg.fonttype": "none"}):
        draw(Table("fig", "Title", [Panel("one", ("0", "10"), SERIES)]), Chart(wide=1), tmp_path)
    text = (tmp_path / "fig.svg").read_text()
    for part in ("react (n=20)", "map (n=18-20)", "harness errors excluded: 2", "small-scale, not comparable"):
        assert part in text


def test_nothing_measured_is_no_figure(tmp_path):
    table = Table("fig", "t", [Panel("p", ("0",), [("a", [Cell(61.1)])])])
    assert draw(table, Chart(), tmp_path) == []
    (tmp_path / "runs").mkdir()
    assert "no figure was drawn" in report("fig5", [tmp_path / "runs"], tmp_path / "out")
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == ["fig5.csv", "fig5.md", "fig5.tex"]


def test_styles_differ_without_colour():
    assert len(set(COLOURS)) == len(set(MARKERS)) == len(set(map(str, LINES))) == len(set(HATCHES)) == 8


def test_without_matplotlib_the_table_is_still_written(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    config = {"paradigm": {"name": "map", "stage1": True, "stage2": True, "drop": "none", "maps": None}}
    config["budget"] = {"mapping": 10, "acting": 50}
    write_run(tmp_path / "a", [record(i, True) for i in range(3)], paradigm="map", config=config)
    with pytest.raises(MissingDependency, match=r"agentexp\[figures\]"):
        report("fig5", [tmp_path / "a"], tmp_path / "out")
    assert "tiny" in (tmp_path / "out" / "fig5.csv").read_text()
    assert "tiny" in report("fig5", [tmp_path / "a"])


def test_importing_reports_does_not_import_matplotlib():
    code = "import agentexp.reports.figures, sys; assert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
