"""The STRIPS engine: language, transitions beside an independent planner, plans beside independent validators."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentexp.envs.pddl import suite
from agentexp.envs.pddl.generators import draw
from agentexp.envs.pddl.grounding import Ground
from agentexp.envs.pddl.language import read_domain, read_problem
from agentexp.envs.pddl.search import Planner, Unsolved
from agentexp.envs.pddl.suite import KINDS, own_domain
from agentexp.errors import UserError

DOMAINS = Path(suite.__file__).parent / "domains"
SEEDS = range(4)
SWITCH = """(DEFINE (domain Switch) ; a comment
  (:requirements :strips :typing :equality :negative-preconditions)
  (:types lamp fuse - thing thing room - object) (:constants main - fuse)
  (:predicates (on ?x - thing) (in ?x - thing ?r - room) (blown))
  (:action press :parameters (?l - lamp ?k - lamp) :precondition (and (not (on ?l)) (not (blown)) (not (= ?l ?k)))
    :effect (and (on ?l) (not (on ?k))))
  (:action blow :parameters (?x - thing) :precondition (and (on ?x)) :effect (and (blown) (not (on ?x)))))"""
LAMPS = (
    "(define (problem p) (:domain switch) (:objects a b - lamp main - fuse hall - room) (:init (in a hall)) (:goal (and {}))) )"
)


def ground(kind: str, seed: int) -> Ground:
    return Ground(own_domain(kind), read_problem(draw(kind, seed), own_domain(kind), "drawn"))


def walk(start: Ground, steps: int, seed: int = 0) -> Iterator[int]:
    """States of a random walk."""
    rng, state = random.Random(seed), start.init
    for _ in range(steps):
        yield state
        state = rng.choice(start.applicable(state)).after(state)


# ---------------------------------------------------------------------------------------------------------- differential


def pyperplan_task(kind: str, seed: int, folder: Path) -> Any:
    parser = pytest.importorskip(
        "pyperplan.pddl.parser", reason="needs pyperplan, an independent planner (pip install pyperplan)"
    )
    grounding = pytest.importorskip("pyperplan.grounding")
    path = folder / f"{kind}{seed}.pddl"
    path.write_text(draw(kind, seed))
    reader = parser.Parser(str(DOMAINS / f"{kind}.pddl"), str(path))
    problem = reader.parse_problem(reader.parse_domain())
    return grounding.ground(problem, remove_statics_from_initial_state=False, remove_irrelevant_operators=False)


def text(atom: tuple[str, ...]) -> str:
    return f"({' '.join(atom)})"


@pytest.mark.parametrize("kind", KINDS)
def test_states_and_applicable_actions_are_pyperplans(kind: str, tmp_path: Path) -> None:
    """At least 400 states of each domain: the same atoms, applicable actions, successors and goal test."""
    compared = 0
    for seed in SEEDS:
        own, other = ground(kind, seed), pyperplan_task(kind, seed, tmp_path)
        operators = {op.name: op for op in other.operators}
        rng, state, theirs = random.Random(seed), own.init, other.initial_state
        for _ in range(120):
            assert {text(atom) for atom in own.holding(state)} == set(theirs)
            possible = own.applicable(state)
            assert {text(op.name) for op in possible} == {name for name, op in operators.items() if op.applicable(theirs)}
            assert own.solved(state) == other.goal_reached(theirs)
            for op in rng.sample(possible, min(3, len(possible))):
                assert {text(a) for a in own.holding(op.after(state))} == set(operators[text(op.name)].apply(theirs))
            chosen = rng.choice(possible)
            state, theirs = chosen.after(state), operators[text(chosen.name)].apply(theirs)
            compared += 1
    assert compared >= 400


@pytest.mark.parametrize("kind", KINDS)
def test_plans_reach_the_goal_in_pyperplan(kind: str, tmp_path: Path) -> None:
    for seed in SEEDS:
        own, other = ground(kind, seed), pyperplan_task(kind, seed, tmp_path)
        operators, state = {op.name: op for op in other.operators}, other.initial_state
        for op in Planner(own).plan(own.init):
            assert operators[text(op.name)].applicable(state)
            state = operators[text(op.name)].apply(state)
        assert other.goal_reached(state)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_plans_are_valid_for_unified_planning(kind: str) -> None:
    up = pytest.importorskip("unified_planning.shortcuts", reason="needs unified-planning, an independent plan validator")
    from unified_planning.io import PDDLReader
    from unified_planning.plans import ActionInstance, SequentialPlan

    up.get_environment().credits_stream = None
    for seed in SEEDS:
        own = ground(kind, seed)
        problem = PDDLReader().parse_problem_string((DOMAINS / f"{kind}.pddl").read_text(), draw(kind, seed))
        steps = [
            ActionInstance(problem.action(op.name[0]), tuple(map(problem.object, op.name[1:])))
            for op in Planner(own).plan(own.init)
        ]
        with up.PlanValidator(name="sequential_plan_validator") as validator:
            assert validator.validate(problem, SequentialPlan(steps))
            if len(steps) > 1:
                assert not validator.validate(problem, SequentialPlan(steps[:-1]))


# ------------------------------------------------------------------------------------------------------------- the planner


@pytest.mark.parametrize("kind", KINDS)
def test_plans_from_anywhere_are_plans_without_waste(kind: str) -> None:
    for seed in SEEDS:
        own = ground(kind, seed)
        planner = Planner(own)
        for start in list(walk(own, 21, seed))[:: 20 if kind == "barman" else 10]:
            try:
                plan = planner.plan(start)
            except Unsolved as failure:
                assert failure.proved and kind == "barman"  # a spoilt shaker
                continue
            state, seen = start, [start]
            for op in plan:
                assert op.possible(state) and not own.solved(state)
                state = op.after(state)
                seen.append(state)
            assert own.solved(state) and len(set(seen)) == len(seen)
        assert seed or planner.plan(own.init) == Planner(own).plan(own.init)


def test_a_blocks_plan_is_as_short_as_breadth_first_search_finds() -> None:
    for seed in range(8):
        own = ground("blockworld", seed)
        if len(own.problem.objects) > 5:
            continue
        level, seen, depth = {own.init}, {own.init}, 0
        while not any(map(own.solved, level)):
            level = {op.after(state) for state in level for op in own.applicable(state)} - seen
            seen |= level
            depth += 1
        assert len(Planner(own).plan(own.init)) == depth


def test_no_plan_and_no_time() -> None:
    fine = ground("barman", 0)
    never_empty = draw("barman", 0).replace("(empty shaker1)", "")  # nothing can be poured into it, nor can it be emptied
    spoilt = Ground(own_domain("barman"), read_problem(never_empty, own_domain("barman"), "spoilt"))
    with pytest.raises(Unsolved) as none:
        Planner(spoilt).plan(spoilt.init)
    assert none.value.proved
    with pytest.raises(Unsolved) as short:
        Planner(fine).plan(fine.init, limit=2)
    assert not short.value.proved


# -------------------------------------------------------------------------------------------------------------- language


def test_types_constants_equality_and_negation() -> None:
    domain = read_domain(SWITCH, "switch.pddl")
    assert domain.is_a(("lamp",), ("thing",)) and not domain.is_a(("room",), ("thing",)) and domain.is_a(("room",), ("object",))
    own = Ground(domain, read_problem(LAMPS.format("(on a) (not (on b))"), domain, "p.pddl"))
    assert {op.name for op in own.applicable(own.init)} == {("press", "a", "b"), ("press", "b", "a")}
    assert own.static == {("in", "a", "hall")} and own.fraction(own.init) == 0.5
    plan = Planner(own).plan(own.init)
    assert [op.name for op in plan] == [("press", "a", "b")] and own.solved(plan[0].after(own.init))
    other = Ground(domain, read_problem(LAMPS.format("(not (blown)) (on b)"), domain, "p.pddl"))
    lit = plan[0].after(own.init)
    assert [op.name for op in Planner(other).plan(lit)] == [("press", "b", "a")]
    blown = own.by_name["blow", "a"].after(lit)
    assert own.applicable(blown) == []
    with pytest.raises(Unsolved):
        Planner(other).plan(blown)
    impossible = Ground(domain, read_problem(LAMPS.format("(in b hall)"), domain, "p.pddl"))
    with pytest.raises(Unsolved):
        Planner(impossible).plan(impossible.init)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("(and (on ?x))", "(or (on ?x) (blown))", "conjunctions"),
        ("(and (on ?x))", "(and (on ?z))", r"does not declare \?z"),
        ("(define (domain", "(define (problem", "not a domain"),
        ("(blown))", "(blown)", "not closed"),
        ("(:types", "(:functions (f)) (:types", ":functions is not supported"),
    ],
)
def test_bad_domains_are_user_errors(old: str, new: str, said: str) -> None:
    with pytest.raises(UserError, match=rf"^bad\.pddl cannot be read as PDDL: .*{said}"):
        read_domain(SWITCH.lower().replace(old, new, 1), "bad.pddl")


@pytest.mark.parametrize(("goal", "said"), [("(on z)", "object z"), ("(off a)", r"\(off a\)"), ("(on a b)", r"\(on a b\)")])
def test_bad_problems_are_user_errors(goal: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        read_problem(LAMPS.format(goal), read_domain(SWITCH, "d"), "p.pddl")
