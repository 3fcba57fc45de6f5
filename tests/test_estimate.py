"""An estimate asks no language model, leaves nothing behind and bounds what a run then uses."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from run_fakes import make_run

from agentexp.core import Completion, Message, Request, Sampling, Usage
from agentexp.estimate import CHARS_PER_TOKEN, StandIn, estimate
from agentexp.models.openai_api import OpenAIModel
from agentexp.run import Run
from agentexp.runner import run_sync

TOY = ["env=toy", "model=openai", "model.name=some-model", "model.base_url=http://127.0.0.1:9/v1", "progress=off"]


class NeverAsked:
    """A model that must not be asked."""

    label = "never"
    sampling = Sampling(max_tokens=50)

    async def start(self) -> None:
        raise AssertionError("started")

    async def chat(self, request: Request) -> Completion:
        raise AssertionError("asked")

    async def close(self) -> None:
        raise AssertionError("closed")

    def versions(self) -> dict[str, str]:
        raise AssertionError("looked at")


def never(root: Path, **values: Any) -> Run:
    run = make_run(root, **values)
    run.models = {"actor": NeverAsked()}
    return run


def test_the_plan_is_counted_and_the_model_never_asked() -> None:
    result = estimate(lambda root: never(root, tasks=12))
    assert (result.planned, result.sampled, result.stopped) == (12, 3, 0)
    total = result.total
    assert total.calls > 12
    assert total.completion_tokens == 50 * total.calls
    assert total.cost is None


def test_a_longer_plan_costs_in_proportion() -> None:
    short, long = (estimate(lambda root, n=n: never(root, tasks=12, seeds=list(range(n)))) for n in (1, 5))
    assert long.planned == 5 * short.planned
    assert long.total.calls == pytest.approx(5 * short.total.calls, abs=5)


def test_a_stand_in_counts_what_the_server_need_not_compute_again() -> None:
    model = StandIn(OpenAIModel(name="m", price_in=1.0, price_out=10.0, price_cached=0.1, max_tokens=100))

    async def ask(*texts: str) -> Usage:
        from run_fakes import CountingWorld

        messages = [Message("user", text) for text in texts]
        world = CountingWorld()
        request = request_of(messages, world)
        return (await model.chat(request)).usage

    first = asyncio.run(ask("a" * 4000))
    again = asyncio.run(ask("a" * 4000, "b" * 400))
    assert (first.prompt_tokens, first.cached_tokens) == (4000 / CHARS_PER_TOKEN, 0)
    assert (again.prompt_tokens, again.cached_tokens) == (1100, 1000)
    assert first.cost == pytest.approx((1000 * 1.0 + 100 * 10.0) / 1e6)
    assert again.cost == pytest.approx((100 * 1.0 + 1000 * 0.1 + 100 * 10.0) / 1e6)


def request_of(messages: list[Message], world: Any) -> Request:
    from agentexp.core import Step, View

    async def oracle() -> list[str]:
        return []

    view = View(world.tasks("test")[0], "", "acting", Step(""), (), 1, None, {}, None, world, oracle, {})
    return Request(messages, Sampling(max_tokens=100), "summary", "", view, "chat")


def test_it_bounds_what_the_run_then_uses(tmp_path: Path) -> None:
    """Against a model that says as little as possible, with the same prompts."""

    class Short(NeverAsked):
        async def start(self) -> None:
            pass

        async def close(self) -> None:
            pass

        async def chat(self, request: Request) -> Completion:
            prompt = round(sum(len(message.content) for message in request.messages) / CHARS_PER_TOKEN)
            return Completion("Action: no", usage=Usage(prompt, 3, 0, 1))

        def versions(self) -> dict[str, str]:
            return {}

    def make(root: Path) -> Run:
        run = make_run(root, tasks=6)
        run.models = {"actor": Short()}
        return run

    bound = estimate(make).total
    summary, code = run_sync(make(tmp_path))
    assert code == 0
    assert bound.completion_tokens >= summary["tokens"]["completion"] > 0
    assert bound.prompt_tokens >= summary["tokens"]["prompt"] > 0


def test_on_the_command_line(tmp_path: Path) -> None:
    prices = ["model.price_in=0.15", "model.price_out=0.6"]
    command = [sys.executable, "-m", "agentexp", "eval", *TOY, *prices, "paradigm=map", "--estimate"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "8 episodes" in done.stdout
    assert "outside the episodes" in done.stdout  # stage 1
    assert "no price" not in done.stdout
    assert not list(tmp_path.iterdir()), json.dumps([str(path) for path in tmp_path.iterdir()])
