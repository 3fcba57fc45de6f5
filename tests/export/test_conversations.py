"""Fine-tuning conversations: no message lost, the right ones left out, and said so."""

import json

import pytest
from export_kit import LONE, UNICODE, empty_run, hand_made, toy_run

from agentexp.cli import main
from agentexp.errors import MissingDependency, UserError
from agentexp.export import Filters, export
from agentexp.export.conversations import METADATA
from agentexp.store import read_episodes

FROZEN = (
    "messages run key instance env split kind seed repeat paradigm model chat phase roles success score status end_reason "
    "replies unreadable recalled partial"
)
EVERYTHING = Filters(errors=True)


def rows_of(path):
    return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]


def exported(runs, form="messages", out=None, filters=Filters()):
    path, lines = export(runs, form, out, filters)
    return rows_of(path), "\n".join(lines)


@pytest.mark.parametrize("paradigm", ["react", "map", "explore_then_act"])
def test_no_message_is_lost(paradigm, tmp_path):
    folder = toy_run(tmp_path, paradigm)
    rows, _ = exported([folder])
    found = {(row["key"], row["chat"]): row["messages"] for row in rows}
    kept = {(record["key"], chat): messages for record in read_episodes(folder) for chat, messages in record["chats"].items()}
    assert found == {name: messages for name, messages in kept.items() if any(m["role"] == "assistant" for m in messages)}
    calls = sum(len(record["calls"]) for record in read_episodes(folder))
    assert sum(row["replies"] for row in rows) == calls
    assert all(list(row) == FROZEN.split() for row in rows) and list(METADATA) == FROZEN.split()[1:]


def test_assistant_turns_are_what_the_history_kept(tmp_path):
    rows, said = exported([hand_made(tmp_path / "run")], filters=EVERYTHING)
    assert len(rows) == 4 and "4 conversations left out: no reply" in said and "partial: 4 of 5" in said
    turns = [m["content"] for m in rows[0]["messages"] if m["role"] == "assistant"]
    assert turns == ["I ponder.", f"{UNICODE}\nAction: look"]
    assert rows[0]["messages"][0]["content"] == f"You act. {UNICODE}"
    assert (rows[0]["unreadable"], rows[0]["replies"], rows[0]["roles"], rows[0]["phase"]) == (1, 2, ["actor"], "acting")
    assert [row["success"] for row in rows] == [True, False, None, None]


def test_text_that_utf8_cannot_hold_is_kept_exactly(tmp_path):
    folder = hand_made(tmp_path / "run")
    file = folder / "episodes.jsonl"
    file.write_bytes(file.read_bytes().replace(b"I ponder.", json.dumps(LONE)[1:-1].encode()))
    rows, _ = exported([folder])
    assert rows[0]["messages"][2]["content"] == LONE


def test_harness_errors_stay_out_and_are_counted(tmp_path):
    folder = hand_made(tmp_path / "run")
    rows, said = exported([folder])
    assert {row["status"] for row in rows} == {"ok"} and len(rows) == 3
    assert "1 of 4 episodes left out: harness errors (--with-errors takes them)." in said
    rows, said = exported([folder], filters=Filters(only_success=True, errors=True))
    assert [row["key"] for row in rows] == ["house/dev/g/0#seed0.0"]
    assert "3 of 4 episodes left out: not solved" in said


def test_roles_and_phases_choose_conversations(tmp_path):
    folder = toy_run(tmp_path, "explore_then_act")
    assert {row["chat"] for row in exported([folder])[0]} == {"exploring", "summary", "acting"}
    rows, said = exported([folder], filters=Filters(roles=("explorer",)))
    assert {row["chat"] for row in rows} == {"exploring"} and "6 conversations left out: another role or phase." in said
    assert {row["chat"] for row in exported([folder], filters=Filters(phases=("exploring",)))[0]} == {"exploring", "summary"}
    with pytest.raises(UserError, match=r"--role speaker. Choices in these runs: actor, explorer, summariser"):
        export([folder], "messages", filters=Filters(roles=("speaker",)))
    with pytest.raises(UserError, match="always holds everything"):
        export([folder], "csv", filters=Filters(roles=("actor",)))


def test_recalled_explorations_are_marked(tmp_path):
    runs = [toy_run(tmp_path, "explore_then_act", policy) for policy in ("oracle", "random")]
    rows, said = exported(runs, out=tmp_path / "sft.jsonl")
    exploring = [row for row in rows if row["chat"] == "exploring"]
    assert sorted(row["recalled"] for row in exploring) == [False] * 3 + [True] * 3
    assert {row["phase"] for row in exploring} == {"exploring"} and "recalled from earlier runs" in said


def test_sharegpt_says_the_same(tmp_path):
    runs = [toy_run(tmp_path, "map"), hand_made(tmp_path / "run")]
    rows, _ = exported(runs, out=tmp_path / "a.jsonl")
    shared, _ = exported(runs, "sharegpt", tmp_path / "b.jsonl")
    names = {"system": "system", "user": "human", "assistant": "gpt"}
    for row, other in zip(rows, shared, strict=True):
        turns = [{"from": names[m["role"]], "value": m["content"]} for m in row["messages"]]
        if row["env"] == "house":
            assert turns.pop()["value"] == "A prompt that nobody answered."  # its readers want every prompt answered
        assert other == {"conversations": turns, **{name: row[name] for name in METADATA}}


def test_a_dataset_on_disk(tmp_path):
    datasets = pytest.importorskip("datasets", reason="needs the extra agentexp[hf]")
    runs = [toy_run(tmp_path / "runs", "map"), hand_made(tmp_path / "runs" / "run")]
    rows, _ = exported(runs, out=tmp_path / "a.jsonl")
    for _ in range(2):  # the second time it replaces its own
        path, lines = export(runs, "hf", tmp_path / "set")
    assert f"{len(rows)} conversations" in lines[0]
    loaded = datasets.load_from_disk(str(path))
    assert loaded.column_names == FROZEN.split() and list(loaded) == rows
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.jsonl", "runs", "set"]  # nothing left behind
    with pytest.raises(UserError, match="--out"):
        export(runs, "hf", tmp_path / "runs")
    assert (tmp_path / "runs" / "run" / "manifest.json").is_file()


def test_without_datasets(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "datasets", None)
    with pytest.raises(MissingDependency, match=r"agentexp\[hf\].*--format messages"):
        export([hand_made(tmp_path / "run")], "hf")


@pytest.mark.parametrize("form", ["messages", "sharegpt"])
def test_an_empty_run_gives_an_empty_file(form, tmp_path):
    rows, said = exported([empty_run(tmp_path / "run")], form)
    assert rows == [] and "0 conversations of 0 episodes." in said and "run is partial: 0 of 1" in said


def test_the_command(tmp_path, capsys):
    folder = hand_made(tmp_path / "run")
    with pytest.raises(SystemExit) as ended:
        main(["export", str(folder), "--format", "messages", "--only-success", "--role", "actor", "--phase", "acting"])
    printed = capsys.readouterr().out.splitlines()
    assert ended.value.code == 0 and printed[-1] == str(folder / "export" / "messages.jsonl")
    assert printed[0] == "1 conversations of 4 episodes." and len(rows_of(folder / "export" / "messages.jsonl")) == 1
    with pytest.raises(SystemExit) as ended:
        main(["export", str(folder), "--format", "paper"])
    assert ended.value.code == 2 and "choose one of" in capsys.readouterr().err
