"""Checkpoints of ScienceWorld: from the object tree, and their proof in texts and in the running engine."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from coverage_kit import names, ordering, recite

from agentexp.capabilities import Checkpoint, HasCheckpoints
from agentexp.core import Step, Task
from agentexp.envs.scienceworld import ScienceWorld
from agentexp.envs.scienceworld.engine import find_jar, find_java
from agentexp.envs.scienceworld.matcher import LabMatcher
from agentexp.envs.scienceworld.names import canonical, kinds_of
from agentexp.errors import MissingDependency, UserError
from agentexp.metrics.ecc import Coverage

KITCHEN = """This room is called the kitchen. In it, you see:
\tthe agent
\ta substance called air
\ta counter. On the counter is: a bowl (containing a red apple, a banana), a drawer.
\ta stove, which is turned on. On the stove is: a metal pot (containing a substance called liquid lead).
You also see:
\tA door to the hallway (that is closed)"""


def _proved(action: str, text: str, **more: Any) -> set[str]:
    return {f"{c.kind}:{c.name}" for c in LabMatcher().observe(action, Step(text, **more))}


@pytest.mark.parametrize(
    ("printed", "kind"),
    [
        ("adult bee", "bee"),
        ("bee 4", "bee"),
        ("flower pot 3", "flower pot"),
        ("turtle egg", "turtle"),
        ("white pillow.", "pillow"),
        ("inclined plane with a bronze surface", "inclined plane"),
        ("orange juice", "orange juice"),
    ],
)
def test_printed_names_lead_to_kinds(printed: str, kind: str) -> None:
    assert canonical(printed) == kind


def test_plants_are_found_in_every_stage() -> None:
    assert "pea plant" in kinds_of("round green pea seed")
    assert "lemon plant" in kinds_of("dead lemon tree")
    assert "orange plant" not in kinds_of("orange juice")


def test_a_room_description_proves_the_room_and_what_is_in_it() -> None:
    proved = _proved("look around", KITCHEN)
    assert {"location:kitchen", "object:apple", "object:bowl", "object:metal pot"} <= proved
    assert {"affordance:become liquid lead", "affordance:run stove"} <= proved
    assert "object:air" not in proved and "location:hallway" not in proved


def test_what_the_action_names_itself_is_no_proof() -> None:
    assert "object:metal pot" not in _proved("look at metal pot", "a metal pot (containing a substance called water)")
    assert "object:water" in _proved("look at metal pot", "a metal pot (containing a substance called water)")


def test_an_affordance_is_named_by_the_answer() -> None:
    """The engine takes "cupboard" for the large cupboard."""
    assert _proved("open cupboard", "The large cupboard is now open.") == {"affordance:open large cupboard"}
    assert _proved("pick up pot", "You move the metal pot to the inventory.") == {"affordance:move metal pot"}
    assert _proved("go to kitchen", "You move to the kitchen.") == {"location:kitchen"}
    assert _proved("use thermometer in inventory on stove", "the thermometer measures a temperature of 20 degrees celsius") == {
        "affordance:use thermometer"
    }
    wires = "anode on battery is now connected to terminal 1 on black wire"
    assert _proved("connect battery anode to black wire terminal 1", wires) == {
        "affordance:connect battery",
        "affordance:connect black wire",
    }
    assert not _proved("open cupboard", "The large cupboard is already open.", error=True)


def test_a_number_counts_as_the_command_it_picks() -> None:
    matcher = LabMatcher()
    asked = "Ambiguous request: Please enter the number for the action you intended (or blank to cancel):\n"
    asked += "0:\tuse lighter (in kitchen) on table\n1:\twait"
    assert not matcher.observe("use lighter on table", Step(asked))
    assert matcher.observe("0", Step("The table catches fire.")) == {Checkpoint("affordance", "use lighter")}


# ------------------------------------------------------------------------------------------------------------ the engine


@pytest.fixture(scope="module")
def env() -> Iterator[ScienceWorld]:
    pytest.importorskip("py4j", reason="needs the scienceworld extra")
    try:
        find_java(), find_jar()
    except MissingDependency as missing:
        pytest.skip(str(missing))
    world = ScienceWorld()
    yield world
    world.close()


def _task(ident: str) -> Task:
    return Task(ident, "scienceworld", "test")


@pytest.mark.engine
def test_the_same_set_in_every_load(env: ScienceWorld) -> None:
    assert isinstance(env, HasCheckpoints)
    for ident in ("boil/21", "find-plant/225", "power-component/15"):
        env.reset(_task(ident))
        closure, everything = env.checkpoints("task_closure"), env.checkpoints("all")
        assert closure == sorted(set(closure)) and len(names(closure, "location")) == 10
        assert all(re.match("affordance become|affordance run", " ".join(c)) for c in set(closure) - set(everything))
        env.step("look around")
        env.reset(_task(ident))
        assert env.checkpoints("task_closure") == closure
    with pytest.raises(UserError, match="task_closure or all"):
        env.checkpoints("some")


@pytest.mark.engine
def test_the_closure_follows_the_task(env: ScienceWorld) -> None:
    env.reset(_task("boil/21"))
    boil = {c.name for c in env.checkpoints("task_closure")}
    assert {"lead", "stove", "become liquid lead", "become gaseous lead"} <= boil
    assert not {"painting", "bed", "battery", "bee"} & boil
    env.reset(_task("power-component/15"))
    power = {c.name for c in env.checkpoints("task_closure")}
    assert {"battery", "connect battery", "run electric motor"} <= power


@pytest.mark.engine
@pytest.mark.slow
@pytest.mark.parametrize("ident", ["boil/21", "find-animal/225", "mendelian-genetics-known-plant/90"])
def test_every_thing_can_be_seen(ident: str) -> None:
    """A tour through open doors and containers finds all objects and locations of the tree."""
    world = ScienceWorld(simplifications="teleportAction,openDoors,openContainers")
    try:
        start = world.reset(_task(ident))
        points = [c for c in world.checkpoints("all") if c.kind != "affordance"]
        coverage = Coverage(points, world.checkpoint_matcher())
        coverage.observe(0, None, start)
        t = 0
        for room in sorted(names(points, "location")):
            for action in (f"teleport to {room}", "look around", "inventory"):
                t += 1
                coverage.observe(t, action, world.step(action))
        missed = [c.name for c, step in coverage.result().hits.items() if step is None]
        assert missed == []
    finally:
        world.close()


@pytest.mark.engine
def test_reciting_scores_0_and_examining_never_proves_the_name(env: ScienceWorld) -> None:
    task = _task("boil/21")
    assert recite(env, task, ("{}", "I see {}", "there is a {} here", "get 1 {}", "take the {} please")).covered == 0
    env.reset(task)
    matcher = env.checkpoint_matcher()
    for name in sorted(names(env.checkpoints("all"), "object")):
        for action in (f"examine {name}", f"look at {name}"):
            proved = names(matcher.observe(action, env.step(action)), "object")
            assert name not in proved


@pytest.mark.engine
@pytest.mark.slow
def test_systematic_beats_random_beats_repetitive(env: ScienceWorld) -> None:
    """On twelve different tasks."""
    for difference in ordering(env, env.tasks("test")[:12], 60):
        assert difference.low > 0
