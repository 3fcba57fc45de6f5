"""Explore-then-Act keeps the coverage of its exploration, also of one that was read from a file."""

from __future__ import annotations

import json
from typing import Any

import pytest
from paradigm_kit import Talker, action, expert, run

from agentexp.core import Request
from agentexp.envs.toy import ToyRooms
from agentexp.metrics.ecc import ecc_of_episode
from agentexp.paradigms.explore_then_act import ExploreThenAct
from agentexp.records import episode_to_json
from agentexp.rollout import Budget


def _explorer(*actions: str) -> Talker:
    def act(request: Request) -> str:
        exploring = request.view.phase == "exploring"
        return action(actions[min(len(request.view.history), len(actions) - 1)]) if exploring else expert(request)

    return Talker(act=act, eta_summarize=["K"])


def _record(*actions: str, **settings: Any) -> dict[str, Any]:
    episode, _ = run(ExploreThenAct(explore_steps=len(actions), **settings), _explorer(*actions), budget=Budget(0, 12))
    record: dict[str, Any] = json.loads(episode_to_json(episode))
    return record


def test_first_hits_are_in_the_record() -> None:
    record = _record("go east", "look", "go west", "go west")
    ecc = ecc_of_episode(record)
    assert ecc is not None and 0 < ecc.covered < ecc.total
    first = [row for row in record["notes"]["checkpoints"] if row["step"] == 1]
    assert any(row["kind"] == "location" for row in first)
    again = ecc_of_episode(record, matcher=ToyRooms().checkpoint_matcher())
    assert again is not None and again.hits == ecc.hits


def test_the_setting_chooses_the_checkpoints() -> None:
    few, many = (ecc_of_episode(_record("look", coverage=relevance)) for relevance in ("task_closure", "all"))
    assert few is not None and many is not None and few.total < many.total


def test_direct_acting_has_no_coverage() -> None:
    episode, _ = run(ExploreThenAct(explore_steps=0), _explorer("look"), budget=Budget(0, 12))
    assert "checkpoints" not in episode.notes


def test_a_world_without_checkpoints_has_no_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(ToyRooms, "checkpoints")
    assert "checkpoints" not in _record("look")["notes"]
