"""Hidden preconditions: the actor that needs to be told, the thinker that finds out, and the progress rate."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from alfworld_helpers import needs_engine, needs_wheel, play

from agentexp.core import CognitiveMap, Episode, Step, Task, View
from agentexp.envs.alfworld import AlfWorld
from agentexp.envs.alfworld.facts import HouseFacts
from agentexp.envs.alfworld.goals import KINDS, parse_goal
from agentexp.envs.alfworld.progress import Progress, subgoals
from agentexp.envs.alfworld.rule_agents import RULE, RuleFinder
from agentexp.models.scripted import ScriptedModel
from agentexp.paradigms.ttexplore import TTExplore
from agentexp.reports.spec import load_spec
from agentexp.rollout import Budget, Limits, run_episode

START = "You are in the middle of a room. Looking quickly around you, you see a bed 1, a desk 1, and a drawer 1."
TOLD = "Rule: drawer 1 takes nothing until something was taken out of it."
NOTHING = Step("Nothing happens.", error=True)


def told(history: Sequence[tuple[str, Step]]) -> str:
    """What the thinker says of a history."""
    tracker = HouseFacts()
    tracker.observe(None, Step(START))
    for action, step in history:
        tracker.observe(action, step)

    async def no_oracle() -> list[str]:
        raise AssertionError("a thinker never asks the oracle")

    view = View(
        Task("g", "alfworld", "test"), "put a mug in drawer.", "acting", history[-1][1], history, 9, None, {}, tracker,
        AlfWorld(), no_oracle, {},
    )  # fmt: skip
    return RuleFinder(0, "new").think(view)


BEFORE = [
    ("go to desk 1", Step("You arrive at desk 1. On the desk 1, you see a mug 1.")),
    ("take mug 1 from desk 1", Step("You pick up the mug 1 from the desk 1.")),
    ("go to drawer 1", Step("You arrive at drawer 1. The drawer 1 is open. In it, you see a pen 1.")),
]
PUT = ("move mug 1 to drawer 1", NOTHING)


def test_the_thinker_finds_the_rule_in_an_unexplained_refusal() -> None:
    text = told([*BEFORE, PUT])
    assert "Possible rule: drawer 1 takes nothing until something was taken out of it; it held pen 1." in text
    plan = text.split("Next:\n")[1].splitlines()[:-1]
    assert plan == [
        *("go to desk 1", "move mug 1 to desk 1", "go to drawer 1", "take pen 1 from drawer 1", "go to desk 1"),
        *("move pen 1 to desk 1", "take mug 1 from desk 1", "go to drawer 1", "move mug 1 to drawer 1"),
    ]
    text = told([*BEFORE, ("put mug 1 in/on drawer 1", NOTHING), PUT])
    assert "\nRule: " in text and "Steps 4, 5" in text and "not the wording: both were refused" in text


def test_the_rule_is_kept_and_confirmed_once_room_was_made() -> None:
    taken = ("take pen 1 from drawer 1", Step("You pick up the pen 1 from the drawer 1."))
    away = ("move mug 1 to desk 1", Step("You move the mug 1 to the desk 1."))
    again = ("take mug 1 from desk 1", Step("You pick up the mug 1 from the desk 1."))
    done = ("move mug 1 to drawer 1", Step("You move the mug 1 to the drawer 1."))
    go = [("go to desk 1", Step("You arrive at desk 1.")), ("go to drawer 1", Step("You arrive at drawer 1."))]
    text = told([*BEFORE, PUT, go[0], away, go[1], taken, go[0], again, go[1], done])
    assert RULE.search(text) and "Confirmed: after pen 1 was taken out, step 12" in text and "Next:" not in text


@pytest.mark.parametrize(
    ("history", "why"),
    [
        ([*BEFORE[:1], ("move mug 1 to desk 1", NOTHING)], "mug 1 was not carried"),
        ([*BEFORE[:2], PUT], "the agent was not at drawer 1"),
        ([*BEFORE[:2], ("take pen 2 from desk 1", NOTHING)], "mug 1 was carried and only one thing can be"),
        (
            [*BEFORE[:2], ("go to drawer 1", Step("You arrive at drawer 1. The drawer 1 is closed.")), PUT],
            "drawer 1 was closed",
        ),
    ],
)
def test_refusals_with_a_plain_reason_are_no_rule(history: Any, why: str) -> None:
    text = told(history)
    assert why in text and not RULE.search(text)


def test_nothing_is_found_where_nothing_is_surprising_or_the_place_is_empty() -> None:
    text = told(BEFORE)
    assert "fits what one would expect" in text and "mug 1 is carried" in text and not RULE.search(text)
    empty = ("go to drawer 1", Step("You arrive at drawer 1. The drawer 1 is open. In it, you see nothing."))
    assert not RULE.search(told([*BEFORE[:2], empty, PUT]))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (TOLD, True),
        ("You must remove an object from the drawer first.", True),
        ("Make room in it.", True),
        ("The shelf is full.", True),
        ("The receptacle may be occupied; clear it first.", True),
        ("take pen 1 from drawer 1", False),
        ("Every reply of the environment fits what one would expect.", False),
        ("Only one thing can be carried at a time.", False),
    ],
)
def test_how_the_rule_is_said(text: str, says: bool) -> None:
    assert bool(RULE.search(text)) is says


def test_the_table_looks_for_the_same_words() -> None:
    spec = load_spec("ttx-table6")
    at = {
        c.at
        for panel in spec.panels
        if panel.columns
        for c in panel.columns.entries
        if c.metric.startswith(("rule", "success_"))
    }
    assert at == {f"^(?:move|put)\\b => {RULE.pattern}"}


# ---------------------------------------------------------------------------------------------------------------- played


def episodes(variant: str, every: int, thinker: str, numbers: Sequence[int]) -> list[Episode]:
    """Games of the follower under TTExplore on the real engine."""
    env = AlfWorld(variant=variant)  # type: ignore[arg-type]
    world = _InProcess(env)

    @asynccontextmanager
    async def lease() -> AsyncIterator[Any]:
        yield world

    models = {"actor": ScriptedModel("follower"), "thinker": ScriptedModel(thinker)}
    tasks = env.tasks("test")
    limits, budget = Limits(attempts=1), Budget(0, 30)
    found = [asyncio.run(run_episode(tasks[i], env, lease, models, TTExplore(every=every), budget, limits)) for i in numbers]
    env.close()
    assert all(episode.status == "ok" for episode in found), [episode.error for episode in found]
    return found


class _InProcess:
    def __init__(self, env: AlfWorld) -> None:
        self.env = env

    async def reset(self, task: Task) -> Step:
        return self.env.reset(task)

    async def step(self, action: str) -> Step:
        return self.env.step(action)

    async def call(self, method: str, *args: Any) -> Any:
        return getattr(self.env, method)(*args)


HIDDEN = (0, 8, 9)  # games whose goal's receptacles are occupied in variant precondition


@needs_engine
@pytest.mark.engine
def test_the_follower_fails_until_it_is_told() -> None:
    for number in HIDDEN[:2]:
        env = AlfWorld(variant="precondition")
        task = env.tasks("test")[number]
        untold, _ = play(env, task, "follower", 30)
        assert not untold[-1][1].success
        known, _ = play(env, task, "follower", 30, knowledge={"guidance": [TOLD]})
        assert known[-1][1].success
        env.close()


@needs_engine
@pytest.mark.engine
def test_thinking_helps_where_there_is_a_rule_and_changes_nothing_where_there_is_none() -> None:
    alone, thought = (episodes("precondition", every, "rulefinder", HIDDEN) for every in (0, 3))
    assert [e.success for e in alone] == [False] * 3 and [e.success for e in thought] == [True] * 3
    without = [[(s.action, s.observation) for s in e.trajectory] for e in episodes("none", 0, "rulefinder", (0, 3))]
    assert without == [[(s.action, s.observation) for s in e.trajectory] for e in episodes("none", 1, "rulefinder", (0, 3))]


@needs_engine
@pytest.mark.engine
def test_a_thinker_that_finds_no_rule_does_not_help() -> None:
    assert not any(e.success for e in episodes("precondition", 3, "follower", HIDDEN[:1]))


# -------------------------------------------------------------------------------------------------------------- progress


def test_every_task_type_has_its_subgoals() -> None:
    goals = {
        "put a mug in drawer": 2,
        "look at mug under the desklamp": 3,
        "clean some mug and put it in drawer": 3,
        "heat some mug and put it in drawer": 3,
        "cool some mug and put it in drawer": 3,
        "find two mug and put them in drawer": 3,
    }
    parsed = [parse_goal(goal) for goal in goals]
    assert {goal.kind for goal in parsed if goal} == set(KINDS)
    assert [len(subgoals(goal)) for goal in parsed if goal] == list(goals.values())


def test_progress_counts_hits_and_never_falls() -> None:
    progress = Progress(parse_goal("heat some mug and put it in drawer"))
    said = [
        START,
        "On the desk 1, you see a cup 1.",
        "In it, you see a pen 1, and a mug 2.",
        "You pick up the mug 2 from the desk 1.",
    ]
    rates = [progress.observe(text, False) for text in said]
    assert rates == [0.0, 0.0, 0.25, 0.5]
    assert progress.observe("You heat the cup 1 using the microwave 1.", False) == 0.5
    assert progress.observe("You heat the mug 2 using the microwave 1.", False) == 0.75
    assert progress.observe("Nothing happens.", False) == 0.75 and progress.observe("You move it.", True) == 1.0
    assert Progress(None).observe("On the desk 1, you see a mug 1.", False) == 0.0 and Progress(None).observe("", True) == 1.0


@needs_wheel
@needs_engine
@pytest.mark.engine
@pytest.mark.parametrize("logic", ["new", "old"])
def test_the_experts_games_meet_every_subgoal_in_turn(logic: Any) -> None:
    env = AlfWorld(logic=logic)
    for task in env.tasks("test")[:6]:
        rates = [env.reset(task).score]
        rates += [env.step(action).score for action in env.oracle()]
        goal = parse_goal(str(task.spec["task"]))
        assert goal is not None and rates == sorted(rates) and rates[-1] == 1.0
        assert rates[-2] == pytest.approx(len(subgoals(goal)) / (len(subgoals(goal)) + 1)), task.kind
    env.close()


def test_a_map_is_no_guidance() -> None:
    assert not RULE.search(str(CognitiveMap(spatial=[{"thing": "pen 1", "relation": "in", "place": "drawer 1"}])))
