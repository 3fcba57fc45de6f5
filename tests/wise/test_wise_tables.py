"""Tables of paper 004: their presets run, every run is found, and cells show what the records hold."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("numpy", reason="needs the extra wise")
pytest.importorskip("networkx", reason="needs the extra wise")
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "reports"))

from report_kit import load, record, write_run

from agentexp.cli import main
from agentexp.reports.measures import MEASURES
from agentexp.reports.published import published_value


def sweep(tmp_path: Path, *overrides: str) -> None:
    with pytest.raises(SystemExit) as end:
        main(["wise-run", "-m", f"output_root={tmp_path}", "workers=1", "progress=off", *overrides])
    assert not end.value.code


def test_the_preset_of_table_1_fills_its_columns(tmp_path: Path) -> None:
    sweep(tmp_path, "+experiment=wise_table1_small", "seeds=1", "map=128", "method=wise,sweep")
    table = load("wise-table1", tmp_path)
    small, large, minecraft = table.panels
    wise = dict(small.rows)["WISE"]
    assert [cell.measured is not None for cell in wise] == [True] * 5
    assert wise[2].published == 99 and 99 <= wise[2].measured <= 100
    assert wise[3].measured < wise[4].measured
    assert not any(cell.runs for _, cells in (*large.rows, *minecraft.rows) for cell in cells)


def test_the_preset_of_table_3_finds_tiers_and_obstacles(tmp_path: Path) -> None:
    sweep(tmp_path, "+experiment=wise_table3_small", "seeds=1", "method=wise", "world.obstacles=none,mixed", "budget=400")
    table = load("wise-table3", tmp_path)
    found = {panel.title: [label for label, cells in panel.rows if any(cell.runs for cell in cells)] for panel in table.panels}
    assert found == {
        "open map": ["all three tiers"],
        "walls, rooms and trees (ours)": ["all three tiers"],
        "rooms with one door (ours)": [],
    }


def test_measures_read_marks_curve_and_times(tmp_path: Path) -> None:
    note = {"budget": 100, "final": 0.8, "marks": {"50": 0.5}, "curve": [0, 10, 20, 80], "total": 100, "t90": None, "rate": 8.0}
    one = record(0, False, notes={"coverage": note})
    write_run(tmp_path / "run", [one])
    read = {at: MEASURES["map_seen"].of(one, at) for at in (None, 50, 20, 90, 500)}
    # at a mark; from the curve, every 10th step; after its end, its last value; beyond the budget, nothing
    assert read == {None: (0.8, 1.0), 50: (0.5, 1.0), 20: (0.2, 1.0), 90: (0.8, 1.0), 500: None}
    assert MEASURES["map_t90"].of(one, None) is None
    assert MEASURES["map_rate"].of(one, None) == (8.0, 1.0)


def test_published_values_are_the_papers() -> None:
    rows = ("004_WISE", "tables", "table1", "rows")
    assert published_value(*rows, "mrsteve", "sim384", "20000") == 83
    assert published_value("004_WISE", "tables", "table3", "rows", "wise", "rate") == 9.7
