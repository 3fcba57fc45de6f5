"""Our z-machine stories on the real emulator: goals, scores, expert, valid actions, and what an agent may not do."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentexp.capabilities import HasAlignment, HasCheckpoints, HasFacts, HasOracle, HasPolicies, HasQuestions
from agentexp.core import Env, Step, Task
from agentexp.envs.jericho import Jericho
from agentexp.envs.jericho.build import LIBRARY, comparable, compile_story
from agentexp.envs.jericho.engine import Engine
from agentexp.envs.jericho.expert import solve
from agentexp.envs.jericho.plans import PLANS
from agentexp.envs.jericho.stories import STORIES, Story, variants
from agentexp.errors import EngineError, UserError

pytest.importorskip("jericho", reason="needs the jericho extra")
pytestmark = pytest.mark.engine
GAMES = os.environ.get("AGENTEXP_JERICHO_GAMES", "")
needs_games = pytest.mark.skipif(not GAMES, reason="AGENTEXP_JERICHO_GAMES names no folder with story files")


@pytest.fixture(scope="module")
def env() -> Iterator[Jericho]:
    world = Jericho()
    yield world
    world.close()


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    machine = Engine()
    yield machine
    machine.close()


def _task(ident: str) -> Task:
    return Task(ident, "jericho", "test")


# ------------------------------------------------------------------------------------------------------------- the stories


def test_sizes_and_splits_by_story() -> None:
    env = Jericho()
    kinds = {split: {task.kind for task in env.tasks(split)} for split in env.splits()}
    assert {split: len(env.tasks(split)) for split in env.splits()} == {"train": 24, "dev": 10, "test": 20}
    assert len(kinds["test"]) == 7 and not kinds["test"] & (kinds["train"] | kinds["dev"]) and not kinds["train"] & kinds["dev"]
    assert len({task.kind for task in env.tasks("test")[:7]}) == 7  # a short prefix covers all stories
    with pytest.raises(UserError, match="train, dev, test"):
        env.tasks("validation")


def test_it_is_an_env_with_everything() -> None:
    env = Jericho()
    for protocol in (Env, HasOracle, HasFacts, HasPolicies, HasCheckpoints, HasQuestions, HasAlignment):
        assert isinstance(env, protocol)


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_every_game_is_won_with_full_score(engine: Engine, story: Story) -> None:
    """Full score by the story's own words on a bare FrotzEnv, within AgentBoard's 30 actions; the games differ."""
    from jericho import FrotzEnv

    engine.load(story.file, ours=True)
    bare = FrotzEnv(str(story.file), seed=1)
    worlds = set()
    for variant in variants(story):
        engine.begin(variant)
        worlds.add(engine.memory().objects())
        plan = solve(engine, PLANS[story.name])
        assert len(plan) <= 30
        bare.reset()
        bare.step(f"tw-seed {variant}")
        text = ""
        for action in plan:
            assert not bare.victory()
            text = bare.step(action)[0]
        assert bare.victory() and not bare.game_over()
        top = bare.get_max_score()
        assert f"you scored {top} out of a possible {top}" in text
    assert len(worlds) == len(variants(story))


@pytest.mark.skipif(shutil.which("inform6") is None or not LIBRARY.is_dir(), reason="needs Debian's inform6 and its library")
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_the_committed_file_is_what_its_source_gives(story: Story, tmp_path: Path) -> None:
    made = tmp_path / story.file.name
    compile_story(story, made)
    assert comparable(made) == comparable(story.file)


def test_memory_agrees_with_jericho(engine: Engine) -> None:
    """Parents and the 32 attributes that jericho knows, of all objects, before and after some moves."""
    from jericho import FrotzEnv

    story = next(story for story in STORIES if story.name == "cottage")
    engine.load(story.file, ours=True)
    bare = FrotzEnv(str(story.file), seed=1)
    bare.reset()
    engine.begin()
    for action in ("look", "north", "open pot", "east", "take all", "open toolbox"):
        bare.step(action)
        engine.send(action)
        memory = engine.memory()
        for thing in bare.get_world_objects()[1 : memory.count + 1]:
            assert memory.parent(thing.num) == thing.parent
            read = [memory._ram[memory._entry(thing.num) + i // 8] >> (7 - i % 8) & 1 for i in range(32)]
            assert read == list(thing.attr)


# ------------------------------------------------------------------------------------------------------------------ playing


def test_score_is_monotone_and_1_only_with_success(env: Jericho) -> None:
    rng = random.Random(3)
    for task in env.tasks("test")[:7]:
        step, last = env.reset(task), 0.0
        assert step.goal and step.goal not in step.observation and not step.error
        for _ in range(25):
            if step.done:
                break
            assert step.admissible
            step = env.step(rng.choice(step.admissible))
            assert last <= step.score <= 1.0 and (step.score == 1.0) == step.success
            assert step.goal == ""
            last = step.score


def test_a_wrong_valve_loses(env: Jericho) -> None:
    env.reset(_task("submarine/0"))
    right = next(action for action in env.oracle() if action.startswith("turn "))
    wrong = next(a for a in ("turn red valve", "turn yellow valve", "turn white valve") if a != right)
    env.step("south")
    step = env.step(wrong)
    assert step.done and not step.success and not step.error and step.admissible == ()
    assert step.observation.endswith("*** You lost! ***")
    after = env.step("look")
    assert after.done and after.error and not after.success and env.oracle() == []


def test_listed_actions_work_and_change_nothing_by_being_listed(env: Jericho) -> None:
    for task in env.tasks("test")[:7]:
        listed = env.reset(task).admissible
        assert listed and listed == env.reset(task).admissible
        for action in listed:
            start = env.reset(task)
            step = env.step(action)
            assert not step.error, (task.id, action, step.observation)
            assert action.startswith(("look", "inventory", "examine", "talk")) or step.observation != start.observation


def test_refusals_are_errors(env: Jericho) -> None:
    env.reset(_task("cottage/0"))
    for action in ("flumph the quuxwort", "", "take cupboard", "south", "open sky", "take lane", "eat", "unlock gate with key"):
        assert env.step(action).error, action
    for action in ("look", "north", "examine clay pot", "inventory", "east"):
        assert not env.step(action).error, action


@pytest.mark.parametrize(
    "command",
    ["save", "restore", "undo", "quit", "q", "restart", "tw-seed 4", "TW-PRINT layout", " script on", "verify", "version"],
)
def test_commands_about_the_run_never_reach_the_story(env: Jericho, command: str) -> None:
    env.reset(_task("cottage/1"))
    env.step("north")
    step = env.step(command)
    assert step.error and not step.done
    assert "Front Garden" in env.step("look").observation


def test_only_the_first_sentence_counts(env: Jericho) -> None:
    env.reset(_task("cottage/1"))
    for action in ("north. tw-seed 5", "look\nquit", "look then south", "look; restart"):
        step = env.step(action)
        assert "Front Garden" in step.observation, action


def test_equal_actions_give_equal_answers(env: Jericho) -> None:
    def play(world: Jericho) -> list[Step]:
        rng, steps = random.Random(7), [world.reset(_task("museum/2"))]
        for _ in range(15):
            steps.append(world.step(rng.choice(steps[-1].admissible or ("look",))))
        return steps

    other = Jericho()
    other.reset(_task("abbey/0"))
    assert play(env) == play(other) == play(env)
    other.close()


# ------------------------------------------------------------------------------------------------------------------- expert


def test_the_expert_wins_from_where_chance_has_led(env: Jericho) -> None:
    """After 10 random actions; where it cannot, it says so and changes nothing."""
    rng, won, asked = random.Random(5), 0, 0
    for task in env.tasks("test")[1:7] + env.tasks("dev")[:1]:
        step = env.reset(task)
        for _ in range(10):
            step = env.step(rng.choice(step.admissible or ("look",)))
        if step.done:
            continue
        asked += 1
        before = env.scene().memory.objects()
        try:
            plan = env.oracle()
        except EngineError as error:
            assert "knows no way" in str(error)
            continue
        finally:
            assert env.scene().memory.objects() == before
        for action in plan:
            step = env.step(action)
        won += step.success
    assert asked >= 5 and won >= asked - 1


def test_the_expert_says_when_nothing_can_be_done(env: Jericho) -> None:
    """A candle left burning nowhere: the light is put out and lost in the dark."""
    env.reset(_task("mine/0"))
    for action in env.oracle():
        env.step(action)
        if "lit" in action or action == "switch on carbide lamp":
            break
    while env.scene().name(env.scene().here) != "Tunnel":
        env.step({"Mine Yard": "north", "Assay Office": "west", "Tool Shed": "east"}[env.scene().name(env.scene().here)])
    env.step("drop all")
    env.step("switch off carbide lamp")
    with pytest.raises(EngineError, match="knows no way to win"):
        env.oracle()


# --------------------------------------------------------------------------------------------------------- the user's files


def test_a_folder_of_the_users(tmp_path: Path) -> None:
    story = STORIES[0]
    shutil.copy(story.file, tmp_path / "zork1.z5")  # an edition that jericho does not know
    shutil.copy(story.file, tmp_path / "tw-mine.z5")  # a TextWorld game, as far as jericho can tell
    with pytest.raises(UserError, match="19 of AgentBoard's 20"):
        Jericho(games=str(tmp_path)).tasks("test")
    world = Jericho(games=str(tmp_path), allow_partial=True)
    assert [task.id for task in world.tasks("test")] == ["zork1"]
    assert [task.id for task in world.tasks("all")] == ["tw-mine", "zork1"]
    with pytest.raises(UserError, match="another edition"):
        world.reset(world.tasks("test")[0])
    step = world.reset(world.tasks("all")[0])
    assert "10 points" in step.goal and step.admissible and {"north", "look"} <= set(step.admissible)
    step = world.step("north")
    assert step.info["place"] == "Front Garden" and not step.error
    assert any(action.startswith("take ") for action in step.admissible or ())
    assert world.step("flumph").error
    with pytest.raises(UserError, match="no walkthrough"):
        world.oracle()
    with pytest.raises(UserError, match=r"env\.games"):
        world.checkpoints()
    world.close()
    with pytest.raises(UserError, match="not a folder"):
        Jericho(games=str(tmp_path / "none")).tasks("all")


@needs_games
@pytest.mark.slow
def test_walkthroughs_of_the_users_files_lead_to_full_score() -> None:
    world = Jericho(games=GAMES, admissible=False, allow_partial=True)
    for task in world.tasks("all"):
        try:
            step = world.reset(task)
            plan = world.oracle()
        except UserError as unknown:
            assert "another edition" in str(unknown) or "walkthrough" in str(unknown)
            continue
        best = 0
        for action in plan:
            step = world.step(action)
            best = max(best, step.info["raw_score"])
            if step.done:
                break
        assert step.success or best >= world._running().max_score
    world.close()
