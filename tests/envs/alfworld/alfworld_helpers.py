"""Shared by the tests of ALFWorld: where the official games are, and playing without a model."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Any

import pytest

from agentexp.core import CognitiveMap, Step, Task, View
from agentexp.envs.alfworld import AlfWorld
from agentexp.envs.alfworld.facts import HouseFacts
from agentexp.envs.alfworld.oracle import Household

needs_wheel = pytest.mark.skipif(importlib.util.find_spec("alfworld") is None, reason="alfworld is not installed")
needs_engine = pytest.mark.skipif(importlib.util.find_spec("textworld") is None, reason="textworld is not installed")


def official() -> Path:
    """Folder of the packed official games; skips the test where there is none."""
    shared = Path(os.environ.get("AGENTEXP_SHARED") or Path(__file__).resolve().parents[3].parent / "shared")
    folder = shared / "data" / "alfworld"
    if not (folder / "valid_unseen.jsonl.xz").is_file():
        pytest.skip("the official ALFWorld games are not here (set AGENTEXP_SHARED)")
    return folder


def full_map(env: AlfWorld, task: Task) -> CognitiveMap:
    """A complete and true map of a game, from its problem."""
    problem = env.problem(task)
    contents = Household(problem.init).contents
    shown = problem.names
    return CognitiveMap(
        spatial=[{"thing": shown[t], "relation": "in", "place": shown[p]} for p, things in contents.items() for t in things],
        absent=[{"place": shown[p], "what": "anything"} for p, things in contents.items() if not things],
    )


def play(
    env: AlfWorld,
    task: Task,
    name: str,
    steps: int,
    *,
    phase: str = "acting",
    seed: int = 0,
    map: CognitiveMap | None = None,
    knowledge: dict[str, Any] | None = None,
    hide_goal: bool = False,
) -> tuple[list[tuple[str, Step]], HouseFacts]:
    """Let a scripted agent play until success or the end of its steps."""

    async def no_oracle() -> list[str]:
        raise AssertionError("scripted agents of the world do not ask the oracle")

    step = env.reset(task)
    goal = "" if hide_goal else step.goal
    tracker, policy, history = env.fact_tracker(), env.policy(name, seed), []
    tracker.observe(None, step)
    for left in range(steps, 0, -1):
        view = View(task, goal, phase, step, history, left, map, knowledge or {}, tracker, env, no_oracle, {})
        action = policy.act(view)
        step = env.step(action)
        tracker.observe(action, step)
        history.append((action, step))
        if step.success and phase == "acting":
            break
    return history, tracker
