"""Maps of an earlier `agentexp map` run, by task."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from agentexp.core import Task
from agentexp.errors import UserError
from agentexp.paradigms.map.cognitive_map import from_record

Key = tuple[str, str, str, int, int]


class SavedMaps:
    """The maps in one run folder. A task finds the map of the same instance, seed and repeat, else that of repeat 0.

    Args:
        folder: has `episodes.jsonl`.

    Raises:
        UserError: the folder has no episodes or no maps.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._notes: dict[Key, dict[str, Any]] = {}
        self._turns: dict[Key, list[tuple[str, str]]] = {}
        file = self.folder / "episodes.jsonl"
        if not file.is_file():
            raise UserError(
                f"paradigm.maps={folder}: there is no {file.name}. Give the run folder that `agentexp map` printed."
            )
        with file.open(encoding="utf-8") as lines:
            for line in lines:
                self._add(line)
        if not self._notes:
            raise UserError(
                f"paradigm.maps={folder} holds no finished map. Run `agentexp map` with the same env settings first."
            )

    def _add(self, line: str) -> None:
        try:
            episode = json.loads(line)
        except json.JSONDecodeError:
            return  # the torn last line of a run that was killed: its episode does not count as finished
        if episode.get("status") == "ok" and "map" in episode.get("notes", {}):
            task = episode["task"]
            key = (task["env"], task["split"], task["id"], task["seed"], task["repeat"])
            self._notes[key] = episode["notes"]
            self._turns[key] = [_turn(step) for step in episode.get("trajectory", ()) if step["phase"] == "mapping"]

    def find(self, task: Task) -> dict[str, Any] | None:
        """The notes of the mapping episode of this task; None if there is none."""
        return self._notes.get(self._key(task))

    def turns(self, task: Task) -> list[tuple[str, str]]:
        """(action, observation) of the exploration behind the map; empty if there is none."""
        return self._turns.get(self._key(task), [])

    def _key(self, task: Task) -> Key:
        key = (task.env, task.split, task.id, task.seed)
        return (*key, task.repeat if (*key, task.repeat) in self._notes else 0)

    def check(self, tasks: Iterable[Task]) -> None:
        """Every task must have a readable map. Raises `UserError`."""
        tasks = list(tasks)
        missing = [task for task in tasks if self.find(task) is None]
        if missing:
            raise UserError(
                f"paradigm.maps={self.folder} has no map for {len(missing)} of {len(tasks)} tasks, first {missing[0].key}. "
                "Run `agentexp map` with the same env.split, env.limit and env.seed."
            )
        for task in tasks:
            notes = self.find(task)
            try:
                from_record((notes or {})["map"])
            except TypeError as error:
                raise UserError(f"paradigm.maps={self.folder}: the map of {task.key} is not readable ({error}).") from error


def _turn(step: dict[str, Any]) -> tuple[str, str]:
    """What was said and answered; an action that the world does not list was said, but not sent."""
    said = step.get("rewrite", "") if "inadmissible" in step.get("flags", ()) else ""
    return step.get("action") or said, step["observation"]
