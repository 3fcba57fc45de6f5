"""What is read from BabyAI's texts (facts, maps, checkpoints, questions) and the scripted agents that act on it."""

from __future__ import annotations

import asyncio
import random
import statistics
from typing import Any

import pytest
from coverage_kit import explore, names, ordering, recite
from questions_kit import judged, pool, seen, survey, wrong
from test_goal_free import InProcess, assert_hidden

from agentexp.capabilities import Checkpoint, HasAlignment, HasCheckpoints, HasFacts, HasPolicies, HasQuestions
from agentexp.core import CognitiveMap, Fact, Step, Task, View
from agentexp.envs.babyai import BabyAI, levels
from agentexp.envs.babyai.frame import Frame, Pose, Room, beside, read_info, read_spot, spot_text
from agentexp.envs.babyai.mission import parse_goal
from agentexp.envs.babyai.reader import Follower, describe
from agentexp.envs.goal_free import GoalFree
from agentexp.errors import UserError
from agentexp.metrics.ecc import Coverage
from agentexp.metrics.map_qa import CATEGORIES, grade

pytest.importorskip("minigrid", reason="needs the babyai extra")
TALK = ("{}", "examine {}", "go to {}", "pickup {}", "there is a {} here", "check {}")


@pytest.fixture
def env() -> BabyAI:
    return BabyAI()


def named(task_id: str) -> Task:
    return next(task for task in levels.tasks("test") if task.id == task_id)


def play(
    env: BabyAI, task: Task, policy: str, steps: int, *, phase: str = "acting", chart: CognitiveMap | None = None
) -> tuple[list[tuple[str, Step]], Any]:
    async def no_oracle() -> list[str]:
        raise AssertionError

    step, tracker, history = env.reset(task), env.fact_tracker(), list[tuple[str, Step]]()
    tracker.observe(None, step)
    goal, agent = step.goal, env.policy(policy, 5)
    for left in range(steps, 0, -1):
        action = agent.act(View(task, goal, phase, step, history, left, chart, {}, tracker, env, no_oracle, {}))
        step = env.step(action)
        tracker.observe(action, step)
        history.append((action, step))
        if step.done and phase == "acting":
            break
    return history, tracker


# ------------------------------------------------------------------------------------------------------------ reading


def test_texts_and_odometry_give_the_engines_own_places(env: BabyAI) -> None:
    """What is described, placed by the odometry, is what stands on the grid there, while walking at random."""
    for n, task in enumerate(env.tasks("test")[::3]):
        rng, step, follower = random.Random(n), env.reset(task), Follower()
        frame = Frame(env.scene, env._running().room_size)
        for _ in range(10):
            if follower.observe(step):
                on_grid = {frame.spot(cell): thing for cell, thing in env.scene.things.items()}
                for seen_, spot in follower.called().values():
                    thing = on_grid[spot]
                    assert (thing.kind, thing.colour, thing.state) == (seen_.kind, seen_.colour, seen_.state)
            step = env.step(rng.choice(step.admissible or ()))
            if step.done:
                break


def test_places_in_words() -> None:
    for spot in ((0, 0), (3, 0), (0, -2), (-1, 4)):
        assert read_spot(spot_text(spot)) == spot
    assert (spot_text((3, -2)), spot_text((-1, 0)), spot_text((0, 0))) == ("3 ahead 2 left", "1 behind", "start")
    assert read_spot("near the table") is None and read_spot("") is None
    assert beside(Pose((1, 1), 1), 2) == (1, 3) and beside(Pose((1, 1), 3), 2, 1) == (2, -1)
    assert read_info({}) == (None, None)
    room = Room("start room", (0, 0), (3, 3))
    assert room.holds((0, 3)) and not room.holds((4, 3)) and room.shows((4, 3)) and not room.shows((4, 4))


def test_every_mission_of_the_task_lists_can_be_read(env: BabyAI) -> None:
    for task in env.tasks("test"):
        goal = env.reset(task).goal
        engine = env._running()
        parts = parse_goal(goal)
        assert parts is not None
        clauses = engine.clauses()
        frame, start = Frame(env.scene, engine.room_size), env.scene
        home = frame.room(start.cell)
        assert [(part.verb, part.rank) for part in parts] == [(clause.verb, clause.rank) for clause in clauses], goal
        for part, clause in zip(parts, clauses, strict=True):
            fits = {t.number for c, t in start.things.items() if part.fits(f"{t.colour} {t.kind}", frame.spot(c), home)}
            assert fits == clause.things, (task.id, goal)
    assert parse_goal("put the red ball next to the box") is None and parse_goal("") is None
    assert [part.colour for part in parse_goal("open the red door after you open the blue door") or ()] == ["blue", "red"]


def test_facts_of_a_door_and_its_key(env: BabyAI) -> None:
    step, tracker = env.reset(named("UnlockPickupDist/1234")), env.fact_tracker()
    assert isinstance(env, HasFacts)
    tracker.observe(None, step)
    for action in (*["turn left"] * 4, *env.oracle()):
        step = env.step(action)
        said = tracker.observe(action, step)
        assert all(fact in tracker.facts() for fact in said)
    facts = tracker.facts()
    kinds = {fact.kind for fact in facts}
    assert step.success and kinds >= {"thing", "door", "room", "connects", "moved", "does"}
    assert [fact.value for fact in facts if fact.kind == "door"] == ["open"]
    assert Fact("does", ("toggle and go through", "locked door"), "works") in facts
    chart = tracker.map(env._running().mission)
    assert {"locked"} == {e["place"] for e in chart.spatial if e["relation"] == "is" and " door at " in e["thing"]}
    assert any("fits the goal" in note for note in chart.task_notes)


def test_refusals_and_lists_are_no_sights(env: BabyAI) -> None:
    step, tracker = env.reset(named("UnlockPickupDist/1234")), env.fact_tracker()
    tracker.observe(None, step)
    before = tracker.facts()
    assert describe(env.step("check available actions").observation) is None
    for action in ("check available actions", "dance", "go to red ball 7", ""):
        for fact in tracker.observe(action, env.step(action)):
            assert fact.kind == "does"
    assert [fact for fact in tracker.facts() if fact.kind != "does"] == before


def test_masks_hide_names_numbers_and_lists(env: BabyAI) -> None:
    mask = env.fact_tracker().mask
    masked = {mask(env.reset(task).observation) for task in env.tasks("test")}
    assert len(masked) <= 4  # something in view or nothing at all, facing something or not
    assert mask("You cannot go to red ball 1, as there is no path leading to it.") == mask(
        "You cannot go to blue closed door 2, as there is no path leading to it."
    )
    assert (
        mask("You are carrying a red ball.") == mask("You are carrying a grey key.") != mask("You are not carrying anything.")
    )


# ----------------------------------------------------------------------------------------------------------- coverage


def test_checkpoints_are_sorted_distinct_and_closed_in_all(env: BabyAI) -> None:
    assert isinstance(env, HasCheckpoints)
    for task in env.tasks("test")[::5]:
        env.reset(task)
        closure, everything = env.checkpoints("task_closure"), env.checkpoints("all")
        assert closure and closure == sorted(set(closure)) and set(closure) <= set(everything)
        assert "start room" in names(closure, "location")
    with pytest.raises(UserError, match="task_closure or all"):
        env.checkpoints("some")


@pytest.mark.parametrize("relevance", ["task_closure", "all"])
def test_reciting_every_name_scores_0(env: BabyAI, relevance: str) -> None:
    for task in env.tasks("test")[::9]:
        assert recite(env, task, TALK, relevance).covered == 0


def test_the_experts_path_proves_what_it_does(env: BabyAI) -> None:
    env.reset(named("UnlockPickupDist/1234"))
    coverage = Coverage(env.checkpoints("task_closure"), env.checkpoint_matcher())
    coverage.observe(0, None, env.reset(named("UnlockPickupDist/1234")))
    for t, action in enumerate(env.oracle(), start=1):
        coverage.observe(t, action, env.step(action))
    done = {point.name.split(" at ")[0] for point, hit in coverage.result().hits.items() if hit is not None}
    assert {"pickup yellow box", "start room"} <= done
    assert any(name.startswith("open ") for name in done) and any(name.startswith("pickup ") and "key" in name for name in done)


def test_going_everywhere_covers_everything(env: BabyAI) -> None:
    for task_id in ("GoToLocalS8N7/1234", "UnlockPickupDist/1235", "OpenRedDoor/1236"):
        found = explore(env, named(task_id), env.policy("curious", 0).act, 100, "all")
        missing = [point for point, hit in found.hits.items() if hit is None]
        assert not missing, (task_id, missing)


@pytest.mark.slow
@pytest.mark.parametrize("relevance", ["task_closure", "all"])
def test_systematic_beats_random_beats_repetitive(env: BabyAI, relevance: str) -> None:
    for difference in ordering(env, env.tasks("test")[::5], 30, relevance):
        assert difference.low > 0


def test_a_session_without_goal_tells_nothing_and_never_ends(env: BabyAI) -> None:
    async def session(task: Task) -> tuple[GoalFree, list[Step]]:
        env.reset(task)
        plan = env.oracle()
        world = GoalFree(InProcess(env), env)
        steps = [await world.reset(task), *[await world.step(action) for action in (*plan, "turn left", "turn right")]]
        return world, steps

    for task in env.tasks("test")[:28]:
        goal = env.reset(task).goal
        world, steps = asyncio.run(session(task))
        for step in steps:
            assert_hidden(step, goal)
        assert [(event.won, event.went_on) for event in world.events] == [(True, "on")], task.id
        assert "completed" not in "".join(step.observation for step in steps) and steps[-1].info["pose"]


# ------------------------------------------------------------------------------------------------------------- agents


def test_policies_are_deterministic_and_a_map_saves_steps(env: BabyAI) -> None:
    assert isinstance(env, HasPolicies)
    lengths: dict[str, list[int]] = {"map": [], "none": []}
    won: dict[str, list[bool]] = {"map": [], "none": [], "myopic": []}
    for task in env.tasks("test")[1::7]:
        chart = play(env, task, "mapuser", 10, phase="mapping")[1].map(env._running().mission)
        runs = {
            "map": play(env, task, "mapuser", 30, chart=chart)[0],
            "none": play(env, task, "curious", 30)[0],
            "myopic": play(env, task, "myopic", 30)[0],
        }
        assert runs["none"] == play(env, task, "curious", 30)[0] and runs["myopic"] == play(env, task, "myopic", 30)[0]
        for name, history in runs.items():
            won[name].append(history[-1][1].success)
            if name in lengths:
                lengths[name].append(len(history))
    assert statistics.mean(lengths["map"]) < statistics.mean(lengths["none"])
    assert sum(won["map"]) >= sum(won["none"]) > sum(won["myopic"])
    with pytest.raises(UserError, match="curious, mapuser, myopic"):
        env.policy("genius", 0)


def test_myopic_follows_guidance_that_is_an_action(env: BabyAI) -> None:
    async def no_oracle() -> list[str]:
        raise AssertionError

    task = named("GoToDoor/1234")
    step, tracker = env.reset(task), env.fact_tracker()
    tracker.observe(None, step)
    told = {"guidance": "Think.\n1. turn right"}
    view = View(task, step.goal, "acting", step, [], 9, None, told, tracker, env, no_oracle, {})
    assert env.policy("myopic", 0).act(view) == "turn right"


# ------------------------------------------------------------------------------------------------------ maps, questions


def test_questions_are_determined_and_graded(env: BabyAI) -> None:
    assert isinstance(env, HasQuestions) and isinstance(env, HasAlignment)
    found = [question for task in env.tasks("test")[:28] for question in pool(env, task, 3)]
    assert {question.category for question in found} == set(CATEGORIES)
    first = env.tasks("test")[5]
    assert pool(env, first, 3) == pool(BabyAI(), first, 3) != pool(env, first, 4)
    for question in found:
        assert set(question.answers) <= set(question.choices) and len(set(question.choices)) == len(question.choices)
        assert all(grade(question, answer).correct for answer in question.answers) and not grade(question, "unknown").correct
        assert not any(grade(question, choice).correct for choice in set(question.choices) - set(question.answers))


def test_a_surveyed_map_answers_what_was_seen_and_holds(env: BabyAI) -> None:
    asked = mistakes = 0
    for task in env.tasks("test")[::6]:
        known, questions, _ = seen(env, task, 20)
        asked += len(questions)
        # Seeing a wanted thing through a door is not knowing the way to it: such a map rightly says "unknown".
        mistakes += sum(answer != "unknown" for _, answer, _ in wrong(env, questions, known))
        found = judged(env, task, known)
        assert not found.wrong and found.right >= 3 and found.found <= found.places, task.id
    assert asked > 100 and mistakes == 0


def test_wrong_entries_are_told_from_right_ones(env: BabyAI) -> None:
    task = named("UnlockPickupDist/1234")
    known, _ = survey(env, task, 20)
    before = judged(env, task, known)
    known.spatial += [
        {"thing": "red ball", "relation": "at", "place": "9 ahead 9 left"},
        {"thing": "start room", "relation": "is", "place": "from start to 9 ahead"},
        {"thing": "ball", "relation": "on", "place": "the moon"},
    ]
    known.affordances.append({"action": "pickup", "target": "closed door", "works": True, "effect": "", "requires": None})
    after = judged(env, task, known)
    assert after.right == before.right and after.unjudged == before.unjudged + 1
    n, m = len(known.spatial), len(known.affordances)
    assert after.wrong == (("spatial", n - 3), ("spatial", n - 2), ("affordances", m - 1))


def test_points_of_an_unknown_place_prove_nothing(env: BabyAI) -> None:
    """An answer that notes no pose (the moment at which a hidden task was solved) is read as it was, but proves no place."""
    step = env.reset(named("GoToLocalS8N7/1234"))
    matcher = env.checkpoint_matcher()
    matcher.observe(None, step)
    blind = Step(step.observation, info={})
    assert matcher.observe("turn left", blind) == set()
    shown = matcher.observe("turn left", env.step("turn left"))
    assert all(isinstance(point, Checkpoint) for point in shown) and Checkpoint("location", "start room") in shown
