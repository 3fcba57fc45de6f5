"""The run folders of an export: what was asked for, what is there, and what is missing."""

from __future__ import annotations

import importlib
import logging
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentexp.errors import MissingDependency, UserError
from agentexp.records import Record
from agentexp.store import episode_files, index, read_episodes, read_json

Runs = Path | str | Iterable[Path | str]

log = logging.getLogger(__name__)

_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Source:
    """One run folder.

    Attributes:
        name: unique among the runs of one export: the folder's path below the folder that they share; the folder's own name
            where there is only one.
        folder: the run folder.
        manifest: `manifest.json`; empty where there is none.
        planned: task keys of the plan; those found where there is no manifest.
        recorded: planned episodes that have a record, harness errors among them.
        harness_errors: planned episodes whose only records are harness errors.
    """

    name: str
    folder: Path
    manifest: Mapping[str, Any]
    planned: tuple[str, ...]
    recorded: int
    harness_errors: int

    @property
    def partial(self) -> bool | None:
        """Planned episodes have no record yet; None where nothing says what was planned."""
        return self.recorded < len(self.planned) if self.manifest else None

    def episodes(self) -> Iterator[Record]:
        """The records that count, one per task key, in the order of the plan."""
        return read_episodes(self.folder, list(self.planned))


def find_sources(runs: Runs) -> list[Source]:
    """The run folders among or below `runs`, each once.

    Args:
        runs: a run folder, a folder above run folders, or several of them.

    Raises:
        UserError: a path does not exist or holds no run.
    """
    roots = [Path(run) for run in ([runs] if isinstance(runs, (Path, str)) else runs)]
    if not roots:
        raise UserError("No run folder was given. Name one or more run folders, or a folder above them.")
    folders = list(dict.fromkeys(folder.resolve() for root in roots for folder in _run_folders(root)))
    found, problems = [], list[UserError]()
    for name, folder in zip(_names(folders), folders, strict=True):
        try:
            found.append(_source(name, folder))
        except UserError as error:
            problems.append(error)
    if not found:
        raise problems[0]
    for problem in problems:
        log.warning("Left out: %s", problem)
    return found


def _run_folders(root: Path) -> list[Path]:
    if not root.is_dir():
        raise UserError(f"{root} is not a folder. Give a run folder, or a folder above run folders.")
    if (root / "manifest.json").is_file() or episode_files(root):
        return [root]
    found = sorted({file.parent for file in root.rglob("manifest.json")})
    if not found:
        raise UserError(
            f"{root} holds no run (no manifest.json or episodes.jsonl, nor below it). Give the folder that the run printed."
        )
    return found


def _names(folders: list[Path]) -> list[str]:
    if len(folders) == 1:
        return [folders[0].name]
    shared = os.path.commonpath([folder.parent for folder in folders])
    return [folder.relative_to(shared).as_posix() for folder in folders]


def _source(name: str, folder: Path) -> Source:
    manifest, found = read_json(folder / "manifest.json") or {}, index(folder)
    planned = tuple(manifest.get("planned", ())) if manifest else tuple(found)
    statuses = [found[key].status for key in planned if key in found]
    return Source(name, folder, manifest, planned, len(statuses), statuses.count("error"))


def key_of(record: Mapping[str, Any]) -> str:
    """The task key of a record."""
    task = record["task"]
    return str(record.get("key") or f"{instance_of(task)}#seed{task.get('seed', 0)}.{task.get('repeat', 0)}")


def instance_of(task: Mapping[str, Any]) -> str:
    """The instance of a task: the same for all seeds, repeats, paradigms and models."""
    return f"{task['env']}/{task['split']}/{task['id']}"


def result_of(record: Mapping[str, Any]) -> tuple[bool, float] | tuple[None, None]:
    """(success, score); (None, None) where the episode has no result.

    That is a harness error, which says nothing about the agent, and a phase without success criterion (explore, map).
    """
    if record["status"] != "ok" or record.get("end_reason") == "completed":
        return None, None
    return bool(record.get("success")), float(record.get("score") or 0.0)


def encodable(text: str) -> str:
    r"""`text` as it can be written in UTF-8: a lone surrogate, which cannot, becomes its escape (`\ud800`), six characters."""
    return _SURROGATE.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


def all_encodable(value: Any) -> Any:
    """JSON value whose texts are `encodable`."""
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, Mapping):
        return {encodable(str(key)): all_encodable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [all_encodable(item) for item in value]
    return value


def optional(module: str, package: str, extra: str, instead: str = "") -> Any:
    """Import a module of an optional package.

    Args:
        module: what to import.
        package: what pip calls it.
        extra: of agentexp, which installs it.
        instead: what works without it.

    Raises:
        MissingDependency: it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != module.partition(".")[0]:
            raise
        raise MissingDependency(
            f"This export needs {package}, which is not installed. "
            f"Install it with: pip install 'agentexp[{extra}]' (or pip install {package}).{' ' + instead if instead else ''}"
        ) from error
