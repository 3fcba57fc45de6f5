"""Checkpoints of ALFWorld: counts on the official games, proof in the engine's texts."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

import pytest
from alfworld_helpers import needs_engine, needs_wheel, official
from coverage_kit import names, ordering, recite

from agentexp.capabilities import Checkpoint, HasCheckpoints
from agentexp.core import Step, Task
from agentexp.envs.alfworld import AlfWorld
from agentexp.envs.alfworld.checkpoints import HouseMatcher, checkpoints
from agentexp.envs.alfworld.goals import parse_goal
from agentexp.errors import UserError
from agentexp.metrics.ecc import Coverage

TALK = ("{}", "examine {}", "look at {}", "I see {}", "get 1 {}", "take {}", "open {}", "use {}", "there is a {} here")


@pytest.fixture(scope="module")
def env() -> Iterator[AlfWorld]:
    world = AlfWorld()
    yield world
    world.close()


def _first(env: AlfWorld, n: int) -> list[Task]:
    return env.tasks("test")[:n]


@needs_wheel
def test_the_274_official_games() -> None:
    """Measured before (design notes): mean 133.6 (46-282) = 23.2 + 35.0 + 75.4 with "all"."""
    env = AlfWorld(data=str(official()))
    counts: dict[str, list[int]] = {"all": [], "task_closure": []}
    kinds = {"location": 0, "object": 0, "affordance": 0}
    for task in env.tasks("valid_seen") + env.tasks("valid_unseen"):
        problem, goal = env.problem(task), parse_goal(str(task.spec["task"]))
        for relevance, sizes in counts.items():
            points = checkpoints(problem.init, problem.names, goal, relevance)
            sizes.append(len(points))
            for kind in kinds if relevance == "all" else ():
                kinds[kind] += len(names(points, kind))
    assert len(counts["all"]) == 274
    assert (round(statistics.mean(counts["all"]), 1), min(counts["all"]), max(counts["all"])) == (133.6, 46, 282)
    assert {kind: round(n / 274, 1) for kind, n in kinds.items()} == {"location": 23.2, "object": 35.0, "affordance": 75.4}
    assert round(statistics.mean(counts["task_closure"]), 1) == 67.1
    assert min(counts["task_closure"]) > 0


@needs_wheel
def test_the_closure_holds_what_the_plan_needs() -> None:
    env = AlfWorld(data=str(official()))
    for task in env.tasks("valid_unseen")[::7]:
        problem, goal = env.problem(task), parse_goal(str(task.spec["task"]))
        assert goal is not None
        points = checkpoints(problem.init, problem.names, goal)
        kinds_of = {name.rsplit(" ", 1)[0] for name in names(points, "location") | names(points, "object")}
        assert {goal.thing, goal.place, goal.lamp, goal.appliance} - {""} <= kinds_of
        assert names(points, "location") <= names(checkpoints(problem.init, problem.names, goal, "all"), "location")
    with pytest.raises(UserError, match="relevance=all"):
        checkpoints(problem.init, problem.names, None)
    with pytest.raises(UserError, match="task_closure or all"):
        checkpoints(problem.init, problem.names, goal, "some")


def test_what_a_step_proves() -> None:
    matcher = HouseMatcher()
    arrival = Step("You arrive at loc 8. On the desk 1, you see a mug 2, and a pen 1.")  # the old logic's words
    assert set(matcher.observe("go to desk 1", arrival)) == {
        Checkpoint("location", "desk 1"),
        Checkpoint("object", "mug 2"),
        Checkpoint("object", "pen 1"),
    }
    taken = set(matcher.observe("take mug 2 from desk 1", Step("You pick up the mug 2 from the desk 1.")))
    assert taken == {Checkpoint("affordance", "take mug 2"), Checkpoint("affordance", "take mug")}
    assert Checkpoint("affordance", "put desk") in matcher.observe(
        "put mug 2 in/on desk 1", Step("You put the mug 2 in/on the desk 1.")
    )
    assert not matcher.observe("go to desk 1", Step("Nothing happens.", error=True))
    assert not matcher.observe("I am at desk 1 and see a mug 2", Step("On the desk 1, you see a mug 2."))
    assert not matcher.observe(None, arrival)


@pytest.mark.engine
@needs_engine
@needs_wheel
def test_the_worker_agrees_with_the_problem(env: AlfWorld) -> None:
    assert isinstance(env, HasCheckpoints)
    for task in _first(env, 3):
        env.reset(task)
        problem = env.problem(task)
        for relevance in ("all", "task_closure"):
            assert env.checkpoints(relevance) == checkpoints(
                problem.init, problem.names, parse_goal(str(task.spec["task"])), relevance
            )


@pytest.mark.engine
@needs_engine
@needs_wheel
@pytest.mark.slow
def test_reciting_every_name_scores_0(env: AlfWorld) -> None:
    for relevance in ("all", "task_closure"):
        assert recite(env, _first(env, 1)[0], TALK, relevance).covered == 0


@pytest.mark.engine
@needs_engine
@needs_wheel
@pytest.mark.slow
def test_systematic_beats_random_beats_repetitive(env: AlfWorld) -> None:
    for difference in ordering(env, _first(env, 6), 40):
        assert difference.low > 0


@pytest.mark.engine
@needs_engine
@needs_wheel
def test_the_experts_path_is_covered(env: AlfWorld) -> None:
    task = _first(env, 1)[0]
    env.reset(task)
    coverage = Coverage(env.checkpoints("task_closure"), env.checkpoint_matcher())
    for t, action in enumerate(env.oracle(), start=1):
        new = coverage.observe(t, action, env.step(action))
        if action.startswith("go to "):
            assert Checkpoint("location", action.removeprefix("go to ")) in new
    assert coverage.result().covered >= 4
