"""A sampler with scripted replies and one token per character, and worlds that misbehave on request."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from agentexp.core import Completion, EnvCard, Message, Request, Sampling, Step, Task, Usage
from agentexp.envs.pool import EnvPool
from agentexp.errors import EngineError, ModelError
from agentexp.paradigms.explore_then_act import ExploreThenAct
from agentexp.paradigms.react import ReAct
from agentexp.rollout import Budget, Limits, World
from agentexp.training.base import Base
from agentexp.training.core import Sampled
from agentexp.training.grpo.engine import RolloutEngine
from agentexp.training.grpo.rewards import Coverage, Letters, Success
from agentexp.training.grpo.rollouts import Rollouts, Way
from agentexp.training.grpo.trainer import GrpoTrainer

END = 1


class CharFormat:
    """One token per character, "\\x01" ends a turn."""

    end_of_turn = END

    def prompt(self, messages: Sequence[Message]) -> list[int]:
        ids: list[int] = []
        for message in messages:
            ids += [2, *map(ord, message.content), END]
        return [*ids, 3]

    def extend(self, last: Sampled, messages: Sequence[Message]) -> list[int]:
        closed = [*last.prompt, *last.tokens] + ([] if last.ended else [END])
        return closed + self.prompt(messages)

    def text(self, tokens: Sequence[int]) -> str:
        return "".join(chr(token) for token in tokens if token != END)


Script = Callable[[Request], str]


class ScriptedSampler:
    """Says what the script says; a reply longer than `max_tokens` is cut."""

    def __init__(self, script: Script, fail: Callable[[Request], bool] = lambda _: False) -> None:
        self.label, self.sampling = "scripted", Sampling(temperature=1.0)
        self.script, self.fail = script, fail
        self.format = CharFormat()
        self.requests: list[Request] = []
        self.taken: dict[str, list[Sampled]] = {}
        self.every: list[Sampled] = []
        self._said: dict[str, tuple[list[Message], str, Sampled]] = {}

    async def start(self) -> None: ...

    async def close(self) -> None: ...

    def versions(self) -> dict[str, str]:
        return {}

    async def chat(self, request: Request) -> Completion:
        self.requests.append(request)
        if self.fail(request):
            raise ModelError("The sampler failed on request.")
        prompt = self._prompt(request)
        tokens = [*map(ord, self.script(request)), END][: request.sampling.max_tokens]
        ended = tokens[-1] == END
        sampled = Sampled(prompt, tokens, [-0.5] * len(tokens), ended, request.sampling.temperature)
        self.taken.setdefault(request.chat, []).append(sampled)
        self.every.append(sampled)
        text = self.format.text(tokens)
        self._said[request.chat] = (list(request.messages), text, sampled)
        usage = Usage(len(prompt), len(tokens), calls=1)
        return Completion(text, finish_reason="stop" if ended else "length", usage=usage)

    def take(self, prefix: str) -> dict[str, list[Sampled]]:
        return {chat: self.taken.pop(chat) for chat in list(self.taken) if chat.startswith(prefix)}

    def _prompt(self, request: Request) -> list[int]:
        said, messages = self._said.get(request.chat), list(request.messages)
        grown = said is not None and len(messages) > len(said[0]) and messages[: len(said[0])] == said[0]
        if said and grown and messages[len(said[0])].content == said[1]:
            return self.format.extend(said[2], messages[len(said[0]) + 1 :])
        return self.format.prompt(messages)


class Doors:
    """A one-step world: "left" or "right" through a door; right wins. Instance "broken" has an engine that dies."""

    name = "doors"
    card = EnvCard(intro="There are two doors.", actions="go left | go right", complete_admissible=True)
    deterministic = True

    def __init__(self, n: int = 4, broken: list[str] | None = None) -> None:
        self.n, self.broken = n, list(broken or [])

    def splits(self) -> Sequence[str]:
        return ("train", "dev")

    def tasks(self, split: str) -> list[Task]:
        return [Task(f"{split}{i}", self.name, split) for i in range(self.n)]

    def reset(self, task: Task) -> Step:
        if task.id in self.broken:
            raise EngineError(f"The engine of {task.id} is broken.")
        return Step("You see two doors.", admissible=("go left", "go right"), goal="Leave.")

    def step(self, action: str) -> Step:
        won = action == "go right"
        return Step("You are out." if won else "A wall.", done=True, success=won, score=float(won), admissible=())

    def close(self) -> None: ...

    def versions(self) -> dict[str, str]:
        return {"doors": "1"}


def playing(env: Any, spec: dict[str, Any], *, steps: int = 8, cap: int = 100_000, attempts: int = 2, **more: Any) -> Rollouts:
    """Rollouts in this process, compact prompts."""
    pool = EnvPool(spec, size=4, step_timeout=10, reset_timeout=10, in_process=True)

    @asynccontextmanager
    async def lease() -> AsyncIterator[World]:
        async with pool.lease() as world:
            yield world

    react = ReAct(style="compact")
    explore = ExploreThenAct(explore_steps=steps, act=False, cache=False, summary_words=0, style="compact")
    return Rollouts(
        env=env,
        lease=lease,
        ways={
            "task": more.pop("task", Way(react, Budget(0, steps), Success())),
            "explore": Way(explore, Budget(0, 1, steps), Coverage()),
        },
        limits=Limits(attempts=attempts),
        cap=cap,
        concurrency=4,
        **more,
    )


class RunStub:
    """A `TrainRun` that keeps everything; `stop_at` asks to stop after that step, `die_at` raises in its metrics."""

    def __init__(self, folder: Path, config: dict[str, Any], seed: int = 0, stop_at: int = 0, die_at: int = 0) -> None:
        self.folder, self.config, self.seed = folder, config, seed
        self.stop_at, self.die_at = stop_at, die_at
        self.planned_steps: int | None = None
        self.recorded: dict[int, dict[str, float]] = {}
        self.said: list[str] = []
        folder.mkdir(parents=True, exist_ok=True)

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        if step and step == self.die_at:
            raise KeyboardInterrupt
        self.recorded[step] = dict(values)

    def say(self, text: str) -> None:
        self.said.append(text)

    def stopping(self) -> bool:
        return bool(self.stop_at) and max(self.recorded) >= self.stop_at


def trainer(base: str, **settings: Any) -> GrpoTrainer:
    """A trainer on the CPU with short compact episodes."""
    rollout = {"max_tokens": 10, "concurrency": 8, **settings.pop("rollout", {})}
    return GrpoTrainer(
        base=Base(path=base, device="cpu"),
        task=ReAct(style="compact"),
        explore=ExploreThenAct(explore_steps=2, act=False, cache=False, summary_words=0, style="compact"),
        rollout=RolloutEngine(**rollout),
        **{
            "groups": 2,
            "group_size": 2,
            "ratio": "1:1",
            "task_steps": 2,
            "explore_steps": 2,
            "lr": 1e-3,
            "micro_batch_tokens": 4096,
            "sample_every": 1,
            "task_reward": Letters(),
            "explore_reward": Letters(),
            **settings,
        },
    )


def config(target: str = "agentexp.envs.toy.ToyRooms", **env: Any) -> dict[str, Any]:
    """The part of a training's config that says where it plays."""
    return {"env": {"_target_": target, "split": "train", "in_process": True, **env}}
