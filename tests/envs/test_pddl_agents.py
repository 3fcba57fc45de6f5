"""The PDDL worlds: facts, maps, map questions, scripted agents, checkpoints, exploration without a goal."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest
from coverage_kit import explore, ordering, recite
from questions_kit import judged, pool, seen, survey, wrong

from agentexp.capabilities import Checkpoint
from agentexp.core import CognitiveMap, Fact, Step, Task, View
from agentexp.envs.goal_free import GoalFree
from agentexp.envs.pddl import Pddl
from agentexp.envs.pddl.suite import KINDS
from agentexp.errors import UserError
from agentexp.metrics.map_qa import grade


@pytest.fixture
def env() -> Pddl:
    return Pddl()


def problem(kind: str, seed: int) -> Task:
    """A drawn problem, whatever the splits."""
    return Task(f"{kind}/{seed}", "pddl", "test", kind=kind, spec={"domain": kind, "seed": seed})


def act(
    env: Pddl, task: Task, policy: str, steps: int, chart: CognitiveMap | None = None, **knowledge: Any
) -> list[tuple[str, Step]]:
    """One episode of a scripted agent."""
    step, agent, history = env.reset(task), env.policy(policy, 1), list[tuple[str, Step]]()
    goal = step.goal
    while len(history) < steps and not step.done:
        view = View(task, goal, "acting", step, history, steps, chart, knowledge, None, env, _no_oracle, {})
        action = agent.act(view)
        step = env.step(action)
        history.append((action, step))
    return history


async def _no_oracle() -> list[str]:
    raise AssertionError("a scripted agent has no expert")


# ------------------------------------------------------------------------------------------------------------ facts, maps


def test_facts_of_gripper(env: Pddl) -> None:
    task = problem("gripper", 3)
    step, tracker = env.reset(task), env.fact_tracker()
    assert tracker.observe(None, step) == [] and tracker.facts() == []
    room = tracker.place()
    other = "roomb" if room == "rooma" else "rooma"
    pick = next(a for a in step.admissible or () if a.startswith("pick"))
    ball, hand = pick.split()[2], pick.split()[-1]

    def told(action: str) -> list[Fact]:
        return tracker.observe(action, env.step(action))

    assert told(f"drop {ball} at {room} with arm {hand}") == [Fact("refused", ("drop",))]
    assert told(pick) == [
        Fact("works", ("pick",), "+carry, -at, -free"),
        Fact("can", ("pick", ball)),
        Fact("reached", ("carry", ball, hand)),
    ]
    assert told("look around") == [] and told("dance") == []
    assert set(told("check valid actions")) >= {Fact("possible", ("move",)), Fact("possible", ("drop",))}
    assert Fact("reached", ("at-robby", other)) in told(f"move from {room} to {other}") and tracker.place() == other
    assert Fact("refused", ("drop",), "not always") in told(f"drop {ball} at {other} with arm {hand}")
    chart = tracker.map(step.goal)
    assert {"thing": ball, "relation": "at", "place": room} in chart.spatial  # as it was at reset
    assert {"thing": "robby", "relation": "at", "place": room} in chart.spatial
    shown = {entry["action"]: entry["effect"] for entry in chart.affordances}
    assert shown[pick] == f"makes true: {hand} is carrying {ball}; makes false: {ball} is at {room}, {hand} is free"
    assert chart.unknown == [] and all("at the start: " in note for note in chart.task_notes)
    assert not tracker.map("").task_notes


def test_going_back_and_forth_teaches_nothing_new(env: Pddl) -> None:
    step, tracker = env.reset(problem("gripper", 0)), env.fact_tracker()
    tracker.observe(None, step)
    here = tracker.place()
    there = "roomb" if here == "rooma" else "rooma"
    counts = []
    for i in range(8):
        action = f"move from {here} to {there}" if i % 2 == 0 else f"move from {there} to {here}"
        counts.append(len(tracker.observe(action, env.step(action))))
    assert counts[0] and counts[1] and not any(counts[2:])


@pytest.mark.parametrize("kind", KINDS)
def test_mask_hides_names_and_amounts(env: Pddl, kind: str) -> None:
    first, second = env.reset(problem(kind, 0)), env.reset(problem(kind, 1))
    tracker = env.fact_tracker()
    tracker.observe(None, second)
    masks = {tracker.mask(step.observation) for step in (first, second)}
    assert len(masks) == 1 or kind in ("tyreworld", "blockworld")  # tight and loose; no block on another
    assert not any(re.search(r"(?<!part)\d", mask) for mask in masks)
    assert tracker.mask(env.step("check valid actions").observation).startswith("valid actions are: ")


@pytest.mark.parametrize("kind", KINDS)
def test_maps_hold_and_answer_what_was_seen(env: Pddl, kind: str) -> None:
    asked_in_all = 0
    for seed in range(3):
        known, asked, categories = seen(env, problem(kind, seed), 12)
        assert wrong(env, asked, known) == []
        assert {"object_location", "negative", "task_reasoning"} <= set(categories)
        asked_in_all += categories["affordance"]
        alignment = judged(env, problem(kind, seed), known)
        assert alignment.wrong == () and alignment.right > 10 and alignment.found == alignment.places > 0
    assert asked_in_all


def test_questions_are_sound_and_wrong_maps_are_found_out(env: Pddl) -> None:
    for kind in KINDS:
        task = problem(kind, 2)
        asked = pool(env, task, 3)
        assert asked == pool(Pddl(), task, 3) != pool(env, task, 4)
        for question in asked:
            assert set(question.answers) <= set(question.choices or question.names) and question.evidence
            assert all(grade(question, answer).correct for answer in question.answers)
            assert env.look_up(question, CognitiveMap()) == "unknown"
    known, _ = survey(env, problem("gripper", 0), 5)
    moved = next(entry for entry in known.spatial if entry["relation"] == "at" and entry["thing"].startswith("ball"))
    moved["place"] = "rooma" if moved["place"] == "roomb" else "roomb"
    alignment = judged(env, problem("gripper", 0), known)
    assert alignment.wrong == (("spatial", known.spatial.index(moved)),)
    assert wrong(env, pool(env, problem("gripper", 0)), known)


# ---------------------------------------------------------------------------------------------------------------- agents


@pytest.mark.parametrize("name", ["random", "myopic", "curious", "systematic", "mapuser", "repetitive"])
def test_policies_are_deterministic_and_possible(env: Pddl, name: str) -> None:
    for kind in KINDS:
        one = act(env, problem(kind, 0), name, 12)
        assert one == act(env, problem(kind, 0), name, 12)
        assert not any(step.error for _, step in one)


def test_unknown_policy_lists_the_known_ones(env: Pddl) -> None:
    with pytest.raises(UserError, match="curious, mapuser, myopic, random, repetitive, systematic"):
        env.policy("genius", 0)


def test_myopic_follows_guidance_to_the_letter(env: Pddl) -> None:
    task = problem("blockworld", 0)
    env.reset(task)
    first = env.oracle()[0]
    assert act(env, task, "myopic", 1, guidance=["Think first.", f"1. Action: `{first.capitalize()}.`"])[0][0] == first


def test_a_map_saves_steps(env: Pddl) -> None:
    steps = {"plain": 0, "map": 0, "k_g": 0}
    for kind in ("gripper", "blockworld", "tyreworld"):
        for seed in range(3):
            task = problem(kind, seed)
            known, _ = survey(env, task, 10)
            runs = {
                "plain": act(env, task, "mapuser", 60),
                "map": act(env, task, "mapuser", 60, known),
                "k_g": act(env, task, "mapuser", 60, k_g={"rules": ["x"]}),
            }
            for name, history in runs.items():
                steps[name] += len(history)
            assert runs["k_g"][-1][1].success if runs["k_g"] else True
    assert steps["k_g"] <= steps["map"] < steps["plain"]


# ------------------------------------------------------------------------------------------------- exploration, checkpoints


@pytest.mark.parametrize("kind", KINDS)
def test_checkpoints_are_what_can_be_changed(env: Pddl, kind: str) -> None:
    for seed in range(3):
        env.reset(problem(kind, seed))
        needed, everything = env.checkpoints(), env.checkpoints("all")
        assert needed == sorted(set(needed)) and set(needed) <= set(everything)
        # What the expert does is part of what the goal can need.
        env.reset(problem(kind, seed))
        matcher, proved = env.checkpoint_matcher(), set[Checkpoint]()
        matcher.observe(None, env.reset(problem(kind, seed)))
        plan = env.oracle()
        for action in plan:
            proved |= set(matcher.observe(action, env.step(action)))
        assert proved & set(needed) and {p for p in proved if p.kind == "affordance"} <= set(everything)
    with pytest.raises(UserError, match="task_closure or all"):
        env.checkpoints("some")


@pytest.mark.parametrize("kind", KINDS)
def test_reciting_names_proves_nothing(env: Pddl, kind: str) -> None:
    forms = ["{}", "go to {}", "look at {}", "what about {}?", "take {}"]
    assert recite(env, problem(kind, 1), forms).value == 0.0
    step = env.reset(problem(kind, 1))
    matcher = env.checkpoint_matcher()
    assert not matcher.observe(None, step)
    for action in ("check valid actions", "look around", "open", "{}"):
        assert not matcher.observe(action, env.step(action))


@pytest.mark.parametrize("kind", KINDS)
def test_systematic_beats_random_beats_repetitive(env: Pddl, kind: str) -> None:
    tasks = [problem(kind, seed) for seed in range(6)]
    better, worse = ordering(env, tasks, 25)
    assert better.mean > 0 and worse.mean > 0
    assert explore(env, tasks[0], env.policy("repetitive", 0).act, 25).value < 0.35  # type: ignore[operator]


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_tells_the_goal_while_it_is_hidden(env: Pddl, kind: str) -> None:
    task = next(task for task in env.tasks("test") if task.kind == kind)

    class Leased:
        async def reset(self, task: Task) -> Step:
            return env.reset(task)

        async def step(self, action: str) -> Step:
            return env.step(action)

        async def call(self, method: str, *args: Any) -> Any:
            return getattr(env, method)(*args)

    async def play() -> None:
        goal = env.reset(task).goal
        plan = env.oracle()
        hidden = GoalFree(Leased(), env)
        steps = [await hidden.reset(task)] + [
            await hidden.step(action) for action in [*plan, "look around", "check valid actions"]
        ]
        assert hidden.events[0].won and hidden.events[0].went_on == "on"
        for step in steps:
            assert not (step.goal or step.done or step.success or step.score or step.error)
            assert "goal" not in step.observation.lower() and goal not in step.observation

    asyncio.run(play())
