"""ScienceWorld's map questions: answers found by going and looking in the real engine."""

from __future__ import annotations

import importlib.util
import random
from collections.abc import Iterator

import pytest
from questions_kit import judged, pool, seen, wrong

from agentexp.core import CognitiveMap
from agentexp.envs.scienceworld import ScienceWorld
from agentexp.envs.scienceworld.inventory import Item, Stock
from agentexp.envs.scienceworld.names import canonical
from agentexp.envs.scienceworld.questions import OPENS, REFUSED, questions
from agentexp.envs.scienceworld.texts import Thing, read_room
from agentexp.metrics.map_qa import CATEGORIES, fidelity, grade

needs_engine = pytest.mark.skipif(
    importlib.util.find_spec("scienceworld") is None or importlib.util.find_spec("py4j") is None,
    reason="scienceworld is not installed",
)


@pytest.fixture(scope="module")
def env() -> Iterator[ScienceWorld]:
    world = ScienceWorld(simplifications="teleportAction")
    yield world
    world.close()


def _names(things: list[Thing]) -> set[str]:
    return {canonical(thing.name) for thing in things}.union(*(_names(thing.contents) for thing in things))


STOCK = Stock(
    ("hall", "kitchen"),
    (
        Item("cupboard", "kitchen", "kitchen", frozenset({"cup"}), opens=True),
        Item("cup", "kitchen", "cupboard", frozenset()),
        Item("cup", "hall", "hall", frozenset()),
        Item("orange", "hall", "hall", frozenset()),
        Item("orange box", "kitchen", "kitchen", frozenset()),
        Item("bee", "hall", "hall", frozenset(), alive=True),
        Item("lead", "hall", "cup", frozenset(), substance=True),
    ),
)


def test_what_is_asked_about_a_small_lab() -> None:
    asked = questions(STOCK, "Your task is to melt lead. Put it in the orange box.", 0)
    assert asked == questions(STOCK, "Your task is to melt lead. Put it in the orange box.", 0)
    where = {q.query[1]: q.answers for q in asked if q.category == "object_location"}
    assert where == {
        "cupboard": ("kitchen",),
        "cup": ("hall", "kitchen"),
        "orange": ("hall",),
        "orange box": ("kitchen",),
    }  # a bee moves, lead melts
    assert {q.query[1]: q.answers for q in asked if q.category == "task_reasoning"} == {
        "lead": ("hall",),
        "orange box": ("kitchen",),
    }
    opens = {q.query[1]: q.answers for q in asked if q.query[0] == "open"}
    assert opens["cupboard"] == (OPENS,) and opens["orange"] == (REFUSED,)
    assert {q.category for q in asked} == set(CATEGORIES)


@pytest.mark.engine
@pytest.mark.slow
@needs_engine
def test_answers_by_going_and_looking(env: ScienceWorld) -> None:
    task = env.tasks("test")[0]
    asked = pool(env, task, 5)
    assert pool(env, task, 5) == asked
    step = env.reset(task)
    inside: dict[str, set[str]] = {}
    for room in asked[0].names or next(q.names for q in asked if q.names):
        env.step(f"teleport to {room}")
        step = env.step("look around")
        described = read_room(step.observation)
        assert described is not None and described.name == room
        inside[room] = _names(described.things)
    for question in asked:
        verb, name, *about = question.query
        if verb == "where":  # what stands behind a door is there, but not in view
            assert {room for room in inside if name in inside[room]} <= set(question.answers), question.text
        elif verb == "inside" and question.answers == ("no",):
            assert name not in inside[about[0]], question.text
    for question in random.Random(0).sample([q for q in asked if q.query[0] == "inside" and q.answers == ("yes",)], 8):
        _, name, room, *_ = question.query
        env.reset(task)
        env.step(f"teleport to {room}")
        for holder in ("cupboard", "large cupboard", "fridge", "freezer", "closet", "drawer", "desk", "glass jar", "oven"):
            env.step(f"open {holder}")
        described = read_room(env.step("look around").observation)
        assert described is not None and name in _names(described.things), question.text


@pytest.mark.engine
@pytest.mark.slow
@needs_engine
def test_actions_by_trying(env: ScienceWorld) -> None:
    task = env.tasks("test")[0]
    asked = pool(env, task)
    room_of = {q.query[1]: q.answers[0] for q in asked if q.query[0] == "where" and len(q.answers) == 1}
    tried = [q for q in asked if q.query[0] in ("open", "activate") and q.query[1] in room_of]
    tried = [q for q in tried if q.answers != (REFUSED,)] + [q for q in tried if q.answers == (REFUSED,)][:8]
    for question in tried:
        verb, name = question.query
        env.reset(task)
        env.step(f"teleport to {room_of[name]}")
        step = env.step(f"{verb} {name}")
        if not step.observation.startswith("The "):
            continue  # out of view behind a door, or ambiguous
        assert step.error is (question.answers == (REFUSED,)), (question.text, step.observation)


@pytest.mark.engine
@pytest.mark.slow
@needs_engine
def test_maps_answer_nearly_all_that_was_seen(env: ScienceWorld) -> None:
    """Not all: the tracker names a thing's holder without its room, and several rooms have a table."""
    asked_of_all = failed = 0
    plain = ScienceWorld()
    try:
        for task in random.Random(3).sample(plain.tasks("test"), 4):
            known, asked, counts = seen(plain, task, 60)
            bad = wrong(plain, asked, known)
            assert counts["affordance"] and not [text for text, *_ in bad if text.startswith("What happens")]
            asked_of_all, failed = asked_of_all + len(asked), failed + len(bad)
            verdict = judged(plain, task, known)
            assert (fidelity(verdict) or 0.0) > 0.99 and verdict.found > 8
    finally:
        plain.close()
    assert failed / asked_of_all < 0.15


@pytest.mark.engine
@needs_engine
def test_alignment_finds_what_is_false(env: ScienceWorld) -> None:
    task = env.tasks("test")[0]
    asked = pool(env, task)
    where = next(q for q in asked if q.query[0] == "where" and len(q.answers) == 1)
    name, room = where.query[1], where.answers[0]
    other = next(place for place in where.names if place != room)
    opens = next(q.query[1] for q in asked if q.query[0] == "open" and q.answers == (OPENS,))
    known = CognitiveMap(
        spatial=[
            {"thing": name, "relation": "in", "place": room},
            {"thing": name, "relation": "in", "place": other},
            {"thing": f"{opens} in nowhere", "relation": "is", "place": "closed"},
            {"thing": "kitchen", "relation": "connects", "place": "hallway"},
            {"thing": "kitchen", "relation": "connects", "place": "moon"},
        ],
        absent=[{"place": room, "what": name}, {"place": other, "what": name}, {"place": room, "what": "anything"}],
        affordances=[
            {"action": f"open {opens}", "target": opens, "works": True, "effect": "works"},
            {"action": "open", "target": "moon", "works": True, "effect": "works"},
            {"action": f"eat {opens}", "target": opens, "works": True, "effect": "works"},
        ],
    )
    verdict = judged(env, task, known)
    wrong_ones = (("spatial", 1), ("spatial", 2), ("spatial", 4), ("absent", 0), ("absent", 2), ("affordances", 1))
    assert verdict.wrong == wrong_ones and verdict.unjudged == 2 and verdict.right == 3
    assert not grade(where, env.look_up(where, CognitiveMap())).correct
