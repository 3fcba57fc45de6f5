"""Goal-free worlds: an explorer learns nothing of the task, whatever it does, and nothing ends its session."""

from __future__ import annotations

import asyncio
import json
import random
import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentexp.capabilities import HasOracle
from agentexp.core import Env, EnvCard, Step, Task
from agentexp.envs.goal_free import NO_TASK, GoalFree, goal_free_actions
from agentexp.envs.textcraft import TextCraft
from agentexp.envs.toy import ToyRooms
from agentexp.errors import UserError


class InProcess:
    def __init__(self, env: Any) -> None:
        self.env, self.resets, self.sent = env, 0, list[str]()

    async def reset(self, task: Task) -> Step:
        self.resets += 1
        step: Step = self.env.reset(task)
        return step

    async def step(self, action: str) -> Step:
        self.sent.append(action)
        step: Step = self.env.step(action)
        return step

    async def call(self, method: str, *args: Any) -> Any:
        return getattr(self.env, method)(*args)


def flat(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))


def assert_hidden(step: Step, goal: str) -> None:
    """Nothing about the task in any field of a step."""
    assert (step.goal, step.done, step.success, step.score) == ("", False, False, 0.0)
    shown = [step.observation, json.dumps(dict(step.info), default=str), *(step.admissible or ())]
    assert not any(f" {flat(goal)} " in f" {flat(text)} " for text in shown)


async def session(env: Env, task: Task, actions: Sequence[str]) -> tuple[GoalFree, list[Step]]:
    world = GoalFree(InProcess(env), env)
    return world, [await world.reset(task), *[await world.step(action) for action in actions]]


async def winning_session(env: Env, task: Task, then: Sequence[str]) -> tuple[GoalFree, list[Step]]:
    """The expert's plan and more: the session of an agent that happens to do everything right."""
    env.reset(task)
    assert isinstance(env, HasOracle)
    return await session(env, task, [*env.oracle(), *then])


# ------------------------------------------------------------------------------------------------------------ any world


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data(), textcraft=st.booleans(), number=st.integers(0, 7), seed=st.integers(0, 3))
def test_random_sessions_tell_nothing(data: st.DataObject, textcraft: bool, number: int, seed: int) -> None:
    env: Env = TextCraft() if textcraft else ToyRooms()
    task = replace(env.tasks("test")[number], seed=seed)
    goal = env.reset(task).goal

    async def play() -> None:
        world = GoalFree(InProcess(env), env)
        step = await world.reset(task)
        assert_hidden(step, goal)
        for _ in range(12):
            step = await world.step(data.draw(st.sampled_from(step.admissible or ("look",))))
            assert_hidden(step, goal)
        assert flat(world.goal) == flat(goal)

    asyncio.run(play())


@pytest.mark.parametrize("env", [ToyRooms(), TextCraft()], ids=["toy", "textcraft"])
def test_winning_ends_nothing_and_is_not_reported(env: Env) -> None:
    for task in env.tasks("test")[:8]:
        goal = env.reset(task).goal
        world, steps = asyncio.run(winning_session(env, task, ["inventory", "inventory"]))
        for step in steps:
            assert_hidden(step, goal)
        assert [(event.won, event.went_on) for event in world.events] == [(True, "on")]
        assert steps[-1].observation == steps[-2].observation and not steps[-1].error


def test_what_the_engine_answers_is_what_the_agent_sees() -> None:
    """Hiding changes no text that does not tell the task: the same session with and without it."""
    env, plain = TextCraft(), TextCraft()
    task = env.tasks("test")[20]
    env.reset(task)
    plan = [*env.oracle(), "inventory", "get 1 bedrock", "dance"]
    _, steps = asyncio.run(session(env, task, plan))
    assert steps[0].observation == plain.reset(task).observation
    assert [step.observation for step in steps[1:]] == [plain.step(action).observation for action in plan]


# ------------------------------------------------------------------------------------------------- worlds that do end


def ends(env: Any, **card: Any) -> Any:
    env.card = replace(env.card, plays_on=False, **card)
    return env


def test_a_world_that_ends_is_set_to_the_moment_before() -> None:
    env = ends(ToyRooms())
    task = env.tasks("test")[0]  # taking the thing wins
    env.reset(task)
    plan = env.oracle()
    inner = InProcess(env)

    async def play() -> tuple[GoalFree, list[Step]]:
        world = GoalFree(inner, env)
        return world, [
            await world.reset(task),
            *[await world.step(action) for action in (*plan, "inventory", plan[-1], "look")],
        ]

    world, steps = asyncio.run(play())
    taken, carried, again, look = steps[-4:]
    assert taken.observation == again.observation == "You take the " + plan[-1].removeprefix("take ") + "."
    assert carried.observation == "You carry nothing."  # without the effect of what ended the world
    assert plan[-1] in (taken.admissible or ())
    assert look.observation.startswith(steps[-5].observation.split(".")[0])  # still in the same room
    assert [(event.action, event.won, event.went_on) for event in world.events] == [(plan[-1], True, "replay")] * 2
    assert inner.resets == 3


class Fickle:
    """A world that never repeats itself, ends at "end" and says so in every way."""

    name = "fickle"
    card = EnvCard("A world.", "end | wait | goal", goal_commands=r"^(goal|what now)\b")
    deterministic = False

    def __init__(self) -> None:
        self.count = 0

    def reset(self, task: Task) -> Step:
        self.count += 1
        return Step(f"Start {self.count}. Your task: Fetch the red box!", goal="Fetch the  red box.")

    def step(self, action: str) -> Step:
        if action == "goal":
            raise AssertionError("the engine was asked for the goal")
        info = {"score": 3, "taskDesc": "x", "hint": "fetch the red box", "room": "hall", "isCompleted": action == "end"}
        if action == "end":
            return Step("*** The End ***\nThe box opens.\nYou have won!\nTask completed.", True, True, 1.0, info=info)
        return Step(f"You say {action}. The red box is here.", score=0.7, admissible=("end", "goal", "wait"), info=info)


def fickle(*actions: str, deterministic: bool = False) -> tuple[GoalFree, list[Step]]:
    env: Any = Fickle()
    env.deterministic = deterministic
    return asyncio.run(session(env, Task("t", "fickle", "test"), actions))


@pytest.mark.parametrize("deterministic", [False, True])
def test_a_world_that_cannot_be_repeated_starts_anew(deterministic: bool) -> None:
    """Also one that only claims to be deterministic: what it answers on the way is compared."""
    world, (start, waited, ended, later) = fickle("wait", "end", "wait", deterministic=deterministic)
    assert start.observation == f"Start 1. Your task: {NO_TASK}!"
    assert ended.observation.startswith("The box opens.\nStart ") and f"Your task: {NO_TASK}!" in ended.observation
    assert "won" not in ended.observation and "End" not in ended.observation and "complete" not in ended.observation
    assert waited.observation == later.observation
    assert [event.went_on for event in world.events] == ["reset"]
    for step in (start, waited, ended, later):
        assert_hidden(step, "Fetch the red box")


def test_commands_that_tell_the_goal_are_answered_without_the_engine() -> None:
    _, (_, waited, asked, odd, again) = fickle("wait", "goal", "  WHAT   now? ", "wait")
    for answer in (asked, odd):
        assert (answer.observation, answer.error, answer.admissible) == (NO_TASK, False, waited.admissible)
    assert again.observation == waited.observation
    assert waited.admissible == ("end", "wait")
    assert goal_free_actions(Fickle.card) == "end | wait"


def test_info_keeps_what_tells_nothing() -> None:
    _, (_, waited) = fickle("wait")
    assert waited.info == {"room": "hall"}


def test_an_echo_of_the_agents_own_words_stays() -> None:
    """Blanking it would tell the agent that it has guessed the goal."""
    _, (_, guessed) = fickle("fetch the red box")
    assert guessed.observation == "You say fetch the red box. The red box is here."


def test_the_expert_is_refused_and_other_calls_pass() -> None:
    env = ToyRooms()
    world = GoalFree(InProcess(env), env)
    asyncio.run(world.reset(env.tasks("test")[0]))
    with pytest.raises(UserError, match="curious"):
        asyncio.run(world.call("oracle"))
    assert asyncio.run(world.call("versions")) == env.versions()


# ------------------------------------------------------------------------------------------------------ real engines


@pytest.mark.engine
def test_alfworld_goes_on_after_the_task_is_done() -> None:
    pytest.importorskip("textworld")
    from agentexp.envs.alfworld import AlfWorld

    env = AlfWorld(train=1, dev=1, test=6)
    try:
        for task in env.tasks("test")[:3]:
            goal = env.reset(task).goal
            world, steps = asyncio.run(winning_session(env, task, ["look", "inventory"]))
            for step in steps:
                assert_hidden(step, goal)
            assert [(event.won, event.went_on) for event in world.events] == [(True, "on")]
            assert not steps[-1].error and steps[-1].observation.startswith("You are")
    finally:
        env.close()


@pytest.mark.engine
def test_scienceworld_has_no_task_and_a_wrong_focus_ends_nothing() -> None:
    pytest.importorskip("scienceworld")
    if shutil.which("java") is None:
        pytest.skip("there is no Java")
    from agentexp.envs.scienceworld import ScienceWorld

    env = ScienceWorld(simplifications="easy")
    task = next(task for task in env.tasks("test") if "find-living-thing" in task.id)
    try:
        goal = env.reset(task).goal
        assert flat(goal) in flat(env.step("task").observation)  # the engine itself tells it
        actions = ["task", "TASK", "look around", "focus on air", "task", "look around", "inventory", "wait1"]
        world, steps = asyncio.run(session(env, task, actions))
        for step in steps:
            assert_hidden(step, goal)
        assert [steps[i].observation for i in (1, 2, 5)] == [NO_TASK] * 3
        assert steps[3].observation == steps[6].observation and not steps[8].error
        assert [(event.action, event.won) for event in world.events] == [("focus on air", False)]
        assert "task" not in [form.strip() for form in goal_free_actions(env.card).split("|")]
    finally:
        env.close()


def test_two_sessions_of_random_actions_are_the_same() -> None:
    """Hiding adds no chance of its own."""
    env = ToyRooms()
    task = env.tasks("test")[3]
    rng = random.Random(1)
    actions = [rng.choice(("go east", "go west", "look", "inventory", "jump")) for _ in range(20)]
    assert asyncio.run(session(env, task, actions))[1] == asyncio.run(session(env, task, actions))[1]
