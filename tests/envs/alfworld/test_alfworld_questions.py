"""ALFWorld's map questions: answers found by going and looking in the real engine, and by complete maps of official games."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from alfworld_helpers import full_map, needs_engine, needs_wheel, official
from questions_kit import judged, pool, seen, wrong

from agentexp.capabilities import Question
from agentexp.core import CognitiveMap
from agentexp.envs.alfworld import AlfWorld, texts
from agentexp.envs.alfworld.goals import parse_goal
from agentexp.envs.alfworld.oracle import Household
from agentexp.envs.alfworld.questions import OPENING, questions
from agentexp.metrics.map_qa import CATEGORIES, fidelity


@pytest.fixture(scope="module")
def env() -> Iterator[AlfWorld]:
    world = AlfWorld()
    yield world
    world.close()


@needs_wheel
def test_complete_maps_answer_all_questions_about_the_official_games() -> None:
    """All but those about heating, cooling and cleaning, which such a map does not tell."""
    env = AlfWorld(data=str(official()))
    counts: Counter[str] = Counter()
    for task in (env.tasks("valid_seen") + env.tasks("valid_unseen"))[::9]:
        problem, text = env.problem(task), str(task.spec["task"])
        asked = questions(problem.init, problem.names, parse_goal(text), text, 0)
        assert questions(problem.init, problem.names, parse_goal(text), text, 0) == asked
        asked = [q for q in asked if q.query[0] != "treat"]
        counts.update(q.query[0] for q in asked)
        known, home = full_map(env, task), Household(problem.init)
        doors = {problem.names[place] for place in home.location if home.holds("openable", place)}
        on = [{**entry, "relation": "in" if entry["place"] in doors else "on"} for entry in known.spatial]
        known.spatial = on + [{"thing": place, "relation": "is", "place": "closed"} for place in sorted(doors)]
        known.unknown = sorted(set(problem.names.values()))  # the first text lists all places
        assert wrong(env, asked, known) == [], task.id
    assert counts["first"] == counts["which"] == counts["bring"] > 25  # no task without its three questions


@needs_wheel
def test_half_of_the_questions_about_absence_are_to_be_answered_with_no() -> None:
    env = AlfWorld()
    for task in env.tasks("test")[:5]:
        problem = env.problem(task)
        asked = questions(problem.init, problem.names, None, "", 1)
        answers = Counter(q.answers[0] for q in asked if q.category == "negative")
        assert answers["yes"] and answers["no"] and not any(q.category == "task_reasoning" for q in asked)


def _sight(env: AlfWorld, place: str) -> tuple[bool, tuple[str, ...]]:
    """Go there, open it: whether it had to be opened, and what is in it."""
    step = env.step(f"go to {place}")
    if step.error:  # it shares the place where the agent is
        step = env.step(f"examine {place}")
    (sight,) = [s for s in texts.sights(step.observation) if s.place == place]
    if sight.contents is not None:
        return False, sight.contents
    (sight,) = [s for s in texts.sights(env.step(f"open {place}").observation) if s.place == place]
    return True, sight.contents or ()


@pytest.mark.engine
@needs_engine
@needs_wheel
def test_answers_by_going_and_looking(env: AlfWorld) -> None:
    for task in env.tasks("test")[:2]:
        asked = pool(env, task)
        step = env.reset(task)
        found = {place: _sight(env, place) for place in texts.places(step.observation)}
        for question in asked:
            verb, *about = question.query
            if verb == "where":
                assert [p for p in sorted(found) if about[0] in found[p][1]] == list(question.answers)
            elif verb == "open":
                opened, things = found[about[0]]
                assert question.answers[0] == (OPENING[not things] if opened else OPENING[2])
            elif verb == "inside":
                there = about[0] in map(texts.kind, found[about[1]][1])
                assert question.answers == ("yes" if there else "no",)


@pytest.mark.engine
@needs_engine
@needs_wheel
@pytest.mark.slow
def test_the_first_place_is_on_an_optimal_way_and_no_other_is(env: AlfWorld) -> None:
    for task in env.tasks("test")[:6:2]:
        asked = {q.query[0]: q for q in pool(env, task) if q.category == "task_reasoning"}
        step = env.reset(task)
        best, places = env.oracle(), texts.places(step.observation)
        assert best[0].removeprefix("go to ") in asked["first"].answers
        for place in [*asked["first"].answers, *[p for p in places if p not in asked["first"].answers][::8]]:
            env.reset(task)
            assert not env.step(f"go to {place}").error
            assert (len(env.oracle()) + 1 == len(best)) is (place in asked["first"].answers), place
        taken = next(i for i, action in enumerate(best) if action.startswith("take "))
        command = texts.command(best[taken])
        assert command is not None and command.thing in asked["which"].answers
        after = next((action.removeprefix("go to ") for action in best[taken:] if action.startswith("go to ")), command.place)
        assert after in asked["bring"].answers or command.place in asked["bring"].answers


@pytest.mark.engine
@needs_engine
@needs_wheel
@pytest.mark.slow
def test_whether_a_type_can_be_treated(env: AlfWorld) -> None:
    """Of a task with heating, cooling or cleaning: with the thing in hand every appliance is tried."""
    tried = 0
    for task in env.tasks("test")[:8]:
        asked: dict[tuple[str, ...], Question] = {q.query[1:]: q for q in pool(env, task) if q.query[0] == "treat"}
        env.reset(task)
        for action in env.oracle():
            env.step(action)
            command = texts.command(action)
            if command is not None and command.verb == "take":
                break
        else:
            continue
        assert command is not None
        kind = texts.kind(command.thing)
        for (verb, of, place), question in asked.items():
            if of == kind:
                env.step(f"go to {place}")
                worked = not env.step(f"{verb} {command.thing} with {place}").error
                assert question.answers == ("yes" if worked else "no",), question.text
                tried += 1
    assert tried > 10


@pytest.mark.engine
@needs_engine
@needs_wheel
@pytest.mark.slow
def test_maps_answer_all_that_was_seen_and_hold(env: AlfWorld) -> None:
    for task in env.tasks("test")[:2]:
        known, asked, counts = seen(env, task, 120)
        assert set(counts) == set(CATEGORIES) and wrong(env, asked, known) == []
        verdict = judged(env, task, known)
        assert fidelity(verdict) == 1.0 and verdict.found == verdict.places
        known, asked, counts = seen(env, task, 10)
        assert counts and wrong(env, asked, known) == []
        assert judged(env, task, known).found < verdict.places


@pytest.mark.engine
@needs_engine
@needs_wheel
def test_alignment_finds_what_is_false(env: AlfWorld) -> None:
    task = env.tasks("test")[0]
    where = next(q for q in pool(env, task) if q.query[0] == "where" and len(q.answers) == 1)
    thing, place = where.query[1], where.answers[0]
    other = next(name for name in where.names if name != place)
    full = full_map(env, task)
    empty = next((entry["place"] for entry in full.absent), "")
    known = CognitiveMap(
        spatial=[
            {"thing": thing, "relation": "in", "place": place},
            {"thing": thing, "relation": "in", "place": other},
            {"thing": place, "relation": "contains", "place": thing},
            {"thing": thing, "relation": "is", "place": "nice"},
        ],
        absent=[{"place": place, "what": "anything"}, {"place": empty or "nowhere 1", "what": "anything"}],
        affordances=[
            {"action": "take", "target": f"{texts.kind(thing)} at {texts.kind(place)}", "works": True, "effect": ""},
            {"action": "open", "target": texts.kind(thing), "works": True, "effect": "it opens"},
            {"action": "heat", "target": "desk with fridge", "works": False, "effect": "nothing happens"},
            {"action": "dance", "target": "", "works": True, "effect": ""},
        ],
    )
    verdict = judged(env, task, known)
    bad = [("spatial", 1), ("absent", 0), *([] if empty else [("absent", 1)]), ("affordances", 1)]
    assert verdict.wrong == tuple(bad) and verdict.unjudged == 2
