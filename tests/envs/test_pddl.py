"""The PDDL worlds: splits, texts, score, expert, files of the user."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from agentexp.capabilities import HasAlignment, HasCheckpoints, HasFacts, HasOracle, HasPolicies, HasQuestions
from agentexp.core import Env, Step, Task
from agentexp.envs.pddl import Pddl, suite
from agentexp.envs.pddl.freeze import key
from agentexp.envs.pddl.generators import LEAST, MOST, draw
from agentexp.envs.pddl.grounding import Ground
from agentexp.envs.pddl.language import read_problem
from agentexp.envs.pddl.phrases import Phrases
from agentexp.envs.pddl.suite import KINDS, own_domain
from agentexp.errors import EngineError, UserError

REFUSED = "The action is not valid and therefore takes no effect."
GRIPPER = """(define (problem two) (:domain gripper)
  (:objects rooma roomb ball1 ball2 left right)
  (:init (room rooma) (room roomb) (ball ball1) (ball ball2) (gripper left) (gripper right) (free left) (free right)
         (at-robby rooma) (at ball1 rooma) (at ball2 roomb))
  (:goal (and (at ball1 roomb) (at ball2 roomb))))"""


@pytest.fixture
def env() -> Pddl:
    return Pddl()


def some(env: Pddl, split: str = "test", each: int = 1) -> list[Task]:
    """A few tasks of every kind, spread over the split."""
    found = []
    for kind in KINDS:
        tasks = [task for task in env.tasks(split) if task.kind == kind]
        found += tasks[:: max(1, len(tasks) // each)][:each]
    return found


def folder(path: Path, problem: str = GRIPPER) -> str:
    (path / "domains").mkdir()
    (path / "domains" / "gripper.pddl").write_text((Path(suite.__file__).parent / "domains" / "gripper.pddl").read_text())
    (path / "two.pddl").write_text(problem)
    return str(path)


# ---------------------------------------------------------------------------------------------------------------- splits


def test_protocols_and_sizes(env: Pddl) -> None:
    for protocol in (Env, HasOracle, HasFacts, HasPolicies, HasCheckpoints, HasQuestions, HasAlignment):
        assert isinstance(env, protocol)
    kinds = {split: Counter(task.kind for task in env.tasks(split)) for split in env.splits()}
    assert kinds["test"] == kinds["dev"] == {"gripper": 20, "blockworld": 10, "barman": 20, "tyreworld": 10}
    assert sum(kinds["train"].values()) == 300
    assert all(LEAST <= task.spec["plan"] <= MOST for split in env.splits() for task in env.tasks(split))
    assert {task.kind for task in Pddl(domains=["barman"]).tasks("test")} == {"barman"}
    with pytest.raises(UserError, match=r"env\.domains=\['hanoi'\].*gripper, blockworld, barman, tyreworld"):
        Pddl(domains=["hanoi"])
    with pytest.raises(UserError, match=r"env\.split=valid .*train, dev, test"):
        env.tasks("valid")


def test_no_problem_is_in_two_splits(env: Pddl) -> None:
    seen: Counter[object] = Counter()
    for split in env.splits():
        for task in env.tasks(split):
            problem = read_problem(draw(task.kind, task.spec["seed"]), own_domain(task.kind), task.id)
            seen[task.kind, key(task.kind, problem)] += 1
    assert set(seen.values()) == {1} and len(seen) == 420


@pytest.mark.parametrize("kind", KINDS)
def test_the_expert_solves_the_test_problems_with_the_frozen_plan_lengths(env: Pddl, kind: str) -> None:
    """Every fourth one; the others are checked by the slow test."""
    solve([task for task in env.tasks("test") if task.kind == kind][::4])


@pytest.mark.slow
def test_the_expert_solves_all_60_within_30_actions(env: Pddl) -> None:
    solve(env.tasks("test"))


def solve(tasks: list[Task]) -> None:
    env = Pddl()
    for task in tasks:
        step = env.reset(task)
        plan = env.oracle()
        assert len(plan) == task.spec["plan"] <= 30
        scores = [step.score]
        for action in plan:
            assert not step.done and action in (step.admissible or ())
            step = env.step(action)
            assert not step.error
            scores.append(step.score)
        assert step.success and step.done and scores == sorted(scores) and scores[0] == 0.0 and scores[-1] == 1.0
        assert scores[-2] < 1.0 and env.oracle() == []


def test_same_game_in_every_process() -> None:
    code = (
        "from agentexp.envs.pddl import Pddl; import hashlib; e = Pddl(); t = e.tasks('test');"
        "text = ''.join(str(e.reset(x)) for x in t[::7]); e.reset(t[-1]);"
        "print(hashlib.sha256((text + str(e.oracle())).encode()).hexdigest(), e.versions())"
    )
    answers = {
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, check=True, capture_output=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(answers) == 1


# ----------------------------------------------------------------------------------------------------------------- texts


@pytest.mark.parametrize("kind", KINDS)
def test_sentences_and_commands_can_be_read_back(kind: str) -> None:
    phrases = Phrases(own_domain(kind))
    for seed in range(3):
        own = Ground(own_domain(kind), read_problem(draw(kind, seed), own_domain(kind), "x"))
        assert sorted(phrases.read_facts(phrases.sentences(own.holding(own.init)))) == own.holding(own.init)
        assert sorted(phrases.read_facts(phrases.sentences(own.atoms))) == list(own.atoms)
        for op in own.operators:
            command = phrases.action(op.name)
            for text in (command, command.capitalize() + ".", f"({' '.join(op.name)})", " ".join(op.name)):
                assert phrases.read_action(text) == op.name
            assert phrases.read_action(f"I could {command}") is None
            assert phrases.read_action(command + " now") is None


def test_gripper_by_hand(tmp_path: Path) -> None:
    env = Pddl(problems=folder(tmp_path))
    (task,) = env.tasks("test")
    assert (task.id, task.kind, task.spec) == ("two", "gripper", {"domain": "domains/gripper.pddl", "problem": "two.pddl"})
    first = env.reset(task)
    assert first.goal == "The goal is to satisfy the following conditions: ball1 is at roomb, ball2 is at roomb."
    about, _, facts = first.observation.partition("\n\n")
    assert facts == (
        "Ball1 is a ball. Ball1 is at rooma. Ball2 is a ball. Ball2 is at roomb. Left is a gripper. Left is free. "
        "Right is a gripper. Right is free. Robby is at rooma. Rooma is a room. Roomb is a room."
    )
    assert "- drop {ball} at {room} with arm {gripper} -- needs: " in about and "roomb" not in about
    assert first.admissible == (
        "move from rooma to roomb",
        "pick up ball1 at rooma with arm left",
        "pick up ball1 at rooma with arm right",
        "check valid actions",
        "look around",
    )
    assert first.score == 0.0 and not first.done
    for refused in (
        "pick up ball2 at rooma with arm left",
        "move from rooma to rooma",
        "move to roomb",
        "fly",
        "drop ball9 rooma left",
    ):
        step = env.step(refused)
        assert step.error and step.observation.startswith(REFUSED) and step.score == 0.0
    step = env.step("Check valid actions.")
    assert step.observation == "Valid actions are: " + ", ".join((first.admissible or ())[:3]) and not step.error
    step = env.step("Pick up ball1 at rooma with arm left.")
    assert step.score == 0.5 and "Left is carrying ball1." in step.observation and "Left is free." not in step.observation
    assert env.step("look around").observation == step.observation
    assert env.step("(move rooma roomb)").score == 0.5
    assert env.oracle() == ["drop ball1 at roomb with arm left"]
    last = env.step("drop ball1 roomb left")
    assert last.success and last.done and last.score == 1.0
    assert env.step("move from roomb to rooma").success  # it plays on


def test_progress_is_the_best_so_far_and_news_only_worlds_tell_what_is_new(env: Pddl) -> None:
    task = next(t for t in env.tasks("test") if t.kind == "tyreworld" and "Boot is closed" in env.reset(t).observation)
    env.reset(task)
    assert env.step("open boot").observation == "Boot is open."
    step = env.step("fetch wrench from boot")
    assert step.observation == "You have wrench."
    whole = env.step("look around").observation
    assert "You have wrench." in whole and "Wrench is in boot." not in whole and "Boot is unlocked." in whole
    best = 0.0
    rng = random.Random(1)
    for _ in range(60):
        step = env.step(rng.choice(step.admissible or ()))
        assert step.score >= best and (step.score == 1.0) is step.success
        best = step.score


def test_without_rules_only_the_forms_are_told(env: Pddl) -> None:
    for task in some(env):
        full, short = env.reset(task).observation, Pddl(rules=False).reset(task).observation
        assert "needs:" in full and "needs:" not in short and full.partition("\n\n")[2] == short.partition("\n\n")[2]


@pytest.mark.parametrize(
    "action", ["", " ", "\n", "(", "pick", "move from", "é" * 99, "pick up ball1\0", "x" * 20_000, "check", "{0}"]
)
def test_any_text_is_answered(env: Pddl, action: str) -> None:
    for task in some(env):
        env.reset(task)
        assert env.step(action).error


def test_restored_by_replay(env: Pddl) -> None:
    for task in some(env):
        rng, actions, steps = random.Random(3), list[str](), list[Step]()
        step = env.reset(task)
        for _ in range(25):
            actions.append(rng.choice(step.admissible or ()))
            step = env.step(actions[-1])
            steps.append(step)
        env.reset(task)
        assert [env.step(action) for action in actions] == steps


def test_expert_goes_on_from_any_state_and_changes_nothing(env: Pddl) -> None:
    for task in some(env, "dev", each=2):
        rng, step = random.Random(0), env.reset(task)
        for _ in range(9):
            step = env.step(rng.choice(step.admissible or ()))
        before = env.step("look around")
        plan = env.oracle()
        assert env.step("look around") == before
        if not plan:
            assert task.kind == "barman" or step.success
            continue
        assert all(not env.step(action).error for action in plan) and env.step("look around").success


def test_expert_says_when_it_finds_nothing(env: Pddl) -> None:
    hurried = Pddl(search_limit=2)
    hurried.reset(some(env)[2])
    with pytest.raises(EngineError, match=r"env\.search_limit=2"):
        hurried.oracle()
    with pytest.raises(UserError, match=r"env\.search_limit=0"):
        Pddl(search_limit=0)


# ----------------------------------------------------------------------------------------------------- files of the user


def test_folders_of_the_user(tmp_path: Path) -> None:
    """Public layouts: DOMAIN.pddl beside DOMAIN/, a parenthesis too many, constants declared again, sub-folders as splits."""
    tyres = (Path(suite.__file__).parent / "domains" / "tyreworld.pddl").read_text()
    (tmp_path / "tyreworld.pddl").write_text(tyres)
    (tmp_path / "tyreworld").mkdir()
    problem = draw("tyreworld", 4).replace("(:objects", "(:objects wrench jack pump - tool") + ")"
    (tmp_path / "tyreworld" / "p01.pddl").write_text(problem)
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "p02.pddl").write_text(draw("tyreworld", 5))
    env = Pddl(problems=str(tmp_path))
    assert [task.id for task in env.tasks("test")] == ["tyreworld/p01"] and [t.id for t in env.tasks("train")] == ["train/p02"]
    env.reset(env.tasks("test")[0])
    for action in env.oracle():
        step = env.step(action)
    assert step.success and env.versions()["pddl_problems"].startswith("folder ")
    with pytest.raises(UserError, match="no PDDL problem of the split 'dev'"):
        env.tasks("dev")
    (tmp_path / "tyreworld.pddl").unlink()
    with pytest.raises(UserError, match="needs the domain tyreworld"):
        env.tasks("test")
    with pytest.raises(UserError, match=r"env\.problems=.*is not a folder"):
        Pddl(problems=str(tmp_path / "none")).tasks("test")


def test_an_unknown_domain_speaks_plainly(tmp_path: Path) -> None:
    (tmp_path / "d.pddl").write_text(
        "(define (domain post) (:predicates (at ?x ?y) (road ?a ?b) (rain)) (:action drive :parameters (?a ?b) "
        ":precondition (and (at van ?a) (road ?a ?b)) :effect (and (at van ?b) (not (at van ?a)))) (:constants van))"
    )
    (tmp_path / "p.pddl").write_text(
        "(define (problem p) (:domain post) (:objects a b) (:init (at van a) (road a b)) (:goal (and (at van b) (not (rain)))))"
    )
    env = Pddl(problems=str(tmp_path))
    first = env.reset(env.tasks("test")[0])
    assert first.observation.endswith("\n\nAt van a. Road a b.") and first.goal.endswith(": at van b, not: rain.")
    assert first.admissible == ("drive a b", "check valid actions", "look around")
    tracker = env.fact_tracker()
    tracker.observe(None, first)
    step = env.step("Drive a b.")
    assert step.success and step.observation == "At van b. Road a b."
    assert ("reached", ("at", "van", "b"), "") in tracker.observe("Drive a b.", step)
    assert env.policy("curious", 0) and env.checkpoints("all") and env.questions(0)
