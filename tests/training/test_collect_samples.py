"""The conversations that are trained on: those of paradigm=map, byte for byte, and the one of eq. 9."""

import json
from pathlib import Path

import pytest
from collect_kit import records, run

from agentexp.actions import ParseSettings
from agentexp.paradigms.json_reply import read_json
from agentexp.training.collect.samples import WRITE_MAP, act_samples, map_samples

WORLDS = ("toy", "textcraft")


@pytest.mark.parametrize("env", WORLDS)
def test_stages_are_the_chats_of_paradigm_map_byte_by_byte(tmp_path: Path, env: str) -> None:
    collected = records(run(tmp_path / "a", env, "map2k"))
    played = records(run(tmp_path / "b", env, "map"))
    assert [record["key"] for record in collected] == [record["key"] for record in played]
    for record, twin in zip(collected, played, strict=True):
        assert record["success"] and record["steps"] == twin["steps"]
        samples = map_samples(record, "stages")
        assert list(samples) == ["explore", "map", "act"]
        for stage, chat in (("explore", "mapping"), ("map", "extractor"), ("act", "acting")):
            theirs = twin["chats"][chat]
            while theirs[-1]["role"] != "assistant":
                theirs.pop()
            assert samples[stage] == theirs, stage


@pytest.mark.parametrize("env", WORLDS)
def test_every_reply_is_in_the_form_that_the_prompt_asks_for(tmp_path: Path, env: str) -> None:
    for record in records(run(tmp_path / "a", env, "map2k")):
        samples = map_samples(record, "stages")
        for stage in ("explore", "act"):
            for turn in samples[stage]:
                if turn["role"] == "assistant":
                    thought, action = turn["content"].split("\n")
                    assert thought.startswith("Thought: ") and len(thought) > 20, turn
                    assert action.startswith("Action: ") and len(action) > 8, turn
        value, mended = read_json(samples["map"][-1]["content"], ParseSettings())
        assert not mended and value == record["notes"]["map"]
        assert all(step["status"] == "ok" for step in record["trajectory"] if "status" in step)


def test_the_goal_is_hidden_from_explorer_and_extractor(tmp_path: Path) -> None:
    for record in records(run(tmp_path / "a", "toy", "map2k", limit=8)):
        samples = map_samples(record, "stages")
        assert record["goal"] and record["goal"] in samples["act"][1]["content"]
        assert not any(record["goal"] in turn["content"] for stage in ("explore", "map") for turn in samples[stage])


def test_one_conversation_has_the_order_of_equation_9(tmp_path: Path) -> None:
    for record in records(run(tmp_path / "a", "toy", "map2k", limit=8)):
        turns = map_samples(record, "conversation")["all"]
        stages = map_samples(record, "stages")
        roles = [turn["role"] for turn in turns]
        assert roles == ["system", *["user", "assistant"] * (len(turns) // 2)]
        at = next(i for i, turn in enumerate(turns) if turn["content"].endswith(WRITE_MAP))
        assert turns[:at] == stages["explore"]
        assert json.loads(turns[at + 1]["content"]) == record["notes"]["map"]
        assert turns[at + 2 :] == stages["act"][1:]
        finished = "finish mapping" in turns[at - 1]["content"]
        assert (turns[at]["content"] == WRITE_MAP) is finished
        last = [step for step in record["trajectory"] if step["phase"] == "mapping"][-1]
        assert finished or turns[at]["content"] == f"{last['observation']}\n\n{WRITE_MAP}"


def test_the_explorer_finishes_when_everything_is_seen_and_not_before_the_rule_listens(tmp_path: Path) -> None:
    found = records(run(tmp_path / "a", "toy", "map2k", limit=8))
    finished = [record for record in found if record["notes"]["stop"]["reason"] == "model"]
    assert finished
    assert all(record["notes"]["stop"]["t"] >= 3 for record in finished)


def test_act_traces_are_the_chats_of_paradigm_react(tmp_path: Path) -> None:
    for record in records(run(tmp_path / "a", "textcraft", "react")):
        turns = act_samples(record)["act"]
        assert turns == record["chats"]["acting"][: len(turns)] and turns[-1]["role"] == "assistant"
