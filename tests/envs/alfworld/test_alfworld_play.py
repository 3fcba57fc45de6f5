"""The real engine: same answers as the stock one, success, the expert, scripted agents."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from alfworld_helpers import full_map, needs_engine, needs_wheel, official, play

from agentexp.actions import ParseSettings, parse
from agentexp.capabilities import HasFacts, HasOracle, HasPolicies
from agentexp.core import Env
from agentexp.envs.alfworld import AlfWorld, generator, wheel
from agentexp.envs.alfworld.goals import KINDS
from agentexp.errors import EngineError, UserError

pytestmark = [pytest.mark.engine, needs_engine, needs_wheel]

# Plays the same actions on the stock engine, as ALFWorld itself sets it up, and prints what it said.
STOCK = """
import json, os, sys
os.environ["ALFWORLD_DATA"] = sys.argv[1]
game = json.load(sys.stdin)
from alfworld.agents.environment.alfred_tw_env import AlfredDemangler
from textworld import EnvInfos
from textworld.envs.pddl.pddl import PddlEnv
env = AlfredDemangler(PddlEnv(EnvInfos(admissible_commands=True, won=True)))
env.load(game["data"])
state = env.reset()
said = [[state.feedback, state["admissible_commands"], bool(state["won"])]]
for action in game["actions"]:
    state, _, _ = env.step(action)
    said.append([state.feedback, state["admissible_commands"], bool(state["won"])])
sys.__stdout__.write(json.dumps(said))
"""


@pytest.fixture
def world() -> Iterator[AlfWorld]:
    env = AlfWorld(test=12)
    yield env
    env.close()


def test_protocols(world: AlfWorld) -> None:
    assert (
        isinstance(world, Env)
        and isinstance(world, HasOracle)
        and isinstance(world, HasFacts)
        and isinstance(world, HasPolicies)
    )


@pytest.mark.slow
@pytest.mark.parametrize(("logic", "index"), [("new", 3), ("old", 8)])
def test_answers_are_those_of_the_stock_engine(logic: wheel.Logic, index: int, tmp_path: Path) -> None:
    env = AlfWorld(test=12, logic=logic)
    task = env.tasks("test")[index]
    rng, step = random.Random(index), env.reset(task)
    said, actions = [(step.observation, list(step.admissible or ()), step.success)], []
    for _ in range(25):
        action = rng.choice([*(step.admissible or ()), "fly away"])
        step = env.step(action)
        actions.append(action)
        said.append((step.observation, list(step.admissible or ()), step.success))
    for action in env.oracle():
        step = env.step(action)
        actions.append(action)
        said.append((step.observation, list(step.admissible or ()), step.success))
    assert step.success
    env.close()
    grammar = wheel.grammar(logic).replace("UNKNOWN GOAL", str(task.spec["task"]))
    data = {"pddl_domain": wheel.domain(logic), "grammar": grammar, "pddl_problem": env.problem(task).render()}
    done = subprocess.run(
        [sys.executable, "-c", STOCK, str(tmp_path)],
        input=json.dumps({"data": data, "actions": actions}),
        capture_output=True,
        text=True,
        check=True,
        env=dict(os.environ),
    )
    stock = json.loads(done.stdout)
    first = stock[0][0]
    assert first == f"-= Welcome to TextWorld, ALFRED! =-\n\n{said[0][0]}\n\nYour task is to: {task.spec['task']}."
    stock[0][0] = said[0][0]
    assert [tuple(answer) for answer in stock] == said


def test_done_is_won_and_nothing_else(world: AlfWorld) -> None:
    for task in world.tasks("test")[:3]:
        step = world.reset(task)
        for _ in range(15):
            step = world.step("look")
            assert not step.done and not step.success and step.score == 0 and not step.error
        plan = world.oracle()
        assert plan == world.oracle(), "asking changes nothing"
        for action in plan:
            assert not step.done
            step = world.step(action)
            assert not step.error, action
        assert step.done and step.success and step.score == 1 and world.oracle() == []


def test_first_step_hides_the_goal_and_shows_the_room(world: AlfWorld) -> None:
    step = world.reset(world.tasks("test")[0])
    assert step.observation.startswith("You are in the middle of a room.") and "task" not in step.observation.lower()
    assert step.goal.endswith(".") and not step.goal.startswith("Your task")
    assert step.admissible is not None and list(step.admissible) == sorted(step.admissible) and "help" in step.admissible
    assert world.step("look").goal == ""


@pytest.mark.parametrize(
    "action", ["", "fly", "Look.", "go to the moon 1", "take", "{1+1}", "#look.feedback#", "look\nlook", "x" * 5000]
)
def test_odd_actions_are_refused_and_do_no_harm(world: AlfWorld, action: str) -> None:
    before = world.reset(world.tasks("test")[1])
    step = world.step(action)
    assert step.error and step.observation == "Nothing happens." and step.admissible == before.admissible


def test_expert_works_from_anywhere(world: AlfWorld) -> None:
    rng = random.Random(0)
    for task in world.tasks("test")[:6]:
        step = world.reset(task)
        for _ in range(30):
            taking = [action for action in step.admissible or () if action.startswith(("take", "open"))]
            step = world.step(rng.choice(taking or step.admissible or ["look"]))
        for action in world.oracle():
            step = world.step(action)
            assert not step.error, (task.id, action)
        assert step.success, task.id


def test_command_line_and_output_are_left_alone(world: AlfWorld, capfd: pytest.CaptureFixture[str]) -> None:
    before = list(sys.argv)
    world.reset(world.tasks("test")[2])
    world.step("look")
    assert sys.argv == before
    captured = capfd.readouterr()
    assert captured.out == "" and captured.err == ""


def test_a_second_world_in_the_process_does_not_disturb_the_first(world: AlfWorld) -> None:
    one, two = world.tasks("test")[:2]
    world.reset(one)
    before = world.step("look")
    other = AlfWorld(test=12)
    other.reset(two)
    assert world.step("look") == before
    other.close()
    other.close()
    with pytest.raises(EngineError):
        other.step("look")


def test_an_unsound_game_is_an_engine_error_and_the_next_game_works(world: AlfWorld) -> None:
    task = world.tasks("test")[0]
    problem = world.problem(task)
    for broken in (
        problem.render()[:-200],
        replace(problem, init=(*problem.init, ("inreceptacle", "ghost", "nowhere"))).render(),
        replace(problem, goal="(:goal (and (exists (?o - object) (objecttype ?o MugType) (not (= 1 1)))))").render(),
    ):
        with pytest.raises(EngineError, match=re.escape(task.id)):
            world.reset(replace(task, spec={**task.spec, "problem": broken}))
    assert world.reset(task).goal


def test_the_old_logic_is_the_one_of_the_official_files() -> None:
    folder = official()
    assert wheel.domain("old") == (folder / "alfred_v0.2.2.pddl").read_text()
    assert wheel.grammar("old") == (folder / "alfred_v0.2.2.twl2").read_text()


@pytest.mark.parametrize("logic", ["new", "old"])
def test_every_verb_of_the_card_and_the_expert_is_known_to_the_engine(logic: wheel.Logic) -> None:
    env = AlfWorld(test=12, logic=logic)
    verbs: set[str] = set()
    for task in env.tasks("test")[:6]:
        step = env.reset(task)
        for action in env.oracle():
            verbs |= {action.split()[0] for action in step.admissible or ()}
            assert action in (step.admissible or ()), action
            step = env.step(action)
        assert step.success
    assert {form.split()[0] for form in env.card.actions.split(" | ")} <= verbs
    env.close()


@pytest.mark.slow
@pytest.mark.parametrize("split", ["valid_unseen", "valid_seen"])
def test_expert_wins_all_official_games(split: str) -> None:
    env = AlfWorld(data=str(official()))
    lengths = []
    for task in env.tasks(split):
        step = env.reset(task)
        plan = env.oracle()
        lengths.append(len(plan))
        for action in plan:
            step = env.step(action)
            assert not step.error, (task.id, action)
        assert step.success, task.id
    assert max(lengths) <= 10 and 5.7 < sum(lengths) / len(lengths) < 6.2
    env.close()


# ------------------------------------------------------------------------------------------------------- reading replies

ALF = [
    *("go to bed 1", "go to desk 1", "go to desk 2", "go to drawer 1", "go to shelf 1", "open drawer 1", "open drawer 2"),
    *("take mug 1 from desk 1", "take spoon 1 from desk 1", "examine desk 1", "move mug 1 to shelf 1"),
    *("move spoon 1 to sinkbasin 1", "look", "inventory", "help"),
]


@pytest.mark.parametrize(
    ("reply", "action"),
    [
        ("put mug 1 in/on shelf 1", "move mug 1 to shelf 1"),
        ("Put the mug 1 on the shelf 1.", "move mug 1 to shelf 1"),
        ("put spoon 1 in sinkbasin 1", "move spoon 1 to sinkbasin 1"),
        ("GO TO DESK 1", "go to desk 1"),
        ("take mug 2 from desk 1", None),
        ("go to desk 11", None),
        ("go to desk", None),
        ("put mug 1 in/on shelf 2", None),
        ("pick up the spoon 1 from desk 1", "take spoon 1 from desk 1"),
    ],
)
def test_other_wordings_reach_the_same_object_or_none(reply: str, action: str | None) -> None:
    card = AlfWorld().card
    parsed = parse(f"<answer>{reply}</answer>", admissible=ALF, card=card, settings=ParseSettings())
    assert parsed.action == action


def test_appliance_wordings() -> None:
    card = AlfWorld().card
    listed = ["clean mug 1 with sinkbasin 1", "use desklamp 1", "look"]
    for reply, action in (
        ("clean mug 1 using sinkbasin 1", listed[0]),
        ("toggle desklamp 1", listed[1]),
        ("turn on the desklamp 1", listed[1]),
    ):
        assert parse(f"Action: {reply}", admissible=listed, card=card).action == action


def test_the_old_logic_takes_new_words() -> None:
    card = AlfWorld(logic="old").card
    listed = ["put mug 1 in/on shelf 1", "look"]
    assert parse("Action: move mug 1 to shelf 1", admissible=listed, card=card).action == listed[0]


# -------------------------------------------------------------------------------------------------------- scripted agents

K_G = {
    "k_g": {
        "action_syntax": ["go to {place}", "move {thing} to {place}"],
        "interaction_rules": [{"action": "heat", "requires": ["carrying it"], "effect": "{thing} is hot"}],
    }
}


@pytest.mark.slow
def test_map_user_needs_few_steps_with_a_map(world: AlfWorld) -> None:
    with_map = without = refused = 0
    for task in world.tasks("test"):
        history, _ = play(world, task, "mapuser", 50, map=full_map(world, task), knowledge=K_G)
        assert history[-1][1].success and len(history) <= 12, task.id
        with_map += len(history)
        history, _ = play(world, task, "mapuser", 60)
        without += len(history)
        refused += sum(step.error for _, step in history)
    assert without > 2 * with_map and refused > 0


def test_map_user_learns_the_put_command_from_its_refusal(world: AlfWorld) -> None:
    task = world.tasks("test")[0]
    assert task.kind == KINDS[0]
    history, _ = play(world, task, "mapuser", 50, map=full_map(world, task))
    puts = [action.split()[0] for action, _ in history if action.startswith(("put", "move"))]
    assert puts == ["put", "move"] and history[-1][1].success
    history, _ = play(world, task, "mapuser", 50, map=full_map(world, task), knowledge=K_G)
    assert not any(step.error for _, step in history)


@pytest.mark.parametrize("name", ["mapuser", "curious"])
def test_explorers_look_into_new_places_and_do_not_act(world: AlfWorld, name: str) -> None:
    task = world.tasks("test")[3]
    history, tracker = play(world, task, name, 20, phase="mapping")
    assert not any(action.startswith(("take", "put", "move", "heat")) for action, _ in history)
    walks = [action for action, _ in history if action.startswith("go to")]
    assert len(walks) == len(set(walks)) and len(tracker.contents) >= 8


def test_hidden_goal_means_exploring_everything(world: AlfWorld) -> None:
    task = world.tasks("test")[1]
    _, tracker = play(world, task, "curious", 80, hide_goal=True, phase="exploring")
    assert all(tracker.looked_into(place) for place in tracker.places)
    truth = {(e["thing"], e["place"]) for e in full_map(world, task).spatial}
    told = {(e["thing"], e["place"]) for e in tracker.map("").spatial if e["relation"] != "is"}
    assert told <= truth and len(truth - told) <= 2, "things in two places at once are told once"


@pytest.mark.parametrize("name", ["mapuser", "curious", "myopic"])
def test_agents_are_deterministic(world: AlfWorld, name: str) -> None:
    task = world.tasks("test")[4]
    runs = [[action for action, _ in play(world, task, name, 25, seed=7)[0]] for _ in range(2)]
    assert runs[0] == runs[1]


def test_myopic_follows_literal_guidance(world: AlfWorld) -> None:
    task = world.tasks("test")[5]
    place = next(action for action in world.reset(task).admissible or () if action.startswith("go to"))
    guidance = f"Think about it.\n1. {place}\n- `inventory`\nThen do something wise."
    history, _ = play(world, task, "myopic", 4, knowledge={"guidance": guidance})
    assert [action for action, _ in history[:2]] == [place, "inventory"]


def test_unknown_agents_list_the_known_ones(world: AlfWorld) -> None:
    with pytest.raises(UserError, match="curious, follower, mapuser, memorised, myopic, rulefinder"):
        world.policy("clever", 0)


def test_another_generator_version_is_refused(world: AlfWorld) -> None:
    task = world.tasks("test")[0]
    with pytest.raises(UserError, match="version"):
        world.problem(replace(task, spec={**task.spec, "generator": generator.VERSION + 1}))
