"""The specifications that come with agentexp."""

import re
from pathlib import Path

import pytest
from report_kit import load

from agentexp.envs.alfworld.card import card
from agentexp.errors import UserError
from agentexp.reports.build import wanted
from agentexp.reports.measures import MEASURES
from agentexp.reports.published import published_value
from agentexp.reports.spec import load_spec, names, parse_spec

ALL = names()
ROOT = Path(__file__).resolve().parents[2]
TABLES = [name for name in ALL if "table" in name]
# numbers of a published table that no cell shows: what the paper computes from others, counts of another axis, spreads
LEFT_OUT = re.compile(r"printed_delta|printed_drop|_std$|n_test|^(?:metric|caption|note|columns|group|direction)$")


def test_all_are_there():
    assert set(ALL) == {
        *("table1", "table3", "table4", "table5", "fig3", "fig4", "fig5", "fig6"),
        *("ecc-table1", "ecc-table2", "ecc-table3", "ecc-table5", "ecc-table6", "ecc-fig3", "ecc-fig4"),
        *("ttx-table6", "ttx-fig4", "ttx-fig5"),
        *("table2", "table7"),
        *(f"wise-table{n}" for n in ("1", "2", "3", "3b", "5", "6", "7", "8", "9", "10", "11", "12")),
    }
    assert [name for name in ALL if load_spec(name).chart] == [name for name in ALL if "fig" in name]


@pytest.mark.parametrize("name", ALL)
def test_every_spec_is_sound(name):
    spec = load_spec(name)
    for metric, _ in wanted(spec):
        assert metric in MEASURES
    if spec.published:
        assert published_value(*spec.published) is not None
    if spec.chart and spec.chart.kind == "lines":
        for panel in spec.panels:
            assert all(float(column.title) >= 0 for column in (panel.columns or spec.columns).entries)
    for note in spec.notes:
        for file in re.findall(r"(\w+)_\*\.yaml|(\w+?)_(?:small|paper)\.yaml", note):
            stem = "".join(file)
            for scale in ("small", "paper"):
                assert (ROOT / "conf" / "experiment" / f"{stem}_{scale}.yaml").is_file()


def numbers(node, path=()):
    if isinstance(node, dict):
        for key, value in node.items():
            if not LEFT_OUT.search(str(key)):
                yield from numbers(value, (*path, key))
    elif isinstance(node, int | float) and not isinstance(node, bool):
        yield float(node)


@pytest.mark.parametrize("name", TABLES)
def test_every_published_number_stands_in_a_cell(tmp_path, name):
    table = load(name, tmp_path)
    shown = [
        cell.published for panel in table.panels for _, cells in panel.rows for cell in cells if cell.published is not None
    ]
    section = published_value(*load_spec(name).published)
    expected = sorted(numbers(section.get("modules" if name == "wise-table3b" else "rows")))
    remaining = sorted(shown)
    for number in expected:
        assert number in remaining, f"{name}: {number} is not shown"
        remaining.remove(number)
    assert expected or "LOST" in section["cells"]


def test_differences_are_the_papers(tmp_path):
    pairs = {name: [] for name in ("ecc-table2", "ecc-table5", "table1", "table3", "table4", "table5")}
    for name, found in pairs.items():
        for panel in load(name, tmp_path).panels:
            for _, cells in panel.rows:
                named = dict(zip(panel.columns, cells, strict=True))
                if "MAP − ReAct" in named:
                    found.append((named["MAP − ReAct"], named["MAP"], named["ReAct"]))
                elif "E-t-A − Dir." in named:
                    found.append((named["E-t-A − Dir."], named["E-t-A"], named["Dir."]))
                elif "difference" in named:
                    found.append((named["difference"], named["pass@1, perturbed"], named["pass@1"]))
        assert all(d.published == pytest.approx(a.published - b.published, abs=0.11) for d, a, b in found), name
    assert [len(pairs[name]) for name in ("ecc-table2", "ecc-table5", "table1", "table3")] == [32, 8, 42, 3]
    column = [cells[0].published for _, cells in load("table4", tmp_path).panels[0].rows]
    assert column == [71.5, 64.8, -6.7, 55.0, -16.5, None]


def test_training_rows_say_what_they_need(tmp_path):
    for name, rows in (("ecc-table2", 6), ("ecc-table5", 8), ("table3", 2), ("table1", 2), ("ecc-table1", 2)):
        panel = load(name, tmp_path).panels[0]
        marked = [label for label, cells in panel.rows if all(cell.marks == ("◇",) for cell in cells)]
        assert len(marked) == rows, name


def test_info_actions_are_the_worlds():
    assert load_spec("ecc-table3").at == card("new").info_actions


def test_errors_name_the_key_and_the_choice(tmp_path):
    with pytest.raises(UserError, match=r"There is no report 'table11'. Did you mean table1\?"):
        load_spec("table11")
    good = {"title": "t", "panels": ["p"], "rows": ["r"], "columns": ["c"]}
    with pytest.raises(UserError, match=r"own.colums is unknown in a report's specification. Did you mean columns\?"):
        parse_spec("own", {**good, "colums": []})
    with pytest.raises(UserError, match=r"own.rows.metrics is unknown"):
        parse_spec("own", {**good, "rows": [{"title": "r", "metrics": "success"}]})
    with pytest.raises(UserError, match="has no 'rows'"):
        parse_spec("own", {key: value for key, value in good.items() if key != "rows"})
    (tmp_path / "bad.yaml").write_text("a: [")
    with pytest.raises(UserError, match="is not valid YAML"):
        load_spec(str(tmp_path / "bad.yaml"))
