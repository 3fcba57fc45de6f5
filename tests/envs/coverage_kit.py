"""Explorations without a goal by scripted agents, and agents that only recite names."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from agentexp.capabilities import Checkpoint, HasCheckpoints
from agentexp.core import Request, Sampling, Step, Task, View
from agentexp.metrics.ecc import Coverage, Ecc
from agentexp.metrics.stats import Difference, paired_bootstrap
from agentexp.models.scripted import ScriptedModel

Agent = Callable[[View], str]


def explore(env: Any, task: Task, agent: Agent, steps: int, relevance: str = "task_closure") -> Ecc:
    """A session of so many steps in which the agent sees no goal, and its coverage."""
    assert isinstance(env, HasCheckpoints)
    step = replace(env.reset(task), goal="")  # type: ignore[attr-defined]
    coverage = Coverage(env.checkpoints(relevance), env.checkpoint_matcher())
    coverage.observe(0, None, step)
    tracker = env.fact_tracker()  # type: ignore[attr-defined]
    tracker.observe(None, step)
    history: list[tuple[str, Step]] = []
    memory: dict[str, Any] = {}
    for t in range(1, steps + 1):
        left = steps - t + 1
        action = agent(View(task, "", "exploring", step, history, left, None, {}, tracker, env, _no_oracle, memory))  # type: ignore[arg-type]
        step = env.step(action)  # type: ignore[attr-defined]
        history.append((action, step))
        tracker.observe(action, step)
        coverage.observe(t, action, step)
    return coverage.result()


def recite(env: Any, task: Task, forms: Iterable[str], relevance: str = "all") -> Ecc:
    """Say every name of the instance in each form, from the initial state; "{}" is the name.

    Of an affordance ("take key"), the name alone ("key") is said, and the whole of it as an intention.
    """
    step = env.reset(task)
    points = env.checkpoints(relevance)
    coverage = Coverage(points, env.checkpoint_matcher())
    coverage.observe(0, None, step)
    t = 0
    for checkpoint in points:
        said = checkpoint.name.split(" ", 1)[1] if checkpoint.kind == "affordance" else checkpoint.name
        for action in [form.format(said) for form in forms] + [f"I could {checkpoint.name}"]:
            t += 1
            coverage.observe(t, action, env.step(action))
    return coverage.result()


def scripted(policy: str) -> Agent:
    """The shipped policy of that name. Its memory is the view's, so one agent serves many sessions."""
    model = ScriptedModel(policy)

    def agent(view: View) -> str:
        return asyncio.run(model.chat(Request([], Sampling(), "act", "", view, "exploring"))).text

    return agent


def ordering(env: Any, tasks: Iterable[Task], steps: int, relevance: str = "task_closure") -> tuple[Difference, Difference]:
    """Coverage of systematic minus random, and of random minus repetitive exploration, each paired by instance."""
    found = {
        policy: {task.id: explore(env, task, scripted(policy), steps, relevance).value or 0.0 for task in tasks}
        for policy in ("systematic", "random", "repetitive")
    }
    first = paired_bootstrap(found["random"], found["systematic"])
    second = paired_bootstrap(found["repetitive"], found["random"])
    assert first is not None and second is not None
    return first, second


def names(points: Iterable[Checkpoint], kind: str) -> set[str]:
    """Names of the checkpoints of a kind."""
    return {checkpoint.name for checkpoint in points if checkpoint.kind == kind}


async def _no_oracle() -> list[str]:
    raise AssertionError("an explorer has no expert")
