"""Episodes against the fake server: failures of the server are the harness', full contexts are the agent's."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from benchmarks.workload import TinyWorld
from fake_server import FakeServer

from agentexp.core import Episode
from agentexp.envs.pool import EnvPool
from agentexp.errors import FatalError
from agentexp.models.openai_api import OpenAIModel
from agentexp.paradigms.react import ReAct
from agentexp.rollout import Budget, Limits, run_episode


def episode(server: FakeServer, turns: int = 6, **given: Any) -> Episode:
    async def run() -> Episode:
        async with server:
            env = TinyWorld()
            model = OpenAIModel(name="fake", base_url=server.url, api_key_env="NO_SUCH_KEY", **given)
            model.retry = replace(model.retry, base=0.01)

            pool = EnvPool({"_target_": "benchmarks.workload.TinyWorld"}, 1, step_timeout=30, reset_timeout=30, in_process=True)
            try:
                return await run_episode(
                    env.tasks("test")[0], env, pool.lease, {"actor": model}, ReAct(), Budget(0, turns), Limits(attempts=1)
                )
            finally:
                await model.close()

    return asyncio.run(run())


def test_retries_are_recorded_and_cost_no_steps() -> None:
    clean = episode(FakeServer())
    rough = episode(FakeServer([{"do": "server_error", "every": 3}]))
    assert clean.status == rough.status == "ok" and clean.steps == rough.steps == 6
    assert sum(call.retries for call in rough.calls) == 2 and sum(call.retries for call in clean.calls) == 0
    assert [step.action for step in clean.trajectory] == [step.action for step in rough.trajectory]
    assert clean.usage == rough.usage and clean.usage.calls == 6


def test_a_server_that_fails_for_good_is_a_harness_error() -> None:
    result = episode(FakeServer([{"do": "unavailable", "every": 1}]), max_retries=2)
    assert (result.status, result.end_reason, result.success) == ("error", "model_error", False)
    assert "HTTP 503" in result.error


def test_a_full_context_is_the_agents_failure() -> None:
    result = episode(FakeServer(context_limit=400, wording="vllm"), turns=50, max_tokens=32)
    assert (result.status, result.end_reason) == ("ok", "context_limit") and 0 < result.steps < 50


def test_no_quota_stops_the_run() -> None:
    with pytest.raises(FatalError, match="no quota left"):
        episode(FakeServer(["ok", "quota"]))


def test_sampled_calls_carry_a_seed_each_and_the_same_one_again() -> None:
    seeds = []
    for _ in range(2):
        server = FakeServer()
        episode(server, temperature=0.8)
        seeds.append([entry["body"]["seed"] for entry in server.requests])
    assert seeds[0] == seeds[1] and len(set(seeds[0])) == 6
