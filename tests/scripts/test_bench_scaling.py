"""What a turn costs does not grow with the turns before it. Counted in calls and bytes: times depend on the machine."""

import asyncio
import cProfile
import json
import pstats
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import bench  # noqa: F401 - makes `benchmarks` importable
import pytest
from benchmarks.workload import OBSERVATION, REPLY, Drive, Load, bare_aiohttp, harness, make_run
from fake_server import FakeServer, spawn

from agentexp.runner import execute

EPISODES = 3


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with spawn("--policy", REPLY, "--no-log") as address:
        for drive in (harness, bare_aiohttp):
            asyncio.run(drive(address, Load(1, 2, 1)))  # imports and compiled patterns
        yield address


def calls(url: str, drive: Drive, turns: int) -> int:
    """Function calls of `turns` turns in each of a few episodes."""
    profile = cProfile.Profile()
    profile.runcall(asyncio.run, drive(url, Load(EPISODES, turns, EPISODES)))
    total: int = pstats.Stats(profile).total_calls  # type: ignore[attr-defined]
    return total // EPISODES


def test_late_turns_cost_as_many_calls_as_early_ones(url: str) -> None:
    none, early, late = (calls(url, harness, turns) for turns in (2, 22, 102))
    assert (late - early) / 80 < 1.1 * (early - none) / 20


def test_calls_are_a_small_multiple_of_those_of_bare_aiohttp(url: str) -> None:
    ours, floor = (calls(url, drive, 42) - calls(url, drive, 2) for drive in (harness, bare_aiohttp))
    assert ours < 2.5 * floor


def test_a_turn_adds_its_own_bytes_to_the_request_and_nothing_else() -> None:
    server = FakeServer(policy=REPLY)

    async def run() -> None:
        async with server:
            await harness(server.url, Load(1, 40, 1))

    asyncio.run(run())
    sizes = [len(json.dumps(entry["body"])) for entry in server.requests]
    added = [after - before for before, after in pairwise(sizes[1:])]
    assert len(sizes) == 40 and set(added) == {added[0]} and added[0] < 1.3 * len(REPLY + OBSERVATION)


def test_a_turn_adds_its_own_bytes_to_the_record_and_nothing_else(url: str, tmp_path: Path) -> None:
    """Written once in the conversation and once in the trajectory, with what the call was."""

    def size(turns: int) -> int:
        folder = tmp_path / str(turns)
        asyncio.run(execute(make_run(url, Load(1, turns, 1), folder)))
        return (folder / "run" / "episodes.jsonl").stat().st_size

    none, early, late = size(2), size(22), size(102)
    assert (late - early) / 80 < 1.02 * (early - none) / 20  # numbers get longer, texts do not
    assert (early - none) / 20 < 1.5 * len(REPLY) + 2.2 * len(OBSERVATION) + 500
