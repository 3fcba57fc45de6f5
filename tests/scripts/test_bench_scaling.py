"""What a turn costs does not grow with the turns before it. Counted in calls and bytes: times depend on the machine."""

import asyncio
import cProfile
import json
import pstats
from collections.abc import Iterator
from itertools import pairwise

import bench
import pytest
from fake_server import FakeServer, spawn

EPISODES = 3


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with spawn("--policy", bench.REPLY, "--no-log") as address:
        for drive in (bench.harness, bench.bare_aiohttp):
            asyncio.run(drive(address, 1, 2))  # imports and compiled patterns
        yield address


def calls(url: str, drive: bench.Drive, turns: int) -> int:
    """Function calls of `turns` turns in each of a few episodes."""
    profile = cProfile.Profile()
    profile.runcall(asyncio.run, drive(url, EPISODES, turns))
    total: int = pstats.Stats(profile).total_calls  # type: ignore[attr-defined]
    return total // EPISODES


def test_late_turns_cost_as_many_calls_as_early_ones(url: str) -> None:
    none, early, late = (calls(url, bench.harness, turns) for turns in (2, 22, 102))
    assert (late - early) / 80 < 1.1 * (early - none) / 20


def test_calls_are_a_small_multiple_of_those_of_bare_aiohttp(url: str) -> None:
    ours, floor = (calls(url, drive, 42) - calls(url, drive, 2) for drive in (bench.harness, bench.bare_aiohttp))
    assert ours < 2.5 * floor


def test_a_turn_adds_its_own_bytes_to_the_request_and_nothing_else() -> None:
    server = FakeServer(policy=bench.REPLY)

    async def run() -> None:
        async with server:
            await bench.harness(server.url, 1, 40)

    asyncio.run(run())
    sizes = [len(json.dumps(entry["body"])) for entry in server.requests]
    added = [after - before for before, after in pairwise(sizes[1:])]
    assert len(sizes) == 40 and set(added) == {added[0]} and added[0] < 1.3 * len(bench.REPLY + bench.OBSERVATION)
