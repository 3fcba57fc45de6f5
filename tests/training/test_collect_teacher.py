"""The scripted teacher: who acts, when it stops exploring, and that its thoughts say only what it was shown."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from collect_kit import records, run

from agentexp.core import Completion, Request
from agentexp.envs.scienceworld.world import ScienceWorld
from agentexp.envs.textcraft.world import TextCraft
from agentexp.envs.toy import ToyRooms
from agentexp.errors import UserError
from agentexp.paradigms.map import FixedSteps
from agentexp.training.collect.narrators import narrator_for
from agentexp.training.collect.paradigm import CollectMaps
from agentexp.training.collect.samples import map_samples
from agentexp.training.collect.teacher import Teacher


class Wordy(Teacher):
    """A teacher with the habits of language models: no JSON at first, then JSON in a fence with a word before it."""

    async def chat(self, request: Request) -> Completion:
        reply = await super().chat(request)
        if request.purpose != "map_extractor":
            return reply
        text = "I would rather not." if len(request.messages) == 1 else f"Here it is:\n```json\n{reply.text}\n```"
        return Completion(text)


class Cut(Teacher):
    """Forgets the form once while acting."""

    async def chat(self, request: Request) -> Completion:
        if request.purpose == "act" and request.view.phase == "acting" and not request.view.history:
            return Completion("Let me see.")
        return await super().chat(request)


def test_the_map_that_is_trained_is_plain_json_however_it_was_written(tmp_path: Path) -> None:
    for record in records(run(tmp_path / "a", "toy", "map2k", model=Wordy())):
        assert record["notes"]["map_source"] == "repaired" and len(record["chats"]["extractor"]) == 4
        prompt, answer = map_samples(record, "stages")["map"]
        assert prompt == record["chats"]["extractor"][0]
        assert answer == {"role": "assistant", "content": json.dumps(record["notes"]["map"], ensure_ascii=False)}


def test_unreadable_replies_are_in_the_record_for_the_filter(tmp_path: Path) -> None:
    from agentexp.training.collect.filters import Thresholds, reason_against

    for record in records(run(tmp_path / "a", "toy", "map2k", model=Cut())):
        assert record["success"] and reason_against(record, Thresholds()) == "unreadable reply"


def test_who_acts() -> None:
    toy, textcraft, lab = ToyRooms(), TextCraft(), ScienceWorld()
    teacher = Teacher()
    assert [teacher._actor(env) for env in (toy, textcraft, lab)] == ["mapuser", "mapuser", "oracle"]
    assert Teacher(actor="oracle")._actor(textcraft) == "oracle"
    with pytest.raises(UserError, match=r"model\.actor=teacher"):
        Teacher(actor="teacher")  # type: ignore[arg-type]
    with pytest.raises(UserError, match=r"model\.explorer=brave is not possible in env=toy"):
        Teacher(explorer="brave").check(toy)


def test_without_a_stop_word_the_explorer_never_says_it(tmp_path: Path) -> None:
    paradigm = CollectMaps(style="compact", show_admissible=False, stopping=FixedSteps(12))
    for record in records(run(tmp_path / "a", "toy", "map2k", model=Teacher(finish_from=None), paradigm=paradigm)):
        assert record["notes"]["stop"]["reason"] in ("fixed", "world_done")  # the hidden goal can be met by chance
        assert "finish mapping" not in json.dumps(record["chats"])


def test_a_budget_can_be_drawn_for_each_instance(tmp_path: Path) -> None:
    paradigm = CollectMaps(style="compact", show_admissible=False, mapping_steps=[4, 7])
    found = records(run(tmp_path / "a", "toy", "map2k", limit=8, model=Teacher(finish_from=None), paradigm=paradigm))
    budgets = [int(re.findall(r"at most (\d+) actions", record["chats"]["mapping"][0]["content"])[0]) for record in found]
    assert set(budgets) == {4, 7}
    assert all(record["steps_by_phase"]["mapping"] <= budget for record, budget in zip(found, budgets, strict=True))
    with pytest.raises(UserError, match="mapping_steps"):
        CollectMaps(mapping_steps=[])


def test_crafting_thoughts_quote_the_listed_commands_and_the_inventory(tmp_path: Path) -> None:
    for record in records(run(tmp_path / "a", "textcraft", "map2k", limit=374, shard=(0, 12))):
        turns = map_samples(record, "stages")["act"]
        listed, held = turns[1]["content"], dict[str, int]()
        for answer, turn in zip(turns[1::2], turns[2::2], strict=True):
            if got := re.fullmatch(r"Got (\d+) (.+)", answer["content"]):
                held[got[2]] = held.get(got[2], 0) + int(got[1])
            thought = turn["content"].splitlines()[0].removeprefix("Thought: ")
            for output, inputs in re.findall(r"(?:^|\. )([a-z' ]+) needs ([^.]+)\.", thought):
                plain = re.sub(r" \(have \d+\)", "", inputs)
                assert re.search(rf"craft \d+ {re.escape(output)} using {re.escape(plain)}(?:\n|$)", listed), thought
            fetched = re.search(r"I fetch (\d+) (.+)\.$", thought)
            assert fetched is None or turn["content"].endswith(f"Action: get {fetched[1]} {fetched[2]}")


@pytest.mark.engine
def test_house_thoughts_say_only_what_was_shown(tmp_path: Path) -> None:
    pytest.importorskip("textworld")
    found = records(run(tmp_path / "a", "alfworld", "map2k", limit=3, workers=1, concurrency=1))
    assert all(record["success"] for record in found)
    for record in found:
        samples = map_samples(record, "stages")
        places = set(re.findall(r"an? ([a-z]+ \d+)", samples["explore"][1]["content"]))
        named = re.findall(r"(?:begin with|Next is) ([a-z]+ \d+)\.", json.dumps(samples["explore"]))
        assert named and set(named) <= places and len(named) == len(set(named))
        system = samples["act"][0]["content"]
        for thing, place in re.findall(r"The map shows ([a-z]+ \d+) at ([a-z]+ \d+)\.", json.dumps(samples["act"])):
            assert re.search(rf"^- (?:in|on) {place}: .*\b{thing}\b", system, re.MULTILINE)
        for place in re.findall(r"I look at ([a-z]+ \d+), which is not explored", json.dumps(samples["act"])):
            assert not re.search(rf"^- (?:in|on) {place}: ", system, re.MULTILINE)


def test_every_world_has_a_narrator() -> None:
    for env in (ToyRooms(), TextCraft(), ScienceWorld()):
        narrator: Any = narrator_for(env)
        assert narrator.rules(env.card)["action_syntax"] and narrator.actor in ("mapuser", "oracle")
