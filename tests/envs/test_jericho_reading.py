"""Reading stories: texts, commands, facts, checkpoints, questions, and the scripted agents."""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Iterator
from typing import Any

import pytest
from coverage_kit import explore, names, recite
from questions_kit import judged, seen, wrong

from agentexp.capabilities import Checkpoint
from agentexp.core import Fact, Step, Task
from agentexp.envs.goal_free import NO_TASK, GoalFree
from agentexp.envs.jericho import Jericho
from agentexp.envs.jericho.commands import Command, read, resolve
from agentexp.envs.jericho.matcher import StoryMatcher
from agentexp.envs.jericho.texts import direction, read_contents, read_inventory, read_list, read_room
from agentexp.envs.jericho.tracker import StoryTracker
from agentexp.errors import UserError
from agentexp.metrics.ecc import Coverage

GARDEN = (
    "Front Garden\nWeeds grow knee-high around the cottage.\n\nYou can see a clay pot (in which are a rusty key and a rake) "
    "and a glass case (which is closed) (in which is a mask) here.\n\nExits: north (the front door, closed), south, east."
)
TALK = ("{}", "I see {}", "there is a {} here", "say {}", "find {}", "get me 1 {}")


@pytest.fixture(scope="module")
def env() -> Iterator[Jericho]:
    pytest.importorskip("jericho", reason="needs the jericho extra")
    world = Jericho()
    yield world
    world.close()


# -------------------------------------------------------------------------------------------------------------------- texts


def test_a_room_is_read() -> None:
    room = read_room("The bus leaves you here.\n\n" + GARDEN)
    assert room is not None and room.name == "Front Garden"
    assert [thing.name for thing in room.things] == ["clay pot", "glass case"]
    assert [thing.name for thing in room.things[0].contents] == ["rusty key", "rake"]
    assert room.things[1].states == ["closed"] and room.things[1].contents[0].name == "mask"
    assert room.exits is not None and list(room.exits) == ["north", "south", "east"]
    assert room.exits["north"].door == "front door" and room.exits["north"].closed
    assert read_room("Taken.") is None and read_room("A big clay pot.\n") is None
    any_story = read_room("West of House\nYou are standing in an open field.\n", "West of House")
    assert any_story is not None and any_story.exits is None


def test_lists_are_read() -> None:
    assert [thing.name for thing in read_list("a rake, some shears and an oil lamp (providing light)")] == [
        "rake",
        "shears",
        "oil lamp",
    ]
    assert read_list("nothing") == []
    assert [(h, [t.name for t in ts]) for h, _, ts in read_contents("You open the box, revealing a key and a cup.")] == [
        ("box", ["key", "cup"])
    ]
    assert read_contents("The box is empty.") == [("box", "in", [])]
    carried = read_inventory("You're carrying:\n  a rusty key\n  a box (which is open)\n    a coin\n")
    assert carried is not None and [thing.name for thing in carried] == ["rusty key", "box"]
    assert read_inventory("You're carrying nothing.") == [] and read_inventory("Taken.") is None


@pytest.mark.parametrize(
    ("action", "command"),
    [
        ("n", Command("go", "north")),
        ("go to the north", Command("go", "north")),
        ("pick up the rusty key", Command("take", "rusty key")),
        ("put key in the box", Command("put", "box", "key")),
        ("unlock door with rusty key", Command("unlock", "door", "rusty key")),
        ("turn lamp on", Command("switch on", "lamp")),
        ("turn red valve", Command("turn", "red valve")),
        ("look through telescope", Command("look through", "telescope")),
        ("look in box", Command("examine", "box")),
        ("give cake to mayor", Command("give", "mayor", "cake")),
        ("flumph", Command("", "flumph")),
    ],
)
def test_commands_are_read(action: str, command: Command) -> None:
    assert read(action) == command


def test_words_find_their_thing() -> None:
    assert resolve("key", ["rusty key", "lamp"]) == "rusty key"
    assert resolve("key", ["rusty key", "black key"]) == "key"
    assert direction("walk north") == "north" and direction("open north door") == ""


# -------------------------------------------------------------------------------------------------------------------- facts


def test_facts_of_a_walk() -> None:
    tracker = StoryTracker()
    tracker.observe(None, Step("Lane\nA narrow lane.\n\nExits: north."))
    assert tracker.room == "Lane"
    news = tracker.observe("n", Step(GARDEN))
    assert Fact("exit", ("Lane", "north"), "Front Garden") in news
    assert Fact("in", ("rusty key", "clay pot"), "in") in news and Fact("state", ("front door",), "closed") in news
    tracker.observe("take key", Step("Taken."))
    tracker.observe("open front door", Step("The front door seems to be locked.", error=True))
    known = {(fact.kind, fact.subject): fact.value for fact in tracker.facts()}
    assert known["in", ("rusty key", "inventory")] == "in" and known["in", ("rusty key", "clay pot")] == "gone"
    assert known["state", ("front door",)] == "locked" and known["works", ("open", "front door")] == "no"
    chart = tracker.map("")
    assert {"thing": "rusty key", "relation": "in", "place": "clay pot"} in chart.spatial  # as it was at reset
    assert not any(entry["place"] == "inventory" for entry in chart.spatial)
    assert "east of Front Garden" in chart.unknown and "inside of the front door" in chart.unknown
    assert tracker.observe("look", Step(GARDEN.replace("a rusty key and ", ""))) == []


def test_masks_drop_names_and_lists() -> None:
    tracker = StoryTracker()
    tracker.observe(None, Step(GARDEN))
    assert tracker.mask("You open the clay pot, revealing a key.") == tracker.mask(
        "You open the glass case, revealing nothing."
    )
    assert tracker.mask("Taken.") == "taken."


# -------------------------------------------------------------------------------------------------------------- checkpoints


def test_what_a_step_proves() -> None:
    matcher = StoryMatcher()
    matcher.observe(None, Step(GARDEN))
    proved = matcher.observe("look", Step(GARDEN))
    assert {("location", "Front Garden"), ("object", "rusty key"), ("object", "front door"), ("object", "mask")} <= set(proved)
    assert matcher.observe("take key", Step("Taken.")) == {Checkpoint("affordance", "take rusty key")}
    assert not matcher.observe("take key", Step("You already have that.", error=True))
    assert not matcher.observe("examine clay pot", Step("A big clay pot."))
    assert ("affordance", "take rake") in matcher.observe("take all", Step("rake: Taken.\nrusty key: Taken."))


def test_checkpoints_are_sorted_distinct_and_closed_in_all(env: Jericho) -> None:
    for task in env.tasks("test")[:7]:
        env.reset(task)
        closure, everything = env.checkpoints("task_closure"), env.checkpoints("all")
        assert closure and closure == sorted(set(closure)) and set(closure) <= set(everything)
        assert {kind for kind, _ in closure} == {"location", "object", "affordance"}
    with pytest.raises(UserError, match="task_closure or all"):
        env.checkpoints("some")


def test_reciting_every_name_scores_0(env: Jericho) -> None:
    plain = Jericho(admissible=False)
    for task in plain.tasks("test")[:7]:
        assert recite(plain, task, TALK).covered == 0
    plain.close()


def test_the_experts_path_covers_what_it_does(env: Jericho) -> None:
    plain = Jericho(admissible=False)
    for task in plain.tasks("test")[:7]:
        start = plain.reset(task)
        coverage = Coverage(plain.checkpoints("task_closure"), plain.checkpoint_matcher())
        coverage.observe(0, None, start)
        for t, action in enumerate(plain.oracle(), start=1):
            coverage.observe(t, action, plain.step(action))
        missed = names((c for c, hit in coverage.result().hits.items() if hit is None), "affordance")
        assert not missed, (task.id, missed)
    plain.close()


@pytest.mark.engine
def test_systematic_beats_random_beats_repetitive(env: Jericho) -> None:
    tasks = env.tasks("test")[:5]

    def mean(name: str) -> float:
        return statistics.mean(explore(env, task, env.policy(name, 0).act, 15).value or 0.0 for task in tasks)

    assert mean("systematic") > mean("random") > mean("repetitive")


# ---------------------------------------------------------------------------------------------------------------- questions


@pytest.mark.engine
@pytest.mark.parametrize("ident", ["lighthouse/0", "abbey/0"])
def test_what_was_seen_is_answered_and_right(env: Jericho, ident: str) -> None:
    task = Task(ident, "jericho", "test")
    known, asked, counts = seen(env, task, 30)
    assert wrong(env, asked, known) == []
    assert {"object_location", "negative", "affordance"} <= set(counts)
    verdict = judged(env, task, known)
    assert verdict.wrong == () and verdict.right > 20 and 3 < verdict.found <= verdict.places


# ----------------------------------------------------------------------------------------------------------- goals and agents


class _Direct:
    """A world in this process."""

    def __init__(self, env: Jericho) -> None:
        self.env = env

    async def reset(self, task: Task) -> Step:
        return self.env.reset(task)

    async def step(self, action: str) -> Step:
        return self.env.step(action)

    async def call(self, method: str, *args: Any) -> Any:
        return getattr(self.env, method)(*args)


def test_nothing_tells_the_goal_and_the_end_is_no_end(env: Jericho) -> None:
    async def play() -> None:
        world, task = GoalFree(_Direct(env), env), Task("observatory/1", "jericho", "test")
        first = await world.reset(task)
        assert first.goal == "" and first.score == 0 and "raw_score" not in first.info
        assert (await world.step("score")).observation == NO_TASK
        plan = env.oracle()
        for action in plan:
            step = await world.step(action)
            assert not step.done and not step.success and step.score == 0
            assert "***" not in step.observation and "scored" not in step.observation
        assert [(event.won, event.went_on) for event in world.events] == [(True, "replay")]
        assert "Dome" in (await world.step("look")).observation

    asyncio.run(play())


def test_policies_by_name(env: Jericho) -> None:
    for name in ("random", "myopic", "curious", "systematic", "mapuser", "repetitive"):
        env.policy(name, 0)
    with pytest.raises(UserError, match="curious, systematic"):
        env.policy("wizard", 0)
