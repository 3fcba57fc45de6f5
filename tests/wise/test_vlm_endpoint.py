"""An episode's memory on a real connection to an endpoint that fails in every way: the run goes on and counts."""

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from wise_helpers import AxisEncoder, frame, said

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))  # fake_server.py
from fake_server import FakeServer

from agentexp.core import stable_seed
from agentexp.errors import FatalError
from agentexp.models.openai_api import OpenAIModel
from agentexp.wise.core import Subtask
from agentexp.wise.memory.keyframes import KeyframeFilter
from agentexp.wise.memory.labelled import SaegMemory
from agentexp.wise.vlm.openai_vision import OpenAIVision
from agentexp.wise.vlm.worker import VisionWorker

BEEF = Subtask("obtain beef", "beef")


def good(*ticks: int) -> dict[str, Any]:
    return {"do": "ok", "content": json.dumps({"frames": [said(tick, "cow", cow="beef") for tick in ticks]})}


def episode(*script: str | dict[str, Any], batches: int) -> tuple[SaegMemory, float]:
    """Two keyframes a batch, 20 ticks and a new place for each; longest control step in seconds of this thread."""

    async def run() -> tuple[SaegMemory, float]:
        async with FakeServer(list(script)) as server:
            model = OpenAIModel(
                name="fake", base_url=server.url, max_retries=0, request_timeout=5.0, api_key_env=f"K{stable_seed('none')}"
            )
            vision = OpenAIVision(model=model)
            await vision.start()
            worker = VisionWorker(vision, batch=2, timeout=1.5, settle_seconds=5.0)
            every = KeyframeFilter(cosine_threshold=1.01)
            memory = SaegMemory(encoder=AxisEncoder(), worker=worker, keyframes=every, threshold=0.5).fresh()
            longest = 0.0
            for i in range(2 * batches):
                now = frame(20 * i, 20.0 * i, 0, "cow")
                begin = time.thread_time()
                memory.observe(now)
                assert memory.candidates(BEEF, now)
                longest = max(longest, time.thread_time() - begin)
                if i % 2:  # let the request of this batch end, so that the script's order is the batches'
                    await asyncio.sleep(0)
                    while not all(one.done for one in memory.worker._open):
                        await asyncio.sleep(0.01)
            await memory.settle()
            await vision.close()
            return memory, longest

    return asyncio.run(run())


def test_every_failure_costs_its_batch_and_nothing_else() -> None:
    memory, longest = episode(
        good(0, 20),
        "server_error",
        {"do": "ok", "content": "I see a cow."},
        good(80, 100),  # repaired
        "drop",
        "never",  # longer than the time limit
        {"do": "ok", "content": "no"},
        {"do": "ok", "content": "JSON"},  # twice
        good(240, 260),
        batches=7,
    )
    counts = memory.statistics()
    assert (counts["requests"], counts["answers"], counts["failures"]) == (7, 3, 4), memory.worker.failures
    assert (counts["failed_error"], counts["failed_timeout"], counts["failed_malformed"]) == (2, 1, 1)
    assert counts["repairs"] == 2 and counts["prompt_tokens"] > 0
    assert sorted(one.pose.x for one in memory.graph.affording("beef")) == [0, 20, 80, 100, 240, 260]
    assert [failure["tick"] for failure in memory.worker.failures] == [60, 140, 180, 220]
    assert longest < 1


def test_an_endpoint_that_dies_is_used_again_when_it_is_back() -> None:
    memory, _ = episode({"do": "die", "down": 0.1}, "server_error", good(80, 100), batches=3)
    counts = memory.statistics()
    assert counts["failures"] >= 1 and counts["answers"] + counts["failures"] == 3
    assert len(memory.records) == 6  # nothing of the episode is lost


def test_a_wrong_key_stops_the_run() -> None:
    with pytest.raises(FatalError, match=r"401|key"):
        episode("no_key", batches=2)
