"""What the three tasks of `wise-run` have in common as tasks of the runner: one per seed, played by a worker beside the world.

A WISE episode has thousands of control steps and no language model in its loop, so it runs where the world is, in the worker
process; run folder, resuming, time limits, replaced workers and tracking are those of every other run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import numpy as np

from agentexp.core import Step, Task
from agentexp.wise.core import VoxelWorld

SEEDS = 10_000


class SeededEnv:
    """The part of an `Env` that does not depend on what is played; subclasses add `card`, `reset` and how a worker plays.

    Args:
        world: where.
        name: of the environment.
    """

    split = "seeds"

    def __init__(self, world: VoxelWorld, name: str) -> None:
        self.world, self.name = world, name
        # One for all episodes of a worker: connections of a vision model belong to the loop that opened them.
        self._loop: asyncio.AbstractEventLoop | None = None

    def splits(self) -> Sequence[str]:
        """One."""
        return (self.split,)

    def tasks(self, split: str) -> list[Task]:
        """Seeds 0, 1, 2 ...; all methods meet the same worlds, spawns and draws."""
        return [Task(f"{seed:04d}", self.name, split, spec={"seed": seed}) for seed in range(SEEDS)]

    def step(self, action: str) -> Step:
        """There are no actions in words."""
        return Step("This world is not played in words.", error=True)

    def _vision(self) -> Any:
        """The vision model that episodes ask; None: they ask none."""
        return None

    def close(self) -> None:
        """Stop the world and what is open."""
        if self._loop is not None:
            if (stop := getattr(self._vision(), "close", None)) is not None:
                self._loop.run_until_complete(stop())
            self._loop.close()
            self._loop = None
        self.world.close()

    def versions(self) -> dict[str, str]:
        """Those of the world."""
        return {"numpy": np.__version__, **self.world.versions()}
