"""Explore-then-Act: what each phase sees, what is recorded, and that explorations are made once and used by everyone."""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from paradigm_kit import InProcess, Talker, action, expert
from paradigm_kit import run as run_one

from agentexp.core import Completion, Env, Episode, Model, Request, Sampling, Usage
from agentexp.envs.textcraft import TextCraft
from agentexp.envs.toy import ToyRooms
from agentexp.errors import ContextOverflow, UserError
from agentexp.models.scripted import ScriptedModel
from agentexp.paradigms.explore_then_act import STOP_WORD, ExploreThenAct
from agentexp.paradigms.react import ReAct
from agentexp.plan import run_folder
from agentexp.rollout import Budget, Limits
from agentexp.run import Run
from agentexp.runner import execute, run_sync
from agentexp.store import read_episodes

K = "Layout - the lamp is in the hall."


def talker(explore: Any = "go east", **replies: Any) -> Talker:
    """Explores with one action (or a list, or a function) and acts like the expert."""
    said = [explore] if isinstance(explore, str) else explore

    def act(request: Request) -> str:
        if request.view.phase != "exploring":
            return expert(request)
        if callable(said):
            return str(said(request))
        return action(said[min(len(request.view.history), len(said) - 1)])

    return Talker(act=act, **{"eta_summarize": [K], **replies})


def run(paradigm: Any, model: Talker, **options: Any) -> tuple[Episode, InProcess]:
    return run_one(paradigm, model, **{"budget": Budget(0, 12), **options})


def flat(text: str) -> str:
    return f" {' '.join(re.findall(r'[a-z0-9]+', text.lower()))} "


# -------------------------------------------------------------------------------------------------------- one episode


def test_explores_without_a_goal_then_acts_on_the_summary() -> None:
    model = talker(["go east", "go west", "look"])
    episode, world = run(ExploreThenAct(explore_steps=5), model)
    assert (episode.success, episode.end_reason) == (True, "won")
    assert episode.steps_by_phase["exploring"] == 5 and episode.steps == 5 + episode.steps_by_phase["acting"]
    assert world.resets == 2 and episode.goal
    exploring, acting = episode.chats["exploring"], episode.chats["acting"]
    assert "There is no task" in exploring[0].content and "at most 5 actions" in exploring[0].content
    assert K not in exploring[0].content and K in acting[0].content and episode.goal in acting[1].content
    assert episode.notes["summary"] == K
    summarised = model.prompts("eta_summarize")[0][-1].content
    assert "1. go east" in summarised and "0. (start)" in summarised and "at most 300 words" in summarised
    note = episode.notes["exploration"]
    assert (note["steps"], note["budget"], note["stopped"], note["premature"], note["cached"]) == (5, 5, "budget", False, False)
    assert note["usage"]["calls"] == 5 and note["summary_usage"]["calls"] == 1
    # the acting phase starts where the exploration started
    assert acting[1].content.startswith(note["start"])


@settings(max_examples=40, deadline=None)
@given(number=st.integers(0, 7), textcraft=st.booleans(), seed=st.integers(0, 99))
def test_no_message_before_acting_names_the_goal(number: int, textcraft: bool, seed: int) -> None:
    """Neither for the explorer nor for the summariser, also when the exploration happens to solve the task."""
    env: Env = TextCraft() if textcraft else ToyRooms()
    task = env.tasks("test")[number]
    goal = env.reset(task).goal
    rng = random.Random(seed)
    model = Talker(act=lambda request: action(rng.choice(request.view.step.admissible or ("look",))), eta_summarize=["K"])
    episode, _ = run(ExploreThenAct(explore_steps=25, act=False), model, env=env, task=task)
    assert (episode.success, episode.score, episode.end_reason, episode.goal) == (False, 0.0, "completed", goal)
    for _, messages, request in model.requests:
        assert not any(flat(goal) in flat(message.content) for message in messages)
        assert (request.view.goal, request.view.step.goal, request.view.step.done) == ("", "", False)
    assert all((step.success, step.done, step.score) == (False, False, 0.0) for step in episode.trajectory)


def test_winning_by_accident_is_in_the_record_only() -> None:
    env = ToyRooms()
    task = env.tasks("test")[0]
    env.reset(task)
    plan = env.oracle()
    episode, _ = run(ExploreThenAct(explore_steps=len(plan) + 3, act=False), talker([*plan, "look"]), task=task)
    (ending,) = episode.notes["exploration"]["endings"]
    assert (ending["step"], ending["won"], ending["action"]) == (len(plan), True, plan[-1])
    assert episode.steps == len(plan) + 3 and not episode.success


def test_an_early_stop_is_recorded_and_costs_no_step() -> None:
    episode, _ = run(ExploreThenAct(explore_steps=8), talker(["look", "look", STOP_WORD]))
    note = episode.notes["exploration"]
    assert (note["steps"], note["budget"], note["stopped"], note["premature"]) == (2, 8, "model", True)
    assert episode.steps_by_phase["exploring"] == 2 and episode.success
    prompt = episode.chats["exploring"][0].content
    assert f'"{STOP_WORD}"' in prompt
    kept, _ = run(ExploreThenAct(explore_steps=4, stop_early=False), talker([STOP_WORD]))
    assert kept.notes["exploration"]["stopped"] == "budget" and STOP_WORD not in kept.chats["exploring"][0].content


def test_direct_acting_is_react_with_the_acting_budget() -> None:
    model = talker()
    direct, world = run(ExploreThenAct(explore_steps=0), model)
    react, _ = run(ReAct(), talker())
    assert direct.chats == react.chats and world.resets == 1 and "exploration" not in direct.notes
    assert not model.prompts("eta_summarize")


def test_the_control_column_acts_longer_without_exploring() -> None:
    idle = Talker(act=[action("look")])
    episode, world = run(ExploreThenAct(explore_steps=7, direct_bonus=True), idle)
    assert episode.steps_by_phase == {"acting": 12 + 7} and world.resets == 1


def test_only_the_first_steps_of_a_longer_session_are_summarised() -> None:
    model = talker(["go east", "go west", "look", "inventory"])
    episode, _ = run(ExploreThenAct(explore_steps=2, explore_budget=6), model)
    assert "at most 6 actions" in episode.chats["exploring"][0].content
    (prompt,) = model.prompts("eta_summarize")
    assert "2. go west" in prompt[0].content and "3. " not in prompt[0].content
    note = episode.notes["exploration"]
    assert (note["steps"], note["budget"], note["session_steps"], note["session_budget"]) == (2, 2, 6, 6)


def test_scripted_executors_get_the_map_of_the_same_steps() -> None:
    seen: list[Any] = []

    def look_at(request: Request) -> str:
        seen.append((request.view.map, dict(request.view.knowledge)))
        return expert(request)

    def act(request: Request) -> str:
        return look_at(request) if request.view.phase == "acting" else action("look")

    run(ExploreThenAct(explore_steps=3), Talker(act=act, eta_summarize=[K]))
    known, knowledge = seen[0]
    assert [entry["relation"] for entry in known.spatial].count("connects") == 0  # never left the room
    assert knowledge == {"summary": K}


def test_a_long_summary_is_cut_and_thinking_is_left_out() -> None:
    words = " ".join(f"w{i}" for i in range(500))
    for thought in ("<think>hm</think>", "hm</think>", "<thinking>hm</thinking>"):
        speaker = talker(eta_summarize=[f"{thought}\n{words}"])
        episode, _ = run(ExploreThenAct(explore_steps=1, summary_words=20), speaker)
        assert episode.notes["summary"].split() == [f"w{i}" for i in range(20)]
        assert episode.notes["exploration"]["summary_cut"]


def test_an_empty_summary_leaves_no_block() -> None:
    episode, _ = run(ExploreThenAct(explore_steps=1), talker(eta_summarize=[" "]))
    assert episode.success and episode.chats["acting"] == run(ReAct(), talker())[0].chats["acting"]


def test_a_record_that_is_too_long_is_shortened() -> None:
    replies = [ContextOverflow("full"), ContextOverflow("full"), K]
    model = talker(eta_summarize=replies)
    episode, _ = run(ExploreThenAct(explore_steps=2), model)
    assert episode.success and len(model.prompts("eta_summarize")) == 3
    over = ContextOverflow("full")
    lost, _ = run(ExploreThenAct(explore_steps=2), talker(eta_summarize=[over, over, over]))
    assert (lost.end_reason, lost.status) == ("context_limit", "ok")


@pytest.mark.parametrize("what", ["overflow", "unreadable"])
def test_an_explorer_that_breaks_down_does_not_cost_the_acting_phase(what: str) -> None:
    replies: list[Any] = [action("look"), ContextOverflow("full")] if what == "overflow" else ["Hm.", "Hm.", "Hm."]

    def act(request: Request) -> Any:
        return replies.pop(0) if request.view.phase == "exploring" else expert(request)

    model = Talker(act=act, eta_summarize=[K])
    episode, _ = run(ExploreThenAct(explore_steps=9), model, limits=Limits(invalid_in_a_row=3, attempts=1))
    assert episode.success
    assert episode.notes["exploration"]["stopped"] == ("context_limit" if what == "overflow" else "invalid_limit")
    assert not episode.notes["exploration"]["premature"]


def test_spent_tokens_end_the_episode_as_a_failure() -> None:
    env = ToyRooms()
    task = env.tasks("test")[0]
    env.reset(task)
    episode, _ = run(ExploreThenAct(explore_steps=9), talker([*env.oracle(), "look"]), task=task, limits=Limits(tokens=100))
    assert (episode.end_reason, episode.success, episode.score) == ("token_limit", False, 0.0)
    assert episode.goal


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"explore_steps": -1}, "explore_steps"),
        ({"explore_steps": 10, "explore_budget": 5}, "explore_budget=5"),
        ({"explore_steps": 0, "act": False}, "explore_steps above 0"),
        ({"act": False, "direct_bonus": True}, "direct_bonus"),
        ({"summary_words": 0}, "act=false"),
    ],
)
def test_settings_that_contradict_each_other(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        ExploreThenAct(**settings)


# ---------------------------------------------------------------------------------------------------------- the store


class Counting(ScriptedModel):
    """A scripted model with a price, that counts what it is asked."""

    def __init__(self, policy: str = "curious", label: str = "", slow: float = 0.0) -> None:
        super().__init__(policy, label=label or f"scripted-{policy}")
        self.asked: list[str] = []
        self.seeds: list[int | None] = []
        self.slow = slow
        self.sampling = Sampling()

    async def chat(self, request: Request) -> Completion:
        self.asked.append(f"{request.view.phase}/{request.purpose}")
        self.seeds.append(request.sampling.seed)
        await asyncio.sleep(self.slow)
        return replace(await super().chat(request), usage=Usage(100, 10, calls=1, cost=0.01))

    def count(self, what: str) -> int:
        return self.asked.count(what)


EXPLORED, SUMMARISED, ACTED = "exploring/act", "exploring/eta_summarize", "acting/act"


def make(root: Path, paradigm: ExploreThenAct, command: str = "eval", tasks: int = 3, **models: Model) -> Run:
    env = ToyRooms()
    node = {"actor": {"policy": models["actor"].label}}
    config = {
        "command": command,
        "env": {"_target_": "agentexp.envs.toy.ToyRooms", "split": "test", "seed": 0},
        "model": node["actor"],
        "roles": {role: {"policy": model.label} for role, model in models.items() if role != "actor"},
        "paradigm": {key: value for key, value in vars(paradigm).items() if isinstance(value, (int, str))},
    }
    return Run(
        command=command,
        config=config,
        env=env,
        env_spec={"_target_": "agentexp.envs.toy.ToyRooms"},
        models=models,
        paradigm=paradigm,
        budget=Budget(0, 20),
        folder=run_folder(root, command, env.name, paradigm.name, models["actor"].label, config),
        output_root=root,
        split="test",
        limit=tasks,
        in_process=True,
        progress="off",
        concurrency=3,
    )


def records(run: Run) -> list[dict[str, Any]]:
    return list(read_episodes(run.folder))


def without_times(record: dict[str, Any]) -> dict[str, Any]:
    steps = [{key: value for key, value in step.items() if key not in ("seconds", "call")} for step in record["trajectory"]]
    return {
        "trajectory": steps,
        "chats": {k: v for k, v in record["chats"].items() if k != "summary"},
        "steps": record["steps"],
    }


def test_executors_share_explorations(tmp_path: Path) -> None:
    explorer, first, second = Counting("curious"), Counting("mapuser"), Counting("random")
    paradigm = lambda: ExploreThenAct(explore_steps=10)  # noqa: E731
    fresh = make(tmp_path, paradigm(), actor=first, explorer=explorer)
    _, code = run_sync(fresh)
    assert code == 0
    assert (explorer.count(EXPLORED), explorer.count(SUMMARISED), first.count(EXPLORED)) == (30, 3, 0)
    explorer.asked.clear()
    again = make(tmp_path, paradigm(), actor=second, explorer=explorer)
    run_sync(again)
    assert explorer.asked == [] and set(second.asked) == {ACTED}
    for old, new in zip(records(fresh), records(again), strict=True):
        was, now = old["notes"]["exploration"], new["notes"]["exploration"]
        assert (was["cached"], was["summary_cached"], now["cached"], now["summary_cached"]) == (False, False, True, True)
        assert was["usage"] == now["usage"] and now["usage"]["cost"] == pytest.approx(0.1)
        assert old["notes"]["checkpoints"] == new["notes"]["checkpoints"]
        assert now["summary_usage"]["calls"] == 1 and was["start"] == now["start"]
        assert new["usage"]["calls"] == new["steps_by_phase"]["acting"]  # paid for now: acting alone
        assert old["usage"]["calls"] == old["steps_by_phase"]["acting"] + 11
        assert old["chats"]["exploring"] == new["chats"]["exploring"]
        assert old["notes"]["summary"] == new["notes"]["summary"] and old["chats"]["acting"][0] == new["chats"]["acting"][0]
    assert all(record["success"] for record in records(fresh))


def test_a_recalled_exploration_leads_to_the_same_episode(tmp_path: Path) -> None:
    fresh = make(tmp_path / "a", ExploreThenAct(explore_steps=6), actor=Counting("mapuser"))
    run_sync(fresh)
    explored = make(tmp_path / "b", ExploreThenAct(explore_steps=6, act=False), "explore", actor=Counting("mapuser"))
    run_sync(explored)
    recalled = make(tmp_path / "b", ExploreThenAct(explore_steps=6), actor=Counting("mapuser"))
    run_sync(recalled)
    assert all(record["notes"]["exploration"]["cached"] for record in records(recalled))
    assert [without_times(r) for r in records(fresh)] == [without_times(r) for r in records(recalled)]
    assert [r["end_reason"] for r in records(explored)] == ["completed"] * 3
    again = make(tmp_path / "b", ExploreThenAct(explore_steps=6, act=False), "explore", actor=Counting("mapuser"))
    again.folder = tmp_path / "b" / "again"
    run_sync(again)
    assert [without_times(r) for r in records(explored)] == [without_times(r) for r in records(again)]


def test_sampling_seeds_do_not_depend_on_what_was_recalled(tmp_path: Path) -> None:
    seeds: list[list[int | None]] = []
    for name in ("fresh", "recalled"):
        model = Counting("mapuser")
        model.sampling = Sampling(temperature=0.7)
        each = make(tmp_path, ExploreThenAct(explore_steps=6), tasks=1, actor=model)
        each.folder = tmp_path / name
        run_sync(each)
        seeds.append(model.seeds)
    fresh, recalled = seeds
    assert len(fresh) > 7 and recalled == fresh[7:] and len(set(fresh)) == len(fresh)


def test_every_budget_of_one_session_needs_one_exploration(tmp_path: Path) -> None:
    explorer = Counting("curious")
    summaries = []
    for steps in (2, 5, 10):
        each = make(
            tmp_path, ExploreThenAct(explore_steps=steps, explore_budget=10), actor=Counting("mapuser"), explorer=explorer
        )
        run_sync(each)
        summaries.append([record["notes"]["summary"] for record in records(each)])
        assert {record["notes"]["exploration"]["budget"] for record in records(each)} == {steps}
    assert (explorer.count(EXPLORED), explorer.count(SUMMARISED)) == (30, 9)
    assert summaries[0] != summaries[1] != summaries[2]
    run_sync(make(tmp_path, ExploreThenAct(explore_steps=2), actor=Counting("mapuser"), explorer=explorer))
    assert explorer.count(EXPLORED) == 30 + 6  # a session of 2 is not the start of a session of 10


@pytest.mark.parametrize(
    "change",
    [
        lambda run: replace(run, seeds=[1]),
        lambda run: replace(run, models={**run.models, "explorer": Counting("random")}),
        lambda run: replace(run, config={**run.config, "env": {"_target_": "x", "rooms": 4}}),
        lambda run: replace(run, config={**run.config, "parsing": {"strict": True}}),
        lambda run: replace(run, paradigm=ExploreThenAct(explore_steps=6, explorer_style="compact")),
        lambda run: replace(run, paradigm=ExploreThenAct(explore_steps=6, cache=False)),
    ],
    ids=["seed", "explorer", "world", "parsing", "style", "off"],
)
def test_what_changes_an_exploration_is_explored_again(tmp_path: Path, change: Callable[[Run], Run]) -> None:
    run_sync(make(tmp_path, ExploreThenAct(explore_steps=6), actor=Counting("mapuser"), explorer=Counting("curious")))
    other = change(make(tmp_path, ExploreThenAct(explore_steps=6), actor=Counting("mapuser"), explorer=Counting("curious")))
    other.folder = tmp_path / "other"
    run_sync(other)
    assert not any(record["notes"]["exploration"]["cached"] for record in records(other))


def test_a_new_summariser_writes_anew_from_the_same_exploration(tmp_path: Path) -> None:
    run_sync(make(tmp_path, ExploreThenAct(explore_steps=6), actor=Counting("mapuser"), explorer=Counting("curious")))
    writer = Counting("random", label="writer")
    explorer = Counting("curious")
    other = make(tmp_path, ExploreThenAct(explore_steps=6), actor=Counting("mapuser"), explorer=explorer, summariser=writer)
    run_sync(other)
    assert explorer.asked == [] and writer.asked == [SUMMARISED] * 3


def test_runs_at_the_same_time_explore_once(tmp_path: Path) -> None:
    explorer = Counting("curious", slow=0.002)
    runs = [
        make(tmp_path, ExploreThenAct(explore_steps=6), actor=Counting(name), explorer=explorer)
        for name in ("mapuser", "random", "myopic")
    ]
    for each in runs:
        each.nested = True  # neither takes the signals nor prints

    async def together() -> None:
        await asyncio.gather(*(execute(each) for each in runs))

    asyncio.run(together())
    assert (explorer.count(EXPLORED), explorer.count(SUMMARISED)) == (18, 3)
    cached = [record["notes"]["exploration"]["cached"] for each in runs for record in records(each)]
    assert cached.count(False) == 3 and len(cached) == 9


def test_torn_and_foreign_lines_are_skipped(tmp_path: Path) -> None:
    run_sync(make(tmp_path, ExploreThenAct(explore_steps=6), actor=Counting("mapuser")))
    files = sorted((tmp_path / "knowledge").rglob("*.jsonl"))
    assert len(files) == 3
    whole = files[0].read_bytes()
    files[0].write_bytes(
        whole[: len(whole.splitlines(keepends=True)[0]) // 2]
    )  # killed in the middle of the exploration's line
    files[1].write_bytes(files[1].read_bytes()[:-20])  # killed in the middle of the summary's line
    files[2].write_bytes(b'{"schema": 99, "kind": "exploration"}\n[]\n' + files[2].read_bytes())
    model = Counting("mapuser", label="scripted-mapuser")
    again = make(tmp_path, ExploreThenAct(explore_steps=6), actor=model)
    again.folder = tmp_path / "again"
    run_sync(again)
    assert (model.count(EXPLORED), model.count(SUMMARISED)) == (6, 2)
    for file in files[:2]:
        lines = file.read_bytes().splitlines()
        good = [line for line in lines if line.endswith(b"}") and json.loads(line)]
        assert [json.loads(line)["kind"] for line in good] == ["exploration", "summary"]


def test_an_exploration_that_a_limit_cut_off_is_not_kept(tmp_path: Path) -> None:
    poor = make(tmp_path, ExploreThenAct(explore_steps=6), actor=Counting("mapuser"))
    poor.limits = Limits(tokens=400)
    run_sync(poor)
    assert {record["end_reason"] for record in records(poor)} == {"token_limit"}
    assert not any(file.read_bytes() for file in (tmp_path / "knowledge").rglob("*.jsonl"))


def test_the_folder_says_what_its_hash_stands_for(tmp_path: Path) -> None:
    each = make(tmp_path, ExploreThenAct(explore_steps=6), actor=Counting("mapuser"))
    run_sync(each)
    (about,) = (tmp_path / "knowledge" / "toy").glob("scripted-mapuser-*/explorer.json")
    assert json.loads(about.read_text())["model"]["settings"] == {"model.policy": "scripted-mapuser"}
    artefacts = json.loads((each.folder / "artefacts.json").read_text())
    assert artefacts == {"knowledge": f"toy/{about.parent.name}"}
    text = about.read_text() + json.dumps(artefacts)
    assert str(tmp_path) not in text


# -------------------------------------------------------------------------------------------------------- the commands


def composed(root: Path, command: str, *overrides: str) -> Run:
    """The run that a command line leads to."""
    from hydra import compose, initialize_config_dir
    from omegaconf import OmegaConf

    from agentexp.commands import make_run
    from agentexp.config import Overrides

    folder = Path(__file__).resolve().parents[2] / "conf"
    lines = ["env=toy", "model=scripted", "paradigm=explore_then_act", f"output_root={root}", "progress=off", *overrides]
    with initialize_config_dir(str(folder), version_base=None):
        node = compose(command, overrides=lines)
    config = OmegaConf.to_container(node, resolve=True)
    assert isinstance(config, dict)
    return make_run({str(key): value for key, value in config.items()}, Overrides.of(lines))


def test_the_explore_command_explores_the_users_split_and_does_not_act(tmp_path: Path) -> None:
    default = composed(tmp_path, "explore", "model.policy=curious")
    assert default.split == "test" and isinstance(default.paradigm, ExploreThenAct) and not default.paradigm.acts
    chosen = composed(tmp_path, "explore", "model.policy=curious", "env.split=dev", "env.limit=2", "paradigm.explore_steps=6")
    summary, code = run_sync(chosen)
    assert (code, summary["finished"], summary["split"]) == (0, 2, "dev")
    assert {record["end_reason"] for record in records(chosen)} == {"completed"}
    assert not list(tmp_path.rglob("kg.json"))
    acting = composed(
        tmp_path,
        "eval",
        "model.policy=mapuser",
        "+model@roles.explorer=scripted",
        "roles.explorer.policy=curious",
        "env.split=dev",
        "env.limit=2",
        "paradigm.explore_steps=6",
    )
    run_sync(acting)
    assert all(record["notes"]["exploration"]["cached"] for record in records(acting))
    with pytest.raises(UserError, match="train, dev, test"):
        composed(tmp_path, "explore", "env.split=valid")


def test_map_stage_1_still_explores_its_own_split(tmp_path: Path) -> None:
    explore = composed(tmp_path, "explore", "paradigm=explore")
    assert explore.split == "train"
    nested = composed(tmp_path, "eval", "paradigm=map", "env.split=test").explore
    assert nested is not None and nested().folder == explore.folder


def test_max_steps_is_split_over_exploring_and_acting(tmp_path: Path) -> None:
    whole = composed(tmp_path, "eval", "budget=custom", "budget.mapping=10", "budget.acting=50")
    assert whole.budget == Budget(0, 50, 50) and whole.budget.total == 100
    cut = composed(tmp_path, "eval", "budget=custom", "budget.mapping=10", "budget.acting=50", "max_steps=20", "env.limit=2")
    assert cut.budget == Budget(0, 10, 10)
    cut.models["actor"] = Counting("myopic")  # type: ignore[index]
    run_sync(cut)
    assert all(record["steps_by_phase"]["exploring"] == 10 for record in records(cut))
