"""`Run`: one run with everything instantiated and nothing started; what a command builds and `runner.execute` runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from agentexp.actions import ParseSettings
from agentexp.core import Env, Model, Paradigm, Task
from agentexp.hooks import Plans
from agentexp.manifest import Resume
from agentexp.plan import checked, make_plan
from agentexp.progress import Mode
from agentexp.rollout import Budget, Limits, World
from agentexp.tracking import NoLogger, Tracker


class Engines(Protocol):
    """Where episodes get their worlds; `agentexp.envs.pool.EnvPool` is one."""

    def lease(self) -> AbstractAsyncContextManager[World]:
        """An engine for one episode."""
        ...

    async def stop(self) -> None:
        """End all engines."""
        ...


def open_pool(run: Run) -> Engines:
    """The pool of worker processes that a run asks for."""
    from agentexp.envs.pool import EnvPool

    return EnvPool(
        run.env_spec,
        size=max(1, min(run.workers or run.concurrency, run.concurrency)),
        step_timeout=run.step_timeout,
        reset_timeout=run.reset_timeout,
        in_process=run.in_process,
        max_episodes_per_worker=run.max_episodes_per_worker,
    )


@dataclass(slots=True, kw_only=True)
class Run:
    """One run, everything instantiated but nothing started.

    Attributes:
        command: eval, explore, map or act.
        config: the resolved config, for the manifest.
        env: the parent-side world.
        env_spec: picklable `_target_` config that builds the same world in a worker.
        models: by role; "actor" must be there.
        folder: see `agentexp.plan.run_folder`.
        output_root: below it lie the run folders of nested runs and the saved K_g.
        limit: first N tasks of the split; None: all.
        concurrency: episodes in flight.
        workers: engine processes; None: as many as episodes in flight.
        resume: what to do when the folder holds another run: "refuse" or "ignore".
        shard: (i, n): run the i-th of n parts of the plan (0-based); every part has a file of its own in the same folder.
        explore: builds the nested run that makes K_g when `Context.knowledge` finds none.
        pool: opens the engines.
        nested: a run inside another: no signals of its own, no table, not the last line of stdout; waits for its folder.
    """

    command: str
    config: Mapping[str, Any]
    env: Env
    env_spec: Mapping[str, Any]
    models: Mapping[str, Model]
    paradigm: Paradigm
    budget: Budget
    folder: Path
    output_root: Path
    split: str
    limits: Limits = field(default_factory=Limits)
    parsing: ParseSettings = field(default_factory=ParseSettings)
    seeds: Sequence[int] = (0,)
    repeats: int = 1
    limit: int | None = None
    concurrency: int = 8
    workers: int | None = None
    step_timeout: float = 60.0
    reset_timeout: float = 180.0
    in_process: bool = False
    max_episodes_per_worker: int | None = None
    logger: Tracker = field(default_factory=NoLogger)
    progress: Mode = "auto"
    resume: Resume = "refuse"
    shard: tuple[int, int] | None = None
    explore: Callable[[], Run] | None = None
    pool: Callable[[Run], Engines] = open_pool
    nested: bool = False


def plan_of(run: Run) -> tuple[list[Task], list[Task]]:
    """(all tasks of the split, the plan). Starts nothing.

    Raises:
        UserError: no data, no such split, or nothing to run.
    """
    if isinstance(run.paradigm, Plans):
        tasks = [task for seed in run.seeds for task in run.paradigm.plan(run.env, seed)]
        return tasks, checked(tasks)
    tasks = run.env.tasks(run.split)
    return tasks, make_plan(tasks, run.seeds, run.repeats, run.limit)
