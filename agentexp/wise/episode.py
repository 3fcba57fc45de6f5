"""One episode of a sparse task: the agent in a world, played in pieces, and the record of it.

The control loop never waits for a vision model. Where a world is faster than real time, an answer is used `latency_ticks` after
its request at the earliest and at the latest (`VisionWorker`), so that an episode does not depend on how fast the machine is.
"""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agentexp.wise.agent import WiseAgent
from agentexp.wise.core import Frame, VoxelWorld
from agentexp.wise.coverage import coverage
from agentexp.wise.explore.clock import Stopwatch, spread
from agentexp.wise.memory.labelled import LabelMemory
from agentexp.wise.memory.quality import quality
from agentexp.wise.seen import SeenMap
from agentexp.wise.tasks import Progress, Protocol, SparseTask
from agentexp.wise.vlm.simulated import SimulatedVision

EVERY = 10  # ticks between two stored points of the path and the curve
MARKS = (500, 1000, 2000, 4000, 6000, 8000, 10_000, 12_000)


class Trial:
    """An episode.

    Args:
        world: where; reset by `begin`, left open.
        task: what is asked for.
        agent: who does it.
        budget: ticks; None = the task's.
    """

    def __init__(self, world: VoxelWorld, task: SparseTask, agent: WiseAgent, budget: int | None = None) -> None:
        self.world, self.task, self.agent = world, task, agent
        self.budget = task.budget if budget is None else budget

    def begin(self, seed: int) -> None:
        """Build the world of a seed and put the agent into it.

        Raises:
            EngineError: from the world.
            UserError: the world cannot host the task or the method.
        """
        self.seed = seed
        self.frame: Frame = self.world.reset(seed)
        self.agent.reset(self.world, seed)
        self.progress = Progress(self.task, self.frame)
        self.protocol = Protocol(self.task, self.world, seed)
        self.ticks = 0
        self.dead = False
        self._score = SeenMap(self.world.size, self.world.origin)
        observable = self.world.truth().get("observable")
        shape = (self.world.size, self.world.size)
        self._observable: NDArray[np.bool_] = np.ones(shape, bool) if observable is None else np.asarray(observable, bool)
        self._count = 0
        self._curve: list[int] = []
        self._path: list[tuple[float, float]] = []
        self._world_time = Stopwatch()
        self._take_in()

    @property
    def over(self) -> bool:
        """Everything is done, the budget is used up, or the body is dead."""
        return self.progress.complete or self.ticks >= self.budget or self.dead

    async def advance(self, ticks: int) -> int:
        """Play up to so many ticks; returns how many were played.

        Raises:
            EngineError: from the world.
            FatalError: from the vision model (a wrong key).
        """
        before = self.ticks
        while self.ticks - before < ticks and not self.over:
            await self.agent.memory.pace(self.frame)
            if self.ticks % EVERY == 0:
                await asyncio.sleep(0)  # who wants to stop this is heard
            self.protocol.tick(self.frame)
            control = self.agent.decide(self.frame, self.progress)
            with self._world_time.timed():
                self.frame = self.world.act(control)
            self.ticks += 1
            self._take_in()
        return self.ticks - before

    def _take_in(self) -> None:
        self.progress.observe(self.frame)
        self.dead = bool(self.frame.info.get("done", False))
        new = self._score.paint(self.frame.cells)
        if len(new):
            self._count += int(self._observable[new[:, 0], new[:, 1]].sum())
        self._curve.append(self._count)
        if self.ticks % EVERY == 0:
            self._path.append((round(self.frame.pose.x, 1), round(self.frame.pose.z, 1)))

    async def finish(self) -> dict[str, Any]:
        """Wait for the last answers and return the record (JSON values).

        Returns:
            "task": what was done when; "memory", "agent", "explorer": their statistics; "coverage": as of an exploration.
        """
        memory = self.agent.memory
        await memory.settle()
        failures = list(memory.worker.failures) if isinstance(memory, LabelMemory) else []
        return {
            "seed": self.seed,
            "steps": self.ticks,
            "budget": self.budget,
            "success": self.progress.complete,
            "dead": self.dead,
            "done": [self._done(i) for i in range(len(self.task.subtasks))],
            "returned": self.progress.returned,
            "events": self.protocol.events,
            "agent": self.agent.statistics(),
            "memory": memory.statistics(),
            "vision_failures": failures,
            "labels": self._labels(),
            "world_ms": spread(self._world_time.seconds),
            "coverage": self._coverage(),
        }

    def _done(self, i: int) -> dict[str, Any]:
        found = self.progress.done.get(i)
        row: dict[str, Any] = {"target": self.task.subtasks[i].target, "tick": None}
        if found is not None:
            row |= {"tick": found.tick, "x": round(found.pose.x, 1), "z": round(found.pose.z, 1)}
        return row

    def _labels(self) -> dict[str, int] | None:
        """How right the labels were (table 6), where the vision model knows the truth."""
        memory = self.agent.memory
        if not isinstance(memory, LabelMemory) or not isinstance(memory.worker.model, SimulatedVision):
            return None
        return asdict(quality(memory.answers, memory.worker.model.truth, memory.knowledge, sample=None))

    def _coverage(self) -> dict[str, Any]:
        total = max(1, int(self._observable.sum()))
        numbers = asdict(coverage(self._curve, total, self.budget, [mark for mark in MARKS if mark <= self.budget]))
        numbers["marks"] = {str(mark): share for mark, share in numbers["marks"].items()}
        return {
            **numbers,
            "seed": self.seed,
            "steps": self.ticks,
            "budget": self.budget,
            "total": total,
            "explorer": self.agent.explorer.statistics(),
            "curve": self._curve[::EVERY],
            "path": self._path,
        }


def play(world: VoxelWorld, task: SparseTask, agent: WiseAgent, seed: int, budget: int | None = None) -> dict[str, Any]:
    """One whole episode in an event loop of its own; returns `Trial.finish`."""

    async def run() -> dict[str, Any]:
        trial = Trial(world, task, agent, budget)
        trial.begin(seed)
        await trial.advance(trial.budget)
        return await trial.finish()

    return asyncio.run(run())
