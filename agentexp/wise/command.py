"""`agentexp wise-run`: from a composed config to a run of WISE or one of its baselines."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from agentexp import targets
from agentexp.commands import resolved
from agentexp.config import Overrides, build, check_value, checked, checked_dataclass, nearest
from agentexp.errors import MissingDependency, UserError
from agentexp.limits import Budget, Limits

if TYPE_CHECKING:
    from agentexp.core import Paradigm
    from agentexp.runner import Run

NEEDS = "agentexp wise-run needs numpy and networkx: pip install 'agentexp[wise]'"
EXPLORE = "explore"
VIEWPOINTS = "viewpoints"
PARTS = ("world", "task", "method", "vision", "vlm", "encoder", "controller", "agent", "logger")
METHOD_KEYS = ("name", "explorer", "navigator", "memory", "scheduler")
BODY = ("turn_per_step", "view_angle", "view_radius", "speed")
"""Settings of a world that explorers and agents have to know as well, under the same names."""
WALKING = 0.215  # blocks per tick in Minecraft, for worlds that do not say their `speed`


@dataclass(frozen=True, slots=True)
class WiseSettings:
    """Top-level keys of `agentexp wise-run` that are not components (`PARTS`)."""

    command: str
    output_root: str
    map: int
    seeds: int
    steps: int | None
    workers: int | None
    episode_timeout: float
    resume: Literal["refuse", "ignore"]
    progress: Literal["auto", "rich", "plain", "off"]
    limits: Limits
    text_query: Literal["raw", "skills"] = "skills"
    save_memory: int = 0


def aliased(overrides: Sequence[str]) -> list[str]:
    """`budget=N` as `steps=N`: to Hydra `budget` is the config group of the commands with language models."""
    return [re.sub(r"^budget=", "steps=", override) for override in overrides]


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

    settings: WiseSettings = checked_dataclass(
        WiseSettings, {key: value for key, value in config.items() if key not in PARTS}, "", overrides
    )
    for name in ("map", "seeds", "workers", "episode_timeout"):
        value = getattr(settings, name)
        if value is not None and not value > 0:
            raise UserError(f"{name} must be greater than 0, not {value}.")
    method = dict(config["method"])
    for key in method:
        if key not in METHOD_KEYS:
            raise UserError(
                f"'method.{key}' is not a setting.{nearest(key, METHOD_KEYS)} Valid keys: {', '.join(METHOD_KEYS)}."
            )
    name = check_value(method.get("name"), str, "method.name", overrides)
    task = dict(config["task"])
    task_name = check_value(task.pop("name", None), str, "task.name", overrides)
    explores = task_name == EXPLORE
    if task_name == VIEWPOINTS:
        name = VIEWPOINTS  # no method acts there
    try:
        parts = {EXPLORE: _exploration, VIEWPOINTS: _viewpoints}.get(task_name, _episodes)
        spec, described, paradigm, split = parts(_Chosen(config, settings, method, task, name, overrides))
    except ImportError as error:
        raise MissingDependency(NEEDS) from error
    env = targets.build(spec)
    # `limit` is how much of the same plan is run: more seeds later go on in the same folder.
    known = {
        "command": settings.command,
        "task": task_name,
        "steps": settings.steps,
        "env": {"world": config["world"], "limit": settings.seeds, "episode_timeout": settings.episode_timeout},
        **described,
        "logger": config["logger"],
    }
    workers = settings.workers or os.cpu_count() or 1
    root = Path(settings.output_root).expanduser()
    label = "no-model" if explores else _label(described)
    folder = run_folder(root, settings.command, env.name, name, label, known)
    if settings.save_memory and parts is _episodes:
        spec |= {"save_memory": settings.save_memory, "save_to": str((folder / "memory").absolute())}
    return Run(
        command=settings.command,
        config=known,
        env=env,
        env_spec=spec,
        models={"actor": ScriptedModel(policy="random", label=label)},
        paradigm=paradigm,
        budget=Budget(0, 1),
        folder=folder,
        output_root=root,
        split=split,
        limits=settings.limits,
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


@dataclass(frozen=True, slots=True)
class _Chosen:
    """What was chosen, checked as far as it is the same for all tasks.

    Attributes:
        config: the whole.
        settings: its top-level keys.
        method: `method`.
        task: `task`, without its name.
        name: of the method.
        overrides: as typed.
    """

    config: Mapping[str, Any]
    settings: WiseSettings
    method: Mapping[str, Any]
    task: Mapping[str, Any]
    name: str
    overrides: Overrides

    def part(self, node: Any, path: str, kind: type | None = None) -> dict[str, Any]:
        """A checked component, see `agentexp.config.checked`."""
        return checked(node, path, self.overrides, kind)

    def without_settings(self, task: str) -> None:
        """Refuse settings of a task that has none. Raises `UserError`."""
        for key in self.task:
            raise UserError(f"'task.{key}' is not a setting of task={task}: it has none.")


Made = tuple[dict[str, Any], dict[str, Any], "Paradigm", str]
"""The environment's specification, what of it goes into the manifest, the paradigm, the split."""


def _exploration(chosen: _Chosen) -> Made:
    from agentexp.wise.core import Explorer, VoxelWorld
    from agentexp.wise.methods import ExploreMethod
    from agentexp.wise.navigate import Navigator

    config, method, name = chosen.config, chosen.method, chosen.name
    chosen.without_settings(EXPLORE)
    if method.get("explorer") is None:
        raise UserError(f"method={name} has no explorer of its own. Choose another method for task=explore.")
    used = {key: method[key] for key in ("name", "explorer", "navigator") if key in method}
    spec = {
        "_target_": "agentexp.wise.maps.ExplorationMaps",
        "world": chosen.part(config["world"], "world", VoxelWorld),
        "explorer": chosen.part(fitted(method["explorer"], config["world"]), "method.explorer", Explorer),
        "navigator": chosen.part(method.get("navigator"), "method.navigator", Navigator),
        "budget": chosen.settings.steps,
    }
    return spec, {"method": used}, ExploreMethod(name), "maps"


def _episodes(chosen: _Chosen) -> Made:
    from agentexp.wise.core import Controller, Explorer, Scheduler, VoxelWorld
    from agentexp.wise.methods import TaskMethod
    from agentexp.wise.parts import EpisodeMemory
    from agentexp.wise.tasks import SparseTask

    config, method, name = chosen.config, chosen.method, chosen.name
    if method.get("memory") is None or method.get("scheduler") is None:
        raise UserError(f"method={name} explores and does nothing else. Choose another method, or task=explore.")
    world = chosen.part(config["world"], "world", VoxelWorld)
    agent = {"_target_": "agentexp.wise.agent.WiseAgent", **(config.get("agent") or {})}
    agent |= {
        "memory": chosen.part(method["memory"], "method.memory", EpisodeMemory),
        "explorer": chosen.part(fitted(method["explorer"], world), "method.explorer", Explorer),
        "scheduler": chosen.part(fitted(method["scheduler"], world), "method.scheduler", Scheduler),
        "controller": chosen.part(fitted(config["controller"], world), "controller", Controller),
    }
    agent = fitted(agent, world)
    spec = {
        "_target_": "agentexp.wise.episode_env.TaskEpisodes",
        "world": world,
        "task": chosen.part(chosen.task, "task", SparseTask),
        "agent": chosen.part(agent, "agent"),
        "budget": chosen.settings.steps,
    }
    return spec, {"protocol": dict(chosen.task), "agent": agent, "method": {"name": name}}, TaskMethod(name), "seeds"


def _viewpoints(chosen: _Chosen) -> Made:
    from agentexp.wise.core import Encoder, VisionModel
    from agentexp.wise.methods import ViewpointTest
    from agentexp.wise.worlds.sim.world import SimWorld

    config = chosen.config
    chosen.without_settings(VIEWPOINTS)
    spec = {
        "_target_": "agentexp.wise.pond_env.PondViews",
        "world": chosen.part(config["world"], "world", SimWorld),
        "encoder": chosen.part(config["encoder"], "encoder", Encoder),
        "vision": chosen.part(config["vision"], "vision", VisionModel),
        "text_query": chosen.settings.text_query,
    }
    described = {key: spec[key] for key in ("encoder", "vision", "text_query")}
    return spec, described, ViewpointTest(), "scenes"


def fitted(spec: Mapping[str, Any], world: Mapping[str, Any]) -> dict[str, Any]:
    """A component with what it has to know of the body and the map, where it takes that and the config does not say it.

    Args:
        spec: of a component.
        world: of the world; settings that it leaves to its defaults are read from there.
    """
    target = spec.get("_target_") if isinstance(spec, Mapping) else None
    if target is None:
        return dict(spec)
    taken = targets.parameters(targets.locate(str(target)), str(target))
    made = targets.locate(str(world["_target_"]))
    own = targets.parameters(made, str(world["_target_"]))
    known = {name: world.get(name, own[name].default) for name in (*BODY, "size") if name in own}
    known.setdefault("speed", getattr(made, "speed", WALKING))
    if "size" in known:
        known["d_max"] = round(2**0.5 * known.pop("size"), 1)
    return {**{name: value for name, value in known.items() if name in taken and spec.get(name) is None}, **_said(spec)}


def _said(spec: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in spec.items() if value is not None or key not in (*BODY, "d_max")}


def _label(described: Mapping[str, Any]) -> str:
    """What stands for the model in folders and tables: the vision model, where the method has one."""
    model = described.get("vision") or (described["agent"]["memory"].get("worker") or {}).get("model")
    if not model:
        return "no-vision"
    inner = model.get("model") or {}
    kind = str(model["_target_"]).rpartition(".")[2].removesuffix("Vision").lower()
    return str(inner.get("label") or inner.get("name") or kind).rpartition("/")[2]
