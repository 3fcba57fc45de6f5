"""Tables in their four forms, table 1 and the published values."""

import csv
import io
import re
import shutil
import subprocess

import pytest
from report_kit import load, record, write_run

from agentexp.errors import UserError
from agentexp.reports import report
from agentexp.reports.cells import Cell
from agentexp.reports.published import published, published_value
from agentexp.reports.spec import names
from agentexp.reports.tables import Panel, Table, to_csv, to_latex, to_markdown, to_text

NASTY = "50 % of_a & b #1 {x} ~ ^ \\ <y> | [z] *q* $"
CELLS = [
    Cell(61.1, 58.2, 49.7, 66.2, 134, 134, 2, 1, 57.4, marks=("*", "‡")),
    Cell(29.3, -4.0, -9.0, 1.0, 134, 134, marks=("≈",), difference=True),
    Cell(),
    Cell(71.5, marks=("◇",)),
]
TABLE = Table("demo", NASTY, [Panel("Pane_l", ("a_b", "c", "d", "e"), [(NASTY, CELLS)])], (NASTY,))


def test_text_holds_every_number_and_explains_its_marks():
    text = to_text(TABLE)
    for part in (
        "58.2 [49.7, 66.2]*‡",
        "n=134, 2 excluded (57.4 as failures), paper 61.1",
        "-4.0 [-9.0, +1.0]≈",
        "paper 71.5",
        "–",
    ):
        assert part in text
    for mark in "*‡≈":
        assert f"\n{mark} " in text
    assert "† " not in text
    assert "…" not in text


def test_markdown_has_as_many_cells_in_every_row():
    lines = [line for line in to_markdown(TABLE).splitlines() if line.startswith("|")]
    counts = {len(re.findall(r"(?<!\\)\|", line)) for line in lines}
    assert counts == {6}
    assert "58.2 \\[49.7, 66.2\\]\\*‡<br>n=134" in lines[-1]


def test_latex_is_escaped_and_balanced():
    text = to_latex(TABLE)
    body = re.sub(r"\\[&%$#_{}]", "", text)
    assert body.count("{") == body.count("}")
    for name in ("table", "tabular", "minipage"):
        assert text.count(f"\\begin{{{name}}}") == text.count(f"\\end{{{name}}}") == 1
    row = next(line for line in text.splitlines() if line.startswith("50 \\%"))
    assert len(re.findall(r"(?<!\\)&", row)) == 4
    assert text.isascii()
    assert not re.search(r"(?<!\\)[#_]", body)


@pytest.mark.slow
@pytest.mark.parametrize("which", ["cells of all kinds", "all reports"])
def test_latex_compiles(tmp_path, which):
    engine = next((name for name in ("tectonic", "lualatex", "xelatex", "pdflatex") if shutil.which(name)), None)
    if engine is None:
        pytest.skip("no LaTeX on this machine")
    tables = [to_latex(TABLE)] if which != "all reports" else [to_latex(load(name)) for name in names()]
    body = "\\clearpage\n".join(tables)
    document = f"\\documentclass{{article}}\\usepackage{{booktabs}}\\begin{{document}}\n{body}\\end{{document}}\n"
    (tmp_path / "t.tex").write_text(document)
    flags = [] if engine == "tectonic" else ["-halt-on-error", "-interaction=nonstopmode"]
    subprocess.run([engine, *flags, "t.tex"], cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "t.pdf").stat().st_size > 1000


def test_csv_has_one_line_per_cell():
    rows = list(csv.DictReader(io.StringIO(to_csv(TABLE))))
    assert len(rows) == 4
    assert rows[0]["row"] == NASTY
    assert (rows[0]["measured"], rows[0]["published"], rows[0]["excluded"], rows[0]["marks"]) == (
        "58.2000",
        "61.1000",
        "2",
        "* ‡",
    )
    assert rows[2]["measured"] == ""


def test_published_values_are_the_papers():
    assert published_value("000_MAP", "tables", "table1", "rows", "MAP-4B", "alfworld", "map") == 94.1
    assert published_value("000_MAP", "tables", "table1", "rows", "Nobody", "alfworld") is None
    rows = published()["000_MAP"]["tables"]["table1"]["rows"]
    assert len(rows) == 14
    for row in rows.values():
        for world in ("alfworld", "textcraft", "sciworld"):
            values = row[world]
            assert values["comap"] - values["react"] == pytest.approx(values["printed_delta_comap_vs_react"])
            assert values["map"] - values["comap"] == pytest.approx(values["printed_delta_map_vs_comap"])


def test_report_writes_three_files_and_names_its_choices(tmp_path):
    write_run(tmp_path / "runs" / "a", [record(i, True) for i in range(3)])
    text = report("table1", [tmp_path / "runs"], out=tmp_path / "tables")
    assert "100.0 [43.9, 100.0]*" in text
    assert sorted(path.name for path in (tmp_path / "tables").iterdir()) == ["table1.csv", "table1.md", "table1.tex"]
    assert "tiny" in (tmp_path / "tables" / "table1.md").read_text()
    assert "react  a" in report("runs", [tmp_path / "runs"])
    with pytest.raises(UserError, match="Choose one of: runs, table1, table2, table3"):
        report("table9", [tmp_path])
    (tmp_path / "empty").mkdir()
    assert "No runs were found" in report("table1", [tmp_path / "empty"])
