"""Whole episodes on real engines: who won (E01), open choices (E06), a dead engine (E07), a model that is stuck (P10)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest
from speaker import Speaker

from agentexp.core import Env, Episode, Model, Task
from agentexp.envs.alfworld import AlfWorld
from agentexp.envs.pool import EnvPool
from agentexp.envs.scienceworld import ScienceWorld
from agentexp.errors import MissingDependency
from agentexp.models.scripted import ScriptedModel
from agentexp.paradigms.react import ReAct
from agentexp.rollout import Budget, Rollout, run_episode

pytestmark = pytest.mark.engine


def alfworld() -> tuple[AlfWorld, dict[str, Any]]:
    for package in ("textworld", "alfworld"):
        pytest.importorskip(package, reason="needs the alfworld extra")
    return AlfWorld(), {"_target_": "agentexp.envs.alfworld.AlfWorld"}


def scienceworld(**settings: Any) -> tuple[ScienceWorld, dict[str, Any]]:
    pytest.importorskip("py4j", reason="needs the scienceworld extra")
    try:
        from agentexp.envs.scienceworld.engine import find_jar, find_java

        find_java(), find_jar()
    except MissingDependency as missing:
        pytest.skip(str(missing))
    return ScienceWorld(**settings), {"_target_": "agentexp.envs.scienceworld.ScienceWorld", **settings}


def play(
    world: tuple[Env, dict[str, Any]], tasks: Sequence[Task], model: Model, steps: int, paradigm: Any = None
) -> list[Episode]:
    env, spec = world

    async def run() -> list[Episode]:
        async with EnvPool(spec, size=1, step_timeout=60, reset_timeout=120) as pool:
            return [
                await run_episode(task, env, pool.lease, {"actor": model}, paradigm or ReAct(), Budget(0, steps))
                for task in tasks
            ]

    return asyncio.run(run())


def test_alfworld_is_won_by_the_worlds_word_only() -> None:
    """E01: an agent that looks until the limit and says that it is done wins nothing; the expert wins the same games."""
    world = alfworld()
    tasks = world[0].tasks("test")[:3]
    idle = play(world, tasks, Speaker("Action: look", "Action: look", "Action: done"), 6)
    assert [(e.success, e.score, e.end_reason, e.steps) for e in idle] == [(False, 0.0, "step_limit", 6)] * 3
    expert = play(world, tasks, ScriptedModel(policy="oracle"), 60)
    assert [(e.success, e.end_reason) for e in expert] == [(True, "won")] * 3


def test_an_open_choice_of_scienceworld_in_an_episode() -> None:
    """E06: the agent is told how to answer, a bare number is let through, and the record says that a choice was open."""
    world = scienceworld(simplifications="teleportAction")
    lines = [f"Action: {action}" for action in ("teleport to kitchen", "focus on orange", "look around", "focus on orange")]
    task = Task("boil/0", "scienceworld", "train")
    (episode,) = play(world, [task], Speaker(*lines, "1"), 6)
    _, asked, closed, _, chosen = episode.trajectory
    assert "number" in asked.observation
    assert len(asked.info["choice"]) == 2
    assert (closed.action, closed.error, "choice" in closed.info) == ("look around", True, False)
    assert (chosen.action, chosen.status, chosen.observation) == ("1", "ok", "You focus on the orange.")
    assert (episode.success, episode.end_reason) == (False, "lost")


def test_a_model_that_is_stuck() -> None:
    """P10: the same useless command thirty times costs thirty steps, and nothing is put in its place."""
    (episode,) = play(scienceworld(), [Task("boil/0", "scienceworld", "train")], Speaker("focus"), 30)
    assert (episode.steps, episode.end_reason, episode.success) == (30, "step_limit", False)
    assert {step.action for step in episode.trajectory} <= {"focus", None}
    assert all(step.error for step in episode.trajectory)


class KillsTheEngineOnce(ReAct):
    """ReAct; in its first attempt the JVM dies in mid-episode."""

    killed = 0

    async def act(self, ro: Rollout, knowledge: str = "") -> None:
        for child in psutil.Process().children(recursive=True):
            if not self.killed and Path(child.exe()).name == "java":
                child.kill()
                self.killed = child.pid
        await super().act(ro, knowledge)


def test_a_jvm_that_dies_in_mid_episode_costs_one_attempt() -> None:
    """E07."""
    paradigm = KillsTheEngineOnce()
    task = Task("boil/0", "scienceworld", "train")
    broken, after = play(scienceworld(), [task, task], Speaker("Action: look around"), 3, paradigm)
    assert paradigm.killed
    assert (broken.status, broken.attempts, broken.end_reason, broken.steps) == ("ok", 2, "step_limit", 3)
    assert "EngineError" in broken.notes["failed_attempts"][0]
    assert (after.status, after.attempts) == ("ok", 1)
    assert not [child for child in psutil.Process().children(recursive=True) if Path(child.exe()).name == "java"]
