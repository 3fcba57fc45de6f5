"""The episode loop: what costs a step, what the agent is told, what is recorded, how failures end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from speaker import Speaker

from agentexp.actions import ParseSettings
from agentexp.core import Completion, Env, Episode, Request, Sampling, Step, Task, Usage
from agentexp.envs.toy import ToyRooms
from agentexp.errors import ContextOverflow, EngineError, FatalError, ModelError, UserError
from agentexp.metrics.summary import summarise
from agentexp.records import episode_to_json
from agentexp.rollout import Budget, Limits, Rollout, World, run_episode


class Plain:
    """Act with bare messages."""

    name = "plain"

    async def __call__(self, ro: Rollout) -> None:
        with ro.phase("acting", ro.budget.total):
            step = await ro.reset()
            chat = ro.chat("acting").system("s").user(step.observation)
            while ro.steps_left and not step.done:
                step = (await ro.turn(chat, "thought_action")).step
                chat.user(step.observation)
        ro.finish()


class Direct:
    """A world in this process."""

    def __init__(self, env: Env) -> None:
        self.env = env

    async def reset(self, task: Task) -> Step:
        return self.env.reset(task)

    async def step(self, action: str) -> Step:
        return self.env.step(action)

    async def call(self, method: str, *args: Any) -> Any:
        return getattr(self.env, method)(*args)


def run(
    model: Speaker,
    *,
    paradigm: Any = None,
    steps: int = 5,
    limits: Limits = Limits(),
    world: Callable[[Env], World] = Direct,
    parsing: ParseSettings = ParseSettings(),
) -> Episode:
    env = ToyRooms()
    task = env.tasks("test")[0]

    @asynccontextmanager
    async def lease() -> AsyncIterator[World]:
        yield world(env)

    return asyncio.run(run_episode(task, env, lease, {"actor": model}, paradigm or Plain(), Budget(0, steps), limits, parsing))


def test_an_unreadable_reply_costs_a_step_and_sends_nothing() -> None:
    sent: list[str] = []

    class Spy(Direct):
        async def step(self, action: str) -> Step:
            sent.append(action)
            return await super().step(action)

    episode = run(Speaker("I am lost for words.", "Action: look"), world=Spy, steps=2)
    assert sent == ["look"]
    assert [step.status for step in episode.trajectory] == ["invalid", "ok"]
    assert episode.trajectory[0].action is None
    assert episode.trajectory[0].observation == ParseSettings().unreadable
    assert (episode.steps, episode.end_reason, episode.success, episode.status) == (2, "step_limit", False, "ok")


def test_a_readable_action_that_is_not_possible_gets_the_worlds_own_words() -> None:
    episode = run(Speaker("Action: fly to the moon"), steps=1)
    (step,) = episode.trajectory
    assert (step.status, step.action, step.rewrite, step.error) == ("invalid", None, "fly to the moon", True)
    assert step.observation == ToyRooms.card.refusal != ParseSettings().unreadable
    assert "inadmissible" in step.flags


def test_what_the_model_wrote_in_the_worlds_name_never_enters_the_history() -> None:
    model = Speaker("Action: look\nObservation: You have won.\nAction: drop", "Action: look")
    episode = run(model, steps=2)
    assert "You have won" not in "".join(m.content for m in model.requests[1].messages)
    assert episode.calls[0].raw is not None
    assert "You have won" in episode.calls[0].raw


def test_prose_is_not_quoted_back() -> None:
    """P10: what the model is told after an unreadable reply is one short sentence, which is a setting."""
    model = Speaker("Considering the room again, the desk and the bed look plausible. " * 60)
    run(model, steps=2)
    told = model.requests[1].messages[-1]
    assert (told.role, told.content) == ("user", ParseSettings().unreadable)
    assert len(told.content) <= 100
    model = Speaker("No idea.")
    run(model, steps=2, parsing=ParseSettings(unreadable="Once more."))
    assert model.requests[1].messages[-1].content == "Once more."


def test_of_several_actions_the_first_is_carried_out_and_the_agent_is_told() -> None:
    """P11: one engine step per turn."""
    episode = run(Speaker("Action: look, then inventory"), steps=1)
    (step,) = episode.trajectory
    assert (step.action, step.status, step.rewrite) == ("look", "ok", "look, then inventory")
    assert "n_actions>1" in step.flags
    assert step.observation.endswith("\n" + ParseSettings().several)
    quiet = run(Speaker("Action: look, then inventory"), steps=1, parsing=ParseSettings(several=""))
    assert quiet.trajectory[0].observation == run(Speaker("Action: look"), steps=1).trajectory[0].observation


def test_rewrites_are_recorded_and_counted_and_can_be_switched_off() -> None:
    """P09: both wordings are in the record."""
    episode = run(Speaker("Action: LOOK"), steps=1)
    assert (episode.trajectory[0].action, episode.trajectory[0].rewrite) == ("look", "LOOK")
    assert summarise([json.loads(episode_to_json(episode))], 1)["rewritten_rate"] == 1.0
    episode = run(Speaker("Action: LOOK"), steps=1, parsing=ParseSettings(grounding=False))
    assert (episode.trajectory[0].action, episode.trajectory[0].rewrite) == ("LOOK", "")


def test_other_alphabets_are_readable_in_the_record() -> None:
    """P06: a translated command is an ordinary invalid action."""
    reply = "Действие: открыть ящик 1"
    episode = run(Speaker(reply), steps=1)
    assert episode.trajectory[0].status == "invalid"
    assert reply.encode() in episode_to_json(episode)


def test_messages_are_stored_once_and_calls_refer_to_them() -> None:
    episode = run(Speaker("Action: look"), steps=4)
    messages = episode.chats["acting"]
    assert [call.upto for call in episode.calls] == [2, 4, 6, 8]
    for call in episode.calls:
        assert messages[call.upto].role == "assistant"


def test_usage_adds_up_over_calls_and_roles() -> None:
    episode = run(Speaker("Action: look"), steps=3)
    assert episode.usage == Usage(30, 15, 0, 3, 0.03)
    assert episode.usage_by_role == {"actor": episode.usage}


def test_done_is_not_won_and_the_agent_cannot_declare_success() -> None:
    for line in ("Action: look", "Action: done", "I have finished the task."):
        episode = run(Speaker(line), steps=3)
        assert (episode.success, episode.end_reason) == (False, "step_limit")


@pytest.mark.parametrize(
    ("limits", "reason", "steps"),
    [
        (Limits(tokens=40), "token_limit", 3),
        (Limits(cost=0.02), "token_limit", 2),
    ],
)
def test_caps_end_an_episode_as_a_result_of_the_agent(limits: Limits, reason: str, steps: int) -> None:
    episode = run(Speaker("Action: look"), limits=limits)
    assert (episode.status, episode.end_reason, episode.steps) == ("ok", reason, steps)


def test_only_unreadable_replies_in_a_row_end_an_episode() -> None:
    limits = Limits(invalid_in_a_row=2)
    assert run(Speaker("hm"), limits=limits).end_reason == "invalid_limit"
    assert run(Speaker("hm", "Action: look", "hm", "Action: look"), limits=limits, steps=4).end_reason == "step_limit"
    assert run(Speaker("Action: fly"), limits=limits).end_reason == "step_limit"


def test_a_full_context_is_the_agents_failure() -> None:
    episode = run(Speaker("Action: look", ContextOverflow("8193 tokens do not fit into 8192.")))
    assert (episode.status, episode.end_reason, episode.success) == ("ok", "context_limit", False)
    assert "8193" in episode.error


class Window(Speaker):
    """A model whose context holds `most` characters."""

    def __init__(self, most: int) -> None:
        super().__init__("Action: look")
        self.most = most

    async def chat(self, request: Request) -> Completion:
        if sum(len(message.content) for message in request.messages) > self.most:
            raise ContextOverflow("It does not fit.")
        return await super().chat(request)


def test_a_full_context_may_lose_its_oldest_observations_and_nothing_else() -> None:
    whole = run(Speaker("Action: look"), steps=40)
    (name,) = whole.chats
    most = sum(len(message.content) for message in whole.chats[name]) * 3 // 4
    assert run(Window(most), steps=40).end_reason == "context_limit"
    model = Window(most)
    short = run(model, limits=Limits(context="drop_oldest"), steps=40)
    assert (short.end_reason, short.steps) == ("step_limit", 40)
    assert short.chats == whole.chats  # the record is whole; what was not sent is marked
    left_out = short.calls[-1].info["left_out"]
    assert short.notes["left_out"] == {name: len(left_out)}
    assert "left_out" not in short.calls[0].info
    sent, kept = model.requests[-1].messages, short.chats[name][: short.calls[-1].upto]
    users = [i for i, message in enumerate(kept) if message.role == "user"]
    assert left_out == users[1 : 1 + len(left_out)]  # the oldest, never the task
    for i, (before, after) in enumerate(zip(kept, sent, strict=True)):
        assert (before == after) is (i not in left_out)


def test_a_context_too_small_for_the_task_ends_the_episode_also_then() -> None:
    episode = run(Window(20), limits=Limits(context="drop_oldest"))
    assert (episode.status, episode.end_reason) == ("ok", "context_limit")


@pytest.mark.parametrize(("error", "reason"), [(ModelError("500"), "model_error"), (RuntimeError("bug"), "harness_error")])
def test_failures_of_the_harness_are_marked_and_tried_again(error: Exception, reason: str) -> None:
    episode = run(Speaker(error))
    assert (episode.status, episode.end_reason, episode.success) == ("error", reason, False)
    assert episode.attempts == 2
    assert len(episode.notes["failed_attempts"]) == 2
    recovered = run(Speaker(error, "Action: look"), steps=2)
    assert (recovered.status, recovered.attempts, recovered.steps) == ("ok", 2, 2)


def test_tokens_of_failed_attempts_are_kept_apart() -> None:
    episode = run(Speaker("Action: look", ModelError("500"), "Action: look"), steps=2)
    assert (episode.status, episode.attempts) == ("ok", 2)
    assert episode.usage == Usage(20, 10, 0, 2, 0.02)
    assert episode.wasted == Usage(10, 5, 0, 1, 0.01)


def test_a_dead_engine_costs_one_attempt() -> None:
    deaths = iter([True, False])

    class Dying(Direct):
        def __init__(self, env: Env) -> None:
            super().__init__(env)
            self.dies = next(deaths)

        async def step(self, action: str) -> Step:
            if self.dies:
                raise EngineError("The engine died.")
            return await super().step(action)

    episode = run(Speaker("Action: look"), world=Dying, steps=2)
    assert (episode.status, episode.attempts, episode.steps) == ("ok", 2, 2)


def test_an_attempt_that_takes_too_long_is_a_harness_error() -> None:
    class Slow(Direct):
        async def step(self, action: str) -> Step:
            await asyncio.sleep(30)
            return await super().step(action)

    episode = run(Speaker("Action: look"), world=Slow, limits=Limits(seconds=0.05, attempts=1))
    assert (episode.status, episode.end_reason) == ("error", "timeout")


@pytest.mark.parametrize("error", [FatalError("no quota"), UserError("no such policy")])
def test_what_stops_every_episode_stops_the_run(error: Exception) -> None:
    with pytest.raises(type(error)):
        run(Speaker(error))


def test_sampled_calls_get_seeds_of_their_own_that_repeat() -> None:
    class Warm(Speaker):
        sampling = Sampling(temperature=0.7)

    first, again = Warm("Action: look"), Warm("Action: look")
    run(first, steps=3)
    run(again, steps=3)
    seeds = [request.sampling.seed for request in first.requests]
    assert len(set(seeds)) == 3
    assert seeds == [request.sampling.seed for request in again.requests]


@pytest.mark.parametrize(
    ("reply", "kept"),
    [
        ("Action: look\nYou see a red room.\nAction: drop", "Action: look"),
        ("Thought: a\nAction: look\nThought: b\nAction: go east", "Thought: a\nAction: look"),
        ("<answer>look</answer>\nThe room is empty.\n<answer>go east</answer>", "<answer>look</answer>"),
        ("Action: `look`\nAction: go east", "Action: `look`"),
    ],
)
def test_later_actions_of_a_reply_never_enter_the_history(reply: str, kept: str) -> None:
    episode = run(Speaker(reply), steps=1)
    assert episode.chats["acting"][2].content == kept
    assert episode.trajectory[0].action == "look"
    assert "n_actions>1" in episode.trajectory[0].flags
    assert episode.calls[0].raw == reply


def test_the_steps_of_a_phase_end_with_it() -> None:
    left: list[int] = []

    class Leaves:
        name = "leaves"

        async def __call__(self, ro: Rollout) -> None:
            with ro.phase("acting", 3):
                await ro.reset()
                await ro.act("look")
                left.append(ro.steps_left)
            left.append(ro.steps_left)
            await ro.act("look")

    episode = run(Speaker([]), paradigm=Leaves())
    assert (left, episode.end_reason, episode.steps) == ([2, 0], "step_limit", 1)


@pytest.mark.parametrize(
    "broken", [{"score": float("nan")}, {"score": float("inf")}, {"score": "1"}, {"score": None}, {"observation": None}, None]
)
@pytest.mark.parametrize("method", ["reset", "step"])
def test_an_answer_that_cannot_be_counted_is_the_worlds_failure(broken: dict[str, Any] | None, method: str) -> None:
    """E07 and T01: a world's defect costs its episode, not the numbers of the run."""

    def spoilt(step: Step) -> Any:
        return None if broken is None else replace(step, **broken)

    class Broken(Direct):
        async def reset(self, task: Task) -> Step:
            step = await super().reset(task)
            return spoilt(step) if method == "reset" else step

        async def step(self, action: str) -> Step:
            return spoilt(await super().step(action))

    episode = run(Speaker("Action: look"), world=Broken)
    assert (episode.status, episode.end_reason, episode.success, episode.score) == ("error", "env_error", False, 0.0)
    assert f"The world's {method}()" in episode.error
    assert summarise([json.loads(episode_to_json(episode))], 1)["harness_errors"] == 1
