"""From specifications and run folders to tables."""

import pytest
from report_kit import cells_of, load, record, write_run

from agentexp.reports.build import build, plain, selected, wanted
from agentexp.reports.cells import Cell
from agentexp.reports.runs import load_runs
from agentexp.reports.spec import parse_spec

MAP = {"name": "map", "stage1": True, "stage2": True, "drop": "none", "maps": None}


def test_model_names_match_by_spelling_only():
    assert plain("Qwen/Qwen3-4B-Instruct-2507") == plain("qwen3 4b instruct 2507")
    assert plain("Qwen2.5-7B") != plain("Qwen2.5-7B+GRPO")
    assert len({plain(name) for name in ("5:1", "1:5", "10:1", "1:10")}) == 4


def test_table1_puts_measured_beside_published(tmp_path):
    for paradigm, won in (("react", 4), ("map", 9)):
        config = {"paradigm": MAP if paradigm == "map" else {"name": "react"}}
        records = [record(i, i < won) for i in range(12)]
        write_run(tmp_path / paradigm, records, paradigm=paradigm, model="gpt-4o-mini", config=config)
        write_run(tmp_path / f"tiny-{paradigm}", records, paradigm=paradigm, model="tiny", config=config)
        write_run(tmp_path / f"x-{paradigm}", records, paradigm=paradigm, model="tiny", command="explore", config=config)
    table = load("table1", tmp_path)
    paper, own = cells_of(table, "ALFWorld", "GPT-4o-mini"), cells_of(table, "ALFWorld", "tiny")
    assert (paper["ReAct"].published, paper["ReAct"].measured) == (21.9, pytest.approx(100 / 3))
    assert paper["ReAct"].marks == own["MAP"].marks == ("*",)
    assert paper["CoMAP"] == Cell(31.0)
    assert own["MAP"].published is None
    difference = paper["MAP − ReAct"]
    assert (difference.published, difference.measured, difference.n) == (pytest.approx(24.3), pytest.approx(100 * 5 / 12), 12)
    assert len(table.panels[0].rows) == 15
    assert len(table.panels[1].rows) == 14


def test_a_run_of_the_papers_size_and_model_is_not_small_scale(tmp_path):
    write_run(tmp_path / "a", [record(i, True) for i in range(134)], model="Qwen/Qwen3-4B-Thinking-2507")
    assert cells_of(load("table1", tmp_path), "ALFWorld", "Qwen3-4B-Thinking")["ReAct"].marks == ()


def test_ablations_variants_and_perturbations_stay_out_of_table1(tmp_path):
    records = [record(i, True) for i in range(4)]
    for number, (paradigm, env) in enumerate(
        [
            ({**MAP, "drop": "spatial"}, {}),
            ({**MAP, "stage1": False}, {}),
            (MAP, {"variant": "relocation"}),
            (MAP, {"perturb": "relocate"}),
        ]
    ):
        config = {"paradigm": paradigm, "env": {"variant": "none", "perturb": "none", **env}}
        write_run(tmp_path / str(number), records, paradigm="map", config=config)
    assert "tiny" not in dict(load("table1", tmp_path).panels[0].rows)


def test_runs_with_other_settings_get_rows_of_their_own_beside_the_common_baseline(tmp_path):
    records = [record(i, i % 2 == 0) for i in range(6)]
    write_run(tmp_path / "react", records)
    for tokens in (100, 200):
        write_run(tmp_path / f"map{tokens}", records, paradigm="map", config={"paradigm": {**MAP, "map_tokens": tokens}})
    table = load("table1", tmp_path)
    for tokens in (100, 200):
        cells = cells_of(table, "ALFWorld", f"tiny (paradigm.map_tokens={tokens})")
        assert cells["MAP − ReAct"].n == 6
        assert cells["MAP − ReAct"].marks == ("*", "≈")


def test_the_same_setting_in_two_columns_makes_one_row(tmp_path):
    for heat, won in ((0.0, 2), (0.7, 5)):
        for paradigm, name in (({"name": "react"}, "react"), (MAP, "map")):
            config = {"paradigm": paradigm, "model": {"temperature": heat}}
            write_run(tmp_path / f"{name}{heat}", [record(i, i < won) for i in range(6)], paradigm=name, config=config)
    table = load("table1", tmp_path)
    rows = [label for label, _ in table.panels[0].rows if label.startswith("tiny")]
    assert rows == ["tiny (model.temperature=0.0)", "tiny (model.temperature=0.7)"]
    assert cells_of(table, "ALFWorld", rows[1])["ReAct"].measured == pytest.approx(100 * 5 / 6)
    assert cells_of(table, "ALFWorld", rows[1])["MAP − ReAct"].measured == 0.0


def test_models_as_columns_and_differences_as_rows(tmp_path):
    for name, paradigm, won in (("full", MAP, 8), ("no1", {**MAP, "stage1": False}, 6), ("no2", {**MAP, "stage2": False}, 2)):
        for model in ("tiny", "Qwen3-8B-Thinking"):
            config = {"paradigm": paradigm, "env": {"variant": "none", "perturb": "none"}}
            records = [record(i, i < won) for i in range(10)]
            write_run(tmp_path / model / name, records, paradigm="map", model=model, config=config)
    table = load("table4", tmp_path)
    assert table.panels[0].columns == ["Qwen3-4B-Thinking", "Qwen3-8B-Thinking", "Qwen3-32B-Thinking", "tiny"]
    row = cells_of(table, "ALFWorld", "  − all stages ")
    assert row["tiny"].measured == pytest.approx(-60)
    assert row["Qwen3-8B-Thinking"].published == pytest.approx(-5.9)
    assert row["Qwen3-8B-Thinking"].measured == pytest.approx(-60)
    assert cells_of(table, "ALFWorld", "without stage 1")["tiny"].measured == pytest.approx(60)


def explored(number, success, explorer="", hits=(), steps=100):
    notes = {}
    if explorer:
        found = [{"kind": "object", "name": f"o{i}", "step": step} for i, step in enumerate(hits)]
        note = {"steps": steps, "budget": 100, "premature": steps < 100, "explorer": explorer, "cached": False}
        notes = {"exploration": note, "checkpoints": found}
    return record(number, success, notes=notes)


def eta(folder, records, model="executor", **paradigm):
    paradigm = {"name": "explore_then_act", "explore_steps": 100, "explore_budget": None, "direct_bonus": False, **paradigm}
    return write_run(folder, records, paradigm="explore_then_act", model=model, config={"paradigm": paradigm})


def test_explorers_share_the_executors_direct_runs(tmp_path):
    eta(tmp_path / "direct", [explored(i, i < 3) for i in range(10)], explore_steps=0)
    eta(tmp_path / "other", [explored(i, True) for i in range(10)], model="other executor", explore_steps=0)
    eta(tmp_path / "bonus", [explored(i, i < 5) for i in range(10)], direct_bonus=True)
    eta(tmp_path / "good", [explored(i, i < 8, "good", (1, 40, 100, None)) for i in range(10)])
    eta(tmp_path / "bad", [explored(i, i < 3, "bad", (None, None, 7, None), 50) for i in range(10)])
    table = load("ecc-table1", tmp_path)
    good, bad = cells_of(table, "ALFWorld", "good"), cells_of(table, "ALFWorld", "bad")
    assert (good["ECC %"].measured, bad["ECC %"].measured) == (75.0, 25.0)
    assert (good["steps"].measured, bad["steps"].measured, bad["stopped early %"].measured) == (100.0, 50.0, 100.0)
    assert good["Dir. %"].measured == bad["Dir. %"].measured == pytest.approx(30)
    assert good["Δ Task"].measured == pytest.approx(50)
    assert bad["Δ Task"].marks == ("*", "≈")
    assert good["E-t-A − Dir.+N (ours)"].measured == pytest.approx(30)
    paper = cells_of(table, "ALFWorld", "Claude-Opus-4.5")
    assert (paper["ECC %"], paper["Dir. %"]) == (Cell(96.8), Cell())
    trained = cells_of(table, "ALFWorld", "Qwen3-4B+GRPO")
    assert (trained["ECC %"].published, trained["ECC %"].measured, trained["ECC %"].marks) == (32.8, None, ("◇",))
    average = cells_of(table, "mean", "good")
    assert average["ECC %"].measured is None  # two worlds are missing
    assert cells_of(table, "mean", "GPT-4.1")["ECC %"].published == 49.3


def test_average_needs_every_world(tmp_path):
    for env, value in (("alfworld", (1, None)), ("scienceworld", (1, 2)), ("textcraft", (None, None))):
        records = [{**explored(i, True, "good", value)} for i in range(4)]
        for one in records:
            one["task"]["env"], one["key"] = env, one["key"].replace("alfworld", env)
        paradigm = {"name": "explore_then_act", "explore_steps": 100, "explore_budget": None, "direct_bonus": False}
        write_run(tmp_path / env, records, env=env, paradigm="explore_then_act", config={"paradigm": paradigm})
    cell = cells_of(load("ecc-table1", tmp_path), "mean", "good")["ECC %"]
    assert (cell.measured, cell.n, cell.published) == (pytest.approx(50), 12, None)


def test_a_condition_can_be_a_list_or_be_met_without_the_setting(tmp_path):
    write_run(tmp_path / "a", [record(0)], config={"env": {"variant": "none"}})
    write_run(tmp_path / "b", [record(0)], config={"env": {"variant": "relocation"}})
    write_run(tmp_path / "c", [record(0)], env="toy")
    runs = load_runs([tmp_path])

    def names(where, usual=None):
        return "".join(sorted(run.folder.name for run in selected(runs, where, usual or {})))

    assert names({"env.variant": ["none", "relocation"]}) == "ab"
    assert names({"env.variant": None}) == "abc"
    assert names({}, {"env.variant": "none"}) == "ac"
    assert names({"env.variant": "relocation"}, {"env.variant": "none"}) == "b"
    assert names({"env": "toy"}) == "c"


def test_a_condition_can_refer_to_another_setting(tmp_path):
    for mapping in (5, 10):
        config = {"budget": {"mapping": mapping}, "env": {"budget": {"mapping": 10}}, "paradigm": MAP}
        write_run(tmp_path / str(mapping), [record(i, mapping == 10) for i in range(4)], paradigm="map", config=config)
    assert dict(load("table1", tmp_path).panels[0].rows)["tiny"][2].measured == 100.0
    assert [cell.measured for cell in dict(load("fig5", tmp_path).panels[0].rows)["tiny"]] == [
        None,
        None,
        0.0,
        100.0,
        None,
        None,
    ]


def test_a_table_without_an_open_axis_splits_its_blocks(tmp_path):
    spec = parse_spec("own", {"title": "t", "panels": ["all"], "rows": ["r"], "columns": ["c"]})
    for tokens in (1, 2):
        write_run(tmp_path / str(tokens), [record(0, True)], config={"model": {"tokens": tokens}})
    table = build(spec, load_runs([tmp_path], wanted(spec)))
    assert [panel.title for panel in table.panels] == ["all (model.tokens=1)", "all (model.tokens=2)"]
    assert [panel.rows[0][1][0].n for panel in table.panels] == [1, 1]


def test_harness_errors_are_counted_in_every_measure(tmp_path):
    records = [explored(i, True, "good", (1, None)) for i in range(4)] + [record(9, status="error")]
    eta(tmp_path / "a", records)
    cell = cells_of(load("ecc-table1", tmp_path), "ALFWorld", "good")["ECC %"]
    assert (cell.n, cell.planned, cell.excluded, "‡" in cell.marks) == (4, 5, 1, True)


def test_two_splits_of_one_test_set_are_pooled_where_the_table_says_so(tmp_path):
    for split in ("valid_seen", "valid_unseen"):
        records = [explored(f"{split}{i}", True) for i in range(3)]
        paradigm = {"name": "explore_then_act", "explore_steps": 0, "explore_budget": None, "direct_bonus": False}
        config = {"env": {"split": split}, "paradigm": paradigm}
        write_run(tmp_path / split, records, paradigm="explore_then_act", model="Qwen3-4B", config=config)
    assert cells_of(load("ecc-table2", tmp_path), "ALFWorld", "Qwen3-4B, zero-shot")["Dir."].n == 6
