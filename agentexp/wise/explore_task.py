"""The exploration task: one episode of an explorer in a world, with nothing else to do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agentexp.wise.core import Control, Explorer, VoxelWorld
from agentexp.wise.coverage import BUDGETS, MARKS, Coverage, coverage
from agentexp.wise.explore.clock import Stopwatch, spread
from agentexp.wise.navigate import Navigator
from agentexp.wise.seen import SeenMap


@dataclass(slots=True)
class Exploration:
    """The record of one episode.

    Attributes:
        world, size, seed, budget: what was run.
        steps: steps taken; fewer than the budget when the explorer found nothing left to explore.
        coverage: the numbers.
        curve: cells seen after 0, 1, 2 ... steps; int32.
        path: x and z after 0, 1, 2 ... steps; float32 of shape (steps + 1, 2).
        seen: the map at the end.
        total: cells that can be seen.
        explorer: the explorer's own statistics.
        step_ms, step_cpu_ms: of a whole step without the world (observe, decide, navigate), see `spread`.
    """

    world: str
    size: int
    seed: int
    budget: int
    steps: int
    coverage: Coverage
    curve: NDArray[np.int32]
    path: NDArray[np.float32]
    seen: SeenMap
    total: int
    explorer: dict[str, Any]
    step_ms: dict[str, float]
    step_cpu_ms: dict[str, float]

    def record(self) -> dict[str, Any]:
        """JSON values, without the curve, path and map."""
        return {
            **{
                name: getattr(self, name)
                for name in ("world", "size", "seed", "budget", "steps", "total", "explorer", "step_ms", "step_cpu_ms")
            },
            **asdict(self.coverage),
        }


def explore(
    world: VoxelWorld,
    explorer: Explorer,
    seed: int,
    budget: int | None = None,
    navigator: Navigator | None = None,
    marks: Sequence[int] | None = None,
    progress: Callable[[int, float], None] | None = None,
) -> Exploration:
    """Run one episode.

    Args:
        world: where; reset here, left open.
        explorer: who decides.
        seed: of the world and the explorer.
        budget: steps; by default the paper's for the world's size.
        navigator: how the body gets to a goal; a `Navigator` with the defaults otherwise.
        marks: steps to read coverage off; by default the paper's.
        progress: called with (steps, share seen) every 500 steps.

    Raises:
        EngineError: from the world.
    """
    kind = ("flat" if world.name == "flat" else "voxel", 128 if world.size <= 128 else 384)
    budget = BUDGETS[kind] if budget is None else budget
    marks = MARKS[kind] if marks is None else marks
    navigator = navigator or Navigator()
    frame = world.reset(seed)
    truth = world.truth()
    observable = truth.get("observable", np.ones((world.size, world.size), bool))
    total = int(observable.sum())
    explorer.reset(world.size, world.origin, seed)
    navigator.reset(world.size, world.origin)
    score = SeenMap(world.size, world.origin)
    count = 0
    curve: list[int] = []
    path: list[tuple[float, float]] = []
    watch = Stopwatch()

    def take_in() -> None:
        nonlocal count
        new = score.paint(frame.cells)
        if len(frame.blocked):
            score.block(frame.blocked)
        count += int(observable[new[:, 0], new[:, 1]].sum())
        curve.append(count)
        path.append((frame.pose.x, frame.pose.z))

    take_in()
    for step in range(1, budget + 1):
        with watch.timed():
            explorer.observe(frame)
            goal = explorer.goal(frame)
            control = Control() if goal is None else navigator.towards(frame, goal.x, goal.z)
        if goal is None:
            break
        frame = world.act(control)
        take_in()
        if progress is not None and step % 500 == 0:
            progress(step, count / total)
    return Exploration(
        world=world.name,
        size=world.size,
        seed=seed,
        budget=budget,
        steps=len(curve) - 1,
        coverage=coverage(curve, total, budget, marks),
        curve=np.array(curve, np.int32),
        path=np.array(path, np.float32),
        seen=score,
        total=total,
        explorer=explorer.statistics(),
        step_ms=spread(watch.seconds),
        step_cpu_ms=spread(watch.cpu),
    )
