"""A counting world, a slow scripted model and a paradigm, to test the runner with. As a script it is one job in a process:

python run_fakes.py '{"root": "out", "tasks": 12, "delay": 0.1}'
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentexp import manifest
from agentexp.core import Completion, EnvCard, Request, Sampling, Step, Task, Usage
from agentexp.errors import EngineError, FatalError, ModelError
from agentexp.plan import run_folder
from agentexp.rollout import Budget, Limits, Rollout
from agentexp.run import Run
from agentexp.runner import run_sync


class CountingWorld:
    """Task "i" is solved by saying "go" i % 3 + 1 times; a third of the tasks cannot be solved."""

    name = "counting"
    card = EnvCard(intro="Count.", actions="go | no")

    def __init__(
        self, n: int = 12, version: str = "1", break_at: list[str] | None = None, hang_at: list[str] | None = None
    ) -> None:
        self.n, self.version, self.break_at, self.hang_at = n, version, break_at or [], hang_at or []
        self.left = 0

    def splits(self) -> Sequence[str]:
        return ("test",)

    def tasks(self, split: str) -> list[Task]:
        return [
            Task(id=f"t{i}", env="counting", split=split, spec={"n": i % 3 + 1, "solvable": i % 3 != 2}) for i in range(self.n)
        ]

    def reset(self, task: Task) -> Step:
        if task.id in self.break_at:
            raise EngineError(f"The engine of {task.id} is broken.")
        self.left, self.solvable, self.hangs = task.spec["n"], task.spec["solvable"], task.id in self.hang_at
        return Step("Start.", goal=f"Count to {self.left}.")

    def step(self, action: str) -> Step:
        if self.hangs:
            time.sleep(3600)
        self.left -= action == "go"
        won = self.left <= 0 and self.solvable
        return Step(f"{self.left} left.", done=won, success=won, score=float(won))

    def close(self) -> None:
        pass

    def versions(self) -> dict[str, str]:
        return {"counting": self.version}


@dataclass
class GoModel:
    """Says "go" after `delay` seconds; counts starts, calls and how many calls ran at once."""

    label: str = "go"
    delay: float = 0.0
    fatal_after: int | None = None
    fail: list[str] = field(default_factory=list)
    sampling: Sampling = field(default_factory=Sampling)
    starts: int = 0
    closes: int = 0
    calls: int = 0
    now: int = 0
    most: int = 0
    hang_on_close: bool = False

    async def start(self) -> None:
        self.starts += 1

    async def chat(self, request: Request) -> Completion:
        self.calls += 1
        if self.fatal_after is not None and self.calls > self.fatal_after:
            raise FatalError("The server refuses the key (401).")
        if request.view.task.id in self.fail:
            raise ModelError("The server answered 500 three times.")
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await asyncio.sleep(self.delay)
        finally:
            self.now -= 1
        return Completion("go", usage=Usage(10, 1, 0, 1, None), token_ids=[1, 2], logprobs=[-0.5, float("-inf")])

    async def close(self) -> None:
        self.closes += 1
        if self.hang_on_close:
            await asyncio.sleep(3600)

    def versions(self) -> dict[str, str]:
        return {"go": "1"}


class Plain:
    """Ask, act, until the budget ends."""

    name = "plain"

    async def __call__(self, ro: Rollout) -> None:
        with ro.phase("acting", ro.budget.total):
            await ro.reset()
            chat = ro.chat("act").user(ro.goal)
            while ro.steps_left and not ro.step.done:
                turn = await ro.turn(chat, "thought_action")
                chat.user(turn.step.observation)
        ro.finish()


def make_run(root: Path, **options: Any) -> Run:
    """A run of the fakes. Options: those of `Run`, and tasks, delay, model_name, world (dict), fatal_after, fail."""
    tasks = options.pop("tasks", 12)
    world = {"n": tasks, **options.pop("world", {})}
    model = options.pop("model", None) or GoModel(
        options.pop("model_name", "go"), options.pop("delay", 0.0), options.pop("fatal_after", None), options.pop("fail", [])
    )
    env = CountingWorld(**world)
    paradigm = options.pop("paradigm", None) or Plain()
    command = options.pop("command", "eval")
    config = {"command": command, "output_root": str(root), "env": world, "model": {"name": model.label}, "seed": 0}
    config |= options.pop("config", {})
    folder = options.pop("folder", None) or run_folder(root, command, env.name, paradigm.name, model.label, config)
    settings: dict[str, Any] = {"in_process": True, "progress": "off", "limits": Limits(attempts=1), "concurrency": 4}
    settings |= options
    return Run(
        command=command,
        config=config,
        env=env,
        env_spec={"_target_": "run_fakes.CountingWorld", **world},
        models={"actor": model},
        paradigm=paradigm,
        budget=Budget(0, 4),
        folder=folder,
        output_root=root,
        split="test",
        **settings,
    )


def main(options: dict[str, Any]) -> int:
    # the checkout may get a commit between two processes of one test
    manifest.git_state = lambda: {"commit": None, "tree": None, "dirty": None}  # type: ignore[assignment]
    kill_after = options.pop("kill_after", None)
    if kill_after is not None:  # die as by `kill -9` when this many episodes are stored and another one is half written
        import agentexp.store as store

        append, count = store.append_line, 0

        def dying(descriptor: int, line: bytes) -> None:
            nonlocal count
            if count == kill_after:
                os.write(descriptor, line[: len(line) // 2])
                os.kill(os.getpid(), 9)
            count += 1
            append(descriptor, line)

        store.append_line = dying
    hang = options.pop("hang_on_close", False)
    run = make_run(Path(options.pop("root")), **options)
    run.models["actor"].hang_on_close = hang  # type: ignore[attr-defined]
    _, code = run_sync(run)
    sys.stderr.write(f"calls={run.models['actor'].calls} starts={run.models['actor'].starts}\n")  # type: ignore[attr-defined]
    return code


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
