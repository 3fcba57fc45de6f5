"""`agentexp wise-run`: from a composed config to a run of WISE or one of its baselines."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from agentexp import targets
from agentexp.commands import resolved
from agentexp.config import LimitSettings, Overrides, build, check_value, checked, checked_dataclass, nearest
from agentexp.errors import MissingDependency, UserError
from agentexp.metrics.map_coverage import NOTE
from agentexp.rollout import Budget, Limits, Rollout

if TYPE_CHECKING:
    from agentexp.runner import Run

NEEDS = "agentexp wise-run needs numpy and networkx: pip install 'agentexp[wise]'"


@dataclass(frozen=True, slots=True)
class WiseSettings:
    """Top-level keys of `agentexp wise-run` without `world`, `method` and `logger`."""

    command: str
    output_root: str
    task: Literal["explore"]
    map: int
    seeds: int
    steps: int | None
    workers: int | None
    episode_timeout: float
    resume: Literal["refuse", "ignore"]
    progress: Literal["auto", "rich", "plain", "off"]
    limits: LimitSettings


def aliased(overrides: Sequence[str]) -> list[str]:
    """`budget=N` as `steps=N`: to Hydra `budget` is the config group of the commands with language models."""
    return [re.sub(r"^budget=", "steps=", override) for override in overrides]


class Method:
    """A method of paper 004 as the runner's paradigm: one call of the worker per episode."""

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
        ro.note(NOTE, {"method": self.name, **record})
        ro.finish("completed")
        episode.score = record["final"]


def wise_job(*, dry_run: bool = False) -> Callable[[Any], int]:
    """The job of a running command; returns the exit code."""

    def job(node: Any) -> int:
        from agentexp.commands import show_plan
        from agentexp.runner import run_sync

        run = make_wise_run(*resolved(node))
        if dry_run:
            show_plan(run)
            return 0
        return run_sync(run)[1]

    return job


def make_wise_run(config: Mapping[str, Any], overrides: Overrides) -> Run:
    """Check everything and construct the run; starts nothing.

    Raises:
        UserError: a wrong setting.
        MissingDependency: the extra `wise` is not installed.
    """
    import os

    from agentexp.models.scripted import ScriptedModel
    from agentexp.plan import run_folder
    from agentexp.runner import Run
    from agentexp.tracking import Tracker

    groups = ("world", "method", "logger")
    settings: WiseSettings = checked_dataclass(
        WiseSettings, {key: value for key, value in config.items() if key not in groups}, "", overrides
    )
    for name in ("map", "seeds", "workers", "episode_timeout"):
        value = getattr(settings, name)
        if value is not None and not value > 0:
            raise UserError(f"{name} must be greater than 0, not {value}.")
    method = dict(config["method"])
    parts = ("name", "explorer", "navigator")
    for key in method:
        if key not in parts:
            raise UserError(f"'method.{key}' is not a setting.{nearest(key, parts)} Valid keys: {', '.join(parts)}.")
    name = check_value(method.get("name"), str, "method.name", overrides)
    try:
        from agentexp.wise.core import Explorer, VoxelWorld
        from agentexp.wise.navigate import Navigator
    except ImportError as error:
        raise MissingDependency(NEEDS) from error
    spec = {
        "_target_": "agentexp.wise.maps.ExplorationMaps",
        "world": checked(config["world"], "world", overrides, VoxelWorld),
        "explorer": checked(method.get("explorer"), "method.explorer", overrides, Explorer),
        "navigator": checked(method.get("navigator"), "method.navigator", overrides, Navigator),
        "budget": settings.steps,
    }
    env = targets.build(spec)
    # `limit` is how much of the same plan is run: more seeds later go on in the same folder.
    known = {
        "command": settings.command,
        "task": settings.task,
        "steps": settings.steps,
        "env": {"world": config["world"], "limit": settings.seeds, "episode_timeout": settings.episode_timeout},
        "method": method,
        "logger": config["logger"],
    }
    workers = settings.workers or os.cpu_count() or 1
    root = Path(settings.output_root).expanduser()
    return Run(
        command=settings.command,
        config=known,
        env=env,
        env_spec=spec,
        models={"actor": ScriptedModel(policy="random", label="no-model")},
        paradigm=Method(name),
        budget=Budget(0, 1),
        folder=run_folder(root, settings.command, env.name, name, "no-model", known),
        output_root=root,
        split="maps",
        limits=Limits(**{key: getattr(settings.limits, key) for key in settings.limits.__dataclass_fields__}),
        seeds=[0],
        limit=settings.seeds,
        concurrency=workers,
        workers=workers,
        step_timeout=settings.episode_timeout,
        reset_timeout=settings.episode_timeout,
        logger=build(config["logger"], "logger", overrides, Tracker),
        progress=settings.progress,
        resume=settings.resume,
    )
