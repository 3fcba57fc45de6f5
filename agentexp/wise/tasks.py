"""The sparse tasks of paper 004 (sections 4.3 and 4.4, appendices B.4 and C): what is asked for, in which order, what the
protocol puts into the world meanwhile, and when a subtask counts as done.

* aba_sparse: A, then B far from it, then back to where A was; in this order.
* abc_sparse: water, logs and beef, in any order; the cows come at tick 500, near the agent.
* mixed5: five things in any order. The paper names no list; ours is water, logs, beef, sand and mutton.

The agent sees inventories and poses, as everyone; nothing here tells it where a thing is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agentexp.errors import EngineError, UserError
from agentexp.wise.core import Frame, Pose, Subtask, VoxelWorld
from agentexp.wise.knowledge.names import generic

BUDGET = 12_000
RETURN_RADIUS = 12.0


@dataclass(frozen=True, slots=True)
class Spawn:
    """Things that the protocol puts into the world at a tick, each uniform in the disc about the agent, on free ground.

    Attributes:
        name: of the thing ("cow").
        count: how many.
        tick: when.
        within: radius of the disc, blocks.
        stays: ticks after which those that are left are taken away again; None = they stay.
    """

    name: str
    count: int = 1
    tick: int = 500
    within: float = 30.0
    stays: int | None = None


@dataclass(frozen=True, slots=True)
class SparseTask:
    """A task: subtasks in their initial order, and the protocol.

    Attributes:
        name: as in `task=`.
        subtasks: tau_1 ... tau_m.
        reorder: whether they may be done in any order.
        spawns: what appears during the episode.
        budget: ticks.
        return_radius: a subtask with a `place` is done within so many blocks of it.
        apart: pairs of items whose sources the world must keep at least so many blocks apart: (item, item, blocks).
    """

    name: str
    subtasks: tuple[Subtask, ...]
    reorder: bool
    spawns: tuple[Spawn, ...] = ()
    budget: int = BUDGET
    return_radius: float = RETURN_RADIUS
    apart: tuple[tuple[str, str, float], ...] = ()

    @property
    def goal(self) -> str:
        """The task in words."""
        joined = ", ".join(subtask.text for subtask in self.subtasks)
        return f"{joined} ({'in any order' if self.reorder else 'in this order'})"


def text_of(target: str) -> str:
    """The instruction for an item."""
    return f"obtain {target.replace('_', ' ')}"


def aba_sparse(
    a: str = "water_bucket",
    b: str = "log",
    apart: float = 100.0,
    return_radius: float = RETURN_RADIUS,
    budget: int = BUDGET,
) -> SparseTask:
    """A, B, back to A, in this order (section 4.3, appendix C.1).

    Args:
        a: the sparse item.
        b: the other one.
        apart: least distance in blocks between where they are found; asked of the world.
        return_radius: how near to where A was collected the agent has to come back; the paper says "precisely".
        budget: ticks.

    Raises:
        UserError: a setting is out of range.
    """
    _positive(budget=budget, return_radius=return_radius)
    back = f"return to where you did this: {text_of(a)}"
    subtasks = (Subtask(text_of(a), a), Subtask(text_of(b), b), Subtask(back, a, place=0))
    distance = ((a, b, apart),) if apart > 0 else ()
    return SparseTask("aba_sparse", subtasks, False, (), budget, return_radius, distance)


def abc_sparse(
    order: list[str] | None = None,
    spawn: str = "cow",
    spawn_count: int = 2,
    spawn_tick: int = 500,
    spawn_within: float = 30.0,
    spawn_stays: int | None = None,
    budget: int = BUDGET,
) -> SparseTask:
    """Three items in any order; the source of the last appears during the episode (section 4.4, appendix C.2).

    Args:
        order: items in their initial order; water_bucket, log, beef by default.
        spawn: what appears.
        spawn_count: how many (ours; the paper gives no number).
        spawn_tick: when.
        spawn_within: radius of the disc about the agent, blocks.
        spawn_stays: ticks after which what is left of them disappears; None (the paper's rule as written) = never.
        budget: ticks.

    Raises:
        UserError: a setting is out of range.
    """
    return _any_order(
        "abc_sparse",
        order or ["water_bucket", "log", "beef"],
        Spawn(spawn, spawn_count, spawn_tick, spawn_within, spawn_stays),
        budget,
    )


def mixed5(
    order: list[str] | None = None,
    spawn: str = "cow",
    spawn_count: int = 2,
    spawn_tick: int = 500,
    spawn_within: float = 30.0,
    spawn_stays: int | None = None,
    budget: int = BUDGET,
) -> SparseTask:
    """Five items in any order (appendix B.4). The paper does not name them; settings as of `abc_sparse`."""
    return _any_order(
        "mixed5",
        order or ["water_bucket", "log", "beef", "sand", "mutton"],
        Spawn(spawn, spawn_count, spawn_tick, spawn_within, spawn_stays),
        budget,
    )


def _any_order(name: str, order: Sequence[str], spawn: Spawn, budget: int) -> SparseTask:
    _positive(budget=budget, spawn_within=spawn.within, spawn_stays=spawn.stays or 1)
    if spawn.count < 0 or spawn.tick < 0:
        raise UserError("task.spawn_count and task.spawn_tick must not be negative.")
    if len(set(order)) < len(order):
        raise UserError(f"task.order names an item twice: {', '.join(order)}.")
    subtasks = tuple(Subtask(text_of(item), item) for item in order)
    return SparseTask(name, subtasks, True, (spawn,) if spawn.count else (), budget)


def _positive(**values: float) -> None:
    for name, value in values.items():
        if not value > 0:
            raise UserError(f"task.{name} must be greater than 0, not {value}.")


# ------------------------------------------------------------------------------------------------------------- the protocol


class Protocol:
    """Carries out a task's spawns in one episode. Chance comes from the seed alone, so all methods meet the same draws."""

    def __init__(self, task: SparseTask, world: VoxelWorld, seed: int) -> None:
        self._task, self._world = task, world
        self._rng = np.random.default_rng([seed, 500])
        self.events: list[dict[str, Any]] = []

    def tick(self, frame: Frame) -> None:
        """Do what is due at the frame's tick. To be called once for every tick."""
        for spawn in self._task.spawns:
            if frame.tick == spawn.tick:
                self._spawn(spawn, frame)

    def _spawn(self, spawn: Spawn, frame: Frame) -> None:
        known = self._world.truth().get("passable")  # Minecraft tells none: there the game finds the ground
        passable = np.ones((self._world.size, self._world.size), bool) if known is None else np.asarray(known, bool)
        for _ in range(spawn.count):
            x, z = self._place(spawn, frame.pose, passable)
            stay = {} if spawn.stays is None else {"stay": spawn.stays}
            self._world.command("spawn", name=spawn.name, x=x, z=z, **stay)
            self.events.append({"tick": frame.tick, "event": "spawn", "name": spawn.name, "x": round(x, 1), "z": round(z, 1)})

    def _place(self, spawn: Spawn, about: Pose, passable: NDArray[np.bool_]) -> tuple[float, float]:
        for _ in range(1000):
            distance, angle = spawn.within * np.sqrt(self._rng.random()), 2 * np.pi * self._rng.random()
            x, z = about.x + distance * np.sin(angle), about.z + distance * np.cos(angle)
            i, j = int(np.floor(x)) - self._world.origin[0], int(np.floor(z)) - self._world.origin[1]
            if 0 <= i < len(passable) and 0 <= j < len(passable) and passable[i, j]:
                return float(x), float(z)
        raise EngineError(f"There is no free ground within {spawn.within:g} blocks of the agent to put a {spawn.name} on.")


# ------------------------------------------------------------------------------------------------------------- what is done


@dataclass(frozen=True, slots=True)
class Done:
    """When and where a subtask was completed."""

    tick: int
    pose: Pose


def holds(inventory: Mapping[str, int], target: str) -> int:
    """How many of a target an inventory has; oak and birch logs are logs."""
    return sum(count for name, count in inventory.items() if name == target or generic(name) == target)


class Progress:
    """Which subtasks are done, by inventory (and, for those with a place, by pose).

    A task in fixed order counts what was collected since the subtask before was done; one in any order counts from the start.

    Attributes:
        done: by index of the subtask.
        returned: ticks from the end of B to the place of A; None until then (ABA only).
    """

    def __init__(self, task: SparseTask, first: Frame) -> None:
        self.task = task
        self.done: dict[int, Done] = {}
        self.returned: int | None = None
        self._base = dict(first.inventory)
        self._idle: dict[str, int] | None = None  # with this inventory nothing is done, wherever the agent is

    @property
    def complete(self) -> bool:
        """Everything is done."""
        return len(self.done) == len(self.task.subtasks)

    def pending(self) -> list[int]:
        """Subtasks that may be done now, in the task's order: all, or the next one."""
        left = [i for i in range(len(self.task.subtasks)) if i not in self.done]
        return left if self.task.reorder else left[:1]

    def observe(self, frame: Frame) -> list[int]:
        """Take in a frame; returns the subtasks that it completes."""
        if frame.inventory == self._idle:
            return []
        found = []
        while (new := self._next(frame)) is not None:
            self.done[new] = Done(frame.tick, frame.pose)
            found.append(new)
            if not self.task.reorder:
                self._base = dict(frame.inventory)
        anywhere = all(self.task.subtasks[i].place is None for i in self.pending())
        self._idle = dict(frame.inventory) if anywhere else None
        return found

    def _next(self, frame: Frame) -> int | None:
        return next((i for i in self.pending() if self._is_done(i, frame)), None)

    def _is_done(self, i: int, frame: Frame) -> bool:
        subtask = self.task.subtasks[i]
        if subtask.place is None:
            return holds(frame.inventory, subtask.target) - holds(self._base, subtask.target) >= subtask.count
        there = self.done[subtask.place].pose
        if frame.pose.distance(there.x, there.z) > self.task.return_radius:
            return False
        if self.returned is None:
            self.returned = frame.tick - max(done.tick for done in self.done.values())
        return True
