"""One workload, driven by agentexp and by its floors: N episodes in flight, each a conversation that grows turn by turn.

A fake server in another process answers after a fixed time, so this process does what the harness does and nothing else.
"""

from __future__ import annotations

import asyncio
import io
import tempfile
from collections.abc import Callable, Coroutine, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from agentexp.core import EnvCard, Message, Request, Step, Task, View
from agentexp.models.openai_api import OpenAIModel
from agentexp.paradigms.react import ReAct
from agentexp.rollout import Budget
from agentexp.run import Run
from agentexp.runner import execute

SYSTEM = "You act in a text world. " * 30
OBSERVATION = (
    "You are in the kitchen. On the countertop 1, you see a bread 1, a knife 2 and a mug 1. The fridge 1 is closed. " * 3
)
REPLY = "Thought: The mug may be needed, and the countertop is where it was seen last, so that is where to look.\nAction: look"


@dataclass(frozen=True, slots=True)
class Load:
    """How much is driven.

    Attributes:
        in_flight: episodes at once.
        turns: of each episode.
        episodes: all in all.
    """

    in_flight: int
    turns: int
    episodes: int

    @classmethod
    def of(cls, in_flight: int, turns: int, least_turns: int) -> Load:
        """As many whole waves of `in_flight` episodes as it takes to have at least `least_turns` turns."""
        return cls(in_flight, turns, in_flight * max(1, round(least_turns / (in_flight * turns))))

    @property
    def total(self) -> int:
        """Turns of all episodes."""
        return self.turns * self.episodes


Drive = Callable[[str, Load], Coroutine[Any, Any, None]]  # the server's base URL, the load


class TinyWorld:
    """A world that costs next to nothing: one observation for ever."""

    name = "tiny"
    card = EnvCard("A kitchen.", "look | go to {place}")

    def __init__(self, n_tasks: int = 1) -> None:
        self._n_tasks = n_tasks

    def splits(self) -> list[str]:
        """One split."""
        return ["test"]

    def tasks(self, split: str) -> list[Task]:
        """As many tasks as asked for."""
        return [Task(str(i), self.name, split) for i in range(self._n_tasks)]

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


def make_run(url: str, load: Load, folder: Path) -> Run:
    """The run that `harness` executes."""
    spec = {"_target_": f"{TinyWorld.__module__}.{TinyWorld.__qualname__}", "n_tasks": load.episodes}
    return Run(
        command="eval",
        config={"env": spec},
        env=TinyWorld(load.episodes),
        env_spec=spec,
        models={"actor": OpenAIModel(name="fake", base_url=url, concurrency=load.in_flight)},
        paradigm=ReAct(),
        budget=Budget(0, load.turns),
        folder=folder / "run",
        output_root=folder,
        split="test",
        concurrency=load.in_flight,
        in_process=True,
        progress="off",
    )


async def harness(url: str, load: Load) -> None:
    """What is measured: a whole run as `agentexp eval` does it, from the manifest over the records to the summary."""
    with tempfile.TemporaryDirectory() as folder, redirect_stdout(io.StringIO()):
        summary = await execute(make_run(url, load, Path(folder)))
    if summary["finished"] != load.episodes or summary["mean_steps"] != load.turns or summary["invalid_rate"]:
        raise RuntimeError(f"The benchmark's own episodes failed: {summary}")


async def model_call(url: str, load: Load) -> None:
    """The model call alone: `OpenAIModel.chat` on growing conversations."""
    model, env = OpenAIModel(name="fake", base_url=url, concurrency=load.in_flight), TinyWorld()

    async def no_oracle() -> list[str]:
        return []

    async def conversation(number: int) -> None:
        task = Task(str(number), env.name, "test")
        view = View(task, "", "acting", Step(""), [], load.turns, None, {}, None, env, no_oracle, {})
        messages = [Message("system", SYSTEM), Message("user", OBSERVATION)]
        for _ in range(load.turns):
            reply = await model.chat(Request(messages, model.sampling, "act", "thought_action", view, task.id))
            messages += [Message("assistant", reply.text), Message("user", OBSERVATION)]

    await _at_once(load, conversation)
    await model.close()


async def bare_aiohttp(url: str, load: Load) -> None:
    """Floor: a dict to JSON, one POST, JSON to a dict, and nothing else."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def conversation(number: int) -> None:
            messages = opening()
            for _ in range(load.turns):
                async with session.post(f"{url}/chat/completions", json=body(messages)) as response:
                    reply = await response.json()
                go_on(messages, reply["choices"][0]["message"]["content"])

        await _at_once(load, conversation)


async def sdk_create(url: str, load: Load) -> None:
    """Floor: the SDK as its documentation uses it, with the aiohttp transport."""
    import openai

    async with openai.AsyncOpenAI(api_key="none", base_url=url, http_client=openai.DefaultAioHttpClient()) as client:

        async def conversation(number: int) -> None:
            messages = opening()
            for _ in range(load.turns):
                reply = await client.chat.completions.create(**body(messages))
                go_on(messages, reply.choices[0].message.content)

        await _at_once(load, conversation)


async def _at_once(load: Load, conversation: Callable[[int], Coroutine[Any, Any, None]]) -> None:
    """`load.episodes` conversations, `load.in_flight` at a time."""
    numbers: Iterator[int] = iter(range(load.episodes))

    async def worker() -> None:
        for number in numbers:
            await conversation(number)

    await asyncio.gather(*(worker() for _ in range(load.in_flight)))


def opening() -> list[dict[str, str]]:
    """The first messages of a conversation."""
    return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": OBSERVATION}]


def body(messages: list[dict[str, str]]) -> dict[str, Any]:
    """A request."""
    return {"model": "fake", "temperature": 0.0, "max_tokens": 256, "messages": messages}


def go_on(messages: list[dict[str, str]], reply: str) -> None:
    """One more turn: the reply and what the world answers."""
    messages += [{"role": "assistant", "content": reply}, {"role": "user", "content": OBSERVATION}]
