"""Exploration maps as tasks of the runner: one task per seed, a whole episode in one call of the worker."""

from __future__ import annotations

from typing import Any

import numpy as np

from agentexp.core import EnvCard, Step, Task
from agentexp.errors import UserError
from agentexp.wise.core import Explorer, VoxelWorld
from agentexp.wise.explore_task import explore
from agentexp.wise.navigate import Navigator
from agentexp.wise.seeded_env import SeededEnv

PATH_EVERY = 10  # steps between two stored points of the path and the curve


class ExplorationMaps(SeededEnv):
    """The exploration task of paper 004 (section 4.2) on one kind of map. An `Env` whose only call is `play`.

    Args:
        world: where.
        explorer: who decides where to look.
        navigator: how the body gets there.
        budget: steps; null: the paper's for the map's size (6,000 on 128, 20,000 on 384).
    """

    split = "maps"
    card = EnvCard(intro="A map to be seen as completely as possible.", actions="")

    def __init__(self, world: VoxelWorld, explorer: Explorer, navigator: Navigator, budget: int | None = None) -> None:
        if budget is not None and budget < 1:
            raise UserError("steps must be at least 1 step, or null for the paper's.")
        super().__init__(world, f"explore-{world.name}-{world.size}")
        self.explorer, self.navigator, self.budget = explorer, navigator, budget
        self._seed = 0

    def reset(self, task: Task) -> Step:
        """Choose the seed; the world is built by `play`."""
        self._seed = int(task.spec["seed"])
        return Step("", goal="See the whole map.")

    def play(self) -> dict[str, Any]:
        """One episode. Runs in the worker.

        Returns:
            `Exploration.record` with "curve" (cells seen) and "path" (x, z), every 10th step of both.
        """
        episode = explore(self.world, self.explorer, self._seed, self.budget, self.navigator)
        record = episode.record()
        record["marks"] = {str(mark): share for mark, share in record["marks"].items()}
        record["curve"] = episode.curve[::PATH_EVERY].tolist()
        record["path"] = np.round(episode.path[::PATH_EVERY].astype(float), 1).tolist()
        return record
