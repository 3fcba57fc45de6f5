"""Held-out instances, recognised by what they are and not by what they are called (MAP, section 4.1 and appendix B.2).

An instance is compared with every instance of every split that is not for training (tests and development), of the world as it
was configured for the run, and for ALFWorld of the generated and, where they lie on this machine, of the official games.

alfworld      "same game": the problem's objects, facts and goal; "same house and task": what lies where, and the goal as read
scienceworld  "same variation": task and variation
textcraft     "same goal item"
others        "same instance": what the world's own specification of the instance says; its id where there is none
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from agentexp.core import Env, Task
from agentexp.errors import UserError
from agentexp.manifest import task_list_hash


class HeldOut:
    """Fingerprints of held-out instances of one world.

    Args:
        worlds: the same world in all configurations whose instances count, each with a word for the card; first, with an empty
            one, as it was configured for the run.

    Attributes:
        counts: instances by "world/split", for the card.
        missing: splits that could not be read, with the reason.
    """

    def __init__(self, worlds: Sequence[tuple[str, Env]]) -> None:
        self._env = worlds[0][1]
        self._known: dict[str, set[str]] = {}
        self._added: set[str] = set()
        self.counts: dict[str, int] = {}
        self.missing: dict[str, str] = {}
        for word, env in worlds:
            for split in env.splits():
                if "train" not in split:
                    self._add(env, split, f"{env.name}/{split}" + (f" ({word})" if word else ""))

    def _add(self, env: Env, split: str, label: str) -> None:
        try:
            tasks = env.tasks(split)
        except UserError as error:
            self.missing[label] = str(error)
            return
        same = f"{split} {task_list_hash(tasks)}"
        if same in self._added:
            return
        self._added.add(same)
        self.counts[label] = len(tasks)
        for task in tasks:
            for reason, mark in fingerprints(env, task).items():
                self._known.setdefault(reason, set()).add(mark)

    def reason(self, task: Task) -> str:
        """In which way a task is a held-out instance; empty if it is none."""
        marks = fingerprints(self._env, task)
        return next((reason for reason, mark in marks.items() if mark in self._known.get(reason, ())), "")


def fingerprints(env: Env, task: Task) -> dict[str, str]:
    """What an instance is recognised by: reason -> mark. The seed is no part of it: another seed of a test instance is one."""
    if env.name == "alfworld":
        return _house(env, task)
    if env.name == "scienceworld":
        return {"same variation": task.id}
    if env.name == "textcraft":
        return {"same goal item": str(task.spec.get("goal") or task.id)}
    return {"same instance": _digest([task.spec or task.id, task.kind])}


def _house(env: Env, task: Task) -> dict[str, str]:
    """The exact problem; and furniture, things in their places and goal by the names that an agent sees."""
    from agentexp.envs.alfworld.goals import parse_goal
    from agentexp.envs.alfworld.oracle import Household
    from agentexp.envs.alfworld.world import AlfWorld

    assert isinstance(env, AlfWorld)
    problem = env.problem(task)
    home, names = Household(problem.init), problem.names
    layout = sorted((names[place], sorted(names[thing] for thing in things)) for place, things in home.contents.items())
    goal = parse_goal(str(task.spec.get("task", "")))
    aim = [goal.kind, goal.thing, goal.place, goal.lamp] if goal else str(task.spec.get("task", "")).lower()
    return {
        "same game": _digest([sorted(problem.objects), sorted(problem.init), problem.goal.split()]),
        "same house and task": _digest([layout, aim]),
    }


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, default=_plain)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else list(value) if isinstance(value, Iterable) else str(value)


def worlds_to_check(env: Env, official: Path | None) -> list[tuple[str, Env]]:
    """The world itself, and for ALFWorld the generated and the official games besides; see `HeldOut`.

    Args:
        env: as configured for the run.
        official: folder of ALFWorld's official games; None: they are not looked at.
    """
    if env.name != "alfworld":
        return [("", env)]
    from agentexp.envs.alfworld.world import AlfWorld

    found: list[tuple[str, Env]] = [("", env), ("generated", AlfWorld())]
    if official is not None:
        found.append(("official", AlfWorld(data=str(official), allow_partial=True)))
    return found
