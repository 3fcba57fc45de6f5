"""The BabyAI world: instances, texts, actions, progress, and the expert."""

from __future__ import annotations

import os
import random
import re
import statistics
import subprocess
import sys
from collections import Counter
from typing import Any

import pytest

from agentexp.capabilities import HasOracle
from agentexp.core import Env, Step, Task
from agentexp.envs.babyai import BabyAI, levels
from agentexp.errors import UserError

pytest.importorskip("minigrid", reason="needs the babyai extra")


@pytest.fixture
def env() -> BabyAI:
    return BabyAI()


def named(task_id: str) -> Task:
    return next(task for split in levels.SEEDS for task in levels.tasks(split) if task.id == task_id)


def play(env: BabyAI, task: Task, actions: list[str]) -> list[Step]:
    return [env.reset(task), *map(env.step, actions)]


# -------------------------------------------------------------------------------------------------------------- instances


def test_splits_have_their_sizes_and_share_nothing(env: BabyAI) -> None:
    assert isinstance(env, Env) and isinstance(env, HasOracle)
    ids = {split: [task.id for task in env.tasks(split)] for split in env.splits()}
    assert {split: len(some) for split, some in ids.items()} == {"train": 698, "dev": 112, "test": 112}
    assert len({i for some in ids.values() for i in some}) == 922
    assert Counter(int(i.split("/")[1]) for i in ids["test"]) == dict.fromkeys(range(1234, 1238), 28)
    assert len({task.id.split("/")[0] for task in env.tasks("test")[:28]}) == 28
    assert Counter(task.kind for task in env.tasks("test")) == {"goto": 44, "open": 20, "pickup": 20, "unlock": 20, "find": 8}
    with pytest.raises(UserError, match=r"env\.split=valid .*train, dev, test"):
        env.tasks("valid")
    with pytest.raises(UserError, match="ids come from"):
        env.reset(Task("BossLevel/1", "babyai", "test"))


@pytest.mark.slow
def test_no_initial_state_occurs_in_two_splits(env: BabyAI) -> None:
    seen: dict[Any, str] = {}
    for split in env.splits():
        for task in env.tasks(split):
            goal, scene = env.reset(task).goal, env.scene
            things = frozenset((cell, thing.name) for cell, thing in scene.things.items())
            assert seen.setdefault((goal, scene.cell, scene.facing, scene.walls, things), split) == split, task.id


def test_construction_imports_no_engine() -> None:
    code = (
        "import sys; from agentexp.envs.babyai import BabyAI; e = BabyAI(); e.tasks('test'); e.versions(); e.card;"
        "assert not {'minigrid', 'gymnasium', 'numpy', 'pygame'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_engines_prints_stay_out_of_standard_output() -> None:
    code = "from agentexp.envs.babyai import BabyAI; e = BabyAI()\nfor t in e.tasks('test')[:56]: e.reset(t)"
    env = {**os.environ, "PYTHONHASHSEED": "3"}
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=env)
    assert done.stdout == ""


# ------------------------------------------------------------------------------------------------------------------ texts


def test_texts_of_a_first_room(env: BabyAI) -> None:
    start = env.reset(named("GoToRedBallGrey/1235"))
    assert start.goal == "go to the red ball" and start.goal not in start.observation
    assert re.fullmatch(
        r"In front of you in this room, you can see several objects: "
        r"(There is a (grey|red) (box|ball|key) \d+ (right in front of you \d steps away|\d steps in front of you and \d steps "
        r"to your (left|right))\.   ?)*The room has walls around you\. (You are facing a (wall|box) \d steps away\. )?"
        r"You are not carrying anything\.",
        start.observation,
    ), start.observation
    listed = env.step("check available actions")
    assert listed.observation == "You can take the following actions: " + ", ".join(start.admissible or ())
    assert not listed.error and env.step("CHECK valid actions ").observation == listed.observation
    assert env.step("dance").observation == "The action is not recognized. Please check valid actions."
    assert env.step("").observation == "No change in state."
    assert env.step("drop").observation == "You cannot drop the object, as you are not carrying anything."
    assert all(env.step(text).error for text in ("dance", "", "drop", "go to red ball 9", "pickup"))


def test_doors_tell_why_they_stay_shut(env: BabyAI) -> None:
    start = env.reset(named("UnlockPickupDist/1234"))
    while not (door := re.search(r"a (\w+ locked door 1)", env.step("turn left").observation)):
        pass
    assert env.step(f"toggle and go through {door[1]}").observation == (
        f"You cannot toggle and go through {door[1]}, as you are not carrying a key."
    )
    for action in env.oracle():
        step = env.step(action)
    assert step.success and step.done and step.observation.endswith("\n The task is completed.") and start.score == 0


def test_an_order_can_be_told_in_both_wordings() -> None:
    task = named("OpenDoorsOrderN4Debug/1234")
    assert BabyAI().reset(task).goal == "open the blue door after you open the red door"
    assert BabyAI(goal_wording="agentboard").reset(task).goal == "open the blue door and open the red door"


# ---------------------------------------------------------------------------------------------------------------- episodes


@pytest.mark.slow
def test_the_expert_solves_all_112_and_the_score_says_so(env: BabyAI) -> None:
    lengths = []
    for task in env.tasks("test"):
        env.reset(task)
        plan = env.oracle()
        scores = [0.0]
        for i, action in enumerate(plan, start=1):
            step = env.step(action)
            scores.append(step.score)
            assert not step.error and (step.score == 1.0) == step.success == (i == len(plan)), (task.id, action)
        assert scores == sorted(scores) and env.oracle() == []
        lengths.append(len(plan))
    assert len(lengths) == 112 and max(lengths) <= 30 and statistics.mean(lengths) < 5


def test_the_expert_goes_on_from_anywhere_and_changes_nothing(env: BabyAI) -> None:
    played = 0
    for n, task in enumerate(env.tasks("test")[::3]):
        rng, step = random.Random(n), env.reset(task)
        for _ in range(10):
            if step.done:
                break
            step = env.step(rng.choice(step.admissible or ()))
        if step.done:
            continue
        before = env.scene
        plan = env.oracle()
        assert plan == env.oracle() and env.scene is before
        for action in plan:
            step = env.step(action)
            assert not step.error, (task.id, action)
        assert step.success, task.id
        played += 1
    assert played > 15


def test_a_strict_mission_is_lost_by_the_wrong_door(env: BabyAI) -> None:
    env.reset(named("OpenDoorsOrderN4Debug/1234"))
    plan = env.oracle()
    env.reset(named("OpenDoorsOrderN4Debug/1234"))
    doors = [action for action in plan if "door" in action]
    for _ in range(4):
        wrong = [a for a in env.step("turn left").admissible or () if a.startswith("toggle and") and a not in doors]
        wrong = [a for a in wrong if "blue" not in a and "red" not in a]
        if wrong:
            step = env.step(wrong[0])
            assert step.done and not step.success and step.score < 1
            with pytest.raises(UserError, match="mistake"):
                env.oracle()
            return
    pytest.fail("no third door in view")
