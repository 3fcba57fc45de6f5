"""Small runs of the toy world and of TextCraft with the teacher, in process, for the tests of collecting."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from agentexp.core import Env, Step, Task
from agentexp.envs.alfworld.world import AlfWorld
from agentexp.envs.textcraft.world import TextCraft
from agentexp.envs.toy import ToyRooms
from agentexp.paradigms.map import DualConvergence
from agentexp.paradigms.map.paradigm import MapThenAct
from agentexp.paradigms.react import ReAct
from agentexp.records import Record
from agentexp.rollout import Budget
from agentexp.run import Run
from agentexp.runner import run_sync
from agentexp.store import read_episodes
from agentexp.training.collect.paradigm import CollectMaps
from agentexp.training.collect.teacher import Teacher

STYLE: dict[str, Any] = {"style": "compact", "show_admissible": False}
MAP_SETTINGS: dict[str, Any] = {"stage1": False, "goal_visible": False, **STYLE}


class Haunted(ToyRooms):
    """Shows a thing that is not there in every room, so every map has wrong entries."""

    def reset(self, task: Task) -> Step:
        return self._lie(super().reset(task))

    def step(self, action: str) -> Step:
        return self._lie(super().step(action))

    def _lie(self, step: Step) -> Step:
        return replace(step, observation=step.observation.replace("You see ", "You see a ghost and "))


WORLDS: dict[str, Callable[[], Env]] = {"toy": ToyRooms, "textcraft": TextCraft, "haunted": Haunted, "alfworld": AlfWorld}


def paradigm(kind: str) -> Any:
    if kind == "map2k":
        return CollectMaps(**MAP_SETTINGS, stopping=DualConvergence())
    return MapThenAct(**MAP_SETTINGS, stopping=DualConvergence()) if kind == "map" else ReAct(**STYLE)


def run(folder: Path, env: str, kind: str, *, limit: int = 4, split: str = "train", **more: Any) -> Path:
    """One finished run of the teacher; its folder."""
    target = f"{WORLDS[env].__module__}.{WORLDS[env].__qualname__}"
    settings = {**(MAP_SETTINGS if kind != "react" else STYLE)}
    run_sync(
        Run(
            command="eval",
            config={"env": {"_target_": target, "split": split}, "paradigm": settings, "budget": {"mapping": 10}},
            env=WORLDS[env](),
            env_spec={"_target_": target},
            models={"actor": more.pop("model", None) or Teacher(actor="oracle" if kind == "react" else "auto")},
            paradigm=more.pop("paradigm", None) or paradigm(kind),
            budget=more.pop("budget", Budget(15, 50)),
            folder=folder,
            output_root=folder.parent,
            split=split,
            limit=limit,
            in_process=env != "alfworld",
            progress="off",
            **more,
        )
    )
    return folder


def records(folder: Path) -> list[Record]:
    return list(read_episodes(folder))
