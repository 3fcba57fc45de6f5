"""Where trajectories that succeeded come from: runs of `agentexp eval` with any model, or a scripted expert played here."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from agentexp.core import Model, Paradigm, Task
from agentexp.errors import FatalError, UserError
from agentexp.export.sources import find_sources
from agentexp.models.scripted import ScriptedModel
from agentexp.paradigms.react import Form, ReAct
from agentexp.paradigms.ttexplore import TTExplore
from agentexp.records import episode_to_json
from agentexp.rollout import Budget, Lease, run_episode
from agentexp.training.grpo.world import TrainingWorld
from agentexp.training.thinker.nodes import Trajectory, moves_of


class Strong(Protocol):
    """`trainer.strong`."""

    async def trajectories(self, world: TrainingWorld, lease: Lease, form: Form, counts: Counter[str]) -> list[Trajectory]:
        """Those that succeeded, of instances of the training split, in an order that never changes.

        Args:
            world: of the training.
            lease: opens an engine.
            form: of the actor's replies.
            counts: gets what was left out, by reason.

        Raises:
            UserError: there are none, or they are of another world or split.
        """
        ...


class Runs:
    """Successful episodes of run folders (`agentexp eval` on the training split, any model, any paradigm).

    Of an episode with several phases the last one counts; it must begin with a reset, which the replay will show.

    Args:
        paths: run folders, or folders above them.
        limit: take the first N.
    """

    def __init__(self, paths: list[str], limit: int | None = None) -> None:
        if not paths:
            raise UserError("trainer.strong.paths must name at least one run folder of `agentexp eval` on env.split=train.")
        if limit is not None and limit < 1:
            raise UserError(f"trainer.strong.limit must be at least 1, or null, not {limit}.")
        self.paths, self.limit = [Path(path).expanduser() for path in paths], limit

    async def trajectories(self, world: TrainingWorld, lease: Lease, form: Form, counts: Counter[str]) -> list[Trajectory]:
        """See `Strong`."""
        found: dict[str, Trajectory] = {}
        for source in find_sources(self.paths):
            for record in source.episodes():
                task = record["task"]
                if (task["env"], task["split"]) != (world.env.name, world.settings.split):
                    raise UserError(
                        f"{source.folder} holds episodes of {task['env']}/{task['split']}; the thinker is trained on "
                        f"env={world.env.name} env.split={world.settings.split}. Choose the same world, and never a test split."
                    )
                _take(record, form, found, counts)
        return _some(list(found.values()), self.limit, counts)


class Played:
    """A scripted agent, played when it is asked for. For controls, tests and smoke runs.

    An expert that knows a hidden rule obeys it before anybody would notice, so none of its sub-tasks is about the rule; an
    actor with a thinker meets it and overcomes it, as a strong model would.

    Args:
        policy: see `ScriptedModel`.
        thinker: policy of its thinker; None = it has none.
        every: steps between two thoughts.
        episodes: the first N instances of the training split.
        max_steps: of an episode.
    """

    def __init__(
        self, policy: str = "oracle", thinker: str | None = None, every: int = 3, episodes: int = 16, max_steps: int = 50
    ) -> None:
        if min(episodes, max_steps, every) < 1:
            raise UserError("trainer.strong: episodes, max_steps and every must be at least 1.")
        self.policy, self.thinker, self.every = policy, thinker, every
        self.episodes, self.max_steps = episodes, max_steps

    async def trajectories(self, world: TrainingWorld, lease: Lease, form: Form, counts: Counter[str]) -> list[Trajectory]:
        """See `Strong`."""
        models: dict[str, Model] = {"actor": ScriptedModel(policy=self.policy)}
        paradigm: Paradigm = ReAct(form=form, show_admissible=False)
        if self.thinker is not None:
            models["thinker"] = ScriptedModel(policy=self.thinker)
            paradigm = TTExplore(every=self.every, form=form, show_admissible=False)
        for model in models.values():
            if isinstance(model, ScriptedModel):
                model.check(world.env)
        found: dict[str, Trajectory] = {}

        async def one(task: Task) -> Mapping[str, Any]:
            episode = await run_episode(task, world.env, lease, models, paradigm, Budget(0, self.max_steps))
            record: Mapping[str, Any] = json.loads(episode_to_json(episode))
            return record

        for record in await asyncio.gather(*map(one, world.tasks(world.settings.split, self.episodes))):
            _take(record, form, found, counts)
        return _some(list(found.values()), None, counts)


def _take(record: Mapping[str, Any], form: Form, found: dict[str, Trajectory], counts: Counter[str]) -> None:
    counts["episodes"] += 1
    saved = record["task"]
    task = Task(**{name: saved[name] for name in ("id", "env", "split", "seed", "kind", "spec") if name in saved})
    moves = moves_of(record, form)
    if record["status"] != "ok":
        counts["harness errors"] += 1
    elif not record["success"] or not moves:
        counts["not successful"] += 1
    elif task.key in found:
        counts["same instance twice"] += 1
    else:
        found[task.key] = Trajectory(task, moves)


def _some(found: list[Trajectory], limit: int | None, counts: Counter[str]) -> list[Trajectory]:
    if not found and counts["harness errors"]:
        raise FatalError(f"All trajectories failed: {counts['harness errors']} of {counts['episodes']} by harness errors.")
    if not found:
        raise UserError(
            f"trainer.strong has no successful trajectory among {counts['episodes']} episodes. Use a stronger model, "
            "or more tasks."
        )
    return found[:limit]
