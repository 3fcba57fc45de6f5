"""Rollouts through the real episode loop with a scripted sampler: tokens, rewards, and everything that takes no part."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from grpo_kit import END, Doors, ScriptedSampler, playing

from agentexp.core import Episode, Request, Sampling, Task
from agentexp.envs.toy import ToyRooms
from agentexp.errors import FatalError
from agentexp.paradigms.react import ReAct
from agentexp.rollout import Budget
from agentexp.training.grpo.draws import Group
from agentexp.training.grpo.harvest import harvest, numbers
from agentexp.training.grpo.rollouts import Played, Way

TOY: dict[str, Any] = {"_target_": "agentexp.envs.toy.ToyRooms"}
DOORS: dict[str, Any] = {"_target_": "grpo_kit.Doors"}
SAMPLING = Sampling(temperature=1.0, max_tokens=200)


def act(action: str) -> str:
    return f"Thought: I try.\nAction: {action}"


def odd_wins(request: Request) -> str:
    return act("go right" if request.view.task.repeat % 2 else "go left")


def doors(
    script: Any = odd_wins, n: int = 1, size: int = 4, broken: list[str] | None = None, fail: Any = None, **more: Any
) -> Any:
    env = Doors(broken=broken)
    sampler = ScriptedSampler(script, fail or (lambda _: False))
    rollouts = playing(env, {**DOORS, "broken": broken or []}, **more)
    groups = [Group(i, "task", task) for i, task in enumerate(env.tasks("train")[:n])]
    return asyncio.run(rollouts.play(sampler, SAMPLING, groups, size)), sampler


def toy(kind: Any, script: Any, size: int = 2, **more: Any) -> Any:
    env = ToyRooms()
    sampler = ScriptedSampler(script)
    group = Group(0, kind, env.tasks("train")[0])
    sampling = more.pop("sampling", SAMPLING)
    return asyncio.run(playing(env, TOY, **more).play(sampler, sampling, [group], size))[0], sampler


# ---------------------------------------------------------------------------------------------------- tokens (R01, R02)


def test_what_is_trained_is_exactly_what_was_sampled() -> None:
    (played, other), sampler = toy("task", lambda request: act("look"))
    for one in (played, other):
        mine = [call for chat, calls in [("", sampler.every)] for call in calls if call.prompt]
        assert one.rows and one.fate == "ok"
        for row in one.rows:
            assert len(row.ids) == len(row.trained) == len(row.logprobs)
        trained = [token for row in one.rows for token, on in zip(row.ids, row.trained, strict=True) if on]
        said = [*map(ord, act("look")), END] * one.steps
        assert trained == said  # each end of turn included, no observation, no prompt
        assert all(p == (-0.5 if on else 0.0) for row in one.rows for p, on in zip(row.logprobs, row.trained, strict=True))
        assert mine
    sampled = sum(len(call.tokens) for call in sampler.every)
    assert sum(row.n_trained for one in (played, other) for row in one.rows) == sampled
    assert len(played.rows) == 1  # the conversation only ever grew


def test_a_reply_that_was_cut_in_the_record_begins_a_new_row_and_loses_no_token() -> None:
    (played, _), sampler = toy("task", lambda request: act("look") + "\nObservation: You win.\nAction: look")
    assert len(played.rows) == played.steps == 8
    assert sum(row.n_trained for row in played.rows) * 2 == sum(len(call.tokens) for call in sampler.every)


def test_rollouts_of_one_group_are_told_apart_by_their_repeat() -> None:
    (group,), sampler = doors(size=4)
    assert [one.task.repeat for one in group] == [0, 1, 2, 3]
    assert [one.reward for one in group] == [0.0, 1.0, 0.0, 1.0]
    assert len({request.sampling.seed for request in sampler.requests}) == len(sampler.requests)
    assert {request.sampling.temperature for request in sampler.requests} == {1.0}


# ------------------------------------------------------------------------------------------------------------- rewards


def test_exploration_hides_the_goal_and_is_rewarded_with_its_coverage() -> None:
    def walk(request: Request) -> str:
        return act(("go west", "go east")[len(request.view.history) // 4 % 2] if request.view.task.repeat else "inventory")

    (still, walker), sampler = toy("explore", walk, steps=12)
    assert still.reward == 0.0 < (walker.reward or 0.0) <= 1.0
    assert all(not request.view.goal for request in sampler.requests)
    assert still.fate == walker.fate == "ok" and walker.end_reason == "completed"


def test_an_early_stop_keeps_what_was_covered_and_trains_the_stop_word() -> None:
    (played, _), _ = toy("explore", lambda r: act("finish exploring" if r.view.history else "look"), steps=12)
    assert played.steps == 1 and played.reward is not None
    text = "".join(chr(token) for row in played.rows for token, on in zip(row.ids, row.trained, strict=True) if on)
    assert "finish exploring" in text


# ------------------------------------------------------------------------------------------- what takes no part, counted


def test_a_broken_engine_is_no_reward_of_0() -> None:
    groups, _ = doors(n=2, broken=["train0"])
    assert {one.fate for one in groups[0]} == {"harness"} and all(one.reward is None and not one.rows for one in groups[0])
    assert "broken" in groups[0][0].error
    found = harvest(groups, eps=1e-4)
    told = numbers(found.sums)
    assert told["harness_errors"] == 4 and told["groups_too_small"] == 1 and told["frac_zero_adv"] == 0.0
    assert told["task/reward"] == 0.5 and len(found.trajectories) == 4


def test_a_failed_attempt_leaves_no_tokens_behind() -> None:
    failed: set[str] = set()

    def once(request: Request) -> bool:
        key = request.view.task.key
        if len(request.view.history) == 1 and key not in failed:
            failed.add(key)
            return True
        return False

    env = ToyRooms()
    sampler = ScriptedSampler(lambda _: act("look"), once)
    rollouts = playing(env, TOY, steps=3)
    group = Group(0, "task", env.tasks("train")[0])
    played = asyncio.run(rollouts.play(sampler, SAMPLING, [group], 2))[0]
    assert len(failed) == 2 and [one.fate for one in played] == ["ok", "ok"]
    said = [*map(ord, act("look")), END] * 3
    for one in played:
        assert [token for row in one.rows for token, on in zip(row.ids, row.trained, strict=True) if on] == said
        assert len(one.rows) == 1
    assert not sampler.taken


def test_a_crash_in_one_group_leaves_the_others_alone_and_a_group_of_one_teaches_nothing() -> None:
    groups, _ = doors(n=2, fail=lambda r: r.view.task.id == "train0" and r.view.task.repeat != 1)
    assert [one.fate for one in groups[0]] == ["harness", "ok", "harness", "harness"]
    assert [one.fate for one in groups[1]] == ["ok"] * 4
    found = harvest(groups, eps=1e-4)
    assert found.sums["task/small"] == 1 and len(found.trajectories) == 4


@pytest.mark.parametrize("reward", [None, float("nan"), float("inf")])
def test_a_reward_that_is_no_number_takes_no_part(reward: float | None) -> None:
    class Odd:
        def __call__(self, episode: Episode) -> float | None:
            return reward if episode.task.repeat == 0 else float(episode.success)

    (group,), _ = doors(task=Way(ReAct(style="compact"), Budget(0, 8), Odd()))
    assert [one.fate for one in group] == ["no_reward", "ok", "ok", "ok"]
    found = harvest([group], eps=1e-4)
    assert found.sums["no_reward"] == 1 and len(found.trajectories) == 3
    assert sum(trajectory.advantage for trajectory in found.trajectories) == pytest.approx(0, abs=1e-9)


def test_what_is_fatal_stops_the_training() -> None:
    def fatal(_: Request) -> str:
        raise FatalError("No quota.")

    with pytest.raises(FatalError, match="quota"):
        doors(fatal)


def test_the_token_cap_ends_a_rollout_and_cuts_its_rows() -> None:
    free, _ = toy("task", lambda _: act("look"))
    cap = free[0].tokens // 2
    (played, other), _ = toy("task", lambda _: act("look"), cap=cap)
    assert played.truncated and played.end_reason == "context_limit" and played.steps < free[0].steps
    assert sum(len(row.ids) for row in played.rows) <= cap
    assert played.fate == "ok" and played.reward == 0.0  # its own history: counts as a failure
    assert not free[0].truncated
    found = harvest([[played, other]], eps=1e-4, mask_truncated=True)
    assert all(not sample.weight for sample in found.samples("sequence", 2.0))
    explored, _ = toy("explore", lambda _: act("go west"), cap=cap)
    assert explored[0].truncated and explored[0].reward is not None  # what it covered until then


def test_replies_cut_at_their_limit_are_counted() -> None:
    (played, _), _ = toy("task", lambda _: act("look"), sampling=Sampling(1.0, 5))
    assert played.replies == played.cut_replies == 8 and played.truncated
    assert numbers(harvest([[played, played]], eps=1e-4).sums)["cut_replies"] == 1.0


def test_rows_that_are_too_long_are_left_out_and_counted() -> None:
    (group,), _ = doors()
    longest = max(len(row.ids) for one in group for row in one.rows)
    found = harvest([group], eps=1e-4, max_row_tokens=longest - 1)
    assert found.sums["too_long"] > 0
    assert len(found.samples("sequence", 4.0)) == sum(len(one.rows) for one in group) - found.sums["too_long"]


# ---------------------------------------------------------------------------------------------------------- case R04


@pytest.mark.parametrize("kl_on_flat", [True, False])
def test_groups_without_signal_are_counted_and_may_leave_the_kl_term(kl_on_flat: bool) -> None:
    groups, _ = doors(lambda _: act("go right"), n=2)
    found = harvest(groups, eps=1e-4, kl_on_flat=kl_on_flat)
    told = numbers(found.sums)
    assert told["frac_zero_adv"] == told["frac_no_signal"] == told["task/reward"] == 1.0 and told["task/reward_std"] == 0.0
    samples = found.samples("sequence", 8.0)
    assert samples and all(sample.advantage == 0.0 and sample.kl == float(kl_on_flat) for sample in samples)


def test_weights_of_all_tokens_add_up_to_one() -> None:
    groups, _ = doors(n=3)
    found = harvest(groups, eps=1e-4)
    samples = found.samples("sequence", found.sums["usable"])
    assert sum(sample.weight * sample.row.n_trained for sample in samples) == pytest.approx(1.0)
    assert isinstance(groups[0][0], Played) and isinstance(groups[0][0].task, Task)
