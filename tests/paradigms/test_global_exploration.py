"""Stage 1: task selection, focus points, attempts and reflections, distillation with its fallbacks, refusal of test tasks."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from paradigm_kit import RunContext, Talker, action, expert, run

from agentexp.core import Episode, Request, Task
from agentexp.envs.toy import ToyRooms
from agentexp.errors import ContextOverflow, UserError
from agentexp.paradigms.checks import check_not_test, is_test_split
from agentexp.paradigms.context import Context, Finalises, Plans, Prepares
from agentexp.paradigms.map import GlobalExploration
from agentexp.paradigms.map.knowledge import TITLES, knowledge_text, read_knowledge
from agentexp.paradigms.map.tasks import select_tasks
from agentexp.rollout import Budget, Limits

FOCUS = json.dumps({"focus_points": [{"question": f"Q{i}?", "how_to_test": "try", "why": "w"} for i in range(11)]})
LESSON = '{"cause": "Too slow.", "rule": "Rooms are in a row.", "next_time": "Lesson %d."}'
RULES = {**{key: [] for key in TITLES}, "action_syntax": ["Lower case."]}


class Kinds(ToyRooms):
    """A world with a given list of kinds, five tasks of each."""

    def __init__(self, name: str, kinds: list[str]) -> None:
        super().__init__()
        self.name, self._kinds = name, kinds

    def tasks(self, split: str) -> list[Task]:
        return [
            Task(f"{kind}-{i}", self.name, split, kind=kind, spec={"n": f"{split}{kind}{i}"})
            for kind in self._kinds
            for i in range(5)
        ]


@pytest.mark.parametrize(
    ("name", "kinds", "expected"),
    [
        (
            "alfworld",
            ["pick", "look", "clean", "heat", "cool", "two"],
            {"pick": 1, "look": 1, "clean": 1, "heat": 1, "cool": 1, "two": 1},
        ),
        ("textcraft", ["depth 1", "depth 2", "depth 3", "depth 4"], {"depth 1": 2, "depth 2": 2, "depth 3": 2}),
        ("scienceworld", [f"{i}-1" for i in range(1, 31)], {"1-1": 1, "6-1": 1, "11-1": 1, "16-1": 1, "21-1": 1, "26-1": 1}),
        ("toy", [""], {"": 6}),
    ],
)
def test_task_selection(name: str, kinds: list[str], expected: dict[str, int]) -> None:
    env = Kinds(name, kinds)
    if kinds == [""]:
        env.tasks = lambda split: [Task(f"t{i}", name, split) for i in range(9)]  # type: ignore[method-assign]
    tasks = select_tasks(env, 6, seed=3)
    assert {kind: [t.kind for t in tasks].count(kind) for kind in expected} == expected and len(tasks) == 6
    assert all(task.split == "train" and task.seed == 3 for task in tasks)
    assert tasks == select_tasks(env, 6, seed=3)


@pytest.mark.parametrize("split", ["test", "valid_seen", "valid_unseen", "eto211"])
def test_test_splits(split: str) -> None:
    assert is_test_split(split)
    with pytest.raises(UserError, match=r"Choose a training split: train, dev\."):
        check_not_test([Task("a", "toy", split)], ToyRooms())


def test_the_same_instance_in_a_test_split_is_found_but_the_same_id_is_no_leak() -> None:
    env = Kinds("toy", ["a"])
    inside = env.tasks("test")[0]
    check_not_test(env.tasks("train"), env)
    with pytest.raises(UserError, match="same instance as task a-0 of 'test'"):
        check_not_test([replace(inside, split="train")], env)


@pytest.mark.parametrize(("split", "message"), [("valid", "has no split 'valid'"), ("test", "in split 'test'")])
def test_wrong_split(split: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        GlobalExploration(split=split).plan(ToyRooms(), 0)
    with pytest.raises(UserError, match=r"only 8 tasks .* paradigm\.n_tasks"):
        GlobalExploration(n_tasks=9).plan(ToyRooms(), 0)


def test_the_hooks_are_found_by_type() -> None:
    paradigm = GlobalExploration()
    assert isinstance(paradigm, Plans) and isinstance(paradigm, Prepares) and isinstance(paradigm, Finalises)


# ------------------------------------------------------------------------------------------------------ focus points


def prepare(model: Talker, folder: Path, paradigm: GlobalExploration | None = None) -> tuple[dict[str, Any], RunContext]:
    paradigm = paradigm or GlobalExploration()
    context = RunContext(model, folder, tasks=paradigm.plan(ToyRooms(), 0))
    typed: Context = context
    return asyncio.run(paradigm.prepare(typed)), context


def test_focus_points_come_from_card_and_two_expert_episodes_and_are_capped(tmp_path: Path) -> None:
    model = Talker(map_focus_analyzer=[FOCUS])
    artefacts, _ = prepare(model, tmp_path)
    assert artefacts["focus_points"] == [f"Q{i}? (test: try)" for i in range(8)] and artefacts["focus_source"] == "llm"
    prompt = model.prompts("map_focus_analyzer")[0][0].content
    assert ToyRooms.card.intro in prompt and prompt.count("Task: ") == 2 and "1. go " in prompt and "at most 8" in prompt


def test_demos_are_not_of_explored_tasks(tmp_path: Path) -> None:
    paradigm = GlobalExploration()
    explored = {task.id for task in paradigm.plan(ToyRooms(), 0)}
    assert not explored & {task.id for task in select_tasks(ToyRooms(), 2, skip=paradigm.plan(ToyRooms(), 0))}


def test_focus_points_that_a_model_cannot_give_are_replaced_and_a_resumed_run_keeps_its_own(tmp_path: Path) -> None:
    artefacts, _ = prepare(Talker(map_focus_analyzer=["hm"]), tmp_path)
    assert artefacts["focus_source"] == "default" and len(artefacts["focus_points"]) == 3
    (tmp_path / "artefacts.json").write_text(json.dumps(artefacts))
    assert prepare(Talker(map_focus_analyzer=[FOCUS]), tmp_path)[0] == artefacts


# ---------------------------------------------------------------------------------------------------------- episodes


def explore(model: Talker, **settings: Any) -> tuple[Episode, int]:
    paradigm = GlobalExploration(**settings)
    task = paradigm.plan(ToyRooms(), 0)[0]
    episode, world = run(paradigm, model, task=task, budget=Budget(10, 4), artefacts={"focus_points": ["F1", "F2"]})
    return episode, world.resets


def test_failures_are_reflected_on_and_the_lessons_are_shown() -> None:
    model = Talker(act=[action("look")], map_reflector=[LESSON % 1, LESSON % 2, LESSON % 3, LESSON % 4])
    episode, resets = explore(model, max_attempts=5)
    assert (resets, episode.steps_by_phase) == (5, {"exploring": 20})  # 5 attempts of B_act = 4 steps
    assert (episode.end_reason, episode.success, episode.status) == ("completed", False, "ok")
    assert [a["first"] for a in episode.notes["attempts"]] == [0, 4, 8, 12, 16]
    assert [a["reason"] for a in episode.notes["attempts"]] == ["step_limit"] * 5
    assert len(episode.notes["reflections"]) == 4
    systems = [messages[0].content for messages in model.prompts("act")[::4]]
    shown = [[n for n in range(1, 5) if f"Lesson {n}." in system] for system in systems]
    assert shown == [[], [1], [1, 2], [1, 2, 3], [2, 3, 4]]  # only the last three
    assert all("- F1\n- F2" in system for system in systems)


def test_a_solved_task_is_not_tried_again() -> None:
    episode, resets = explore(Talker(act=expert), max_attempts=3)
    attempt = episode.notes["attempts"][-1]
    assert (attempt["success"], attempt["reason"], resets) == (True, "won", len(episode.notes["attempts"]))
    assert episode.success and attempt["affordances"]


def test_an_unreadable_reflection_is_kept_as_advice() -> None:
    episode, _ = explore(Talker(act=[action("look")], map_reflector=["Go  east first."]), max_attempts=2)
    assert episode.notes["reflections"] == [{"cause": "", "rule": "", "next_time": "Go east first."}]


def test_unreadable_replies_end_an_attempt_not_the_exploration() -> None:
    paradigm = GlobalExploration(max_attempts=2)
    model = Talker(act=[""], map_reflector=[LESSON % 1])
    episode, world = run(paradigm, model, budget=Budget(10, 9), limits=Limits(invalid_in_a_row=3, attempts=1))
    assert [a["reason"] for a in episode.notes["attempts"]] == ["invalid_limit"] * 2
    assert (episode.steps, world.resets, episode.end_reason) == (6, 2, "completed")


# -------------------------------------------------------------------------------------------------------- distilling


class Refusing(ToyRooms):
    """The toy world, which now has to refuse wrong actions itself."""

    card = replace(ToyRooms.card, complete_admissible=False)


def finalise(model: Talker, folder: Path, **settings: Any) -> tuple[dict[str, Any], Talker]:
    paradigm = GlobalExploration(**settings)
    explorer = Talker(act=walk, map_reflector=[LESSON % 1])
    tasks = paradigm.plan(ToyRooms(), 0)
    episodes = [run(paradigm, explorer, env=Refusing(), task=task, budget=Budget(0, 4))[0] for task in tasks]
    context = RunContext(model, folder, tasks=tasks)
    return asyncio.run(paradigm.finalise(context, episodes)), model


def walk(request: Request) -> str:
    choices = [a for a in request.view.step.admissible or () if a.startswith(("take", "go"))]
    return action("open the sky" if len(request.view.history) == 1 else choices[-1])


def test_knowledge_with_provenance(tmp_path: Path) -> None:
    document, model = finalise(Talker(map_distiller=[json.dumps(RULES)]), tmp_path, max_attempts=2)
    assert (document["env"], document["source"], document["k_g"]) == ("toy", "llm", RULES)
    provenance = document["provenance"]
    assert [task["split"] for task in provenance["tasks"]] == ["train"] * 6
    assert provenance["attempts"] == len(model.prompts("map_distiller")[0][0].content.split("\nOutcome: ")) - 1
    assert provenance["steps"] > 0 and provenance["usage"]["calls"] > 0
    assert "map/distiller.j2" in provenance["prompts"]
    json.dumps(document)


def test_short_contexts_are_served_in_batches_that_know_the_rules_so_far(tmp_path: Path) -> None:
    document, model = finalise(Talker(map_distiller=[json.dumps(RULES)]), tmp_path, max_attempts=1, batch_chars=500)
    prompts = [messages[0].content for messages in model.prompts("map_distiller")]
    assert len(prompts) == document["provenance"]["batches"] > 1
    assert ["Rules known so far" in prompt for prompt in prompts] == [False] + [True] * (len(prompts) - 1)


def test_a_batch_that_does_not_fit_is_halved(tmp_path: Path) -> None:
    def small(request: Request) -> Any:
        text = request.messages[0].content
        return ContextOverflow("full") if text.count("Outcome: ") > 2 else json.dumps(RULES)

    document, model = finalise(Talker(map_distiller=small), tmp_path, max_attempts=1)
    assert document["source"] == "llm" and document["provenance"]["batches"] >= 3
    seen = "".join(m[0].content for m in model.prompts("map_distiller") if m[0].content.count("Outcome: ") <= 2)
    assert seen.count("Outcome: ") == document["provenance"]["attempts"]


@pytest.mark.parametrize("reply", ["I cannot.", ContextOverflow("full"), json.dumps({key: [] for key in TITLES})])
def test_rules_are_counted_where_the_model_gives_none(reply: Any, tmp_path: Path) -> None:
    document, _ = finalise(Talker(map_distiller=[reply]), tmp_path, max_attempts=1)
    assert document["source"] == "rules" and document["provenance"]["problems"]
    patterns = document["k_g"]["error_patterns"]
    assert patterns == [{"message": "That is not possible.", "meaning": 'answer to "open ..."', "recovery": ""}]
    assert "take" in [rule["action"] for rule in document["k_g"]["interaction_rules"]]
    assert set(document["k_g"]) == set(TITLES)


def test_caps_and_text_of_knowledge() -> None:
    value: dict[str, Any] = {key: [f"{key} {i}" for i in range(12)] for key in TITLES}
    value["interaction_rules"] = [{"action": "take", "requires": "free hands", "effect": "you carry it"}, {"effect": "x"}]
    value["error_patterns"] = [{"message": "No.", "meaning": "refused", "recovery": "look"}]
    lists, mended = read_knowledge(value, max_items=8)
    assert mended and [len(lists[key]) for key in TITLES] == [8, 1, 8, 1, 8, 8]
    text = knowledge_text(lists)
    assert "- take needs free hands; you carry it" in text and '- "No.": refused; look' in text
    assert knowledge_text(lists, per_list=3).count("\n- ") == 3 * 4 + 2
    assert knowledge_text({}) == ""
