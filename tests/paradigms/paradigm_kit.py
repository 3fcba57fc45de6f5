"""A talking model, an in-process world and a run context, for the tests of paradigms."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from agentexp.actions import ParseSettings
from agentexp.core import Completion, Env, Episode, Message, Paradigm, Request, Sampling, Step, Task, Usage, View
from agentexp.envs.toy import ToyRooms
from agentexp.rollout import Budget, Limits, World, run_episode

Reply = str | Exception | Completion
Talk = Callable[[Request], Reply] | Sequence[Reply]


class Talker:
    """Answers by purpose ("act", "map_extractor" ...), with a function of the request or a list used up from its front.

    A purpose without replies is an error; the last reply of a list is repeated. `requests` keeps what was asked.
    """

    label = "talker"
    sampling = Sampling()

    def __init__(self, **replies: Talk) -> None:
        self.replies = {purpose: talk if callable(talk) else list(talk) for purpose, talk in replies.items()}
        self.requests: list[tuple[str, list[Message], Request]] = []

    async def start(self) -> None: ...

    async def close(self) -> None: ...

    def versions(self) -> dict[str, str]:
        return {}

    async def chat(self, request: Request) -> Completion:
        self.requests.append((request.purpose, list(request.messages), request))
        talk = self.replies[request.purpose]
        reply = talk(request) if callable(talk) else talk.pop(0) if len(talk) > 1 else talk[0]
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, Completion):
            return reply
        return Completion(reply, usage=Usage(10, 5, calls=1))

    def prompts(self, purpose: str) -> list[list[Message]]:
        return [messages for asked, messages, _ in self.requests if asked == purpose]


class InProcess:
    """A leased world without a worker."""

    def __init__(self, env: Env) -> None:
        self.env = env
        self.resets = 0

    async def reset(self, task: Task) -> Step:
        self.resets += 1
        return self.env.reset(task)

    async def step(self, action: str) -> Step:
        return self.env.step(action)

    async def call(self, method: str, *args: Any) -> Any:
        return getattr(self.env, method)(*args)


def action(text: str) -> str:
    return f"Thought: so be it.\nAction: {text}"


def expert(request: Request) -> str:
    """The action of ToyRooms' own expert; `Talker` functions are not async, so the plan is made on a copy of the world."""
    view: View = request.view
    env = ToyRooms()
    env.reset(view.task)
    for done, _ in view.history:
        env.step(done)
    plan = env.oracle()
    return action(plan[0] if plan else "look")


def run(
    paradigm: Paradigm,
    model: Talker,
    *,
    env: Env | None = None,
    task: Task | None = None,
    budget: Budget = Budget(4, 6),
    limits: Limits = Limits(attempts=1),
    artefacts: Mapping[str, Any] | None = None,
) -> tuple[Episode, InProcess]:
    env = env or ToyRooms()
    task = task or env.tasks("test")[1]
    world = InProcess(env)

    @asynccontextmanager
    async def lease() -> AsyncIterator[World]:
        yield world

    episode = asyncio.run(run_episode(task, env, lease, {"actor": model}, paradigm, budget, limits, artefacts=artefacts))
    return episode, world


class RunContext:
    """`Context` over a talker."""

    def __init__(self, model: Talker, folder: Path, env: Env | None = None, tasks: Sequence[Task] = ()) -> None:
        self.env = env or ToyRooms()
        self.models = {"actor": model}
        self.folder, self.tasks = folder, tasks
        self.artefacts: Mapping[str, Any] = {}
        self.parsing = ParseSettings()
        self.usage = Usage()
        self.document: dict[str, Any] = {}
        self._model = model

    async def ask(
        self, messages: Sequence[Message], *, purpose: str, role: str = "actor", max_tokens: int | None = None
    ) -> Completion:
        view = View(Task("", "", ""), "", "", Step(""), [], 0, None, {}, None, self.env, _no_oracle, {})
        reply = await self._model.chat(Request(messages, Sampling(), purpose, "", view, "setup"))
        self.usage += reply.usage
        return reply

    @asynccontextmanager
    async def lease(self) -> AsyncIterator[World]:
        yield InProcess(ToyRooms())

    async def knowledge(self) -> dict[str, Any]:
        return self.document


async def _no_oracle() -> list[str]:
    raise AssertionError("not asked for")
