"""Every failure that the fake server knows, as one reply in the middle of an episode: what the episode makes of it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from benchmarks.workload import TinyWorld
from fake_replies import CONTEXT_WORDINGS, KINDS
from fake_server import FakeServer

from agentexp.core import Episode
from agentexp.envs.pool import EnvPool
from agentexp.errors import FatalError
from agentexp.models.openai_api import OpenAIModel
from agentexp.paradigms.react import ReAct
from agentexp.rollout import Budget, Limits, run_episode

TRIED_AGAIN = {
    "rate_limit", "rate_limit_bare", "server_error", "bad_gateway", "unavailable", "gateway_timeout", "error_in_200", "drop",
    "truncate", "never", "stall", "die", "invalid_json", "no_choice",
}  # fmt: skip
STOPS_THE_RUN = {
    "quota": "no quota left",
    "no_key": "refused|wants a key",
    "forbidden": "forbids",
    "no_model": "knows no model",
}
IS_A_REPLY = {"ok", "slow", "null", "wrong_model", "no_usage", "long"}
FULL = {"context", *(f"context_{wording}" for wording in CONTEXT_WORDINGS)}


def episode(server: FakeServer, turns: int = 4, limits: Limits = Limits(attempts=1), **given: Any) -> Episode:
    async def run() -> Episode:
        async with server:
            env = TinyWorld()
            settings = {"api_key_env": "NO_SUCH_KEY", "request_timeout": 5.0, "max_tokens": 64, **given}
            model = OpenAIModel(name="fake", base_url=server.url, **settings)
            model.retry = replace(model.retry, base=0.02)

            pool = EnvPool({"_target_": "benchmarks.workload.TinyWorld"}, 1, step_timeout=30, reset_timeout=30, in_process=True)
            try:
                return await run_episode(
                    env.tasks("test")[0], env, pool.lease, {"actor": model}, ReAct(), Budget(0, turns), limits
                )
            finally:
                await model.close()

    return asyncio.run(run())


def entry(kind: str) -> dict[str, Any]:
    return {"do": kind, **({"retry_after": "0.05"} if kind == "rate_limit" else {}), **({"down": 0.2} if kind == "die" else {})}


def test_the_expectations_below_are_complete() -> None:
    assert set(KINDS) == TRIED_AGAIN | set(STOPS_THE_RUN) | IS_A_REPLY | FULL | {"bad_request"}


@pytest.mark.parametrize("streams", [False, True], ids=["json", "sse"])
@pytest.mark.parametrize("kind", sorted(TRIED_AGAIN))
def test_what_passes_is_tried_again_and_leaves_no_trace_in_the_result(kind: str, streams: bool) -> None:
    server = FakeServer(["ok", entry(kind), "ok"], always_stream=streams)
    result, clean = episode(server, request_timeout=1.5), episode(FakeServer())
    assert (result.status, result.end_reason, result.attempts) == ("ok", "step_limit", 1)
    assert [call.retries for call in result.calls] == [0, 1, 0, 0] or kind == "die"  # while it is down, also more
    assert result.chats == clean.chats and result.usage == clean.usage
    assert server.injected[kind] == 1 and server.delivered["calls"] == 4


@pytest.mark.parametrize("streams", [False, True], ids=["json", "sse"])
@pytest.mark.parametrize("kind", sorted(STOPS_THE_RUN))
def test_what_no_episode_can_survive_stops_the_run_at_once(kind: str, streams: bool) -> None:
    server = FakeServer(["ok", entry(kind)], always_stream=streams)
    with pytest.raises(FatalError, match=STOPS_THE_RUN[kind]):
        episode(server)
    assert server.count == 2


def test_a_wrong_request_fails_the_attempt_and_a_new_one_begins() -> None:
    server = FakeServer(["ok", "bad_request"])
    result = episode(server, limits=Limits(attempts=2))
    assert (result.status, result.attempts, server.count) == ("ok", 2, 6)
    assert result.wasted.calls == 1 and server.delivered["calls"] == result.usage.calls + result.wasted.calls
    lost = episode(FakeServer(["ok", "bad_request"]))
    assert (lost.status, lost.end_reason) == ("error", "model_error") and "top_k" in lost.error


@pytest.mark.parametrize("kind", sorted(FULL))
def test_a_full_context_is_the_agents_failure_in_every_wording(kind: str) -> None:
    result = episode(FakeServer(["ok", kind]))
    assert (result.status, result.end_reason, result.steps) == ("ok", "context_limit", 1)


@pytest.mark.parametrize("streams", [False, True], ids=["json", "sse"])
def test_odd_replies_are_replies(streams: bool) -> None:
    server = FakeServer(["null", "wrong_model", "no_usage", "long"], always_stream=streams)
    result = episode(server)
    assert (result.status, result.end_reason, result.steps, server.count) == ("ok", "step_limit", 4, 4)
    empty, other, uncounted, long = result.calls
    assert empty.info["null_content"] and empty.finish_reason == "length" and empty.reasoning
    assert result.trajectory[0].status == "truncated" and result.trajectory[0].action is None
    assert other.info == {"served_model": "some-other-model"} and result.trajectory[1].status == "ok"
    assert uncounted.info == {"usage_missing": True} and uncounted.usage.prompt_tokens == 0
    assert long.usage.completion_tokens == 20_000 and result.trajectory[3].status == "invalid"
    delivered = {name: getattr(result.usage, name) for name in server.delivered}
    assert delivered == server.delivered


def test_a_window_that_only_we_know_is_kept_to_by_dropping_the_oldest_observations() -> None:
    """Ollama cuts prompts in silence, so `context_limit` says how much fits; what was left out makes room again."""
    server = FakeServer()
    result = episode(server, turns=30, limits=Limits(attempts=1, context="drop_oldest"), context_limit=900)
    assert (result.status, result.end_reason, result.steps) == ("ok", "step_limit", 30)
    (left_out,) = result.notes["left_out"].values()
    assert 0 < left_out < 29
    assert all(call.usage.prompt_tokens < 900 and "prompt_shrank" not in call.info for call in result.calls)
    assert max(call.usage.prompt_tokens for call in result.calls) > 600
