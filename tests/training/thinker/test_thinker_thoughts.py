"""Thoughts: what is kept for the cold start, what a thought earns, and that exactly its tokens are trained."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from grpo_kit import ScriptedSampler
from thinker_kit import Adviser, Climber, Ladder, player, strong

from agentexp.core import Request, Sampling
from agentexp.errors import UserError
from agentexp.training.core import Interrupted
from agentexp.training.grpo.harvest import harvest
from agentexp.training.thinker.coldstart import ColdStart, Collector
from agentexp.training.thinker.data import Builder, Division
from agentexp.training.thinker.nodes import Node
from agentexp.training.thinker.player import Outcome
from agentexp.training.thinker.rollouts import Drawn, Order, play_groups, reward

GOOD, BAD, NONE = "<deepthink>KNOCK first.</deepthink>", "<deepthink>Go on.</deepthink>", "<deepthink>...</deepthink>"


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> list[Node]:
    builder = Builder(folder=tmp_path_factory.mktemp("nodes"), player=player(), division=Division())
    return asyncio.run(builder.build([strong(task) for task in Ladder().tasks("train")], {}))


def collect(folder: Path, nodes: list[Node], says: list[str], stop: Callable[[], bool] = lambda: False, **how: Any) -> int:
    collector = Collector(folder=folder, player=player(), teacher=Adviser(says), settings=ColdStart(**how), stopping=stop)
    return asyncio.run(collector.collect(nodes))


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_only_thoughts_that_helped_are_kept(nodes: list[Node], tmp_path: Path) -> None:
    assert collect(tmp_path, nodes[:1], [BAD, NONE, GOOD, BAD]) == 1
    (row,) = read(tmp_path / "messages.jsonl")
    prompt, answer = row["messages"]
    assert (prompt["role"], answer["role"]) == ("user", "assistant")
    assert answer["content"] == "<deepthink>\nKNOCK first.\n</deepthink>"
    assert "The hatch is stuck." in prompt["content"] and "Get to the roof." in prompt["content"]
    facts = json.loads((tmp_path / "coldstart.json").read_text())
    assert facts["thoughts"] == {"did not help": 1, "unreadable": 1, "helped": 1}
    assert (facts["nodes_helped"], facts["nodes_alone"], facts["kept"]) == (1, 0, 1)


def test_nothing_is_kept_where_nothing_helps(nodes: list[Node], tmp_path: Path) -> None:
    assert collect(tmp_path, nodes, [BAD]) == 0
    assert (tmp_path / "messages.jsonl").read_text() == ""


def test_a_thought_that_was_cut_is_not_learnt_from(nodes: list[Node], tmp_path: Path) -> None:
    cut = Adviser(["<deepthink>KNOCK, and then"], finish_reason="length")
    collector = Collector(folder=tmp_path, player=player(), teacher=cut, settings=ColdStart(thoughts=1))
    assert asyncio.run(collector.collect(nodes[:1])) == 0
    assert json.loads((tmp_path / "coldstart.json").read_text())["thoughts"] == {"cut": 1}


def test_collecting_goes_on_after_a_stop(nodes: list[Node], tmp_path: Path) -> None:
    asked: list[int] = []

    def stop() -> bool:
        asked.append(1)
        return len(asked) > 2

    with pytest.raises(Interrupted):
        collect(tmp_path, nodes, [GOOD], stop)
    assert len(read(tmp_path / "thoughts.jsonl")) == 2 and not (tmp_path / "coldstart.json").exists()
    assert collect(tmp_path, nodes, [GOOD]) == 6
    assert len(read(tmp_path / "thoughts.jsonl")) == 6


def test_impossible_settings() -> None:
    with pytest.raises(UserError, match="keep"):
        ColdStart(thoughts=2, keep=3)


@pytest.mark.parametrize(
    ("outcome", "binary", "delta"),
    [
        (Outcome(score=0.25, best=0.75, thought="t"), 1.0, 0.5),
        (Outcome(score=0.25, best=0.25, thought="t"), 0.0, 0.0),
        (Outcome(score=0.25, best=0.75, thought=""), 0.0, 0.0),  # unreadable
        (Outcome("mismatch", score=0.25, best=0.75, thought="t"), None, None),
        (Outcome("harness", thought="t"), None, None),
    ],
)
def test_what_a_thought_is_worth(outcome: Outcome, binary: float | None, delta: float | None) -> None:
    assert reward(outcome, "binary") == binary and reward(outcome, "delta") == delta


def thinker(request: Request) -> str:
    """Every second thought helps, by its trajectory's number."""
    number = int(request.chat.split("|")[0].rpartition(".")[2])
    return (GOOD, BAD, GOOD, NONE)[number % 4]


def play(nodes: list[Node], actor: Any = None, size: int = 4, kind: Any = "binary", **env: Any) -> Any:
    sampler = ScriptedSampler(thinker)
    how = player(actor, **env)
    groups = [Drawn(i, node) for i, node in enumerate(nodes)]
    return asyncio.run(play_groups(how, sampler, Sampling(1.0, 64), groups, size, kind, 4096)), sampler


def test_every_trajectory_has_one_thought_and_only_its_tokens_are_trained(nodes: list[Node]) -> None:
    actor = Climber()
    groups, sampler = play(nodes[:2], actor)
    assert [[one.reward for one in group] for group in groups] == [[1.0, 0.0, 1.0, 0.0]] * 2
    assert [one.end_reason for one in groups[0]] == ["ok", "ok", "ok", "unreadable"]
    assert len(sampler.requests) == 8 and not sampler.taken
    sampled = sorted(tuple(call.tokens) for call in sampler.every)
    rows = [row for group in groups for one in group for row in one.rows]
    assert len(rows) == 8
    trained = [tuple(i for i, on in zip(row.ids, row.trained, strict=True) if on) for row in rows]
    assert sorted(trained) == sampled
    assert {request.sampling.temperature for request in sampler.requests} == {1.0}
    assert set(actor.temperatures) == {0.0}, "the actor is frozen and greedy"
    assert all(one.steps <= node.horizon for group, node in zip(groups, nodes, strict=False) for one in group)


def test_nodes_where_all_thoughts_earn_the_same_are_skipped(nodes: list[Node]) -> None:
    mixed, _ = play(nodes[:1])
    same, _ = play(nodes[1:2], Climber(luck=False), size=1)
    flat = [mixed[0][0], mixed[0][2]]
    found = harvest([mixed[0], flat], eps=1e-4, kl_on_flat=False)
    assert (found.sums["task/groups"], found.sums["task/flat"]) == (2, 1) and len(same) == 1
    assert sum(trajectory.kl for trajectory in found.trajectories) == 4  # only those of the first node
    assert [sample.weight > 0 and bool(sample.advantage or sample.kl) for sample in found.samples("sequence", 4.0)] == [
        *[True] * 4,
        *[False] * 2,
    ]


def test_what_cannot_be_restored_is_no_reward_and_counted(nodes: list[Node]) -> None:
    groups, sampler = play(nodes[:1], flaky=True)
    assert {(one.fate, one.reward, one.end_reason, len(one.rows)) for one in groups[0]} == {("harness", None, "mismatch", 0)}
    assert all("expected" in one.error for one in groups[0]) and not sampler.requests
    groups, _ = play(nodes[:1], broken=["train0"])
    assert {(one.fate, one.end_reason) for one in groups[0]} == {("harness", "harness")}
    assert harvest(groups, eps=1e-4).sums["harness"] == 4 and not harvest(groups, eps=1e-4).trajectories


def test_delta_goes_on_after_the_first_rise(nodes: list[Node]) -> None:
    groups, _ = play(nodes[:1], kind="delta")
    assert [one.reward for one in groups[0]] == [0.5, 0.0, 0.5, 0.0]


def test_the_order_is_a_function_of_the_step(nodes: list[Node]) -> None:
    order, again = Order(nodes, 4, seed=3), Order(nodes, 4, seed=3)
    steps = [order.step(i) for i in range(6)]
    assert [again.step(i) for i in reversed(range(6))] == steps[::-1]
    names = [drawn.node.name for step in steps for drawn in step]
    assert sorted(names) == sorted([node.name for node in nodes] * 4), "every pass takes every node once"
    assert sorted(names[:6]) == sorted(names[6:12]) != names[:6]
    assert [drawn.number for step in steps for drawn in step] == list(range(24))
