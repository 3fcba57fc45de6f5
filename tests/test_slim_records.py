"""Records without conversations and model calls: what is left is exactly what the whole line says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentexp.core import Call, Episode, Message, StepRecord, Task, Usage
from agentexp.records import dump, episode_to_json, slim_record
from agentexp.store import read_episodes

WORDS = st.sampled_from(["chats", "notes", "calls", ',"chats":{', ',"notes":{', "}", "]", "a"])
JSON = st.recursive(
    st.none() | st.integers() | WORDS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3)
)
OBJECTS = st.dictionaries(WORDS, JSON, max_size=3)


def line_of(info: dict[str, Any], notes: dict[str, Any], text: str = "look") -> bytes:
    episode = Episode(Task("0", "toy", "test"), "react", "m", goal=text, notes=notes)
    episode.trajectory = [StepRecord("acting", text, "ok", text, 0.0, False, False, False, call=0, info=info)]
    episode.chats = {"acting": [Message("user", text)], "notes": []}
    episode.calls = [Call("acting", 1, "actor", "act", "acting", Usage(1, 1, 0, 1), 0.1, "stop", info=info)]
    return episode_to_json(episode)


def whole(line: bytes) -> dict[str, Any]:
    return {name: value for name, value in json.loads(line).items() if name not in ("chats", "calls")}


@given(OBJECTS, OBJECTS, WORDS)
def test_nothing_else_is_lost_whatever_stands_in_it(info: dict[str, Any], notes: dict[str, Any], text: str) -> None:
    line = line_of(info, notes, text)
    assert slim_record(line) in (whole(line), None)


def test_ordinary_records_are_cut() -> None:
    line = line_of({"moves": 1}, {"map": {"spatial": []}}, 'say "notes":{ and ,"chats":{')
    assert slim_record(line) == whole(line)


@pytest.mark.parametrize(
    "other",
    [
        b"",
        b"{}",
        b'{"a":1,"chats":{}}',
        b'{"a":1,"chats":{},"notes":{}}',
        b'{"status":"ok","task":{},"trajectory":[{"info":{"a":1,"chats":{}}}],"x":[{"a":1,"notes":{}}]}',
        b'{"status":"ok","trajectory":[],"chats":{"a":[}, "notes":{',
    ],
)
def test_what_is_not_such_a_record_is_not_cut(other: bytes) -> None:
    assert slim_record(other) is None


def test_reading_slim_gives_the_same_episodes(tmp_path: Path) -> None:
    plain, odd = line_of({}, {"n": 1}), line_of({"x": 0, "chats": {"y": 1}}, {})  # the second one cannot be cut
    assert slim_record(odd) is None
    lines = [plain, odd.replace(b'"id":"0"', b'"id":"1"').replace(b"test/0#", b"test/1#"), plain[:-30]]
    (tmp_path / "episodes.jsonl").write_bytes(b"\n".join(lines))
    slim, full = list(read_episodes(tmp_path, slim=True)), list(read_episodes(tmp_path))
    assert [record["key"] for record in slim] == ["toy/test/0#seed0.0", "toy/test/1#seed0.0"]
    assert [whole(dump(record)) for record in slim] == [whole(dump(record)) for record in full]
    assert "chats" not in slim[0] and "chats" in slim[1]
