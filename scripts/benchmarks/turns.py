"""CPU time of the harness per turn, and the rate that it reaches."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple

from fake_server import spawn

from benchmarks.workload import REPLY, Drive, Load, bare_aiohttp, harness, model_call, sdk_create

DRIVES: dict[str, Drive] = {
    "cpu_ms_per_turn": harness,
    "floor_aiohttp_ms": bare_aiohttp,
    "model_call_ms": model_call,
    "floor_sdk_create_ms": sdk_create,
}
_ONCE = ("model_call_ms", "floor_sdk_create_ms")  # only for comparison: one round tells enough
_SDK_TURNS = 400  # `create` takes so long that this many turns are enough


class Sample(NamedTuple):
    """One drive of a load."""

    cpu_ms_per_turn: float
    turns_per_s: float


def sample(url: str, drive: Drive, load: Load) -> Sample:
    """CPU milliseconds of this process per turn, and turns per second."""
    cpu, wall = time.process_time(), time.perf_counter()
    asyncio.run(drive(url, load))
    return Sample((time.process_time() - cpu) / load.total * 1e3, load.total / (time.perf_counter() - wall))


def warm_up(url: str, *drives: Drive) -> None:
    """Imports, templates, compiled patterns."""
    for drive in drives:
        asyncio.run(drive(url, Load(4, 3, 4)))


def flatness(rounds: Sequence[Mapping[int, float]]) -> float | None:
    """Cost per turn of the longest episodes over that of the shortest: the median of the rounds, each measured in one go."""
    few, many = min(rounds[0]), max(rounds[0])
    return round(median(one[many] / one[few] for one in rounds), 3) if many > few else None


def per_turn(turns: Sequence[int], in_flight: int, reply_ms: float, rounds: int, least_turns: int) -> dict[str, Any]:
    """CPU per turn of everything in `DRIVES`; the smallest value of the rounds is the one that was disturbed least."""
    results: dict[str, Any] = {name: {} for name in DRIVES}
    history: list[dict[int, float]] = []
    with spawn("--delay", str(reply_ms / 1e3), "--policy", REPLY, "--no-log") as url:
        warm_up(url, *DRIVES.values())
        for number in range(rounds):
            history.append({})
            for n in turns:
                for name, drive in DRIVES.items():
                    if number and name in _ONCE:
                        continue
                    # a few are in flight, or it would be hours
                    slow = drive is sdk_create
                    load = Load.of(max(2, min(in_flight, _SDK_TURNS // n)) if slow else in_flight, n, least_turns)
                    cost = sample(url, drive, Load(load.in_flight, n, load.in_flight) if slow else load).cpu_ms_per_turn
                    results[name][str(n)] = round(min(cost, results[name].get(str(n), cost)), 4)
                    if drive is harness:
                        history[-1][n] = cost
    ours = results["cpu_ms_per_turn"]
    for name, floor in (("ratio_to_aiohttp", "floor_aiohttp_ms"), ("ratio_to_sdk_create", "floor_sdk_create_ms")):
        results[name] = {n: round(ours[n] / results[floor][n], 2) for n in ours}
    return {**results, "flatness": flatness(history)}


def many_in_flight(turns: Sequence[int], in_flight: int, reply_ms: float) -> dict[str, Any]:
    """CPU per turn and rate with many episodes in flight, where the server's delay sets the rate.

    The server's own rate is that of bare aiohttp on the same conversations; it is not measured for the longest ones, which take
    long, but taken to be what the delay alone allows.
    """
    allowed = in_flight / reply_ms * 1e3
    found: dict[str, Any] = {"in_flight": in_flight, "reply_ms": reply_ms, "rate_by_delay": round(allowed, 1)}
    names = "cpu_ms_per_turn", "turns_per_s", "server_turns_per_s", "share_of_server_rate"
    found |= {name: {} for name in names}
    with spawn("--delay", str(reply_ms / 1e3), "--policy", REPLY, "--no-log") as url:
        warm_up(url, harness, bare_aiohttp)
        for n in turns:
            load = Load(in_flight, n, in_flight)
            server = allowed if n == max(turns) else sample(url, bare_aiohttp, load).turns_per_s
            ours = sample(url, harness, load)
            values = ours.cpu_ms_per_turn, ours.turns_per_s, server, ours.turns_per_s / server
            for name, value in zip(names, values, strict=True):
                found[name][str(n)] = round(value, 4)
    return found
