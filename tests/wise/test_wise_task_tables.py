"""Tables 2, 3b and 5 to 12 of paper 004: cells show what records of sparse tasks hold, and published values are the paper's."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "reports"))

from report_kit import cells_of, load, record, write_run

from agentexp.metrics.summary import summarise
from agentexp.metrics.wise_tasks import run_of, summarise_tasks
from agentexp.reports.published import published_value

TABLES = ("2", "3b", "5", "6", "8", "9", "10", "11", "12")


def note(seed: int, success: bool, steps: int, **more: Any) -> dict[str, Any]:
    done = [{"target": item, "tick": steps if success else None} for item in ("water_bucket", "log", "beef")]
    agent = {
        "mode_share": {"explore": 0.5, "navigate": 0.2, "adjust": 0.1, "execute": 0.2},
        "step_cpu_ms": {"p99": 2.0 + seed},
        "choice_cpu_ms": {"p99": 1.0},
    }
    return {
        "seed": seed,
        "success": success,
        "steps": steps,
        "returned": None,
        "done": done,
        "agent": agent,
        "memory": {},
        **more,
    }


def episode(seed: int, success: bool, steps: int = 4000, **more: Any) -> dict[str, Any]:
    return record(seed, success, env="abc_sparse-sim-128", steps=steps, notes={"wise": note(seed, success, steps, **more)})


def write(folder: Path, method: str, records: list[dict[str, Any]], **protocol: Any) -> None:
    config = {"task": "abc_sparse", "protocol": {"spawn_stays": None, **protocol}}
    write_run(folder, records, env="abc_sparse-sim-128", paradigm=method, command="wise-run", config=config, model="simulated")


def test_success_steps_and_runs_of_fifty(tmp_path: Path) -> None:
    write(tmp_path / "wise", "wise", [episode(0, True, 3000), episode(1, False, 12000), episode(50, True, 5000)])
    write(tmp_path / "mrsteve", "mrsteve", [episode(0, False), episode(1, False), episode(50, True)])
    cells = cells_of(load("wise-table2", tmp_path), "ABC", "WISE")
    assert cells["success %"].measured == pytest.approx(200 / 3) and cells["success %"].published == 77
    assert (cells["steps of successes"].measured, cells["steps of successes"].n) == (4000, 2)
    runs = cells_of(load("wise-table11", tmp_path), "ABC", "WISE")
    assert [runs[name].measured for name in ("run 1, successes", "of", "run 2, successes", "of (2)", "both")] == [1, 2, 1, 1, 2]
    assert runs["success"].difference and runs["success"].measured == pytest.approx(100 / 3)  # paired with MrSteve's seeds
    assert cells_of(load("wise-table12", tmp_path), "ABC", "WISE")["both"].published == 77


def test_episodes_in_which_cows_leave_are_a_block_of_their_own(tmp_path: Path) -> None:
    write(tmp_path / "a", "wise", [episode(0, True)])
    write(tmp_path / "b", "wise", [episode(0, False)], spawn_stays=2500)
    table = load("wise-table3b", tmp_path)
    assert cells_of(table, "ABC", "WISE")["success %"].measured == 100
    assert cells_of(table, "cows leave", "WISE")["success %"].measured == 0
    assert cells_of(load("wise-table2", tmp_path), "ABC", "WISE")["success %"].n == 1


def test_costs_and_precisions_are_sums_over_sums(tmp_path: Path) -> None:
    memory = {"keyframes": 200, "requests": 14, "vlm_calls": 10, "prompt_tokens": 40000, "completion_tokens": 1500, "cost": 0.5}
    labels = {"entities": 50, "right_entities": 40, "shown": 80, "relations": 20, "right_relations": 18}
    more = {"vlm_calls": 30, "prompt_tokens": 120000}
    records = [
        episode(0, True, memory=memory, labels=labels),
        episode(1, True, memory={**memory, **more}, labels={**labels, "entities": 150, "right_entities": 140}),
    ]
    write(tmp_path / "wise", "wise", records)
    cost = cells_of(load("wise-table5", tmp_path), "ABC", "simulated")
    assert (cost["keyframes"].measured, cost["requests"].measured, cost["US dollars"].measured) == (200, 14, 0.5)
    assert cost["input tokens per request"].measured == 4000
    right = cells_of(load("wise-table6", tmp_path), "keyframes", "simulated")
    assert right["entity precision %"].measured == 90 and right["entity recall % (ours)"].measured == pytest.approx(112.5)
    assert published_value("004_WISE", "tables", "table5", "rows", "cost") == 0.48


def test_return_localisation_is_over_those_that_came_back(tmp_path: Path) -> None:
    records = [episode(0, True, returned=600), episode(1, False, returned=None)]
    for one in records:
        one["task"]["env"] = "aba_sparse-sim-128"
    write_run(
        tmp_path / "run", records, env="aba_sparse-sim-128", paradigm="wise", command="wise-run", config={"task": "aba_sparse"}
    )
    cells = cells_of(load("wise-table2", tmp_path), "ABA", "WISE")
    assert (cells["return localisation"].measured, cells["return localisation"].published) == (600, 2341)


@pytest.mark.parametrize("name", TABLES)
def test_every_table_builds_without_runs_and_says_what_is_simulated(name: str) -> None:
    table = load(f"wise-table{name}")
    assert table.panels and any("imulated" in text for text in (*table.notes, *(panel.title for panel in table.panels)))


def test_the_summary_of_a_run() -> None:
    records = [note(0, True, 3000, returned=500), note(51, False, 12000, memory={"keyframes": 100})]
    found = summarise_tasks(records)
    assert (found["completion_steps"], found["return_localisation"], found["runs"]) == (3000, 500, [[1, 1], [0, 1]])
    assert found["subtasks_done"] == {"1 water_bucket": 0.5, "2 log": 0.5, "3 beef": 0.5}
    assert found["keyframes"] == 100 and found["graph_nodes"] is None and found["step_cpu_ms_p99"] == 53.0
    assert [run_of(record) for record in records] == [0, 1]
    summary = summarise([episode(0, True)], 1)
    assert summary["wise"]["completion_steps"] == 4000 and summary["success_rate"] == 1
