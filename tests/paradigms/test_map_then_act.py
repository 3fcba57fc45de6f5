"""MAP's stages 2 and 3: budgets, resets, ends of mapping, the extractor's three ways, switches, and what is hidden."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from paradigm_kit import RunContext, Talker, action, expert, run

from agentexp.core import CognitiveMap, Completion, Request, Task
from agentexp.envs.toy import ToyRooms
from agentexp.errors import ContextOverflow, UserError
from agentexp.paradigms.map import DualConvergence, FixedSteps, MapThenAct, NoStopping
from agentexp.rollout import Budget, Limits

EMPTY = {"spatial": [], "absent": [], "affordances": [], "task_notes": [], "unknown": []}
MAP = {
    "spatial": [{"thing": "golden fish", "relation": "in", "place": "green pond"}],
    "absent": [{"place": "red hall", "what": "anything"}],
    "affordances": [{"action": "go", "target": "up", "works": False, "effect": "refused", "requires": None}],
    "task_notes": ["Bring a net."],
    "unknown": ["blue attic"],
}
K_G: dict[str, Any] = {
    "action_syntax": ["Write names without articles."],
    "interaction_rules": [{"action": "take", "requires": ["free hands"], "effect": "you carry it"}],
    "observation_conventions": [],
    "error_patterns": [{"message": "That is not possible.", "meaning": "refused", "recovery": "look again"}],
    "environment_facts": [],
    "exploration_advice": [],
}


def walker(request: Request) -> str:
    """Walks to and fro; never takes anything."""
    east = "go east" in (request.view.step.admissible or ())
    return action("go east" if east and len(request.view.history) % 8 < 4 else "go west")


def system_prompt(model: Talker, phase: str) -> str:
    return next(m[0].content for purpose, m, r in model.requests if purpose == "act" and r.view.phase == phase)


def test_full_budget_of_both_stages_and_a_reset_between_them() -> None:
    model = Talker(act=walker, map_extractor=[json.dumps(MAP)])
    episode, world = run(MapThenAct(stage1=False, stopping=NoStopping(t_min=None)), model, budget=Budget(10, 50))
    assert episode.steps_by_phase == {"mapping": 10, "acting": 50}
    assert (world.resets, episode.end_reason, episode.status) == (2, "step_limit", "ok")
    assert episode.notes["stop"]["reason"] == "t_max" and len(episode.notes["stop_trace"]) == 10
    assert [call.purpose for call in episode.calls].count("map_extractor") == 1


def test_unused_mapping_steps_are_not_carried_over() -> None:
    model = Talker(act=[action("look")], map_extractor=[json.dumps(MAP)])
    episode, _ = run(MapThenAct(stage1=False), model, budget=Budget(10, 12))
    assert episode.notes["stop"] == {"reason": "converged", "t": 7, "known": episode.notes["stop"]["known"]}
    assert episode.steps_by_phase == {"mapping": 7, "acting": 12}
    last = episode.notes["stop_trace"][-1]
    assert (last["cond_a"], last["cond_b"], last["delta_k"], last["reason"]) == (True, True, 0, "converged")


def test_without_stage_2_its_steps_go_to_acting_and_without_stage_1_nothing_changes() -> None:
    model = Talker(act=[action("look")], map_extractor=[json.dumps(MAP)])
    episode, world = run(MapThenAct(stage2=False), model, budget=Budget(10, 50), artefacts={"k_g": K_G})
    assert episode.steps_by_phase == {"acting": 60} and world.resets == 1
    assert "map" not in episode.notes and "Write names without articles." in system_prompt(model, "acting")
    episode, _ = run(MapThenAct(stage1=False, stopping=FixedSteps(10)), model, budget=Budget(10, 50))
    assert episode.steps_by_phase == {"mapping": 10, "acting": 50}


def test_a_mapping_budget_of_zero_gives_no_bonus_and_no_map() -> None:
    episode, _ = run(MapThenAct(stage1=False), Talker(act=[action("look")]), budget=Budget(0, 5))
    assert episode.steps_by_phase == {"mapping": 0, "acting": 5}
    assert episode.notes["stop"] == {"reason": "t_max", "t": 0, "known": 0}
    assert [call.purpose for call in episode.calls] == ["act"] * 5


def test_actor_sees_rules_and_map_and_otherwise_exactly_react() -> None:
    model = Talker(act=walker, map_extractor=[json.dumps(MAP)])
    run(MapThenAct(), model, artefacts={"k_g": K_G})
    prompt = system_prompt(model, "acting")
    for part in (
        "General rules",
        "take needs free hands; you carry it",
        "Map of this environment",
        "in green pond: golden fish",
    ):
        assert part in prompt
    for part in ("red hall: empty", "go up does not work: refused", "Bring a net.", "Not explored: blue attic"):
        assert part in prompt
    view = model.requests[-1][2].view
    assert view.knowledge == {"k_g": K_G} and view.map is not None and view.map.task_notes == ["Bring a net."]
    bare = Talker(act=[action("look")])
    run(MapThenAct(stage1=False), Talker(act=[action("look")], map_extractor=[json.dumps(EMPTY)]))
    run(MapThenAct(stage1=False, stage2=False), bare)
    from agentexp.paradigms.react import ReAct

    assert system_prompt(bare, "acting") == ReAct().system(ToyRooms.card, "toy")


@pytest.mark.parametrize(
    ("drop", "gone", "kept"),
    [
        ("spatial", ["golden fish", "red hall", "blue attic"], ["go up does not work", "Bring a net."]),
        ("affordances", ["go up does not work"], ["golden fish", "red hall", "Bring a net.", "blue attic"]),
    ],
)
def test_ablations_of_the_map_hide_it_from_the_actor_but_keep_the_record(drop: Any, gone: list[str], kept: list[str]) -> None:
    model = Talker(act=walker, map_extractor=[json.dumps(MAP)])
    episode, _ = run(MapThenAct(stage1=False, drop=drop), model)
    prompt = system_prompt(model, "acting")
    assert not any(text in prompt for text in gone) and all(text in prompt for text in kept)
    assert episode.notes["map"] == MAP


def test_the_goal_stays_hidden_while_mapping() -> None:
    model = Talker(act=walker, map_extractor=[json.dumps(MAP)])
    episode, _ = run(MapThenAct(stage1=False, goal_visible=False), model)
    for purpose, messages, request in model.requests:
        if request.view.phase == "mapping":
            assert request.view.goal == "" and episode.goal not in " ".join(m.content for m in messages), purpose
    assert f"Goal: {episode.goal}" in model.prompts("act")[-1][1].content


def test_the_goal_is_named_by_default() -> None:
    model = Talker(act=walker, map_extractor=[json.dumps(MAP)])
    episode, _ = run(MapThenAct(stage1=False), model)
    assert episode.goal in system_prompt(model, "mapping") and episode.goal in model.prompts("map_extractor")[0][0].content


def test_solving_the_task_while_mapping_ends_mapping_and_counts_for_nothing() -> None:
    def solve_then_idle(request: Request) -> str:
        return expert(request) if request.view.phase == "mapping" else action("look")

    model = Talker(act=solve_then_idle, map_extractor=[json.dumps(MAP)])
    episode, _ = run(MapThenAct(stage1=False), model, budget=Budget(15, 5))
    assert episode.notes["stop"]["reason"] == "world_done"
    assert (episode.success, episode.score, episode.end_reason) == (False, 0.0, "step_limit")
    assert any(step.success for step in episode.trajectory if step.phase == "mapping")


def test_nor_does_it_count_when_a_limit_ends_the_episode_in_the_extractor() -> None:
    model = Talker(act=expert, map_extractor=[json.dumps(MAP)])
    solved = len(_plan())
    limits = Limits(tokens=15 * solved, attempts=1)
    episode, _ = run(MapThenAct(stage1=False), model, budget=Budget(15, 5), limits=limits)
    assert (episode.end_reason, episode.success, episode.score) == ("token_limit", False, 0.0)


def _plan() -> list[str]:
    env = ToyRooms()
    env.reset(env.tasks("test")[1])
    return env.oracle()


def test_without_reset_the_actor_goes_on_and_the_mapper_may_win() -> None:
    model = Talker(act=expert, map_extractor=[json.dumps(MAP)])
    episode, world = run(MapThenAct(stage1=False, reset_between_stages=False), model, budget=Budget(15, 5))
    assert (episode.success, episode.end_reason, world.resets) == (True, "won", 1)
    assert "its present state" in model.prompts("map_extractor")[0][0].content


def test_the_model_may_finish_mapping_from_t_min_on_and_it_costs_nothing() -> None:
    model = Talker(act=[action("look"), action("finish mapping")], map_extractor=[json.dumps(MAP)])
    episode, _ = run(MapThenAct(stage1=False, stopping=DualConvergence(t_min=3)), model, budget=Budget(10, 2))
    mapping = [step for step in episode.trajectory if step.phase == "mapping"]
    assert len(mapping) == 3 and episode.steps_by_phase["mapping"] == 3  # "look" and two refused words
    assert episode.notes["stop"]["reason"] == "model"
    assert "finish mapping" in system_prompt(model, "mapping")


def test_a_fixed_number_of_steps_does_not_listen() -> None:
    model = Talker(act=[action("finish mapping")], map_extractor=[json.dumps(MAP)])
    episode, _ = run(MapThenAct(stage1=False, stopping=FixedSteps(5)), model, budget=Budget(10, 2))
    assert (episode.notes["stop"]["reason"], episode.steps_by_phase["mapping"]) == ("fixed", 5)
    assert "finish mapping" not in system_prompt(model, "mapping")


@pytest.mark.parametrize(
    ("replies", "source", "asked"),
    [
        ([json.dumps(MAP)], "llm", 1),
        (["Sure!\n```json\n" + json.dumps(MAP)[:-1] + ",}\n```"], "repaired", 1),
        (["no idea", json.dumps(MAP)], "repaired", 2),
        (["no idea", '{"where": 1}'], "rules", 2),
        ([ContextOverflow("too long")], "rules", 2),
    ],
)
def test_three_ways_to_a_map(replies: list[Any], source: str, asked: int) -> None:
    model = Talker(act=walker, map_extractor=replies)
    episode, _ = run(MapThenAct(stage1=False), model)
    assert episode.notes["map_source"] == source and len(model.prompts("map_extractor")) == asked
    if source == "rules":
        assert episode.notes["map"]["spatial"] and episode.notes["map_error"].endswith((".", "long"))
    else:
        assert episode.notes["map"] == MAP and "map_error" not in episode.notes


def test_an_empty_map_of_the_model_stays_empty() -> None:
    episode, _ = run(MapThenAct(stage1=False), Talker(act=walker, map_extractor=[json.dumps(EMPTY)]))
    assert (episode.notes["map"], episode.notes["map_source"]) == (EMPTY, "llm")


def test_rules_extractor_asks_no_model() -> None:
    episode, _ = run(MapThenAct(stage1=False, extractor="rules"), Talker(act=walker))
    assert episode.notes["map_source"] == "rules" and {call.purpose for call in episode.calls} == {"act"}


def test_a_context_that_fills_up_while_mapping_ends_only_the_mapping() -> None:
    def talk(request: Request) -> Any:
        if request.view.phase == "mapping" and len(request.view.history) == 2:
            return ContextOverflow("full")
        return action("look")

    episode, _ = run(MapThenAct(stage1=False), Talker(act=talk, map_extractor=[json.dumps(MAP)]), budget=Budget(9, 4))
    assert (episode.notes["stop"]["reason"], episode.steps_by_phase) == ("context_limit", {"mapping": 2, "acting": 4})


def test_mapping_alone() -> None:
    model = Talker(act=walker, map_extractor=[json.dumps(MAP)])
    episode, world = run(MapThenAct(stage1=False, act=False), model)
    assert (episode.end_reason, episode.success, episode.status, world.resets) == ("completed", False, "ok", 1)
    assert episode.notes["map"] == MAP and set(episode.steps_by_phase) == {"mapping"}


# ------------------------------------------------------------------------------------------------------- saved maps


def save(folder: Path, task: Task, **change: Any) -> Path:
    keys = {"env": task.env, "split": task.split, "id": task.id, "seed": task.seed, "repeat": task.repeat}
    line = {"task": keys, "status": "ok", "notes": {"map": MAP, "map_source": "llm"}, **change}
    with (folder / "episodes.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")
    return folder


def test_acting_on_saved_maps(tmp_path: Path) -> None:
    task = ToyRooms().tasks("test")[1]
    paradigm = MapThenAct(stage1=False, maps=str(save(tmp_path, task)))
    (tmp_path / "episodes.jsonl").open("a").write('{"task": {"env"')  # a torn line
    model = Talker(act=walker)
    assert asyncio.run(paradigm.prepare(RunContext(model, tmp_path, tasks=[task]))) == {}
    episode, world = run(paradigm, model, task=task, budget=Budget(4, 6))
    assert (episode.steps_by_phase, world.resets) == ({"acting": 6}, 1)
    assert episode.notes["map"] == MAP and episode.notes["map_source"] == "saved:llm"
    assert "golden fish" in system_prompt(model, "acting")


def test_missing_maps_are_refused_before_anything_runs(tmp_path: Path) -> None:
    tasks = ToyRooms().tasks("test")[:2]
    with pytest.raises(UserError, match=r"no episodes\.jsonl"):
        asyncio.run(MapThenAct(stage1=False, maps=str(tmp_path)).prepare(RunContext(Talker(), tmp_path, tasks=tasks)))
    save(tmp_path, tasks[0])
    save(tmp_path, tasks[1], status="error")
    with pytest.raises(UserError, match="has no map for 1 of 2 tasks"):
        asyncio.run(MapThenAct(stage1=False, maps=str(tmp_path)).prepare(RunContext(Talker(), tmp_path, tasks=tasks)))


# ---------------------------------------------------------------------------------------------------------- settings


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"drop": "space"}, "none, spatial, affordances"),
        ({"act": False, "stage2": False}, "paradigm.stage2=true"),
        ({"maps": "x", "stage2": False}, "paradigm.maps"),
        ({"reset_between_stages": False, "goal_visible": False}, "paradigm.goal_visible=true"),
    ],
)
def test_settings_that_contradict_each_other(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        MapThenAct(**settings)


class Factless:
    """The toy world without its tracker."""

    def __init__(self) -> None:
        inner = ToyRooms()
        self.name, self.card = inner.name, inner.card
        self.splits, self.tasks, self.reset, self.step = inner.splits, inner.tasks, inner.reset, inner.step
        self.close, self.versions = inner.close, inner.versions


def test_a_world_without_facts(tmp_path: Path) -> None:
    context = RunContext(Talker(), tmp_path, Factless())
    with pytest.raises(UserError, match="stopping=fixed or stopping=none"):
        asyncio.run(MapThenAct(stage1=False).prepare(context))
    with pytest.raises(UserError, match="extractor=rules"):
        asyncio.run(MapThenAct(stage1=False, stopping=NoStopping(), extractor="rules").prepare(context))
    paradigm = MapThenAct(stage1=False, stopping=NoStopping(t_min=None))
    assert asyncio.run(paradigm.prepare(context)) == {}
    episode, _ = run(paradigm, Talker(act=[action("look")], map_extractor=["?"]), env=Factless())
    assert (episode.notes["map"], episode.notes["map_source"]) == (EMPTY, "none")
    assert episode.steps_by_phase == {"mapping": 4, "acting": 6}


def test_knowledge_comes_from_a_file_a_folder_or_the_runner(tmp_path: Path) -> None:
    document = {"env": "toy", "k_g": K_G, "source": "llm", "provenance": {"tasks": [{"id": "train-000", "split": "train"}]}}
    file = tmp_path / "kg.json"
    file.write_text(json.dumps(document))
    context = RunContext(Talker(), tmp_path)
    context.document = document
    for k_g in (str(file), str(tmp_path), None):
        assert asyncio.run(MapThenAct(k_g=k_g).prepare(context))["k_g"] == K_G
    for change, message in (
        ({"env": "alfworld"}, "env=alfworld"),
        ({"provenance": {"tasks": [{"id": "a", "split": "test"}]}}, "explored on test tasks"),
        ({"k_g": {"rules": []}}, "does not hold environment knowledge"),
    ):
        file.write_text(json.dumps({**document, **change}))
        with pytest.raises(UserError, match=message):
            asyncio.run(MapThenAct(k_g=str(file)).prepare(context))
    with pytest.raises(UserError, match="agentexp explore"):
        asyncio.run(MapThenAct(k_g=str(tmp_path / "none")).prepare(context))


def test_k_g_that_was_not_prepared_is_a_harness_error_not_a_silent_ablation() -> None:
    episode, _ = run(MapThenAct(), Talker(act=walker))
    assert (episode.status, episode.end_reason) == ("error", "harness_error")


def test_compact_prompts_are_much_shorter_and_keep_the_contract() -> None:
    full, compact = (Talker(act=walker, map_extractor=[json.dumps(MAP)]) for _ in range(2))
    run(MapThenAct(), full, artefacts={"k_g": K_G})
    run(MapThenAct(style="compact"), compact, artefacts={"k_g": K_G})
    for phase in ("mapping", "acting"):
        assert len(system_prompt(compact, phase)) < 0.8 * len(system_prompt(full, phase))
    assert len(compact.prompts("map_extractor")[0][0].content) < len(full.prompts("map_extractor")[0][0].content)
    assert "golden fish" in system_prompt(compact, "acting")


def test_a_reasoning_reply_without_text_is_not_a_crash() -> None:
    model = Talker(act=walker, map_extractor=[Completion("", reasoning="hm", finish_reason="length")])
    episode, _ = run(MapThenAct(stage1=False), model)
    assert episode.notes["map_source"] == "rules"


def test_map_notes_survive_json() -> None:
    episode, _ = run(MapThenAct(stage1=False, extractor="rules"), Talker(act=walker))
    assert CognitiveMap(**json.loads(json.dumps(episode.notes["map"]))) == CognitiveMap(**episode.notes["map"])
