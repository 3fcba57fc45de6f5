"""CPU time of the harness per turn: what agentexp itself costs while models answer.

    python scripts/bench.py [--out bench.json] [--turns 10 30 100] [--episodes 32] [--reply-ms 50]

A fake server in another process answers after 50 ms, so this process does what the harness does and nothing else: 32 episodes
in flight, each of N turns through `run_episode` and ReAct in a tiny world. Measured is the CPU time of this process. The
floors are measured in the same run and on the same growing conversations: bare aiohttp, and the SDK's typed `create`. Compare
ratios: absolute times depend on the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import platform
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import aiohttp
import openai
from fake_server import spawn

from agentexp.core import EnvCard, Message, Request, Step, Task, View
from agentexp.models.openai_api import OpenAIModel
from agentexp.paradigms.react import ReAct
from agentexp.rollout import Budget, World, run_episode

SYSTEM = "You act in a text world. " * 30
OBSERVATION = (
    "You are in the kitchen. On the countertop 1, you see a bread 1, a knife 2 and a mug 1. The fridge 1 is closed. " * 3
)
REPLY = "Thought: The mug may be needed, and the countertop is where it was seen last, so that is where to look.\nAction: look"

Drive = Callable[[str, int, int], Coroutine[Any, Any, None]]  # base URL, episodes in flight, turns


class TinyWorld:
    """A world that costs next to nothing: one observation for ever."""

    name = "tiny"
    card = EnvCard("A kitchen.", "look | go to {place}")

    def splits(self) -> list[str]:
        """One split."""
        return ["test"]

    def tasks(self, split: str) -> list[Task]:
        """As many tasks as anybody wants."""
        return [Task(str(i), self.name, split) for i in range(10_000)]

    def reset(self, task: Task) -> Step:
        """Begin."""
        return Step(OBSERVATION, goal="Find the mug.")

    def step(self, action: str) -> Step:
        """Answer."""
        return Step(OBSERVATION)

    def close(self) -> None:
        """Nothing to close."""

    def versions(self) -> dict[str, str]:
        """Nothing to tell."""
        return {}


class InProcess:
    """A `World` without another process."""

    def __init__(self, env: TinyWorld) -> None:
        self.env = env

    async def reset(self, task: Task) -> Step:
        """See `World`."""
        return self.env.reset(task)

    async def step(self, action: str) -> Step:
        """See `World`."""
        return self.env.step(action)

    async def call(self, method: str, *args: Any) -> Any:
        """See `World`."""
        return getattr(self.env, method)(*args)


async def harness(url: str, episodes: int, turns: int) -> None:
    """What is measured: `run_episode`, ReAct, the parser, the record and the model call."""
    env, model, react = TinyWorld(), OpenAIModel(name="fake", base_url=url, concurrency=episodes), ReAct()

    @asynccontextmanager
    async def lease() -> AsyncIterator[World]:
        yield InProcess(env)

    tasks = [Task(str(i), env.name, "test") for i in range(episodes)]
    runs = [run_episode(task, env, lease, {"actor": model}, react, Budget(0, turns)) for task in tasks]
    for episode in await asyncio.gather(*runs):
        if episode.status != "ok" or episode.steps != turns or any(step.status != "ok" for step in episode.trajectory):
            raise RuntimeError(f"The benchmark's own episode failed: {episode.end_reason} {episode.error}")
    await model.close()


async def model_call(url: str, episodes: int, turns: int) -> None:
    """The model call alone: `OpenAIModel.chat` on growing conversations."""
    model, env = OpenAIModel(name="fake", base_url=url, concurrency=episodes), TinyWorld()

    async def no_oracle() -> list[str]:
        return []

    async def conversation(task: Task) -> None:
        view = View(task, "", "acting", Step(""), [], turns, None, {}, None, env, no_oracle, {})
        messages = [Message("system", SYSTEM), Message("user", OBSERVATION)]
        for _ in range(turns):
            reply = await model.chat(Request(messages, model.sampling, "act", "thought_action", view, task.id))
            messages += [Message("assistant", reply.text), Message("user", OBSERVATION)]

    await asyncio.gather(*(conversation(task) for task in (Task(str(i), env.name, "test") for i in range(episodes))))
    await model.close()


async def bare_aiohttp(url: str, episodes: int, turns: int) -> None:
    """Floor: a dict to JSON, one POST, JSON to a dict, and nothing else."""

    async def conversation(session: aiohttp.ClientSession) -> None:
        messages = _opening()
        for _ in range(turns):
            async with session.post(f"{url}/chat/completions", json=_body(messages)) as response:
                reply = await response.json()
            _continue(messages, reply["choices"][0]["message"]["content"])

    async with aiohttp.ClientSession() as session:
        await asyncio.gather(*(conversation(session) for _ in range(episodes)))


async def sdk_create(url: str, episodes: int, turns: int) -> None:
    """Floor: the SDK as its documentation uses it, with the aiohttp transport."""

    async def conversation(client: openai.AsyncOpenAI) -> None:
        messages = _opening()
        for _ in range(turns):
            reply = await client.chat.completions.create(**_body(messages))
            _continue(messages, reply.choices[0].message.content)

    async with openai.AsyncOpenAI(api_key="none", base_url=url, http_client=openai.DefaultAioHttpClient()) as client:
        await asyncio.gather(*(conversation(client) for _ in range(episodes)))


def _opening() -> list[dict[str, str]]:
    return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": OBSERVATION}]


def _body(messages: list[dict[str, str]]) -> dict[str, Any]:
    return {"model": "fake", "temperature": 0.0, "max_tokens": 256, "messages": messages}


def _continue(messages: list[dict[str, str]], reply: str) -> None:
    messages += [{"role": "assistant", "content": reply}, {"role": "user", "content": OBSERVATION}]


MEASURED: dict[str, Drive] = {
    "cpu_ms_per_turn": harness,
    "model_call_ms": model_call,
    "floor_aiohttp_ms": bare_aiohttp,
    "floor_sdk_create_ms": sdk_create,
}


def measure(url: str, drive: Drive, episodes: int, turns: int, waves: int) -> float:
    """CPU milliseconds of this process per turn: the smallest of `waves` runs, the one that was disturbed least."""
    best = float("inf")
    for _ in range(waves):
        started = time.process_time()
        asyncio.run(drive(url, episodes, turns))
        best = min(best, (time.process_time() - started) / (episodes * turns))
    return round(best * 1e3, 4)


def bench(turns: list[int], episodes: int, reply_ms: float) -> dict[str, Any]:
    """Measure everything."""
    results: dict[str, Any] = {name: {} for name in MEASURED}
    with spawn("--delay", str(reply_ms / 1e3), "--policy", REPLY, "--no-log") as url:
        for drive in MEASURED.values():
            asyncio.run(drive(url, 4, 3))  # imports, templates, first connections
        for n in turns:
            for name, drive in MEASURED.items():
                # `create` is so slow that 400 turns tell enough; the others run until some thousand turns are measured.
                flying, waves = (max(2, min(episodes, 400 // n)), 1) if drive is sdk_create else (episodes, 1 + min(3, 60 // n))
                results[name][str(n)] = measure(url, drive, flying, n, waves)
    ours, floor = results["cpu_ms_per_turn"], results["floor_aiohttp_ms"]
    results["ratio_to_aiohttp"] = {n: round(ours[n] / floor[n], 2) for n in ours}
    results["ratio_to_sdk_create"] = {n: round(ours[n] / results["floor_sdk_create_ms"][n], 2) for n in ours}
    results["setting"] = {"episodes_in_flight": episodes, "reply_ms": reply_ms}
    results["versions"] = {"python": platform.python_version(), **{p: version(p) for p in ("agentexp", "openai", "aiohttp")}}
    return results


def table(results: dict[str, Any]) -> str:
    """The results as text, one row per thing measured."""
    turns = list(results["cpu_ms_per_turn"])
    lines = [f"{'CPU ms per turn, turns per episode:':<38}" + "".join(f"{n:>9}" for n in turns)]
    rows = (*MEASURED, "ratio_to_aiohttp", "ratio_to_sdk_create")
    lines += [f"{name:<38}" + "".join(f"{results[name][n]:>9.2f}" for n in turns) for name in rows]
    return "\n".join(lines)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("bench.json"))
    parser.add_argument("--turns", type=int, nargs="+", default=[10, 30, 100])
    parser.add_argument("--episodes", type=int, default=32, help="in flight at once")
    parser.add_argument("--reply-ms", type=float, default=50.0, help="how long the model thinks")
    args = parser.parse_args()
    results = bench(args.turns, args.episodes, args.reply_ms)
    args.out.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    print(table(results))
    print(f"Written to {args.out}")


if __name__ == "__main__":
    main()
