"""A ladder with a hidden rule, an actor that climbs and uses what it is told, and an adviser who knows."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agentexp.core import Completion, EnvCard, Request, Sampling, Step, Task, stable_seed
from agentexp.envs.pool import EnvPool
from agentexp.errors import EngineError
from agentexp.paradigms.ttexplore import TTExplore
from agentexp.training.core import Evaluation
from agentexp.training.thinker.nodes import Move, Trajectory
from agentexp.training.thinker.player import Player

SCORES = (0.0, 0.25, 0.5, 1.0)
PLAN = ("up", "up", "knock", "up")


class Ladder:
    """Three rungs and a hatch that only opens to whoever knocked. Score rises with every rung.

    `flaky`: the world is not deterministic: an answer holds a number that never comes again. `broken`: tasks whose engine dies
    at the third step.
    """

    name = "ladder"
    card = EnvCard(intro="You climb a ladder.", actions="up | knock | wait", complete_admissible=True)
    deterministic = True
    _numbers = itertools.count()

    def __init__(self, n: int = 6, flaky: bool = False, broken: list[str] | None = None) -> None:
        self.n, self.flaky, self.broken = n, flaky, list(broken or [])
        self._rung, self._knocked, self._steps, self._task = 0, False, 0, ""

    def splits(self) -> Sequence[str]:
        return ("train", "dev", "test")

    def tasks(self, split: str) -> list[Task]:
        return [Task(f"{split}{i}", self.name, split) for i in range(self.n)]

    def reset(self, task: Task) -> Step:
        self._rung, self._knocked, self._steps, self._task = 0, False, 0, task.id
        return Step(f"Ladder {task.id}.", admissible=("up", "knock", "wait"), goal="Get to the roof.")

    def step(self, action: str) -> Step:
        self._steps += 1
        if self._task in self.broken and self._steps == 3:
            raise EngineError("The ladder broke.")
        told, error = "Nothing.", False
        if action == "knock":
            self._knocked = self._rung == 2
        elif action == "up" and (self._rung < 2 or self._knocked):
            self._rung += 1
            told = f"Rung {self._rung}."
        elif action == "up":
            told, error = "The hatch is stuck.", True
        if self.flaky:
            told += f" ({next(self._numbers)})"
        won = self._rung == 3
        return Step(told, won, won, SCORES[self._rung], error, () if won else ("up", "knock", "wait"))

    def close(self) -> None: ...

    def versions(self) -> dict[str, str]:
        return {"ladder": "1"}


class Climber:
    """Goes up; knocks once it was told to. `luck`: also in every second episode, by itself."""

    def __init__(self, luck: bool = False, fails: list[str] | None = None) -> None:
        self.label, self.sampling, self.luck, self.fails = "climber", Sampling(), luck, list(fails or [])
        self.temperatures: list[float] = []

    async def start(self) -> None: ...

    async def close(self) -> None: ...

    def versions(self) -> dict[str, str]:
        return {}

    async def chat(self, request: Request) -> Completion:
        self.temperatures.append(request.sampling.temperature)
        said = [message.content for message in request.messages]
        stuck = "stuck" in said[-1] or "Rung 2" in said[-1]
        told = any("KNOCK" in text for text in said) or (self.luck and stable_seed(request.view.task.key) % 2 == 0)
        knocked = request.view.history and request.view.history[-1][0] == "knock"
        return Completion(f"<answer>{'knock' if told and stuck and not knocked else 'up'}</answer>")


class Adviser:
    """Says what it is told to say, over and over."""

    def __init__(self, says: list[str] | None = None, finish_reason: str = "stop") -> None:
        self.finish_reason = finish_reason
        self.label, self.sampling = "adviser", Sampling()
        self.says = itertools.cycle(says or ["<deepthink>KNOCK first.</deepthink>"])

    async def start(self) -> None: ...

    async def close(self) -> None: ...

    def versions(self) -> dict[str, str]:
        return {}

    async def chat(self, request: Request) -> Completion:
        assert request.purpose == "ttx_thinker"
        return Completion(next(self.says), finish_reason=self.finish_reason)


class Plays:
    """A source of trajectories: the plan, without playing it."""

    def __init__(self, n: int = 6) -> None:
        self.n = n

    async def trajectories(self, world: Any, lease: Any, form: Any, counts: Any) -> list[Trajectory]:
        counts["episodes"] += self.n
        return [strong(task) for task in world.tasks("train", self.n)]


def strong(task: Task, plan: Sequence[str] = PLAN) -> Trajectory:
    """What the record of an expert's episode says."""
    world = Ladder()
    world.reset(task)
    made = []
    for action in plan:
        step = world.step(action)
        made.append(Move(f"<answer>{action}</answer>", action, step.observation, step.score))
    return Trajectory(task, tuple(made))


def player(actor: Any = None, attempts: int = 2, **env: Any) -> Player:
    """Plays on ladders in this process, compact prompts."""
    spec = {"_target_": "thinker_kit.Ladder", **env}
    pool = EnvPool(spec, size=4, step_timeout=10, reset_timeout=10, in_process=True)
    ttx = TTExplore(style="compact", thinker_tokens=16, show_admissible=False)
    return Player(env=Ladder(**env), lease=pool.lease, ttx=ttx, actor=actor or Climber(), attempts=attempts)


def config(**more: Any) -> dict[str, Any]:
    """The part of a training's config that says where and how it plays."""
    return {
        "env": {"_target_": "thinker_kit.Ladder", "split": "train", "in_process": True},
        "model": {"_target_": "thinker_kit.Climber", "luck": True},
        "roles": {"thinker": {"_target_": "thinker_kit.Adviser"}},
        "paradigm": {
            "_target_": "agentexp.paradigms.ttexplore.TTExplore",
            "style": "compact",
            "thinker_tokens": 12,
            "show_admissible": False,
        },
        **more,
    }


class RunStub:
    """A `TrainRun` that keeps everything; `stop_at`: asks to stop from that step on; `die_at`: raises in its metrics."""

    def __init__(self, folder: Path, config: Mapping[str, Any], seed: int = 0, stop_at: int = 0, die_at: int = 0) -> None:
        self.folder, self.config, self.seed, self.stop_at, self.die_at = folder, config, seed, stop_at, die_at
        self.planned_steps: int | None = None
        self.evaluation: Evaluation | None = None
        self.recorded: dict[int, dict[str, float]] = {}
        self.said: list[str] = []
        folder.mkdir(parents=True, exist_ok=True)

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        if step and step == self.die_at:
            raise KeyboardInterrupt
        self.recorded[step] = {**self.recorded.get(step, {}), **values}

    def say(self, text: str) -> None:
        self.said.append(text)

    def stopping(self) -> bool:
        return bool(self.stop_at) and max(self.recorded, default=0) >= self.stop_at
