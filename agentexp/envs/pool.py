"""A pool of engines: each in a worker process of its own for its whole life, leased to one episode at a time.

Processes, because engines crash, hang, leak, print and swap `sys.stdout`; spawned, because a forked JVM bridge mixes up the
replies of parent and child; never threads, because TextWorld is not thread-safe. The parent only waits on file descriptors,
so thousands of episodes cost it no thread.

    async with EnvPool({"_target_": "agentexp.envs.toy.ToyRooms"}, size=4, step_timeout=30, reset_timeout=120) as pool:
        async with pool.lease() as world:
            step = await world.reset(task)
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol, Self

from agentexp.core import Env, Step, Task
from agentexp.envs.process import WorkerProcess
from agentexp.envs.worker import attempt, invoke
from agentexp.errors import EngineError, UserError
from agentexp.rollout import World
from agentexp.targets import build


@dataclass(slots=True)
class PoolStats:
    """What happened to the workers.

    Attributes:
        started: workers that were started, all in all.
        timeouts: killed because a call ran past its limit.
        deaths: ended by themselves (crash, out of memory).
        failures: given up because the engine raised.
        cancelled: killed in the middle of a call (Ctrl-C, an episode's time limit).
        recycled: replaced after `max_episodes_per_worker` episodes.
    """

    started: int = 0
    timeouts: int = 0
    deaths: int = 0
    failures: int = 0
    cancelled: int = 0
    recycled: int = 0


_FATES = {"timeout": "timeouts", "died": "deaths", "failed": "failures", "cancelled": "cancelled"}


class _Engine(Protocol):
    fate: str
    leases: int

    def alive(self) -> bool: ...
    def gone(self) -> bool: ...
    def attach(self) -> None: ...
    def detach(self) -> None: ...
    async def start(self, seconds: float) -> None: ...
    async def request(self, method: str, args: tuple[Any, ...], seconds: float, setting: str) -> Any: ...
    def output(self) -> str: ...
    def kill(self, fate: str) -> None: ...
    async def close(self, grace: float) -> None: ...
    async def reap(self) -> None: ...


class EnvPool:
    """Leases engines; starts workers when they are needed and replaces those that fail.

    POSIX only (Linux, macOS); elsewhere use `in_process`.

    Args:
        spec: plain picklable configuration of the environment: `_target_` and keyword arguments.
        size: engines at most, so episodes at a time at most.
        step_timeout: seconds that one step may take.
        reset_timeout: seconds that starting a worker, a reset, or any other call (a planner) may take.
        in_process: run the world in this process. For cheap worlds in pure Python: no time limits, no protection.
        max_episodes_per_worker: replace a worker after so many leases, to bound what an engine leaks. None: never.
        close_timeout: seconds that an engine gets to close itself before its process group is killed.
        environ: further environment variables of the workers.
    """

    def __init__(
        self,
        spec: Mapping[str, Any],
        size: int,
        step_timeout: float,
        reset_timeout: float,
        in_process: bool = False,
        max_episodes_per_worker: int | None = None,
        close_timeout: float = 2.0,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        if size < 1:
            raise UserError(f"The pool's size must be at least 1, not {size}.")
        if step_timeout <= 0 or reset_timeout <= 0:
            raise UserError(
                "step_timeout and reset_timeout are seconds and must be above 0: a call without limit can hang for ever."
            )
        self.spec, self.size, self.in_process = spec, size, in_process
        self.step_timeout, self.reset_timeout, self.close_timeout = step_timeout, reset_timeout, close_timeout
        self.max_episodes_per_worker = max_episodes_per_worker
        self.stats = PoolStats()
        self._environ = environ
        self._idle: list[_Engine] = []
        self._leased: set[_Engine] = set()
        self._dying: list[_Engine] = []
        self._stopped = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._slots = asyncio.Semaphore(size)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    @asynccontextmanager
    async def lease(self) -> AsyncIterator[World]:
        """An engine for one episode. Waits while all are taken.

        Raises:
            EngineError: the engine could not be started (`EngineTimeout`: not in time).
            UserError: its configuration or its data is wrong, or a package is missing.
        """
        loop = asyncio.get_running_loop()
        if loop is not self._loop:  # idle workers belong to no loop, so a pool may serve one `asyncio.run` after the other
            self._loop, self._slots = loop, asyncio.Semaphore(self.size)
        async with self._slots:
            engine = await self._take()
            world = _LeasedWorld(engine, self)
            try:
                yield world
            finally:
                world.engine = None
                await self._give_back(engine)

    async def stop(self) -> None:
        """End all workers: idle ones may close their engine, leased ones are killed. Leaves no child. Safe to call twice."""
        self._stopped = True
        for engine in list(self._leased):
            engine.kill("closed")
        idle, self._idle = self._idle, []
        dying, self._dying = self._dying, []
        await asyncio.gather(*(e.close(self.close_timeout) for e in idle), *(e.reap() for e in [*dying, *self._leased]))

    async def _take(self) -> _Engine:
        if self._stopped:
            raise EngineError("The pool has been stopped.")
        while self._idle:
            engine = self._idle.pop()  # the one used last: its caches are warm, and the others may be needed never again
            if engine.alive():
                self._leased.add(engine)
                engine.leases += 1
                engine.attach()
                return engine
            engine.kill("died")
            self._count(engine)
        try:
            engine = _DirectEngine(self.spec) if self.in_process else WorkerProcess(self.spec, self._environ)
        except OSError as error:
            raise EngineError(f"No worker process could be started ({error}); set fewer workers.") from error
        self.stats.started += 1
        self._leased.add(engine)
        engine.leases = 1
        engine.attach()
        try:
            await engine.start(self.reset_timeout)
        except BaseException:
            await self._give_back(engine)
            raise
        return engine

    async def _give_back(self, engine: _Engine) -> None:
        self._leased.discard(engine)
        engine.detach()
        if not engine.alive():
            engine.kill("died")
            self._count(engine)
        elif self._stopped:
            engine.kill("closed")
            self._dying.append(engine)
        elif self.max_episodes_per_worker is not None and engine.leases >= self.max_episodes_per_worker:
            self.stats.recycled += 1
            self._dying.append(engine)
            await engine.close(self.close_timeout)
        else:
            self._idle.append(engine)

    def _count(self, engine: _Engine) -> None:
        self._dying = [e for e in self._dying if not e.gone()]
        self._dying.append(engine)
        if name := _FATES.get(engine.fate):
            setattr(self.stats, name, getattr(self.stats, name) + 1)


class _LeasedWorld:
    """The `World` of one lease; useless after it."""

    def __init__(self, engine: _Engine, pool: EnvPool) -> None:
        self.engine: _Engine | None = engine
        self._pool = pool
        self._was_reset = False

    async def reset(self, task: Task) -> Step:
        step: Step = await self._engine().request("reset", (task,), self._pool.reset_timeout, "reset_timeout")
        self._was_reset = True
        return step

    async def step(self, action: str) -> Step:
        if not self._was_reset:
            raise EngineError("step() was called before reset(): a leased engine still holds the last episode's state.")
        step: Step = await self._engine().request("step", (action,), self._pool.step_timeout, "step_timeout")
        return step

    async def call(self, method: str, *args: Any) -> Any:
        return await self._engine().request(method, args, self._pool.reset_timeout, "reset_timeout")

    def output(self) -> str:
        """The last lines that the engine printed; empty for a world in this process."""
        return self._engine().output()

    def _engine(self) -> _Engine:
        if self.engine is None:
            raise EngineError("This world's lease has ended.")
        return self.engine


class _DirectEngine:
    """A world in this process behind the interface of `WorkerProcess`."""

    def __init__(self, spec: Mapping[str, Any]) -> None:
        self.fate = ""
        self.leases = 0
        self._spec = spec
        self._env: Env | None = None

    def alive(self) -> bool:
        return not self.fate

    def gone(self) -> bool:
        return True

    def attach(self) -> None:
        """Nothing to listen to."""

    def detach(self) -> None:
        """Nothing to listen to."""

    async def start(self, seconds: float) -> None:
        ok, result = attempt(build, self._spec)
        if not ok:
            self.kill("failed")
            result.throw()
        self._env = result

    async def request(self, method: str, args: tuple[Any, ...], seconds: float, setting: str) -> Any:
        await asyncio.sleep(0)  # a world that never waits would starve the other episodes and Ctrl-C
        if self._env is None:
            raise EngineError(f"The engine is gone ({self.fate}); lease a new one.")
        ok, result = attempt(invoke, self._env, method, args)
        if not ok:
            if not result.is_user_error():
                self.kill("failed")
            result.throw()
        return result

    def output(self) -> str:
        return ""

    def kill(self, fate: str) -> None:
        if self.fate:
            return
        self.fate = fate
        if self._env is not None:
            attempt(self._env.close)  # it failed already, or the run is over: a second failure adds nothing
        self._env = None

    async def close(self, grace: float) -> None:
        self.kill("closed")

    async def reap(self) -> None:
        """Nothing to wait for."""
