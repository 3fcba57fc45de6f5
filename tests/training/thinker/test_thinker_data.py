"""Nodes: replay, division, filtering, mistakes, resuming; a world that cannot be restored is never used."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from thinker_kit import Climber, Ladder, player, strong

from agentexp.errors import UserError
from agentexp.training.core import Interrupted
from agentexp.training.thinker.data import Builder, Division, load_nodes
from agentexp.training.thinker.nodes import Move, moves_of, reply_for
from agentexp.training.thinker.player import Player


def build(folder: Path, play: Player, trajectories: Any = None, stop: Any = lambda: False, **division: Any) -> Any:
    found = [strong(task) for task in Ladder().tasks("train")] if trajectories is None else trajectories
    folder.mkdir(exist_ok=True)
    builder = Builder(folder=folder, player=play, division=Division(**division), stopping=stop)
    return asyncio.run(builder.build(found, {"episodes": len(found)}))


def facts(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "collect.json").read_text()))


def test_what_the_actor_masters_is_dropped_and_the_rest_becomes_a_node_after_its_mistakes(tmp_path: Path) -> None:
    actor = Climber()
    nodes = build(tmp_path, player(actor), temperature=0.5)
    assert facts(tmp_path)["subtasks"] == {"easy": 12, "node": 6} and facts(tmp_path)["levels"] == {"hard": 6}
    assert {(node.x, node.y, node.horizon, node.score, node.alone) for node in nodes} == {(2, 4, 5, 0.5, False)}
    assert {node.mistakes for node in nodes} == {1, 2}  # k ~ U{1 .. y - x}
    for node in nodes:
        assert [move.action for move in node.moves[:2]] == ["up", "up"]
        assert all(move.observation == "The hatch is stuck." for move in node.moves[2:])
    assert set(actor.temperatures) == {0.0, 0.5}
    assert load_nodes(tmp_path) == nodes
    card = (tmp_path / "README.md").read_text()
    assert "| easy | 12 |" in card and "6 nodes" in card


def test_an_actor_with_luck_leaves_medium_nodes_and_drops_what_it_solves_on_the_way(tmp_path: Path) -> None:
    nodes = build(tmp_path, player(Climber(luck=True)))
    told = facts(tmp_path)["subtasks"]
    assert sum(told.values()) == 18 and told["easy"] >= 12
    assert all(0 < node.passes <= 0.5 for node in nodes if node.level == "medium")
    for line in map(json.loads, (tmp_path / "trajectories.jsonl").read_text().splitlines()):
        for part in line["subtasks"]:
            assert (part["fate"] == "easy") == (sum(part["tries"]) > 2)
            assert part["fate"] != "solved by itself" or "node" not in part


def test_a_world_that_is_not_deterministic_is_caught(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="No thinking node is left"):
        build(tmp_path, player(flaky=True))
    assert facts(tmp_path)["trajectories"] == {"mismatch": 6}
    line = json.loads((tmp_path / "trajectories.jsonl").read_text().splitlines()[0])
    assert line["error"].startswith("Step 1: expected '[0.25] Rung 1.'")


def test_a_node_whose_world_has_changed_is_not_played(tmp_path: Path) -> None:
    play = player()
    node = build(tmp_path, play)[0]

    def tried(changed: Any) -> Any:
        return asyncio.run(play.from_node(changed, 7))

    assert tried(node).fate == "ok"
    moves = node.moves
    for changed in (
        replace(node, first="Another ladder."),
        replace(node, moves=(replace(moves[0], score=0.5), *moves[1:])),
        replace(node, moves=(moves[0], replace(moves[1], observation="Rung 7."), *moves[2:])),
        replace(node, moves=(*moves, Move("<answer>fly</answer>", "fly", "You fly.", 0.5))),
        replace(node, moves=(*moves[:2], *strong(node.task).moves[2:], *moves)),  # goes on after the end
    ):
        outcome = tried(changed)
        assert outcome.fate == "mismatch" and not outcome.reached and outcome.error


def test_what_the_harness_failed_is_counted_and_tried_again(tmp_path: Path) -> None:
    nodes = build(tmp_path, player(broken=["train1"]))
    assert facts(tmp_path)["trajectories"] == {"ok": 5, "harness": 1} and len(nodes) == 5
    (tmp_path / "collect.json").unlink()
    assert len(build(tmp_path, player())) == 6
    assert facts(tmp_path)["trajectories"] == {"ok": 6}


def test_a_resumed_run_goes_on_and_ends_with_the_same_nodes(tmp_path: Path) -> None:
    whole = build(tmp_path / "whole", player())
    path = tmp_path / "part" / "trajectories.jsonl"
    one_at_a_time = player()
    one_at_a_time.concurrency = 1

    def stop() -> bool:  # asked for in the middle
        return path.is_file() and path.read_bytes().count(b"\n") >= 3

    with pytest.raises(Interrupted):
        build(tmp_path / "part", one_at_a_time, stop=stop)
    assert load_nodes(tmp_path / "part") is None
    path.write_bytes(path.read_bytes() + b'{"key": "torn')
    before = path.read_text().count("\n")
    assert build(tmp_path / "part", player()) == whole
    assert before == 3 and path.read_text().count("\n") == 6


def test_the_limit_takes_the_first_nodes(tmp_path: Path) -> None:
    assert [node.task.id for node in build(tmp_path, player(), limit=2)] == ["train0", "train1"]


def test_moves_of_a_record() -> None:
    def step(action: str | None, call: int | None = None, **more: Any) -> dict[str, Any]:
        return {"phase": "acting", "action": action, "status": "ok", "observation": "o", "score": 0.5, "call": call, **more}

    record = {
        "trajectory": [
            {**step("early"), "phase": "mapping"},
            step("up", 0),
            step(None, status="invalid"),
            step("up", None, flags=["n_actions>1"]),
        ],
        "calls": [{"chat": "acting", "upto": 1}],
        "chats": {"acting": [{"role": "user", "content": "?"}, {"role": "assistant", "content": "<answer>up</answer> so"}]},
    }
    moves = moves_of(record, "think_answer")
    assert [(move.reply, move.action, move.loose) for move in moves] == [
        ("<answer>up</answer> so", "up", False),
        ("<answer>up</answer>", "up", True),
    ]
    assert reply_for("up", "thought_action", "<answer>up</answer>") == "Action: up"
    assert moves_of({"trajectory": []}, "think_answer") == ()


def test_impossible_settings() -> None:
    for wrong in ({"tries": 0}, {"easy_above": 1.0}, {"temperature": -1.0}, {"limit": 0}):
        with pytest.raises(UserError, match=r"trainer\.division"):
            Division(**wrong)
