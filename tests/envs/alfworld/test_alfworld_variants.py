"""The variants of paper 001, appendix F: what changes, what stays, and that every changed game can be solved."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import pytest
from alfworld_helpers import needs_engine, needs_wheel, official

from agentexp.cli import main
from agentexp.core import Task
from agentexp.envs.alfworld import AlfWorld, wheel
from agentexp.envs.alfworld.goals import Goal, parse_goal
from agentexp.envs.alfworld.moves import lying
from agentexp.envs.alfworld.oracle import Household, plan
from agentexp.envs.alfworld.problem import Problem
from agentexp.envs.alfworld.variant_table import COLUMNS, rows
from agentexp.envs.alfworld.variants import VARIANTS, Variant, Varied, vary
from agentexp.errors import UserError

pytestmark = [needs_wheel]
SIZE = 48


def _games(variant: Variant, **settings: object) -> list[tuple[Task, Goal, Problem, Varied]]:
    """Changed games of the generated split, with their originals."""
    plain, env = AlfWorld(test=SIZE), AlfWorld(test=SIZE, variant=variant, **settings)  # type: ignore[arg-type]
    found = []
    for task, original in zip(env.tasks("test"), plain.tasks("test"), strict=True):
        goal, varied = parse_goal(str(task.spec["task"])), env.varied(task)
        assert goal is not None and varied is not None
        assert (task.id, task.key, task.instance_seed) == (original.id, original.key, original.instance_seed)
        found.append((task, goal, plain.problem(original), varied))
    return found


def _placed(problem: Problem) -> dict[str, set[str]]:
    places: dict[str, set[str]] = {}
    for thing, place in Household(problem.init).all("inreceptacle"):
        places.setdefault(thing, set()).add(place)
    return places


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_game_is_changed_solvable_and_the_same_every_time(variant: Variant) -> None:
    games = _games(variant)
    for (task, goal, original, varied), again in zip(games, _games(variant), strict=True):
        assert varied == again[3]
        assert plan(varied.problem.init, varied.problem.names, goal) == list(varied.plan) and varied.plan
        assert varied.change.variant == variant and varied.change.draws == 1
        assert original.names.items() <= varied.problem.names.items(), "numbers of known things stay"
        assert varied.problem.goal == original.goal
        json.dumps(dict(task.spec))
    other = _games(variant, variant_seed=1)
    assert sum(a[3].problem != b[3].problem for a, b in zip(games, other, strict=True)) > SIZE / 4, variant


def test_relocation_moves_all_targets_and_the_lamp_and_nothing_else() -> None:
    for _, goal, original, varied in _games("relocation"):
        home, before, after = Household(original.init), _placed(original), _placed(varied.problem)
        for thing, places in before.items():
            kind = home.type_of.get(thing)
            if kind == goal.thing:
                (new,) = after[thing]
                assert home.location[new] not in {home.location[place] for place in places if place in home.location}
                assert home.type_of[new] != goal.place
                assert Household(varied.problem.init).holds("objectatlocation", thing, home.location[new])
            elif kind != goal.lamp:
                assert after[thing] == places
        assert varied.change.harder


def test_relocation_lands_in_open_furniture_where_the_type_fits_nowhere_else() -> None:
    stretched = [
        (goal, varied)
        for _, goal, original, varied in _games("relocation")
        if not all(
            Household(original.init).fits(thing, place)
            for thing, place in Household(varied.problem.init).all("inreceptacle")
            if Household(original.init).type_of.get(thing) == goal.thing
        )
    ]
    assert len(stretched) <= 1


def test_precondition_only_takes_possibilities_away() -> None:
    seen: Counter[str] = Counter()
    for _, goal, original, varied in _games("precondition"):
        home, now, change = Household(original.init), Household(varied.problem.init), varied.change
        seen["closed"] += bool(change.closed)
        seen["occupied"] += bool(change.occupied)
        seen["harder"] += change.harder
        added = {thing for thing, places in _placed(varied.problem).items() if thing not in _placed(original)}
        assert {k: v for k, v in _placed(varied.problem).items() if k not in added} == _placed(original)
        assert now.all("openable") >= home.all("openable") and not now.all("opened")
        assert {now.type_of[thing] for thing in added}.isdisjoint({goal.thing})
        if change.occupied:
            assert {place for (place,) in now.all("full")} == set(home.places(goal.place))
            for place in home.places(goal.place):  # something lies there that can be cleared away
                assert any(now.holds("pickupable", x) and now.type_of.get(x) != goal.thing for x in now.contents[place])
        if change.harder:
            assert len(varied.plan) >= len(plan(original.init, original.names, goal))
        if goal.lamp:
            assert not change.occupied
    assert seen["closed"] > SIZE / 4 and seen["occupied"] > SIZE / 4 and seen["harder"] > 0.8 * SIZE


@pytest.mark.parametrize(("kind", "similar", "same"), [("similar", 3, 0), ("same", 0, 2), ("both", 3, 2)])
def test_distractors(kind: str, similar: int, same: int) -> None:
    for _, goal, original, varied in _games("distractors", distractor_kind=kind):
        now = Household(varied.problem.init)
        added = {thing for thing in _placed(varied.problem) if thing not in _placed(original)}
        kinds = Counter(now.type_of[thing] == goal.thing for thing in added)
        assert (kinds[False], kinds[True]) == (similar, same)
        assert len(varied.change.added) == similar + same
        for thing in added:
            (place,) = _placed(varied.problem)[thing]
            assert now.fits(thing, place) and now.holds("pickupable", thing)
            assert now.type_of[thing] != goal.thing or now.type_of[place] != goal.place
        assert set(original.init) <= set(varied.problem.init)


def test_a_full_receptacle_is_cleared_with_whatever_is_in_hand() -> None:
    problem = next(varied for _, goal, _, varied in _games("precondition") if varied.change.occupied and not goal.lamp).problem
    goal = next(goal for _, goal, _, varied in _games("precondition") if varied.problem == problem)
    home = Household(problem.init)
    target = next(x for xs in home.contents.values() for x in xs if home.type_of.get(x) == goal.thing)
    holding = [f for f in problem.init if not (f[0] in ("inreceptacle", "objectatlocation") and f[1] == target)]
    holding += [("holds", "agent1", target), ("holdsany", "agent1")]
    commands = plan(holding, problem.names, goal)
    name = problem.names[target]
    assert commands[-1].startswith(f"move {name} to ")
    assert any(c.startswith("take") and name not in c for c in commands), "something else is taken out first"


def test_the_domain_for_full_receptacles_differs_in_two_lines() -> None:
    for logic in ("new", "old"):
        plain, full = wheel.domain(logic).splitlines(), wheel.domain(logic, occupied=True).splitlines()  # type: ignore[arg-type]
        changed = [(a.strip(), b.strip()) for a, b in zip(plain, full, strict=True) if a != b]
        assert changed == [(";(not (full ?r))", "(not (full ?r))")] * 2


def test_settings_are_checked_and_recorded() -> None:
    for wrong in ({"variant": "chaos"}, {"distractor_kind": "odd"}, {"perturb": "often"}):
        with pytest.raises(UserError, match=f"env.{next(iter(wrong))}="):
            AlfWorld(**wrong)  # type: ignore[arg-type]
    env = AlfWorld(test=1, variant="distractors", distractor_kind="both", variant_seed=7)
    spec = env.tasks("test")[0].spec
    assert (spec["variant"], spec["variant_seed"], spec["distractors"]) == ("distractors", 7, "both")
    assert env.versions() != AlfWorld(test=1).versions()
    assert (
        "variant" not in AlfWorld(test=1).tasks("test")[0].spec and AlfWorld(test=1).varied(AlfWorld().tasks("test")[0]) is None
    )
    with pytest.raises(UserError, match="version"):
        env.varied(replace(env.tasks("test")[0], spec={**spec, "variant_version": 0}))


def test_a_game_that_cannot_be_solved_is_a_user_error() -> None:
    env = AlfWorld(test=1)
    task = env.tasks("test")[0]
    goal = parse_goal(str(task.spec["task"]))
    assert goal is not None
    problem = env.problem(task)
    keep = min(Household(problem.init).location)
    one = replace(problem, init=tuple(f for f in problem.init if not (f[0] == "receptacleatlocation" and f[1] != keep)))
    with pytest.raises(UserError, match="cannot be solved"):
        vary(one, goal, "relocation", 0, "x")


def test_the_command_knows_only_variants(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["envs", "nonsense"])
    assert stopped.value.code == 2 and "variants" in capsys.readouterr().err


@pytest.mark.slow
def test_all_generated_variants_are_solvable() -> None:
    table = [dict(zip(COLUMNS, row, strict=True)) for row in rows(None)]
    assert len(table) == 5 and all(row["games"] == row["solvable"] == "200" for row in table)


@pytest.mark.slow
def test_all_official_variants_are_solvable() -> None:
    table = [dict(zip(COLUMNS, row, strict=True)) for row in rows(str(official()))]
    sums = [row for row in table if row["split"] == "all"]
    assert len(sums) == 5 and all(row["games"] == row["solvable"] == "274" for row in sums)
    by_name = {row["variant"]: row for row in sums}
    assert by_name["relocation"]["old plan fails"] == "274"
    assert int(by_name["precondition"]["old plan fails"]) > 240


@pytest.mark.engine
@needs_engine
@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("where", ["generated", "official"])
def test_the_engine_agrees_with_the_plan(variant: Variant, where: str) -> None:
    data, split, every = (None, "test", 1) if where == "generated" else (str(official()), "valid_unseen", 20)
    env, plain = AlfWorld(data=data, test=6, variant=variant), AlfWorld(data=data, test=6)
    for task, original in list(zip(env.tasks(split), plain.tasks(split), strict=True))[::every]:
        varied = env.varied(task)
        assert varied is not None
        step = env.reset(task)
        assert env.oracle() == list(varied.plan)
        for action in varied.plan:
            assert not step.success
            step = env.step(action)
            assert not step.error, action
        assert step.success
        before, goal = plain.problem(original), parse_goal(str(task.spec["task"]))
        assert goal is not None
        step = env.reset(task)
        for action in plan(before.init, before.names, goal):
            step = env.step(action)
        assert step.success != varied.change.harder
    env.close()


@pytest.mark.engine
@needs_engine
def test_an_occupied_place_refuses_until_something_is_taken_out() -> None:
    env = AlfWorld(test=12, variant="precondition")
    for task in env.tasks("test"):
        varied, goal = env.varied(task), parse_goal(str(task.spec["task"]))
        assert varied is not None and goal is not None
        if varied.change.occupied and goal.kind == "pick_and_place_simple":
            break
    else:
        pytest.fail("no such game")
    env.reset(task)
    goal_place = varied.plan[-1].split(" to ")[1]
    assert any(c.startswith("take") and c.endswith(f"from {goal_place}") for c in varied.plan[:-1])
    home, names = Household(varied.problem.init), varied.problem.names
    thing, places = next(iter(lying(home, goal.thing).items()))
    for action in (f"go to {names[places[0]]}", f"open {names[places[0]]}"):
        env.step(action)
    assert not env.step(f"take {names[thing]} from {names[places[0]]}").error
    for action in (f"go to {goal_place}", f"open {goal_place}"):
        env.step(action)
    assert env.step(f"move {names[thing]} to {goal_place}").error
    for action in env.oracle():
        step = env.step(action)
        assert not step.error, action
    assert step.success
    env.close()
