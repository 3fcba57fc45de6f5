"""Memory of an episode that waits for its model, by the difference between N and 2 N of them.

    python -m benchmarks.memory URL ours|aiohttp N TURNS

A process of its own, so that nothing else lies in its memory: it drives N conversations, prints its size when all of them
wait (the server answers the first N x TURNS requests at once and no other), and is ended.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import aiohttp
import psutil
from fake_server import spawn

from benchmarks.workload import REPLY, Drive, Load, bare_aiohttp, harness

DRIVES: dict[str, Drive] = {"ours": harness, "aiohttp": bare_aiohttp}
_FOR_EVER = 3600.0


def per_episode(episodes: int, turns: int) -> dict[str, Any]:
    """Bytes per waiting episode of agentexp and of bare aiohttp, after `turns` turns on average."""
    sizes = {name: [waiting(name, n, turns) for n in (episodes, 2 * episodes)] for name in DRIVES}
    found: dict[str, Any] = {"episodes": [episodes, 2 * episodes], "turns": turns}
    for name, (one, two) in sizes.items():
        found[f"{name}_bytes"] = round((two - one) / episodes)
    return {**found, "ratio_to_aiohttp": round(found["ours_bytes"] / max(1, found["aiohttp_bytes"]), 2)}


def waiting(name: str, episodes: int, turns: int) -> int:
    """Bytes of a process with that many waiting conversations (memory that it shares with no other process)."""
    at_once = [{"times": episodes * turns, "delay": 0.0}] if turns else []
    with spawn("--script", json.dumps(at_once), "--delay", str(_FOR_EVER), "--policy", REPLY, "--no-log") as url:
        command = [sys.executable, "-m", __name__, url, name, str(episodes), str(turns)]
        child = subprocess.Popen(command, cwd=Path(__file__).parents[1], stdout=subprocess.PIPE, text=True)
        try:
            assert child.stdout is not None
            return int(child.stdout.readline())
        finally:
            child.kill()
            child.wait()


async def _measure(url: str, name: str, episodes: int, turns: int) -> None:
    driving = asyncio.create_task(DRIVES[name](url, Load(episodes, turns + 1000, episodes)))
    wanted = episodes * (turns + 1)
    async with aiohttp.ClientSession() as session:
        while not driving.done():
            await asyncio.sleep(0.2)
            async with session.get(url.removesuffix("/v1") + "/log") as response:
                if (await response.json())["count"] >= wanted:
                    print(psutil.Process().memory_full_info().uss, file=sys.__stdout__, flush=True)  # a run keeps stdout
                    await asyncio.sleep(_FOR_EVER)  # until it is ended
    await driving


if __name__ == "__main__":
    asyncio.run(_measure(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
