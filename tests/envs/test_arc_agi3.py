"""ARC-AGI-3 as a world: what counts, what is refused, how levels and plays end; facts, agents, coverage, maps."""

import asyncio
import random
from dataclasses import replace

import pytest
from coverage_kit import explore, recite, scripted

from agentexp.capabilities import HasAlignment, HasCheckpoints, HasFacts, HasOracle, HasPolicies, HasQuestions
from agentexp.core import Episode, Step, View
from agentexp.envs.arc_agi3 import ArcAgi3, views
from agentexp.envs.check import check_env
from agentexp.envs.goal_free import GoalFree
from agentexp.errors import UserError
from agentexp.limits import Budget
from agentexp.metrics.arc import PROGRESS, rhae
from agentexp.models.openai_wire import parts
from agentexp.models.scripted import ScriptedModel
from agentexp.paradigms.react import ReAct
from agentexp.rollout import run_episode

pytest.importorskip("arcengine", reason="needs arcengine")
pytestmark = pytest.mark.engine


def task(name, split="test", world=None):
    return next(t for t in (world or ArcAgi3()).tasks(split) if t.id == name)


def started(name="kd01", **settings):
    world = ArcAgi3(**settings)
    return world, world.reset(task(name))


def test_the_contract():
    found = check_env(ArcAgi3(), n_tasks=2, steps=12)
    assert not [str(finding) for finding in found if finding.level != "ok"]


def test_everything_is_offered():
    world = ArcAgi3()
    for capability in (HasOracle, HasFacts, HasPolicies, HasCheckpoints, HasQuestions, HasAlignment):
        assert isinstance(world, capability)
    assert {split: len(world.tasks(split)) for split in world.splits()} == {"train": 9, "dev": 3, "test": 6}


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"source": "web"}, "own, folder or online"),
        ({"source": "folder"}, "env.games=FOLDER"),
        ({"view": "ascii"}, "env.view=ascii"),
        ({"cutoff": 0.0}, "env.cutoff"),
        ({"picture_scale": 0}, "env.picture_scale"),
    ],
)
def test_wrong_settings(settings, text):
    with pytest.raises(UserError, match=text):
        ArcAgi3(**settings)


# ------------------------------------------------------------------------------------------------------ actions and levels


def test_refused_actions_count_nothing():
    world, _ = started()
    for action in ("flumph", "ACTION5", "ACTION6 3 3", ""):
        step = world.step(action)
        assert step.error and step.info[PROGRESS]["plays"] == [{"used": [0, 0, 0, 0], "completed": 0}]


def test_actions_without_effect_and_resets_count():
    world, _ = started()
    step = world.step("ACTION1")  # a wall
    assert not step.error and "Nothing" not in step.observation  # the counter moved
    assert step.info[PROGRESS]["plays"][0]["used"] == [1, 0, 0, 0]
    step = world.step("RESET")
    assert step.info[PROGRESS]["plays"] == [{"used": [2, 0, 0, 0], "completed": 0}]


def test_two_resets_begin_a_new_play_and_the_best_play_counts():
    world, _ = started()
    plan = world.oracle()
    for action in plan[:10]:
        step = world.step(action)
    assert step.score == 0.25 and "Level 1 is completed." in step.observation and "Level 2 of 4." in step.observation
    step = world.step("RESET")  # no action since the level began: the engine starts the whole game again
    assert "Level 1 of 4." in step.observation
    assert step.score == 0.25
    assert step.info[PROGRESS]["plays"] == [{"used": [10, 0, 0, 0], "completed": 1}, {"used": [0] * 4, "completed": 0}]
    step = world.step("ACTION4")
    assert step.score == 0.25 and rhae(step.info[PROGRESS]) == pytest.approx(10.0)  # 1 of 10 weights, capped
    for action in world.oracle():
        step = world.step(action)
    assert step.success and rhae(step.info[PROGRESS]) == 100.0


def test_game_over_loses_no_level():
    world, _ = started("hz01")
    for action in world.oracle()[:13]:
        step = world.step(action)
    assert step.score == pytest.approx(1 / 3)
    rng = random.Random(0)
    while "GAME OVER" not in step.observation:
        step = world.step(rng.choice(step.admissible))
    assert not step.done and step.admissible == ("RESET",)
    used = step.info[PROGRESS]["plays"][0]["used"]
    step = world.step("ACTION1")
    assert step.error and step.score == pytest.approx(1 / 3)
    assert step.info[PROGRESS]["plays"][0] == {"used": used, "completed": 1}
    step = world.step("RESET")
    assert "Level 2 of 3." in step.observation and step.score == pytest.approx(1 / 3)


def test_a_level_may_take_so_many_actions():
    world, step = started("gv01", cutoff=2.0, allowance=3)
    n = 0
    while not step.done:
        step = world.step("ACTION1" if "RESET" not in step.admissible else "RESET")
        n += 1
    assert n == 2 * 7 + 3 and not step.success and "used up" in step.observation
    assert not world.step("ACTION2").error  # goal-free exploration goes on
    assert task("gv01").spec["acting_steps"] == 5 * (7 + 13 + 15 + 19)
    assert "acting_steps" not in task("gv01", world=ArcAgi3(cutoff=None)).spec


def test_the_budget_of_a_task():
    budget = Budget(30, 10_000)
    assert budget.of(task("gv01")) == Budget(30, 270)
    assert Budget(30, 5).of(task("gv01")) == Budget(30, 5)
    assert budget.of(task("gv01", world=ArcAgi3(cutoff=None))) == budget


def test_an_episode_ends_with_the_tasks_budget():
    world = ArcAgi3()

    class Leased:
        async def reset(self, task):
            return world.reset(task)

        async def step(self, action):
            return world.step(action)

        async def call(self, method, *args):
            return getattr(world, method)(*args)

        async def __aenter__(self):
            return self

        async def __aexit__(self, *args):
            pass

    small = replace(task("lt01"), spec={**task("lt01").spec, "acting_steps": 4})
    run = run_episode(small, world, Leased, {"actor": ScriptedModel("repetitive")}, ReAct(), Budget(0, 10_000))
    episode: Episode = asyncio.run(run)
    assert (episode.status, episode.steps, episode.end_reason) == ("ok", 4, "step_limit"), episode.error


def test_animations_are_counted_and_lists_are_bounded():
    world, step = started("gv01")
    step = world.step("ACTION4")
    assert step.info["frames"] == 6 and "The change took 6 frames" in step.observation
    _, step = started("cm01")
    assert step.admissible[0] == "ACTION5" and len(step.admissible) == 1 + 6
    for action in step.admissible:
        world, _ = started("cm01")
        assert not world.step(action).error


# ------------------------------------------------------------------------------------------------------------------- texts


def test_all_text_views_tell_the_same_facts():
    """Also the picture alone: what changes is read from it."""
    known = {}
    for view in ("full", "diff", "picture", "both"):
        world, step = started("kd01", view=view)
        tracker, rng = world.fact_tracker(), random.Random(1)
        tracker.observe(None, step)
        for _ in range(25):
            action = rng.choice(step.admissible)
            step = world.step(action)
            tracker.observe(action, step)
        known[view] = tracker.facts(), tracker.map("x"), tracker.place()
    assert known["full"] == known["diff"] == known["picture"] == known["both"]
    assert len(known["full"][0]) > 10


def test_pictures_are_sent_as_pictures():
    _, step = started("kd01", view="picture")
    text, picture = parts(step.observation)
    assert text["type"] == "text" and "Level 1 of 4." in text["text"] and "base64" not in text["text"]
    assert picture["image_url"]["url"].startswith("data:image/png;base64,")
    assert len(step.observation) < 4000
    assert parts("plain [text](https://example.org)") == "plain [text](https://example.org)"


def test_facts_of_a_short_walk():
    world, step = started("kd01")
    tracker = world.fact_tracker()
    tracker.observe(None, step)
    for action in ("ACTION4", "ACTION1", "ACTION2"):
        tracker.observe(action, world.step(action))
    facts = {(fact.kind, fact.subject) for fact in tracker.facts()}
    assert ("effect", ("ACTION4", "9 4x4 moves right 4")) in facts
    assert ("effect", ("ACTION2", "9 4x4 moves down 4")) in facts
    assert ("blocked", ("ACTION1", "")) in facts
    assert ("counter", ("bottom",)) in facts
    assert ("level", ("1",)) in facts
    chart = tracker.map("")
    assert {"thing": "9 4x4", "relation": "at", "place": "x18-21 y24-27"} in chart.spatial  # where it was at reset
    assert "the effect of ACTION3" in chart.unknown
    world.reset(task("kd01"))
    alignment = world.align(chart)
    assert not alignment.wrong and alignment.right > 10 and alignment.found == alignment.places


def test_masks_hold_no_places():
    world, _ = started("kd01")
    tracker = world.fact_tracker()
    right, down = world.step("ACTION4").observation, world.step("ACTION2").observation
    assert tracker.mask(right) == tracker.mask(down)
    assert not any(char.isdigit() for char in tracker.mask(right))


def test_questions_are_answered_by_a_map_of_the_game():
    world, step = started("kd01")
    tracker = world.fact_tracker()
    tracker.observe(None, step)
    asked = world.questions(0)
    assert asked == world.questions(0) != world.questions(1)
    assert {question.category for question in asked} == {"object_location", "affordance", "negative", "task_reasoning"}
    for action in world.oracle()[:10]:
        tracker.observe(action, world.step(action))
    known = tracker.map("")
    given = [(question, world.look_up(question, known)) for question in asked]
    assert not [q.text for q, said in given if said not in (*q.answers, "unknown")]
    assert sum(said in q.answers for q, said in given) > len(given) * 0.8


# ------------------------------------------------------------------------------------------------------------------ agents


def test_scripted_agents_are_deterministic():
    world = ArcAgi3()
    with pytest.raises(UserError, match="curious, mapuser"):
        world.policy("clever", 0)
    for name in ("curious", "mapuser", "myopic", "random", "repetitive", "systematic"):
        walks = []
        for _ in range(2):
            step, policy, history = world.reset(task("cm01")), world.policy(name, 3), []
            for t in range(12):
                view = View(task("cm01"), "", "exploring", step, history, 12 - t, None, {}, None, world, None, {})
                action = policy.act(view)
                step = world.step(action)
                assert not step.error
                history.append((action, step))
            walks.append([action for action, _ in history])
        assert walks[0] == walks[1]


def test_a_map_saves_the_walker_actions():
    """With a map the agent walks at once; without, it first has to try its actions."""

    def moves(known):
        step, policy, history = world.reset(task("kd01")), world.policy("mapuser", 0), []
        while not step.done and step.score < 0.25:
            view = View(task("kd01"), step.goal or "g", "acting", step, history, 9, known, {}, None, world, None, {})
            action = policy.act(view)
            step = world.step(action)
            history.append((action, step))
        return len(history)

    world = ArcAgi3()
    tracker = world.fact_tracker()
    step = world.reset(task("kd01"))
    tracker.observe(None, step)
    for action in ("ACTION1", "ACTION4", "ACTION4", "ACTION4", "ACTION2", "ACTION3", "ACTION1"):
        tracker.observe(action, world.step(action))
    assert moves(tracker.map("")) < moves(None)


@pytest.mark.slow
def test_systematic_explorers_cover_more_than_random_ones_and_these_more_than_repetitive_ones():
    world, steps = ArcAgi3(), 60

    def mean(name):
        values = [explore(world, t, scripted(name), steps).value for t in world.tasks("test")]
        return sum(values) / len(values)

    assert mean("systematic") > mean("random") > mean("repetitive")


# ---------------------------------------------------------------------------------------------------------------- coverage


@pytest.mark.parametrize("name", ["kd01", "cm01"])
def test_reciting_proves_nothing(name):
    ecc = recite(ArcAgi3(), task(name), ["{}", "look at {}"], relevance="task_closure")
    assert ecc.total > 50 and ecc.covered == 0


@pytest.mark.parametrize("name", ["px01", "gv01"])
def test_the_expert_proves_its_way(name):
    world = ArcAgi3()
    step = world.reset(task(name))
    points, matcher, found = set(world.checkpoints()), world.checkpoint_matcher(), set()
    assert {"location", "object", "affordance"} == {point.kind for point in points}
    matcher.observe(None, step)
    for action in world.oracle():
        found |= matcher.observe(action, world.step(action))
    assert {c for c in found if c.kind == "affordance"} <= points
    assert len(found & points) > 20
    with pytest.raises(UserError, match="relevance"):
        world.checkpoints("some")


def test_goal_free_sessions_go_on_after_a_win():
    world = ArcAgi3()

    class Leased:
        async def reset(self, task):
            return world.reset(task)

        async def step(self, action):
            return world.step(action)

        async def call(self, method, *args):
            return getattr(world, method)(*args)

    async def session():
        free = GoalFree(Leased(), world)
        steps = [await free.reset(task("gv01"))]
        plan = world.oracle()
        steps += [await free.step(action) for action in (*plan, "ACTION1", "RESET", "ACTION4")]
        return free, steps

    free, steps = asyncio.run(session())
    assert all(not s.done and not s.success and not s.score and not s.goal and PROGRESS not in s.info for s in steps)
    assert [ending.went_on for ending in free.events] == ["on"]
    assert steps[-3].error and not steps[-2].error and "Level 1 of 4." in steps[-2].observation


def test_reader_survives_any_text():
    tracker = ArcAgi3().fact_tracker()
    for text in (
        "",
        "0-63: 5*64",
        "0-63: 5*9999",
        "Level 1 of x.",
        "0-99: 5*64",
        "![frame](data:image/png;base64,AAAA)",
        views.SAME,
    ):
        tracker.observe("ACTION1", Step(text))
    assert tracker.facts() == []
