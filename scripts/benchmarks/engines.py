"""Environment steps through the pool beside the bare engine in this process, for all worlds."""

from __future__ import annotations

import asyncio
import gc
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import psutil

from agentexp.config import EnvSettings, Overrides, checked, split_env
from agentexp.core import Env, Task
from agentexp.envs.pool import EnvPool
from agentexp.errors import AgentExpError
from agentexp.launch import conf_dir
from agentexp.targets import build

WORLDS = ("alfworld", "scienceworld", "textcraft", "babyai", "pddl", "jericho", "arc_agi3")
_WORKERS = 2
_LEAST_S, _MOST_PASSES = 0.5, 40  # cheap worlds play the script again and again, until there is something to measure

Script = list[tuple[Task, list[str]]]


@dataclass
class Timed:
    """Sums over the steps in `with` blocks, of this process and its descendants (workers, Java)."""

    steps: int = 0
    wall_s: float = 0.0
    cpu_s: float = 0.0
    processes: Sequence[psutil.Process] = field(default=(), repr=False)
    _began: tuple[float, float] = field(default=(0.0, 0.0), repr=False)

    def __enter__(self) -> Timed:
        if not self.processes:
            self.processes = psutil.Process().children(recursive=True)
        cpu = self._cpu()
        self._began = cpu, time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        wall = time.perf_counter()
        self.wall_s += wall - self._began[1]
        self.cpu_s += self._cpu() - self._began[0]

    def _cpu(self) -> float:
        total = time.process_time()
        for process in self.processes:
            with suppress(OSError, psutil.NoSuchProcess):
                total += cpu_of(process)
        return total


def cpu_of(process: psutil.Process) -> float:
    """CPU seconds of another process so far."""
    if sys.platform == "linux":
        return time.clock_gettime(~process.pid << 3 | 2)  # its own clock: nanoseconds instead of ticks of 10 ms
    times = process.cpu_times()
    return float(times.user + times.system)


def all_worlds(worlds: Sequence[str], tasks: int, steps: int, rounds: int) -> dict[str, Any]:
    """Measure each world; one whose package or data is missing is reported with the reason."""
    found: dict[str, Any] = {}
    for name in worlds:
        try:
            found[name] = one_world(name, tasks, steps, rounds)
        except AgentExpError as error:
            found[name] = {"skipped": str(error).splitlines()[0]}
        gc.collect()
    return found


def one_world(name: str, tasks: int, steps: int, rounds: int) -> dict[str, Any]:
    """CPU and wall time per step, bare and through the pool in turn: the median of the rounds and of their ratios.

    Args:
        name: choice of `env=`; its own settings, so also its own choice between worker processes and none.
        tasks: episodes per round, the same ones bare and by each of two workers.
        steps: of each episode at most.
        rounds: after one that is not counted.

    Raises:
        AgentExpError: the world cannot run here.
    """
    settings, spec = configured(name)
    env: Env = build(spec)
    pool = EnvPool(spec, _WORKERS, settings.step_timeout, settings.reset_timeout, in_process=settings.in_process)
    try:
        script = record(env, env.tasks(settings.split)[:tasks], steps)
        measured = asyncio.run(_rounds(env, pool, script, rounds))
    finally:
        env.close()
    bare = [one for one, _ in measured]
    pooled = [one for _, one in measured]
    return {
        "processes": not settings.in_process,
        "steps": bare[0].steps,
        "bare_cpu_ms": _typical([one.cpu_s / one.steps * 1e3 for one in bare]),
        "pool_cpu_ms": _typical([one.cpu_s / one.steps * 1e3 for one in pooled]),
        "cpu_ratio": _typical([p.cpu_s / p.steps / (b.cpu_s / b.steps) for b, p in measured]),
        "bare_steps_per_s": _typical([one.steps / one.wall_s for one in bare]),
        "pool_steps_per_s": _typical([one.steps / one.wall_s for one in pooled]),
        "speed_up": _typical([p.steps / p.wall_s / (b.steps / b.wall_s) for b, p in measured]),
    }


def _typical(values: Sequence[float]) -> float:
    return float(f"{median(values):.4g}")


def configured(name: str) -> tuple[EnvSettings, dict[str, Any]]:
    """What the shipped config of a world says: the runner's settings, and what builds it."""
    from hydra import compose, initialize_config_dir
    from omegaconf import OmegaConf

    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        node = OmegaConf.to_container(compose("eval", overrides=[f"env={name}"]).env, resolve=False)
    assert isinstance(node, dict)
    node["seed"] = 0
    settings, spec = split_env({str(key): value for key, value in node.items()}, Overrides())
    return settings, checked(spec, "env", Overrides())


def record(env: Env, tasks: Sequence[Task], steps: int) -> Script:
    """Actions to play: the expert's without the last one, which would end the episode, then what the world lists, in turn."""
    script: Script = []
    for task in tasks:
        step, actions = env.reset(task), list[str]()
        plan: list[str] = []
        with suppress(AgentExpError, AttributeError):
            plan = env.oracle()[:-1]  # type: ignore[attr-defined]
        while len(actions) < steps and not step.done:
            listed = step.admissible or ("look around", "look", "inventory")
            action = plan[len(actions)] if len(actions) < len(plan) else listed[len(actions) % len(listed)]
            step = env.step(action)
            actions.append(action)
        script.append((task, actions))
    return script


async def _rounds(env: Env, pool: EnvPool, script: Script, rounds: int) -> list[tuple[Timed, Timed]]:
    async with pool:
        first = play_bare(env, script, 1)
        passes = max(1, min(_MOST_PASSES, round(_LEAST_S / first.wall_s)))
        await play_pooled(pool, script, 1)
        return [(play_bare(env, script, passes), await play_pooled(pool, script, passes)) for _ in range(rounds)]


def play_bare(env: Env, script: Script, passes: int) -> Timed:
    """The steps of a script, one after the other, in this process. Resets are not counted."""
    timed = Timed()
    for task, actions in script * passes:
        env.reset(task)
        with timed:
            for action in actions:
                env.step(action)
        timed.steps += len(actions)
    return timed


async def play_pooled(pool: EnvPool, script: Script, passes: int) -> Timed:
    """The same by each of two workers at once."""
    timed = Timed()

    async def play(world: Any, actions: Sequence[str]) -> None:
        for action in actions:
            await world.step(action)

    async with pool.lease() as one, pool.lease() as two:
        for task, actions in script * passes:
            await asyncio.gather(one.reset(task), two.reset(task))
            with timed:
                await asyncio.gather(play(one, actions), play(two, actions))
            timed.steps += _WORKERS * len(actions)
    return timed
