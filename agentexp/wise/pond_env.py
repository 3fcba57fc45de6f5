"""The viewpoint test (table 7) as tasks of the runner: one scene per seed, all its views in one call of the worker."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import asdict
from typing import Any

from agentexp.core import EnvCard, Step, Task
from agentexp.wise.core import Encoder, VisionModel
from agentexp.wise.memory.text import TextQuery
from agentexp.wise.seeded_env import SeededEnv
from agentexp.wise.viewpoints import NAMES_OF_VIEWS, PondTest, ViewResult
from agentexp.wise.worlds.sim.world import SimWorld


class PondViews(SeededEnv):
    """Six views of a pond per seed. An `Env` whose only call is `play`.

    Args:
        world: see `PondTest`, as all others.
        encoder: pictures and texts.
        vision: names what is on the pictures.
        text_query: the text that is asked for.
    """

    split = "scenes"
    card = EnvCard(intro="A pond, seen from six places.", actions="")

    def __init__(self, world: SimWorld, encoder: Encoder, vision: VisionModel, text_query: TextQuery = "skills") -> None:
        rays = world.camera.rays
        super().__init__(world, f"viewpoints-{world.name}-{world.size}-{rays.width}x{rays.height}")
        self.vision = vision
        self.test = PondTest(world=world, encoder=encoder, vision=vision, text_query=text_query)
        self._seed = 0

    def reset(self, task: Task) -> Step:
        """Choose the seed."""
        self._seed = int(task.spec["seed"])
        return Step("", goal="Find the pond again.")

    def play(self) -> dict[str, Any]:
        """The views of the scene. Runs in the worker.

        Returns:
            "views": `ViewResult` of each by its name; None for one that the scene does not offer.
        """
        found = {result.view: asdict(result) for result in self._run(self.test.scene(self._seed))}
        return {"seed": self._seed, "views": {name: found.get(name) for name in NAMES_OF_VIEWS}}

    def _run(self, views: Coroutine[Any, Any, list[ViewResult]]) -> list[ViewResult]:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            if (start := getattr(self.vision, "start", None)) is not None:
                self._loop.run_until_complete(start())
        return self._loop.run_until_complete(views)

    def _vision(self) -> VisionModel:
        return self.vision
