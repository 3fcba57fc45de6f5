"""Run folders as tables and comparisons see them: labels from the manifest, one slim row per task key."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from agentexp.errors import UserError
from agentexp.metrics.summary import PARSE_RATE_WARNING
from agentexp.plan import flatten, identity
from agentexp.reports import measures
from agentexp.store import read_episodes, read_json

log = logging.getLogger(__name__)

_SEEDS = ("seed", "seeds", "repeats")  # last parts of keys; several runs that differ only here belong to one cell


@dataclass(frozen=True, slots=True)
class Row:
    """One episode of a run. `instance` is the same for all seeds, repeats, paradigms and models.

    `values` holds what the measures said that were asked for; nothing for an episode that ended with a harness error.
    """

    key: str
    instance: str
    seed: int
    kind: str
    finished: bool
    success: bool
    score: float
    steps: int
    replies: int
    unreadable: int
    values: Mapping[measures.Key, measures.Part] = field(default_factory=dict)


@dataclass(frozen=True)
class RunData:
    """One run folder. `rows` holds the planned episodes that ended; what is planned and missing makes it partial.

    `explorer` is the label of the model that explored, empty where nothing was explored.
    """

    folder: Path
    manifest: Mapping[str, Any]
    rows: tuple[Row, ...]
    explorer: str = ""

    @property
    def env(self) -> str:
        """Name of the world."""
        return str(self.manifest.get("env", ""))

    @property
    def paradigm(self) -> str:
        """Name of the paradigm."""
        return str(self.manifest.get("paradigm", ""))

    @property
    def model(self) -> str:
        """Label of the acting model."""
        return str(self.manifest.get("model", ""))

    @property
    def planned(self) -> tuple[str, ...]:
        """Task keys of the plan."""
        return tuple(self.manifest.get("planned", ()))

    @cached_property
    def labels(self) -> dict[str, Any]:
        """What a selector can ask for: explorer, reader, thinker, the manifest's labels and every setting by its dotted key."""
        config = self.manifest.get("config") or {}
        labels = {key: self.manifest[key] for key in ("command", "env", "paradigm", "model", "split") if key in self.manifest}
        roles = {"explorer": self.explorer, "reader": self._reader(config), **self._thinker(config)}
        return {**dict(flatten(config)), **labels, **roles}

    def _reader(self, config: Mapping[str, Any]) -> str:
        """Who answers the questions of map QA; empty in other runs."""
        asked = config.get("paradigm", {}).get("reader")
        if asked is None:
            return ""
        if asked == "rules":
            return "rules"
        return self._role(config, "reader")

    def _role(self, config: Mapping[str, Any], role: str) -> str:
        """The model of a role: its own, or the acting one."""
        own = (config.get("roles") or {}).get(role)
        if not own:
            return self.model
        module = str(own.get("_target_", "")).rpartition(".")[0].rpartition(".")[2]
        return str(own.get("label") or own.get("name") or own.get("policy") or module).rstrip("/").rpartition("/")[2]

    def _thinker(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Its model as "thinker", and as "thinking" whether that is nobody ("none"), the acting model ("same") or "other".

        "own_thinker" says whether the role has settings of its own, also where nobody is asked to think.
        """
        own = "thinker" in (config.get("roles") or {})
        if self.paradigm != "ttexplore":
            return {"thinker": "", "thinking": "", "own_thinker": False}
        thinker = self._role(config, "thinker")
        asked = config.get("paradigm", {}).get("every")
        thinking = "none" if not asked else "same" if thinker == self.model else "other"
        return {"thinker": thinker, "thinking": thinking, "own_thinker": own}

    @cached_property
    def settings(self) -> dict[str, Any]:
        """What makes the results, except seeds: dotted key -> value."""
        flat = identity(self.manifest.get("config") or {})
        return {key: value for key, value in flat.items() if key.rpartition(".")[2] not in _SEEDS}


def find_runs(root: Path) -> list[Path]:
    """All run folders at or below `root`, sorted by path.

    Raises:
        UserError: `root` does not exist.
    """
    if not root.exists():
        raise UserError(f"{root} does not exist. Give a run folder, or a folder above run folders (by default outputs).")
    return sorted({file.parent for file in root.rglob("manifest.json")})


def load_run(folder: Path, wanted: Collection[measures.Key] = ()) -> RunData:
    """Read a run folder, finished, partial or still running. Torn lines are skipped; the last "ok" record of a task key counts.

    Args:
        folder: the run folder.
        wanted: measures to take of every episode.

    Raises:
        UserError: the folder holds no run.
    """
    manifest = read_json(folder / "manifest.json")
    if not isinstance(manifest, dict):
        raise UserError(f"{folder} is not a run folder: it has no manifest.json.")
    rows, explorer = [], ""
    for record in read_episodes(folder, manifest.get("planned"), slim=True):
        explorer = explorer or str((record.get("notes") or {}).get("exploration", {}).get("explorer", ""))
        rows.append(_row(record, wanted))
    return RunData(folder, manifest, tuple(rows), explorer)


def load_runs(roots: Iterable[Path], wanted: Collection[measures.Key] = ()) -> list[RunData]:
    """All runs at or below some folders, each once. A damaged one is left out with a warning.

    Raises:
        UserError: a folder does not exist, or nothing but damaged runs was found.
    """
    folders = {folder.resolve(): folder for root in roots for folder in find_runs(root)}
    runs, damaged = list[RunData](), list[UserError]()
    for folder in folders.values():
        try:
            runs.append(load_run(folder, wanted))
        except UserError as error:
            log.warning("Left out: %s", error)
            damaged.append(error)
    if damaged and not runs:
        raise damaged[0]
    return runs


def _row(record: Mapping[str, Any], wanted: Collection[measures.Key]) -> Row:
    task = record["task"]
    statuses = [step["status"] for step in record.get("trajectory", ())]
    name, finished = f"{task['env']}/{task['split']}/{task['id']}", record["status"] == "ok"
    return Row(
        key=f"{name}#seed{task.get('seed', 0)}.{task.get('repeat', 0)}",
        instance=name,
        seed=int(task.get("seed", 0)),
        kind=str(task.get("kind", "")),
        finished=finished,
        success=bool(record.get("success")),
        score=float(record.get("score") or 0.0),
        steps=int(record.get("steps") or 0),
        replies=len(statuses),
        unreadable=sum(status != "ok" for status in statuses),
        values=measures.read(dict(record), wanted) if finished and wanted else {},
    )


@dataclass(frozen=True)
class Group:
    """Runs that differ only in their seeds (or are copies and continuations of each other): what one cell stands for.

    Attributes:
        runs: the runs.
        variant: settings in which this group differs from others of the same model, world and paradigm; usually empty.
        apart: settings in which the runs differ although they form one group; the same task key under two values of them is
            two episodes (a game in its variants).
    """

    runs: tuple[RunData, ...]
    variant: str = ""
    apart: tuple[str, ...] = ()

    @cached_property
    def rows(self) -> dict[str, Row]:
        """By task key, with the values of `apart`; of several records of one key the last finished one counts."""
        found: dict[str, Row] = {}
        for run in self.runs:
            for row in run.rows:
                key = self._kept_apart(run) + row.key
                if row.finished or key not in found or not found[key].finished:
                    found[key] = row
        return found

    def _kept_apart(self, run: RunData) -> str:
        return "".join(f"{run.settings.get(key)}|" for key in self.apart)

    @property
    def finished(self) -> list[Row]:
        """Episodes that say something about the agent."""
        return [row for row in self.rows.values() if row.finished]

    @property
    def excluded(self) -> int:
        """Episodes that ended with a harness error."""
        return sum(not row.finished for row in self.rows.values())

    @cached_property
    def planned(self) -> int:
        """Distinct planned task keys."""
        return len({self._kept_apart(run) + key for run in self.runs for key in run.planned} | set(self.rows))

    @property
    def readable(self) -> bool:
        """At least half of the replies could be read, so the rate says something."""
        replies = sum(row.replies for row in self.finished)
        return not replies or sum(row.unreadable for row in self.finished) <= (1 - PARSE_RATE_WARNING) * replies


def pooled(runs: Iterable[RunData], ignore: Collection[str] = ()) -> list[tuple[RunData, ...]]:
    """Runs with the same settings, seeds and the keys in `ignore` apart. Runs whose settings differ are never pooled."""
    found: dict[str, list[RunData]] = {}
    for run in runs:
        settings = sorted((key, value) for key, value in run.settings.items() if key not in ignore)
        found.setdefault(repr(settings), []).append(run)
    return [tuple(members) for members in found.values()]


def differing(settings: Sequence[Mapping[str, Any]]) -> list[str]:
    """For each set of settings the values in which the sets differ, as "key=value, ..."; all empty for a single set."""
    keys = sorted({key for one in settings for key in one})
    uneven = [key for key in keys if any(one.get(key) != settings[0].get(key) for one in settings)]
    return [", ".join(f"{key}={one.get(key)}" for key in uneven) for one in settings]
