"""Tables in their four forms, table 1 and the published values."""

import csv
import io
import re
import shutil
import subprocess

import pytest
from report_kit import record, write_run

from agentexp.errors import UserError
from agentexp.reports import report
from agentexp.reports.cells import Cell
from agentexp.reports.map_table1 import build_table1, paper_name
from agentexp.reports.published import published, published_value
from agentexp.reports.runs import load_runs
from agentexp.reports.tables import Panel, Table, to_csv, to_latex, to_markdown, to_text

NASTY = "50 % of_a & b #1 {x} ~ ^ \\ <y> | [z] *q* $"
CELLS = [
    Cell(61.1, 58.2, 49.7, 66.2, 134, 134, 2, 1, 57.4, marks=("*", "‡")),
    Cell(29.3, -4.0, -9.0, 1.0, 134, 134, marks=("≈",), difference=True),
    Cell(),
    Cell(71.5),
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
def test_latex_compiles(tmp_path):
    engine = next((name for name in ("tectonic", "lualatex", "xelatex", "pdflatex") if shutil.which(name)), None)
    if engine is None:
        pytest.skip("no LaTeX on this machine")
    document = f"\\documentclass{{article}}\\usepackage{{booktabs}}\\begin{{document}}\n{to_latex(TABLE)}\\end{{document}}\n"
    (tmp_path / "t.tex").write_text(document)
    flags = [] if engine == "tectonic" else ["-halt-on-error", "-interaction=nonstopmode"]
    subprocess.run([engine, *flags, "t.tex"], cwd=tmp_path, check=True, capture_output=True)


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


def test_model_names_match_by_spelling_only():
    assert paper_name("gpt-4o-mini") == paper_name("GPT-4o-mini") == "GPT-4o-mini"
    assert paper_name("gpt-4o-2024-08-06") == "GPT-4o-0806"
    assert paper_name("Qwen3-4B-Instruct-2507") == "Qwen3-4B-Instruct"
    assert paper_name("gpt-4o") is None
    assert paper_name("Qwen3-4B") is None


def cells_of(table, world, label):
    panel = next(panel for panel in table.panels if panel.title.startswith(world))
    return dict(zip(panel.columns, dict(panel.rows)[label], strict=True))


def test_table1_puts_measured_beside_published(tmp_path):
    for paradigm, won in (("react", 4), ("map", 9)):
        records = [record(i, i < won) for i in range(12)]
        write_run(tmp_path / paradigm, records, paradigm=paradigm, model="gpt-4o-mini")
        write_run(tmp_path / f"tiny-{paradigm}", records, paradigm=paradigm, model="tiny")
        write_run(tmp_path / f"explored-{paradigm}", records, paradigm=paradigm, model="tiny", command="explore")
    table = build_table1(load_runs([tmp_path]))
    paper, own = cells_of(table, "ALFWorld", "GPT-4o-mini"), cells_of(table, "ALFWorld", "tiny")
    assert (paper["ReAct"].published, paper["ReAct"].measured) == (21.9, pytest.approx(100 / 3))
    assert paper["ReAct"].marks == own["MAP"].marks == ("*",)
    assert paper["CoMAP"] == Cell(31.0)
    assert own["MAP"].published is None
    difference = paper["MAP − ReAct"]
    assert (difference.published, difference.measured, difference.n) == (pytest.approx(24.3), pytest.approx(100 * 5 / 12), 12)
    assert len(table.panels[0].rows) == 15
    assert [label for label, _ in table.panels[1].rows] == list(published_value("000_MAP", "tables", "table1", "rows"))


def test_a_run_of_the_papers_size_and_model_is_not_small_scale(tmp_path):
    write_run(tmp_path / "a", [record(i, True) for i in range(134)], model="MAP-4B")
    assert cells_of(build_table1(load_runs([tmp_path])), "ALFWorld", "MAP-4B")["ReAct"].marks == ()


def test_variants_get_rows_of_their_own_beside_the_common_baseline(tmp_path):
    records = [record(i, i % 2 == 0) for i in range(6)]
    write_run(tmp_path / "react", records)
    for stage in (True, False):
        write_run(tmp_path / f"map{stage}", records, paradigm="map", config={"paradigm": {"name": "map", "stage1": stage}})
    table = build_table1(load_runs([tmp_path]))
    for label in ("tiny (paradigm.stage1=True)", "tiny (paradigm.stage1=False)"):
        cells = cells_of(table, "ALFWorld", label)
        assert cells["MAP − ReAct"].n == 6
        assert cells["MAP − ReAct"].marks == ("*", "≈")


def test_report_writes_three_files_and_names_its_choices(tmp_path):
    write_run(tmp_path / "runs" / "a", [record(i, True) for i in range(3)])
    text = report("table1", [tmp_path / "runs"], out=tmp_path / "tables")
    assert "100.0 [43.9, 100.0]*" in text
    assert sorted(path.name for path in (tmp_path / "tables").iterdir()) == ["table1.csv", "table1.md", "table1.tex"]
    assert "tiny" in (tmp_path / "tables" / "table1.md").read_text()
    assert "react  a" in report("runs", [tmp_path / "runs"])
    with pytest.raises(UserError, match="choose one of: table1, runs"):
        report("table9", [tmp_path])
    (tmp_path / "empty").mkdir()
    assert "No runs were found" in report("table1", [tmp_path / "empty"])
