"""The change in mid-episode (MAP, appendix C.4): the game goes on from its own facts, with the wanted things elsewhere."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from alfworld_helpers import needs_engine, needs_wheel

from agentexp.capabilities import HasPerturbation
from agentexp.core import Completion, Episode, Request, Sampling, Step, Task, Usage
from agentexp.envs.alfworld import AlfWorld
from agentexp.envs.alfworld.goals import parse_goal
from agentexp.envs.alfworld.moves import lying, relocation
from agentexp.envs.alfworld.oracle import Household
from agentexp.metrics.perturbation import reexplored
from agentexp.perturbing import planned_step
from agentexp.rollout import Budget, Rollout, World, run_episode

pytestmark = [pytest.mark.engine, needs_engine, needs_wheel]


@pytest.fixture(scope="module")
def world() -> Iterator[AlfWorld]:
    env = AlfWorld(test=12, perturb="relocate")
    yield env
    env.close()


def _wander(env: AlfWorld, task: Task, steps: int) -> Step:
    step, rng = env.reset(task), random.Random(task.id)
    for _ in range(steps):
        busy = [a for a in step.admissible or () if a.startswith(("take", "open", "heat", "cool", "clean", "use", "move"))]
        step = env.step(rng.choice(busy or step.admissible or ["look"]))
    return step


@pytest.mark.parametrize("index", range(6))
@pytest.mark.parametrize("logic", ["new", pytest.param("old", marks=pytest.mark.slow)])
def test_a_game_loaded_from_its_own_facts_is_the_same_game(index: int, logic: Any) -> None:
    env, twin = AlfWorld(test=6, logic=logic), AlfWorld(test=6, logic=logic)
    task = env.tasks("test")[index]
    step = _wander(env, task, 15)
    assert _wander(twin, task, 15) == step
    engine = env._engine
    assert engine is not None
    facts, names = engine.facts(), engine.names()
    assert engine.go_on(facts).commands == step.admissible
    assert engine.facts() == facts
    # only where the agent stood at first can be forgotten: no furniture is there, so nothing leads back
    assert engine.names().items() <= names.items() and len(names) - len(engine.names()) <= 1
    rng = random.Random(index)
    for _ in range(12):  # and it goes on in the same words
        action = rng.choice(step.admissible or ["look"])
        step = env.step(action)
        assert step == twin.step(action), action
    for action in env.oracle():
        step = env.step(action)
        assert not step.error and step == twin.step(action)
    assert step.success
    env.close()
    twin.close()


@pytest.mark.parametrize("index", range(6))
def test_the_old_place_is_empty_and_a_new_plan_wins(world: AlfWorld, index: int) -> None:
    task = world.tasks("test")[index]
    goal = parse_goal(str(task.spec["task"]))
    assert goal is not None
    step = world.reset(task)
    plan = world.oracle()
    take = next(i for i, action in enumerate(plan) if action.startswith("take"))
    for action in plan[:take]:  # in front of the thing, and then it is gone
        step = world.step(action)
    engine = world._engine
    assert engine is not None
    here, opened = Household(engine.facts()).here, Household(engine.facts()).all("opened")
    found = world.perturb(seed=3)
    assert found is not None and plan[take] in (step.admissible or ()) and plan[take] not in found["admissible"]
    after = Household(engine.facts())
    assert (after.here, after.all("opened")) == (here, opened)
    shown = engine.names()
    for thing, places in lying(after, goal.thing).items():
        old, new = found["moved"][shown[thing]]
        assert [shown[place] for place in places] == [new] and new not in old
        assert after.location[places[0]] != here and after.type_of[places[0]] != goal.place
        assert after.fits(thing, places[0])
    refused = world.step(plan[take])
    assert refused.error and refused.observation == "Nothing happens." and list(refused.admissible or ()) == found["admissible"]
    again = world.oracle()
    assert reexplored(again, 0, [place for old, _ in found["moved"].values() for place in old])
    for action in again:
        step = world.step(action)
        assert not step.error, action
    assert step.success


def test_not_while_the_thing_is_carried_or_delivered(world: AlfWorld) -> None:
    for index in (0, 5):
        world.reset(world.tasks("test")[index])
        for action in world.oracle()[:-1]:
            step = world.step(action)
            carried = any(a.startswith(("move ", "put ")) for a in step.admissible or ())
            if action.startswith(("take", "move")) or carried:
                assert world.perturb(0) is None, action
        assert world.oracle(), "and nothing has changed by asking"


def test_the_draw_is_determined_by_state_and_seed(world: AlfWorld) -> None:
    task = world.tasks("test")[0]
    goal = parse_goal(str(task.spec["task"]))
    assert goal is not None
    problem = world.problem(task)
    draws = [relocation(problem.init, problem.names, goal, seed) for seed in (1, 1, 2, 3, 4)]
    assert draws[0] == draws[1] and any(draw != draws[0] for draw in draws[2:])


# ------------------------------------------------------------------------------------------------------ in an episode


class Planner:
    """Follows the plan it made at the start; after a refusal it makes another one. Or stubbornly never does."""

    label, sampling = "planner", Sampling()

    def __init__(self, idle: int = 0, replan: bool = True) -> None:
        self.plan: list[str] = []
        self.idle, self.replan, self.asked = idle, replan, 0

    async def start(self) -> None: ...
    async def close(self) -> None: ...

    def versions(self) -> dict[str, str]:
        return {}

    async def chat(self, request: Request) -> Completion:
        assert request.view is not None
        first, self.asked = self.asked == 0, self.asked + 1
        if first or (self.replan and request.view.step.error):
            self.plan = await request.view.oracle()
        if self.asked <= self.idle:
            return Completion("Action: look", usage=Usage())
        return Completion(f"Action: {self.plan.pop(0) if self.plan else 'look'}", usage=Usage())


class Direct:
    def __init__(self, env: AlfWorld) -> None:
        self.env, self.calls = env, list[str]()

    async def reset(self, task: Task) -> Step:
        return self.env.reset(task)

    async def step(self, action: str) -> Step:
        return self.env.step(action)

    async def call(self, method: str, *args: Any) -> Any:
        self.calls.append(method)
        return getattr(self.env, method)(*args)


class MapThenAct:
    """Two phases with a reset between them."""

    name = "two phases"

    async def __call__(self, ro: Rollout) -> None:
        with ro.phase("mapping", 12):
            await ro.reset()
            for _ in range(12):
                await ro.act("look")
        with ro.phase("acting", ro.budget.acting):
            step = await ro.reset()
            chat = ro.chat("acting").user(step.observation)
            while ro.steps_left and not ro.step.done:
                turn = await ro.turn(chat, "thought_action")
                chat.user(turn.step.observation)
        ro.finish()


def _episode(env: AlfWorld, task: Task, model: Planner) -> tuple[Episode, Direct]:
    world = Direct(env)

    @asynccontextmanager
    async def lease() -> AsyncIterator[World]:
        yield world

    return asyncio.run(run_episode(task, env, lease, {"actor": model}, MapThenAct(), Budget(12, 40))), world


def test_an_episode_with_a_change(world: AlfWorld) -> None:
    assert isinstance(world, HasPerturbation)
    task = next(task for task in world.tasks("test") if planned_step(task) >= 3)
    due = planned_step(task)
    episode, _ = _episode(world, task, Planner(idle=due - 1))
    assert episode.status == "ok", episode.error
    note = episode.notes["perturbation"]
    acting = [record for record in episode.trajectory if record.phase == "acting"]
    assert note["step"] == note["t_planned"] == due and note["moved"] and note["origins"]
    assert episode.success and acting[due].action is not None
    told = [message.content for message in episode.chats["acting"] if message.role == "user"]
    assert not any("moved" in text or "perturb" in text for text in told)
    stubborn, _ = _episode(world, task, Planner(idle=due - 1, replan=False))
    assert not stubborn.success and stubborn.notes["perturbation"] == note
    assert any(r.error and r.observation == "Nothing happens." for r in stubborn.trajectory if r.phase == "acting")


def test_a_change_that_never_comes_leaves_no_note(world: AlfWorld) -> None:
    task = next(task for task in world.tasks("test") if planned_step(task) >= 3)
    plan = (world.reset(task), world.oracle())[1]
    take = next(i for i, action in enumerate(plan) if action.startswith("take"))
    idle = max(planned_step(task) - take - 1, 0)  # the thing is in hand when the change is due
    episode, direct = _episode(world, task, Planner(idle=idle))
    assert episode.success and direct.calls.count("perturb") >= 1 and "perturbation" not in episode.notes


def test_without_the_setting_nothing_changes() -> None:
    env = AlfWorld(test=1)
    task = env.tasks("test")[0]
    episode, direct = _episode(env, task, Planner(idle=12))
    env.close()
    assert episode.success and "perturbation" not in episode.notes and "perturb" not in direct.calls


def test_the_planned_step_is_uniform_and_the_same_for_repeats() -> None:
    tasks = [Task(f"g{i}", "alfworld", "test", seed=i % 3) for i in range(3000)]
    steps = [planned_step(task) for task in tasks]
    assert set(steps) == set(range(1, 11)) and all(240 < steps.count(t) < 360 for t in range(1, 11))
    assert planned_step(Task("g", "alfworld", "test", 0, 0)) == planned_step(Task("g", "alfworld", "test", 0, 5))
