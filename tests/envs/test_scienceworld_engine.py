from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentexp.core import CognitiveMap, Step, Task, View
from agentexp.envs.scienceworld import ScienceWorld, catalog
from agentexp.envs.scienceworld.engine import Engine, find_jar, find_java
from agentexp.errors import EngineError, MissingDependency, UserError

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module", autouse=True)
def _installed() -> None:
    pytest.importorskip("py4j", reason="needs the scienceworld extra")
    try:
        find_java(), find_jar()
    except MissingDependency as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="module")
def env() -> Iterator[ScienceWorld]:
    world = ScienceWorld()
    yield world
    world.close()


def task(name: str, variation: int = 0) -> Task:
    return Task(f"{name}/{variation}", "scienceworld", "train")


def test_the_frozen_table_is_the_engines(env: ScienceWorld) -> None:
    engine = Engine()
    try:
        assert sorted(engine.call("getTaskNames")) == sorted(catalog.BY_NAME)
        for info in catalog.TASKS:
            engine.load(info.name, 0, frozenset())
            assert engine.call("getTaskMaxVariations", info.name) == info.end
            parts = [list(engine.call(f"getVariations{part}")) for part in ("Train", "Dev", "Test")]
            assert parts == [list(info.variations(part)) for part in ("train", "dev", "test")]
    finally:
        engine.close()


def test_first_step_and_errors(env: ScienceWorld) -> None:
    step = env.reset(task("boil"))
    assert step.observation.startswith("This room is called the ") and step.goal.startswith("Your task is to boil ")
    assert step.goal not in step.observation and not (step.done or step.success or step.error) and step.admissible is None
    for text in ("", " ", "\n", "dance", "99", "x" * 5000, "é☃", "'\"\\", "\0", "(.*", "go to mars"):
        step = env.step(text)
        assert step.error and not step.done, text
    assert env.step("open door to kitchen").observation == "The door is now open."
    assert env.step("open kitchen door").error  # both wordings name the same door, which is open already
    assert env.step("go to kitchen").observation == "You move to the kitchen."
    task_text = env.step("task")
    assert "Your task is to boil" in task_text.observation and not task_text.goal


def test_both_door_names_work(env: ScienceWorld) -> None:
    for wording in ("open door to kitchen", "open kitchen door", "Open Door To Kitchen"):
        env.reset(task("boil"))
        assert not env.step(wording).error


def test_an_open_choice_takes_a_number_and_any_other_command_closes_it() -> None:
    """Case E06."""
    world = ScienceWorld(simplifications="teleportAction", admissible=True)
    try:
        first = world.reset(task("boil"))
        assert first.admissible and "reset task" not in first.admissible and "teleport to kitchen" in first.admissible
        assert not world.step("teleport to kitchen").error
        asked = world.step("focus on orange")
        assert asked.error and len(asked.info["choice"]) == 2 and asked.admissible == ("0", "1")
        assert not asked.done
        closed = world.step("look around")
        assert closed.observation.startswith("Unknown action") and closed.error and "choice" not in closed.info
        assert not world.step("look around").error
        assert world.step("reset task").error
        world.step("focus on orange")
        assert world.step("reset task").error  # not sent, and it closes the choice as any other text does
        world.step("focus on orange")
        chosen = world.step("1")
        assert chosen.observation == "You focus on the orange." and not chosen.error
        assert chosen.done and not chosen.success and chosen.score == 0.0 and chosen.info["raw_score"] == -100
        assert not world.step("look around").error  # the engine plays on, as the card says
    finally:
        world.close()


def test_reset_task_never_reaches_the_engine(env: ScienceWorld) -> None:
    env.reset(task("boil"))
    env.step("open door to kitchen")
    env.step("go to kitchen")
    assert env.step("focus on thermometer").done
    for wording in ("reset task", "Reset  Task", " reset task "):
        step = env.step(wording)
        assert step.error and step.done and step.info["raw_score"] == -100


def test_simplifications_are_what_was_asked_for() -> None:
    world = ScienceWorld(simplifications="easy,openContainers")
    try:
        step = world.reset(task("boil"))
        assert step.info["simplifications"] == sorted(catalog.SIMPLIFICATIONS)
        assert world.reset(task("power-component")).info["simplifications"] == sorted(
            set(catalog.SIMPLIFICATIONS) - {"noElectricalAction"}
        )
        with pytest.raises(EngineError, match="applied the simplifications"):
            assert world._engine is not None
            world._engine.load("boil", 0, frozenset({"easy", "openContainers"}))
        assert world.reset(task("boil")).info["simplifications"] == sorted(catalog.SIMPLIFICATIONS)
    finally:
        world.close()


def test_initial_score_may_be_positive_and_is_not_success() -> None:
    world = ScienceWorld(simplifications="easy")
    try:
        step = world.reset(task("find-animal"))
        assert 0 < step.score < 1 and not step.success
    finally:
        world.close()


def test_expert_wins_and_knows_the_rest_of_its_path_only(env: ScienceWorld) -> None:
    step = env.reset(task("find-living-thing", 3))
    before = env.step("inventory").observation
    plan = env.oracle()
    assert env.step("inventory").observation == before and env.oracle() == plan
    for i, action in enumerate(plan):
        if i == 2:
            env.step("look around")
            assert env.step("dance").error
            assert env.oracle() == plan[2:]
        step = env.step(action)
    assert step.success and step.done and step.score == 1.0 and env.oracle() == []
    started = time.perf_counter()
    env.reset(task("find-living-thing", 3))
    assert time.perf_counter() - started < 5  # a gold path in this JVM would slow every later reset
    env.step("wait1")
    with pytest.raises(UserError, match="left its path"):
        env.oracle()


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({t.name for t in catalog.TASKS} - {"mendelian-genetics-unknown-plant"}))
def test_expert_reaches_100_in_every_task(env: ScienceWorld, name: str) -> None:
    step = env.reset(task(name, catalog.BY_NAME[name].end - 1))
    for action in env.oracle():
        step = env.step(action)
        if step.done:
            break
    assert step.success, (name, step.info)


def test_object_tree(env: ScienceWorld) -> None:
    env.reset(task("boil"))
    tree = env.object_tree()
    assert tree["name"] == "universe" and any(key.startswith("kitchen-") for key in tree["contents"])


def play(
    env: ScienceWorld, item: Task, policy: str, steps: int, phase: str, chart: CognitiveMap | None = None
) -> tuple[list[tuple[str, Step]], CognitiveMap]:
    async def no_oracle() -> list[str]:
        raise AssertionError

    step, tracker, agent = env.reset(item), env.fact_tracker(), env.policy(policy, 0)
    goal, history = step.goal, list[tuple[str, Step]]()
    tracker.observe(None, step)
    for left in range(steps, 0, -1):
        action = agent.act(View(item, goal, phase, step, history, left, chart, {}, tracker, env, no_oracle, {}))
        step = env.step(action)
        tracker.observe(action, step)
        history.append((action, step))
        if step.done:
            break
    return history, tracker.map(goal)


@pytest.mark.slow
def test_a_map_saves_the_scripted_agent_steps(env: ScienceWorld) -> None:
    with_map = without = 0
    for name in ("find-animal", "find-plant", "use-thermometer", "lifespan-longest-lived"):
        item = task(name, catalog.BY_NAME[name].test)
        _, chart = play(env, item, "mapuser", 15, "mapping")
        plain, _ = play(env, item, "mapuser", 65, "acting")
        mapped, _ = play(env, item, "mapuser", 50, "acting", chart)
        assert plain[-1][1].success and mapped[-1][1].success, name
        with_map, without = with_map + len(mapped), without + len(plain)
    assert with_map < without
    _, chart = play(env, task("boil"), "curious", 100, "exploring")
    assert len(chart.spatial) > 80 and not chart.unknown  # all ten rooms were seen


# ------------------------------------------------------------------------------------------------------------ process life


def gone(pid: int, seconds: float = 10) -> bool:
    """Whether the process has ended (a zombie counts: only its parent can remove it)."""
    for _ in range(int(seconds * 20)):
        try:
            with open(f"/proc/{pid}/stat") as file:
                if file.read().rpartition(")")[2].split()[0] == "Z":
                    return True
        except FileNotFoundError:
            return True
        time.sleep(0.05)
    return False


def test_a_killed_jvm_is_an_engine_error_and_the_next_reset_starts_a_new_one() -> None:
    """Case E07."""
    world = ScienceWorld()
    try:
        world.reset(task("boil"))
        assert world._engine is not None
        os.kill(world._engine.pid, signal.SIGKILL)
        started = time.perf_counter()
        with pytest.raises(EngineError, match="JVM"):
            world.step("look around")
        assert time.perf_counter() - started < 50
        with pytest.raises(EngineError):
            world.step("look around")
        assert not world.reset(task("boil")).error
        pid = world._engine.pid
    finally:
        world.close()
        world.close()
    assert gone(pid)
    with pytest.raises(UserError):
        world.step("look around")


@pytest.mark.skipif(not os.path.isdir("/proc"), reason="looks into /proc")
def test_no_jvm_outlives_a_killed_parent() -> None:
    code = (
        "import time; from agentexp.core import Task; from agentexp.envs.scienceworld import ScienceWorld; w = ScienceWorld();"
        "w.reset(Task('boil/0', 'scienceworld', 'train')); print(w._engine.pid, flush=True); time.sleep(600)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, start_new_session=True)
    assert parent.stdout is not None
    jvm = int(parent.stdout.readline())
    assert not gone(jvm, 0.2)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    assert gone(jvm)


def test_nothing_is_left_where_the_program_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine writes a table of its object types into its working folder."""
    monkeypatch.chdir(tmp_path)
    engine = Engine()
    try:
        engine.load("boil", 0, frozenset())
        engine.object_tree()
    finally:
        engine.close()
    assert list(tmp_path.iterdir()) == []
