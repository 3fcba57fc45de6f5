"""From runs to data sets: filters, corrections, decontamination, equal budgets, cards."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from collect_kit import records, run

from agentexp.capabilities import Alignment
from agentexp.core import CognitiveMap, Task
from agentexp.envs.alfworld.problem import Problem
from agentexp.envs.alfworld.world import AlfWorld
from agentexp.envs.scienceworld.world import ScienceWorld
from agentexp.envs.textcraft.world import TextCraft
from agentexp.errors import UserError
from agentexp.training.collect.build import Options, collect
from agentexp.training.collect.dataset import COLUMNS, checksum, read_rows
from agentexp.training.collect.decontaminate import HeldOut, fingerprints, worlds_to_check
from agentexp.training.collect.filters import Thresholds, reason_against
from agentexp.training.collect.gather import repeated
from agentexp.training.collect.paradigm import corrected

FAST = Options(tokenizer="characters")


def build(out: Path, *runs: Path, **settings: Any) -> dict[str, Any]:
    collect(runs, out, replace(FAST, **settings))
    return {folder.name: (read_rows(folder), json.loads((folder / "collect.json").read_text())) for folder in out.iterdir()}


def test_map_and_act_data_of_the_same_instances(tmp_path: Path) -> None:
    maps, acts = (
        run(tmp_path / "r" / "m", "textcraft", "map2k", limit=8),
        run(tmp_path / "r" / "a", "textcraft", "react", limit=6),
    )
    made = build(tmp_path / "data", maps, acts, thresholds=Thresholds(0.95, 0.3))
    (map_rows, map_facts), (act_rows, act_facts) = made["map"], made["act"]
    assert {row["key"] for row in map_rows} == {row["key"] for row in act_rows} and act_rows
    assert [row["stage"] for row in map_rows] == ["explore", "map", "act"] * len(act_rows)
    assert all(set(row) == set(COLUMNS) and row["messages"][-1]["role"] == "assistant" for row in map_rows + act_rows)
    world = map_facts["worlds"]["textcraft"]
    assert world["episodes"] == 8 == world["trajectories"] + sum(world["rejected"].values())
    assert map_facts["sha256"] == checksum(map_rows) and act_facts["rows"] == len(act_rows)
    card = (tmp_path / "data" / "map" / "README.md").read_text()
    assert "| textcraft |" in card and "| 667 | 42.9 | 5.7 |" in card
    assert (
        "paradigm.style=compact" in card and "paradigm.goal_visible=false" in card and "null" not in card.split("## Columns")[0]
    )


def test_the_same_runs_give_the_same_data(tmp_path: Path) -> None:
    folder = run(tmp_path / "r", "toy", "map2k")
    first, second = build(tmp_path / "x", folder), build(tmp_path / "y", folder)
    assert first["map"][1]["sha256"] == second["map"][1]["sha256"]
    again = build(tmp_path / "x", folder, form="conversation")
    assert {row["stage"] for row in again["map"][0]} == {"all"}, "an earlier data set is replaced"


def test_stages_limit_and_length(tmp_path: Path) -> None:
    folder = run(tmp_path / "r", "toy", "map2k", limit=8)
    rows, facts = build(tmp_path / "x", folder, stages=("explore", "act"), limit=2)["map"]
    assert [row["stage"] for row in rows] == ["explore", "act"] * 2
    assert facts["worlds"]["toy"]["rejected"]["beyond --limit"] > 0
    longest = max(row["tokens"] for row in build(tmp_path / "y", folder)["map"][0])
    kept, facts = build(tmp_path / "z", folder, max_tokens=longest - 1)["map"]
    assert all(row["tokens"] < longest for row in kept)
    assert facts["worlds"]["toy"]["rejected"][f"longer than {longest - 1} tokens"] >= 1
    card = (tmp_path / "x" / "map" / "README.md").read_text()
    assert "paradigm.extractor=rules" in card


def test_act_data_are_repeated_up_to_the_token_budget() -> None:
    rows = [{"tokens": 10, "key": str(i)} for i in range(3)]
    assert sum(row["tokens"] for row in repeated(rows, 80)) == 80
    assert [row["repetition"] for row in repeated(rows, 80)] == [0, 0, 0, 1, 1, 1, 2, 2]
    assert repeated(rows, 5) == [{**row, "repetition": 0} for row in rows]
    assert repeated([], 50) == []


def test_equal_tokens(tmp_path: Path) -> None:
    maps, acts = run(tmp_path / "r" / "m", "toy", "map2k", limit=8), run(tmp_path / "r" / "a", "toy", "react", limit=8)
    made = build(tmp_path / "data", maps, acts, match="tokens")
    budget, spent = made["map"][1]["tokens"], made["act"][1]["tokens"]
    assert abs(budget - spent) <= max(row["tokens"] for row in made["act"][0])


# ------------------------------------------------------------------------------------------------------------- alignment


def test_wrong_entries_are_deleted_before_acting_and_lower_the_accuracy(tmp_path: Path) -> None:
    folder = run(tmp_path / "r", "haunted", "map2k", limit=6)
    for record in records(folder):
        notes = record["notes"]
        assert len(notes["alignment"]["wrong"]) >= 1
        assert "ghost" in json.dumps(notes["map_written"]) and "ghost" not in json.dumps(notes["map"])
        assert "ghost" not in record["chats"]["acting"][0]["content"]
    with pytest.raises(UserError, match=r"map accuracy below 0\.95: 6"):
        build(tmp_path / "x", folder)
    rows, facts = build(tmp_path / "y", folder, thresholds=Thresholds(0.0, 0.0))["map"]
    answers = [row["messages"][-1]["content"] for row in rows if row["stage"] == "map"]
    assert answers and not any("ghost" in answer for answer in answers)
    assert facts["worlds"]["toy"]["mean_accuracy"] < 0.95


def test_correcting_a_map_takes_out_exactly_what_is_wrong() -> None:
    known = CognitiveMap(
        spatial=[{"thing": str(i), "relation": "in", "place": "p"} for i in range(3)], absent=[{"place": "q", "what": "x"}]
    )
    found = Alignment(2, (("spatial", 1), ("absent", 0)), 0, 1, 1)
    left = corrected(known, found.wrong)
    assert [entry["thing"] for entry in left.spatial] == ["0", "2"] and left.absent == [] and len(known.spatial) == 3


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"status": "error"}, "harness error"),
        ({"success": False}, "not solved"),
        ({"trajectory": [{"status": "invalid"}]}, "unreadable reply"),
        ({"trajectory": [{"status": "invalid", "flags": ["inadmissible"]}]}, ""),
        ({"notes": {}}, "no map"),
        ({"notes": {"map": {}, "alignment": {"right": 9, "wrong": [["spatial", 0]], "found": 1, "places": 1}}}, "accuracy"),
        ({"notes": {"map": {}, "alignment": {"right": 9, "wrong": [], "found": 1, "places": 3}}}, "coverage"),
        ({"notes": {"map": {}, "alignment": {"right": 0, "wrong": [], "found": 0, "places": 0}}}, "accuracy"),
        ({"task": {"split": "valid_unseen"}}, "test split"),
        ({}, ""),
    ],
)
def test_reasons(change: dict[str, Any], reason: str) -> None:
    good = {"right": 9, "wrong": [], "found": 1, "places": 2}
    record = {
        "status": "ok",
        "success": True,
        "task": {"split": "train"},
        "paradigm": "map2k",
        "notes": {"map": {}, "alignment": good},
        "trajectory": [],
    }
    found = reason_against({**record, **change}, Thresholds())
    assert reason in found and bool(found) is bool(reason)


# --------------------------------------------------------------------------------------------------------- contamination


def test_a_planted_test_instance_is_caught_in_textcraft(tmp_path: Path) -> None:
    folder = run(tmp_path / "r", "textcraft", "map2k", limit=6)
    planted = TextCraft().tasks("test")[3]
    file = folder / "episodes.jsonl"
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    kept = len([line for line in lines if line["success"]])
    assert kept >= 2
    victim = next(line for line in lines if line["success"])
    victim["task"] = {**victim["task"], "id": "renamed", "spec": dict(planted.spec)}
    file.write_text("".join(json.dumps(line, separators=(",", ":"), ensure_ascii=False) + "\n" for line in lines))
    rows, facts = build(tmp_path / "x", folder, thresholds=Thresholds(0.95, 0.0))["map"]
    assert facts["worlds"]["textcraft"]["rejected"]["same goal item"] == 1
    assert "renamed" not in {row["id"] for row in rows} and facts["held_out"]["textcraft"]["instances"]["textcraft/test"] == 100


def test_a_renamed_test_game_is_caught_in_alfworld() -> None:
    env = AlfWorld(test=12, dev=6, train=12)
    held_out = HeldOut([("", env)])
    twin = env.tasks("test")[7]
    problem = env.problem(twin)

    def planted(problem: Problem) -> Task:
        spec = {"task": twin.spec["task"], "problem": problem.render()}
        return Task("pick_and_place_simple-Mug-None-Desk-1/trial_X", "alfworld", "train", kind=twin.kind, spec=spec)

    assert held_out.reason(planted(problem)) == "same game"
    assert fingerprints(env, planted(replace(problem, init=tuple(reversed(problem.init))))) == fingerprints(env, twin)
    nearly = replace(problem, init=(*problem.init, ("atlocation", "agent1", "nowhere")))
    assert held_out.reason(planted(nearly)) == "same house and task"
    assert not any(held_out.reason(task) for task in env.tasks("train"))
    assert held_out.counts == {"alfworld/dev": 6, "alfworld/test": 12}


def test_official_test_games_are_caught_where_they_are_installed() -> None:
    official = (
        Path(os.environ.get("AGENTEXP_SHARED") or Path(__file__).resolve().parents[2].parent / "shared") / "data" / "alfworld"
    )
    if not official.is_dir():
        pytest.skip("the official games are not on this machine")
    _, _, (word, env) = worlds_to_check(AlfWorld(), official)
    held_out = HeldOut([(word, env)])
    assert held_out.counts == {"alfworld/valid_seen (official)": 140, "alfworld/valid_unseen (official)": 134}
    assert isinstance(env, AlfWorld)
    twin = env.tasks("valid_unseen")[33]
    planted = Task("copy", "alfworld", "train", spec={"task": twin.spec["task"], "problem": env.problem(twin).render()})
    assert held_out.reason(planted) == "same game"


def test_no_train_variation_of_scienceworld_is_held_out() -> None:
    env = ScienceWorld()
    held_out = HeldOut([("", env)])
    assert not any(held_out.reason(task) for task in env.tasks("train"))
    assert held_out.reason(replace(env.tasks("test")[5], split="train")) == "same variation"
    assert set(held_out.counts) == {f"scienceworld/{split}" for split in ("dev", "test", "eto211", "agentboard90")}


def test_test_splits_cannot_be_collected(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="held out for tests"):
        run(tmp_path / "r", "toy", "map2k", split="test")


# ---------------------------------------------------------------------------------------------------------------- errors


def test_wrong_runs_and_options_are_explained(tmp_path: Path) -> None:
    played = run(tmp_path / "r", "toy", "map")
    with pytest.raises(UserError, match="paradigm=map2k"):
        collect([played], tmp_path / "x", FAST)
    for setting, words in (
        ({"form": "both"}, "--form both"),
        ({"stages": ("explore", "dream")}, "dream"),
        ({"form": "conversation", "stages": ("act",)}, "leave --stages out"),
        ({"match": "words"}, "--match words"),
        ({"thresholds": Thresholds(1.5, 0.5)}, "--min-accuracy"),
        ({"limit": 0}, "--limit"),
        ({"official": tmp_path / "none"}, "not a folder"),
    ):
        with pytest.raises(UserError, match=words):
            collect([played], tmp_path / "x", replace(FAST, **setting))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "map").mkdir()
    (tmp_path / "full" / "map" / "thesis.txt").write_text("years of work")
    folder = run(tmp_path / "m", "toy", "map2k")
    with pytest.raises(UserError, match="--out"):
        collect([folder], tmp_path / "full", FAST)
    assert (tmp_path / "full" / "map" / "thesis.txt").is_file()


def test_without_datasets_the_rows_are_json_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = run(tmp_path / "r", "toy", "map2k")
    monkeypatch.setitem(__import__("sys").modules, "datasets", None)
    lines = collect([folder], tmp_path / "x", FAST)
    assert lines[-1].endswith("(JSON lines)") and (tmp_path / "x" / "map" / "rows.jsonl").is_file()
    rows = read_rows(tmp_path / "x" / "map")
    assert checksum(rows) == json.loads((tmp_path / "x" / "map" / "collect.json").read_text())["sha256"]


def test_a_file_in_place_of_the_data_is_refused(tmp_path: Path) -> None:
    from agentexp.training.collect.dataset import write_rows

    (tmp_path / "map").write_text("keep me")
    with pytest.raises(UserError, match="is a file, not a folder"):
        write_rows([], tmp_path / "map", {}, "")
    assert (tmp_path / "map").read_text() == "keep me"
