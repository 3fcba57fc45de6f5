from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentexp.core import Call, CognitiveMap, Episode, Message, StepRecord, Task, Usage
from agentexp.errors import UserError
from agentexp.records import episode_from_json, episode_to_json


def episode(text: str = "hello", **more: object) -> Episode:
    task = Task("a/b c", "counting", "test", seed=3, repeat=1, kind="k", spec={"n": 2})
    made = Episode(
        task, "plain", "go", end_reason="won", success=True, score=1.0, goal=text, steps=1, steps_by_phase={"acting": 1}
    )
    made.usage = Usage(10, 2, 0, 1, 0.25)
    made.usage_by_role = {"actor": made.usage}
    made.trajectory = [
        StepRecord("acting", "go", "ok", text, 1.0, True, True, False, call=0, flags=["format"], info={"x": [1]})
    ]
    made.chats = {"act": [Message("user", text), Message("assistant", "go")]}
    made.calls = [Call("act", 1, "actor", "act", "acting", made.usage, 0.5, "stop", token_ids=[1, 2], logprobs=[-0.25])]
    for name, value in more.items():
        setattr(made, name, value)
    return made


@given(st.text(st.characters(exclude_categories=())))
def test_any_text_survives_on_one_line(text: str) -> None:
    line = episode_to_json(episode(text))
    assert len(line.decode("utf-8").splitlines()) == 1
    back = episode_from_json(line)
    # a high and a low surrogate that happen to follow each other become the character that they spell
    assert back.goal == json.loads(json.dumps(text))
    assert episode_to_json(back) == episode_to_json(episode_from_json(episode_to_json(back)))


def test_round_trip_gives_the_same_episode_and_the_same_bytes() -> None:
    made = episode("Öffne 李明's drawer\n")
    line = episode_to_json(made)
    assert episode_from_json(line) == made
    assert episode_to_json(episode_from_json(line)) == line
    assert "李明".encode() in line
    assert b"[1,2]" in line


def test_contract_of_a_line() -> None:
    record = json.loads(episode_to_json(episode()))
    assert {"id", "env", "split", "seed", "repeat"} <= set(record["task"])
    assert {"status", "end_reason", "success", "score", "steps", "usage", "error", "schema"} <= set(record)
    assert list(record)[:3] == ["schema", "key", "status"]


def test_values_of_plug_ins() -> None:
    numpy = pytest.importorskip("numpy")
    notes = {
        "array": numpy.arange(2),
        "number": numpy.float32(0.5),
        "set": {"b", "a"},
        "path": Path("a") / "b",
        "map": CognitiveMap(task_notes=["n"]),
        "inf": [float("inf"), float("nan")],
    }
    read = json.loads(episode_to_json(episode(notes=notes)))["notes"]
    assert read["array"] == [0, 1]
    assert read["number"] == 0.5
    assert read["set"] == ["a", "b"]
    assert read["path"] == "a/b"
    assert read["map"]["task_notes"] == ["n"]
    assert read["inf"] == [None, None]


def test_what_is_no_json_is_a_type_error() -> None:
    looped: list[object] = []
    looped.append(looped)
    for value in (object(), {("a", "b"): 1}, looped):
        with pytest.raises(TypeError):
            episode_to_json(episode(notes={"x": value}))


def test_a_newer_schema_is_refused_and_unknown_keys_are_ignored() -> None:
    record = json.loads(episode_to_json(episode()))
    record["invented"] = 1
    record["trajectory"][0]["invented"] = 1
    assert episode_from_json(record) == episode()
    record["schema"] = 99
    with pytest.raises(UserError, match="schema 99"):
        episode_from_json(record)
