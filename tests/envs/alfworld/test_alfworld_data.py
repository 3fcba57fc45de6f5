"""Games as data: goals, problems, files on disk, generated houses. No engine."""

from __future__ import annotations

import contextlib
import json
import lzma
import os
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from statistics import mean

import pytest
from alfworld_helpers import needs_wheel, official
from hypothesis import given
from hypothesis import strategies as st

from agentexp.envs.alfworld import AlfWorld, games, generator, priors, wheel
from agentexp.envs.alfworld.goals import KINDS, Goal, parse_goal
from agentexp.envs.alfworld.oracle import Household, plan, reached
from agentexp.envs.alfworld.problem import Problem, names
from agentexp.errors import MissingDependency, UserError


@pytest.mark.parametrize(
    ("text", "goal"),
    [
        ("put some peppershaker on drawer", Goal(KINDS[0], "peppershaker", "drawer")),
        ("put a mug in desk.", Goal(KINDS[0], "mug", "desk")),
        ("examine the alarmclock with the desklamp", Goal(KINDS[1], "alarmclock", lamp="desklamp")),
        ("look at bowl under the desklamp.", Goal(KINDS[1], "bowl", lamp="desklamp")),
        ("Your task is to: clean some bowl and put it in cabinet.", Goal(KINDS[2], "bowl", "cabinet")),
        ("put a hot mug in coffeemachine", Goal(KINDS[3], "mug", "coffeemachine")),
        ("cool some bread and put it in countertop", Goal(KINDS[4], "bread", "countertop")),
        ("find two cd and put them in safe", Goal(KINDS[5], "cd", "safe")),
        ("put two cd in safe", Goal(KINDS[5], "cd", "safe")),
        ("Hold the clock and turn on the lamp.", None),
        ("", None),
    ],
)
def test_goals_are_read(text: str, goal: Goal | None) -> None:
    assert parse_goal(text) == goal


def test_goal_needs() -> None:
    heat = parse_goal("heat some apple and put it in fridge")
    assert heat is not None and (heat.treatment, heat.appliance, heat.count) == ("heat", "microwave", 1)
    two = parse_goal("put two cd in safe")
    assert two is not None and (two.treatment, two.appliance, two.count) == ("", "", 2)


def test_names_count_backwards_per_type() -> None:
    shown = names(["apple_bar_1", "apple_bar_2", "apple_bar_3", "sink_bar_1_bar_sinkbasin", "sink_bar_1", "agent1"])
    assert shown["apple_bar_1"] == "apple 3" and shown["apple_bar_3"] == "apple 1"
    assert shown["sink_bar_1_bar_sinkbasin"] == "sinkbasin 1" and shown["sink_bar_1"] == "sink 1"


@given(st.text(max_size=200))
def test_reading_any_text_gives_a_problem_or_a_value_error(text: str) -> None:
    with contextlib.suppress(ValueError):
        Problem.parse(text)


# ------------------------------------------------------------------------------------------------------- generated games


@needs_wheel
def test_generated_games_are_sound_and_as_hard_as_the_official_ones() -> None:
    lengths: list[int] = []
    places: dict[int, list[int]] = {}
    for index in range(200):
        spec = generator.draw("test", 0, index)
        problem = generator.build(spec)
        assert Problem.parse(problem.render()) == problem
        home, goal = Household(problem.init), parse_goal(spec.task)
        assert goal is not None and goal.kind == spec.kind == KINDS[index % 6]
        assert not reached(home, goal)
        assert problem.init[0][2] not in home.location.values(), "the agent starts away from all furniture"
        lengths.append(len(plan(problem.init, problem.names, goal)))
        places.setdefault(spec.plan // 100, []).append(len(home.location))
    # Official valid_unseen and valid_seen: plans of 5.94 and 5.86 commands; about 25-34 places in kitchens, 13-15 in bathrooms.
    assert 5.4 < mean(lengths) < 6.4 and max(lengths) <= 10
    assert 25 < mean(places[0]) < 45 and 11 < mean(places[4]) < 18


@needs_wheel
def test_splits_share_no_floor_plan() -> None:
    found = {split: {generator.draw(split, 3, i).plan for i in range(150)} for split in generator.SPLITS}
    assert not found["train"] & found["test"] and not found["train"] & found["dev"] and not found["dev"] & found["test"]
    assert {10, 219, 308, 424} <= set(generator.plans("test"))
    for split, plans in found.items():
        assert {plan // 100 for plan in plans} == {0, 2, 3, 4}, split


@needs_wheel
def test_other_seeds_give_other_games_with_stable_ids() -> None:
    first, second = AlfWorld(test=30).tasks("test"), AlfWorld(test=30, generator_seed=1).tasks("test")
    assert {task.id for task in first}.isdisjoint(task.id for task in second)
    assert AlfWorld(test=60).tasks("test")[:30] == first
    assert first[3].id == "pick_heat_then_place_in_recep-" + first[3].id.split("-", 1)[1]
    assert Counter(task.kind for task in first) == dict.fromkeys(KINDS, 5)


@needs_wheel
def test_games_do_not_depend_on_the_process() -> None:
    code = (
        "from agentexp.envs.alfworld import generator as g\n"
        "import hashlib\n"
        "text = ''.join(g.draw('dev', 5, i).id + g.build(g.draw('dev', 5, i)).render() for i in range(12))\n"
        "print(hashlib.sha256(text.encode()).hexdigest())"
    )
    results = {
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(results) == 1 and len(results.pop().strip()) == 64


@needs_wheel
def test_listing_tasks_imports_no_engine() -> None:
    code = (
        "import sys, os\n"
        "from agentexp.envs.alfworld import AlfWorld\n"
        "env = AlfWorld(); env.tasks('test'); env.fact_tracker(); env.policy('mapuser', 0); env.versions(); env.card\n"
        "assert not {'textworld', 'alfworld', 'fast_downward', 'numpy'} & set(sys.modules)\n"
        "assert 'ALFWORLD_DATA' not in os.environ"
    )
    environment = {key: value for key, value in os.environ.items() if key != "ALFWORLD_DATA"}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)


@needs_wheel
@pytest.mark.slow
def test_priors_are_what_the_official_training_games_say() -> None:
    assert priors.measure(games.load(official(), "train", False)) == priors.load()


# -------------------------------------------------------------------------------------------------------- official games


@pytest.mark.parametrize(
    ("split", "kinds"),
    [
        ("valid_unseen", (24, 18, 31, 23, 21, 17)),
        ("valid_seen", (35, 13, 27, 16, 25, 24)),
        ("valid_train", (46, 19, 37, 25, 28, 45)),
    ],
)
def test_official_splits(split: str, kinds: tuple[int, ...]) -> None:
    env = AlfWorld(data=str(official()))
    tasks = env.tasks(split)
    assert len(tasks) == games.OFFICIAL[split] and tasks == sorted(tasks, key=lambda task: task.id)
    assert tuple(Counter(task.kind for task in tasks)[kind] for kind in KINDS) == kinds
    for task in tasks:
        goal = parse_goal(str(task.spec["task"]))
        assert goal is not None and goal.kind == task.kind
    assert "pddl" not in json.dumps(dict(tasks[0].spec)) and len(json.dumps(dict(tasks[0].spec))) < 300


def test_every_official_game_survives_our_text_form() -> None:
    env = AlfWorld(data=str(official()))
    for task in env.tasks("valid_unseen"):
        problem = env.problem(task)
        assert Problem.parse(problem.render()) == problem


def test_folders_of_the_downloader_are_read() -> None:
    folder = official()
    loose = {task.id: task for task in AlfWorld(data=str(folder / "json_2.1.1"), allow_partial=True).tasks("valid_unseen")}
    packed = {task.id: task for task in AlfWorld(data=str(folder)).tasks("valid_unseen")}
    assert loose and all(loose[ident].spec == packed[ident].spec for ident in loose)
    with pytest.raises(UserError, match=r"has \d+ games of split valid_unseen, expected 134"):
        AlfWorld(data=str(folder / "json_2.1.1")).tasks("valid_unseen")


def test_a_parent_folder_is_enough(tmp_path: Path) -> None:
    shutil.copytree(official() / "json_2.1.1", tmp_path / "json_2.1.1")
    assert AlfWorld(data=str(tmp_path), allow_partial=True).tasks("valid_seen")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("short", ["133 games", "expected 134", "allow_partial"]),
        ("torn", ["valid_unseen.jsonl.xz", "of 134 games"]),
        ("text", ["valid_unseen.jsonl", "characters"]),
        ("twice", ["twice"]),
        ("missing", ["valid_unseen", "alfworld-download"]),
    ],
)
def test_incomplete_or_odd_data_is_refused(tmp_path: Path, change: str, words: list[str]) -> None:
    raw = (official() / "valid_unseen.jsonl.xz").read_bytes()
    lines = lzma.decompress(raw).decode().splitlines()
    (tmp_path / "train").mkdir()
    plain = tmp_path / "valid_unseen.jsonl"
    if change == "short":
        plain.write_text("\n".join(lines[:-1]))
    elif change == "torn":
        (tmp_path / "valid_unseen.jsonl.xz").write_bytes(raw[: len(raw) // 2])
    elif change == "text":
        row = json.loads(lines[0])
        plain.write_text("\n".join([json.dumps({**row, "task": "put {__import__('os').getpid()} on desk"}), *lines[1:]]))
    elif change == "twice":
        plain.write_text("\n".join([*lines[:-1], lines[0]]))
    with pytest.raises(UserError) as error:
        AlfWorld(data=str(tmp_path)).tasks("valid_unseen")
    assert all(word in str(error.value) for word in words), str(error.value)


def test_a_changed_game_is_not_played_under_its_old_name() -> None:
    env = AlfWorld(data=str(official()))
    task = env.tasks("valid_unseen")[0]
    with pytest.raises(UserError, match="differs"):
        env.problem(replace(task, spec={**task.spec, "digest": "0"}))


def test_the_environment_variable_is_not_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path))
    assert list(AlfWorld().splits()) == ["train", "dev", "test"]


# ------------------------------------------------------------------------------------------------------------- settings


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"logic": "newest"}, "env.logic"),
        ({"task_types": ["fly"]}, "pick_and_place_simple"),
        ({"task_types": []}, "env.task_types"),
        ({"train": -1}, "env.train"),
    ],
)
def test_wrong_settings_name_themselves(settings: dict[str, object], word: str) -> None:
    with pytest.raises(UserError, match=word):
        AlfWorld(**settings)  # type: ignore[arg-type]


@needs_wheel
def test_task_types_filter_keeps_ids() -> None:
    everything = AlfWorld(test=60).tasks("test")
    some = AlfWorld(test=60, task_types=["heat", "look_at_obj_in_light"]).tasks("test")
    assert some == [task for task in everything if task.kind in (KINDS[1], KINDS[3])]


def test_unknown_split_lists_the_known_ones() -> None:
    with pytest.raises(UserError, match="train, dev, test"):
        AlfWorld().tasks("valid_unseen")


def test_missing_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    wheel.folder.cache_clear()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingDependency, match=r"agentexp\[alfworld\]"):
        wheel.folder()
