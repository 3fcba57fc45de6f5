"""The pandas frames: a frozen schema, every record in them, and files that read back as they were."""

import json

import pandas as pd
import pytest
from export_kit import LONE, UNICODE, empty_run, hand_made, toy_run

from agentexp.errors import MissingDependency, UserError
from agentexp.export import export
from agentexp.export.columns import TABLES
from agentexp.export.frames import calls_frame, episodes_frame, runs_frame, steps_frame
from agentexp.store import read_episodes

FRAMES = {"runs": runs_frame, "episodes": episodes_frame, "steps": steps_frame, "calls": calls_frame}

# Analyses outside this project are written against these: change them only with a new schema version.
FROZEN = {
    "runs": "run command env split paradigm model seeds repeats planned recorded harness_errors partial version created config",
    "episodes": "run key instance env split id kind seed repeat paradigm model status end_reason success score goal steps "
    "steps_by_phase unreadable calls prompt_tokens completion_tokens cached_tokens cost usage_by_role seconds attempts error "
    "notes partial schema",
    "steps": "run key step phase phase_step call status action written flags observation score done success error seconds info",
    "calls": "run key call chat upto role purpose phase prompt_tokens completion_tokens cached_tokens cost seconds "
    "finish_reason retries cached reply edited reasoning token_ids logprobs info",
}


@pytest.mark.parametrize("name", FROZEN)
def test_columns_are_frozen(name, tmp_path):
    for folder in (hand_made(tmp_path / "a"), empty_run(tmp_path / "b")):
        frame = FRAMES[name](folder)
        assert list(frame.columns) == FROZEN[name].split()
        assert {column: str(dtype) for column, dtype in frame.dtypes.items()} == {c.name: c.dtype for c in TABLES[name]}
    assert all(column.about for column in TABLES[name])


def test_every_step_and_call_of_a_real_run_is_a_row(tmp_path):
    folder = toy_run(tmp_path, "explore_then_act", repeats=2)
    records = {record["key"]: record for record in read_episodes(folder)}
    episodes, steps, calls = episodes_frame(folder), steps_frame(folder), calls_frame(folder)
    assert set(episodes.key) == set(records) and len(episodes) == len(records) == 6
    assert episodes.success.all() and set(episodes["repeat"]) == {0, 1} and episodes.instance.nunique() == 3
    for key, record in records.items():
        mine = steps[steps.key == key]
        assert list(mine.observation) == [step["observation"] for step in record["trajectory"]]
        assert list(mine.action) == [step["action"] for step in record["trajectory"]]
        assert mine.groupby("phase").phase_step.max().to_dict() == record["steps_by_phase"]
        assert len(calls[calls.key == key]) == len(record["calls"]) == record["usage"]["calls"]
    joined = steps.dropna(subset="call").merge(calls, on=["run", "key", "call"])
    assert all(action in reply for action, reply in zip(joined.action, joined.reply, strict=True))


def test_harness_errors_are_rows_but_in_no_mean(tmp_path):
    episodes = episodes_frame(hand_made(tmp_path / "run"))
    assert list(episodes.status) == ["ok", "ok", "error", "ok"]
    assert episodes.success.isna().tolist() == [False, False, True, True]  # harness error; phase without success criterion
    assert episodes.success.mean() == 0.5 and episodes.score.mean() == 0.625
    assert "EngineError" in episodes.error[2] and episodes.partial.all()
    assert list(episodes.unreadable) == [1] * 4 and list(episodes.cost) == pytest.approx([0.03] * 4)
    runs = runs_frame(tmp_path / "run").iloc[0]
    assert (runs.planned, runs.recorded, runs.harness_errors, runs.partial) == (5, 4, 1, True)


def test_calls_hold_the_reply_as_it_was_received(tmp_path):
    calls = calls_frame(hand_made(tmp_path / "run")).head(3)
    assert calls.reply[0] == "I ponder." and not calls.edited[0]
    assert calls.reply[1].endswith("Observation: gold") and calls.edited[1]  # what the history no longer has
    assert pd.isna(calls.reply[2])
    assert (
        json.loads(calls.token_ids[0]) == [7, 8] and json.loads(calls.logprobs[0]) == [-0.5, -1.0] and calls.token_ids.isna()[1]
    )


@pytest.mark.parametrize("form", ["parquet", "csv", "jsonl"])
def test_files_read_back(form, tmp_path):
    if form == "parquet":
        pytest.importorskip("pyarrow", reason="Parquet needs the extra agentexp[export]")
    hand_made(tmp_path / "runs" / "one")
    toy_run(tmp_path / "runs")
    path, lines = export([tmp_path / "runs"], form, tmp_path / "out")
    assert path == tmp_path / "out" and any("one is partial: 4 of 5" in line for line in lines)
    for name, make in FRAMES.items():
        file, dtypes = path / f"{name}.{form}", {column.name: column.dtype for column in TABLES[name]}
        made = make(tmp_path / "runs")
        if form == "parquet":
            read = pd.read_parquet(file)
        elif form == "csv":
            read = pd.read_csv(file, dtype=dtypes, lineterminator="\n")
            for column in TABLES[name]:  # a CSV cannot tell an empty text from a missing one
                if column.dtype == "string":
                    read[column.name], made[column.name] = read[column.name].fillna(""), made[column.name].fillna("")
        else:
            rows = [json.loads(line) for line in file.read_bytes().split(b"\n")[:-1]]
            read = pd.DataFrame({column: pd.array([row[column] for row in rows], dtype=dtypes[column]) for column in dtypes})
        pd.testing.assert_frame_equal(read, made, check_dtype=form != "parquet")
        assert {c: str(d).lower() for c, d in read.dtypes.items()} == {c: d.lower() for c, d in dtypes.items()}


def test_unicode_survives_and_what_utf8_cannot_hold_is_escaped(tmp_path):
    folder = hand_made(tmp_path / "run")
    assert episodes_frame(folder).goal[0] == f"Find {UNICODE}"
    assert json.loads(episodes_frame(folder).notes[0]) == {"summary": UNICODE, "odd": LONE}
    assert steps_frame(folder).observation[1] == "half a pair: \\ud83d end"


def test_several_runs_keep_their_names(tmp_path):
    hand_made(tmp_path / "a" / "run"), hand_made(tmp_path / "b" / "run")
    assert set(episodes_frame([tmp_path / "a" / "run", tmp_path / "b"]).run) == {"a/run", "b/run"}
    assert set(episodes_frame(tmp_path / "a").run) == {"run"}
    assert len(episodes_frame([tmp_path, tmp_path / "a"])) == 8  # each run once
    (tmp_path / "a" / "run" / "manifest.json").unlink()
    lone = episodes_frame(str(tmp_path / "a" / "run"))
    assert len(lone) == 4 and lone.partial.isna().all()  # nothing says what was planned


def test_mistakes_name_the_setting(tmp_path, monkeypatch):
    run = hand_made(tmp_path / "run")
    with pytest.raises(UserError, match="choose one of: parquet, csv"):
        export([run], "xlsx")
    with pytest.raises(UserError, match="holds no run"):
        export([(tmp_path / "nothing").mkdir() or tmp_path / "nothing"], "csv")
    with pytest.raises(UserError, match="not a folder"):
        episodes_frame(tmp_path / "absent")
    with pytest.raises(UserError, match="--out"):
        export([run, hand_made(tmp_path / "other")], "csv")
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="--out"):
        export([run], "csv", tmp_path / "file" / "deeper")
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(MissingDependency, match=r"agentexp\[export\]"):
        export([run], "parquet")
