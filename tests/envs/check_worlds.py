"""Worlds with one mistake each, for the tests of the environment check. Imported by worker processes, so it stays light."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from agentexp.core import CognitiveMap, Fact, Step, Task
from agentexp.envs.toy import ToyRooms, ToyTracker


class LosingTracker(ToyTracker):
    def facts(self) -> list[Fact]:
        return super().facts()[-3:]


class SilentTracker(ToyTracker):
    def observe(self, action: str | None, step: Step) -> list[Fact]:
        super().observe(action, step)
        return []


class RaisingTracker(ToyTracker):
    def observe(self, action: str | None, step: Step) -> list[Fact]:
        raise IndexError("no match")


class FormlessTracker(ToyTracker):
    def map(self, goal: str) -> CognitiveMap:
        return CognitiveMap(spatial=[{"thing": "cup"}])


TRACKERS = {"loses facts": LosingTracker, "silent": SilentTracker, "raising": RaisingTracker, "formless": FormlessTracker}


class Wrong(ToyRooms):
    """ToyRooms with the mistake `how`."""

    def __init__(self, how: str = "", deterministic: bool = True) -> None:
        super().__init__()
        self.how, self.deterministic = how, deterministic
        self.calls = 0
        self.closed = False

    def tasks(self, split: str) -> list[Task]:
        tasks = super().tasks(split) if self.how != "any split" or split in self.splits() else []
        match self.how:
            case "twice":
                return [*tasks, tasks[0]]
            case "shared":
                return [replace(task, id=task.id[-3:]) for task in tasks]
            case "drawn order":
                return random.sample(tasks, len(tasks))
            case "hash order":
                return sorted(tasks, key=lambda task: hash(task.id))
            case "path":
                return [replace(task, spec={"file": "/home/me/games/1.z5"}) for task in tasks]
            case "no json":
                return [replace(task, spec={"file": {1, 2}}) for task in tasks]
            case "wrong split":
                return [replace(task, split="all") for task in tasks]
        return tasks

    def reset(self, task: Task) -> Step:
        step = super().reset(task)
        self.calls += 1
        match self.how:
            case "no goal":
                return replace(step, goal="")
            case "goal leak":
                return replace(step, observation=f"{step.observation} {step.goal}")
            case "draws":
                return replace(step, observation=f"{step.observation} {random.random()}")
            case "hash":
                return replace(step, observation=f"{step.observation} {hash('x')}")
            case "state stays":
                return replace(step, observation=f"{step.observation} {self.calls}")
            case "prints":
                print("Sampling rejected")
        return step

    def step(self, action: str) -> Step:
        if self.how == "brittle" and "{" in action:
            action.format()
        if self.how == "dies" and len(action) > 9_999:
            raise SystemExit(3)
        step = super().step(action)
        match self.how:
            case "no error":
                return replace(step, error=False)
            case "percent":
                return replace(step, score=step.score * 100)
            case "int":
                return replace(step, done=int(step.done))  # type: ignore[arg-type]
            case "list":
                return replace(step, admissible=list(step.admissible or ()))  # type: ignore[arg-type]
            case "info":
                return replace(step, info={"set": {1}})
            case "goal again":
                return replace(step, goal="Find it.")
            case "too many":
                return replace(step, admissible=(*(step.admissible or ()), "fly"))
        return step

    def oracle(self) -> list[str]:
        plan = super().oracle()
        if self.how == "oracle moves":
            self.step(plan[0])
        return plan[:-1] if self.how == "short oracle" else plan

    def fact_tracker(self) -> ToyTracker:
        return TRACKERS.get(self.how, ToyTracker)()

    def versions(self) -> dict[str, str]:
        return {"toy": 1} if self.how == "versions" else super().versions()  # type: ignore[dict-item]

    def close(self) -> None:
        if self.how == "close" and self.closed:
            raise ValueError("closed already")
        self.closed = True


class NotAnEnv:
    """Lacks nearly everything."""

    name = "not"

    def __init__(self, **settings: Any) -> None: ...
