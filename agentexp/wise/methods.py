"""The methods of paper 004 as the runner's paradigms: they ask the worker to play and keep its record."""

from __future__ import annotations

from typing import Any

from agentexp.core import Usage
from agentexp.hooks import Context
from agentexp.metrics.map_coverage import NOTE as COVERAGE
from agentexp.metrics.wise_tasks import NOTE as WISE
from agentexp.metrics.wise_tasks import VIEWS
from agentexp.rollout import Rollout

PIECE = 200  # ticks between two signs of life


class ExploreMethod:
    """Exploration of a map: one call of the worker per episode."""

    roles: tuple[str, ...] = ()

    def __init__(self, name: str) -> None:
        self.name = name

    async def __call__(self, ro: Rollout) -> None:
        """Play one episode and keep its record. The score is the share seen; there is nothing to win."""
        await ro.reset()
        record = await ro.world.call("play")
        episode = ro.episode
        episode.steps = record["steps"]
        episode.steps_by_phase["exploring"] = record["steps"]
        ro.note(COVERAGE, {"method": self.name, **record})
        ro.finish("completed")
        episode.score = record["final"]


class ViewpointTest:
    """Six views of a pond (table 7): one call of the worker per scene. The score is the share that semantic retrieval found."""

    roles: tuple[str, ...] = ()
    name = "viewpoints"

    async def __call__(self, ro: Rollout) -> None:
        """Measure one scene and keep its record."""
        await ro.reset()
        record = await ro.world.call("play")
        seen = [view for view in record["views"].values() if view is not None]
        ro.episode.steps = len(seen)
        ro.note(VIEWS, record)
        ro.finish("completed")
        ro.episode.score = sum(view["labels"] for view in seen) / max(1, len(seen))


class TaskMethod:
    """A sparse task. Success is the task's own; a vision model that fails is a note, never a failure of the episode."""

    roles: tuple[str, ...] = ()

    def __init__(self, name: str) -> None:
        self.name = name

    async def prepare(self, context: Context) -> dict[str, Any]:
        """See once that the vision model answers, before any episode.

        Raises:
            UserError: it does not.
        """
        check: Any = getattr(context.env, "check_vision", None)
        if check is not None:
            await check()
        return {}

    async def __call__(self, ro: Rollout) -> None:
        """Play one episode and keep its record."""
        await ro.reset()
        while not (await ro.world.call("advance", PIECE))["over"]:
            pass
        record = await ro.world.call("result")
        episode, spent = ro.episode, record["memory"]
        episode.steps = record["steps"]
        episode.steps_by_phase["acting"] = record["steps"]
        used = Usage(
            spent.get("prompt_tokens", 0),
            spent.get("completion_tokens", 0),
            0,
            spent.get("vlm_calls", 0),
            spent.get("cost"),
        )
        if used.calls:
            episode.usage += used
            episode.usage_by_role["vision"] = used
        ro.note(COVERAGE, {"method": self.name, **record.pop("coverage")})
        ro.note(WISE, {"method": self.name, **record})
        ro.finish("won" if record["success"] else "lost" if record["dead"] else "step_limit")
        done = sum(row["tick"] is not None for row in record["done"])
        episode.success, episode.score = record["success"], done / len(record["done"])
