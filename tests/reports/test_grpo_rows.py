"""Rows that need trained models are filled by evaluations of models with the labels that conf/experiment/grpo_*_paper name."""

import re
from pathlib import Path

import pytest
from report_kit import cells_of, load, record, write_run

from agentexp.reports.spec import load_spec
from agentexp.training.grpo.interleave import TABLE_5

CONF = Path(__file__).resolve().parents[2] / "conf" / "experiment"


def evaluated(folder, label, won, steps):
    paradigm = {"explore_steps": steps, "explore_budget": None, "direct_bonus": False}
    records = [record(i, i < won) for i in range(10)]
    return write_run(folder, records, paradigm="explore_then_act", model=label, config={"paradigm": paradigm})


@pytest.mark.parametrize("ratio", TABLE_5)
def test_table_5_finds_every_ratio_by_its_label(tmp_path, ratio):
    evaluated(tmp_path / "dir", f"qwen3-4b-grpo-{ratio}", 4, 0)
    evaluated(tmp_path / "eta", f"qwen3-4b-grpo-{ratio}", 7, 50)
    row = {"0:1": "Explore-Only", "1:0": "Task-Only"}.get(ratio, ratio)
    cells = cells_of(load("ecc-table5", tmp_path), "ALFWorld", row)
    assert [round(cell.measured, 6) for cell in cells.values()] == pytest.approx([40.0, 70.0, 30.0])


@pytest.mark.parametrize("name", ["task_only", "explore_only", "interleaved"])
def test_the_experiments_name_the_labels_of_both_tables(tmp_path, name):
    told = set(re.findall(r"model\.label=([\w.:-]+)", (CONF / f"grpo_{name}_paper.yaml").read_text()))
    known = {
        table: {label for entry in load_spec(table).rows.entries for label in entry.names}
        for table in ("ecc-table2", "ecc-table5")
    }
    assert len(told & known["ecc-table2"]) == len(told & known["ecc-table5"]) == 1 and len(told) == 2
    (label,) = told & known["ecc-table2"]
    evaluated(tmp_path / "dir", label, 5, 0)
    cells = cells_of(load("ecc-table2", tmp_path), "ALFWorld", f"Qwen3-4B, GRPO {name.replace('_', '-')}")
    assert cells["Dir."].measured == pytest.approx(50.0)
