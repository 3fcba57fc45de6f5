"""The official games, from either of their two forms on disk, checked for completeness.

* `alfworld-download`'s folders: SPLIT/TASK/TRIAL/{game.tw-pddl, traj_data.json};
* packed: SPLIT.jsonl.xz (or .jsonl), one game a line: id, task_type, task, pddl_problem, ...

Of a game file only the problem and the task sentence are used. The engine would evaluate its grammar, so it never sees it.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentexp.envs.alfworld.goals import KINDS
from agentexp.errors import UserError

OFFICIAL = {"train": 3553, "valid_seen": 140, "valid_unseen": 134, "valid_train": 200}
"""Solvable games of json_2.1.1 without sliced things and movable receptacles, per split."""

_TASK = re.compile(r"Your task is to: ([^\"\\]*)")
_ALLOWED = re.compile(r"[A-Za-z0-9 ,.'()-]+")


@dataclass(frozen=True, slots=True)
class Game:
    """One game. The problem is kept compressed: the train split is 110 MB of text."""

    id: str
    kind: str
    task: str
    plan: int
    digest: str
    packed: bytes

    @property
    def problem(self) -> str:
        """The PDDL problem."""
        return zlib.decompress(self.packed).decode()


def digest(problem: str) -> str:
    """Short hash of a problem: tells a changed data set from an unchanged one."""
    return hashlib.blake2b(problem.encode(), digest_size=6).hexdigest()


def make_game(ident: str, task: str, problem: str, source: str) -> Game:
    """Build a game from its parts, which come from a file that nobody vouches for.

    Args:
        ident: TASK/TRIAL, for example "pick_and_place_simple-Mug-None-Desk-308/trial_T20190908_125200_737896".
        source: file name for messages.

    Raises:
        UserError: the parts do not look like a game.
    """
    kind = ident.split("-", 1)[0]
    plan = re.search(r"-(\d+)/", ident)
    if kind not in KINDS or plan is None:
        raise UserError(f"env.data: {source} holds a game with the unknown name {ident!r}.")
    task = task.strip().rstrip(".")
    if not _ALLOWED.fullmatch(task):
        raise UserError(f"env.data: {source}: the task of {ident} has characters outside letters, digits and ,.'()- .")
    if "(:init" not in problem or "(:goal" not in problem:
        raise UserError(f"env.data: {source}: the problem of {ident} is cut off.")
    return Game(ident, kind, task, int(plan.group(1)), digest(problem), zlib.compress(problem.encode(), 1))


def available(data: Path) -> list[str]:
    """Official split names in their usual order, then other splits that the folder has."""
    root = _root(data)
    found = {path.name for path in root.iterdir() if path.is_dir() and any(path.glob("*/*/game.tw-pddl"))}
    found |= {path.name.split(".jsonl")[0] for path in [*root.glob("*.jsonl"), *root.glob("*.jsonl.xz")]}
    return [*OFFICIAL, *sorted(found - set(OFFICIAL))]


def load(data: Path, split: str, allow_partial: bool) -> list[Game]:
    """All games of a split, sorted by id.

    Raises:
        UserError: the split is missing, unreadable, or has another number of games than the official one.
    """
    root = _root(data)
    packed = [path for path in (root / f"{split}.jsonl.xz", root / f"{split}.jsonl") if path.is_file()]
    source = packed[0] if packed else root / split
    if packed:
        games = list(_from_lines(source, split))
    elif source.is_dir():
        games = list(_from_folder(source))
    else:
        raise UserError(
            f"env.data: there is no split {split!r} in {root} (neither {split}.jsonl.xz nor a folder {split}/). "
            f"Get the games with alfworld-download, or leave env.data empty for generated games."
        )
    expected = OFFICIAL.get(split)
    if not games or (expected is not None and len(games) != expected and not allow_partial):
        wanted = expected if expected is not None else "at least 1"
        raise UserError(
            f"env.data: {source} has {len(games)} games of split {split}, expected {wanted}. Get the complete data with "
            f"alfworld-download, or set env.allow_partial=true to use what is there."
        )
    if len({game.id for game in games}) != len(games):
        raise UserError(f"env.data: {source} holds the same game twice.")
    return sorted(games, key=lambda game: game.id)


def _root(data: Path) -> Path:
    """The folder that holds the splits: `data` itself or its json_2.1.1."""
    if not data.is_dir():
        raise UserError(f"env.data={data} is not a folder. Name the folder of alfworld-download, or leave it empty.")
    inner = data / "json_2.1.1"
    holds_splits = any((data / f"{split}{end}").exists() for split in OFFICIAL for end in ("", ".jsonl", ".jsonl.xz"))
    return inner if inner.is_dir() and not holds_splits else data


def _from_lines(path: Path, split: str) -> Iterator[Game]:
    number = 0
    try:
        with lzma.open(path, "rt", encoding="utf-8") if path.suffix == ".xz" else path.open(encoding="utf-8") as lines:
            for line in lines:
                row: dict[str, Any] = json.loads(line)
                ident = str(row["id"]).removeprefix(f"{split}/")
                yield make_game(ident, str(row["task"]), str(row["pddl_problem"]), path.name)
                number += 1
    except (lzma.LZMAError, EOFError, UnicodeDecodeError, json.JSONDecodeError, KeyError, TypeError) as error:
        found = f"{number} of {OFFICIAL[split]} games" if split in OFFICIAL else f"{number} games"
        raise UserError(f"env.data: {path} cannot be read after {found}: {type(error).__name__}: {error}.") from error


def _from_folder(folder: Path) -> Iterator[Game]:
    for path in sorted(folder.glob("*/*/game.tw-pddl")):
        ident = f"{path.parent.parent.name}/{path.parent.name}"
        if "movable" in ident or "Sliced" in ident or not (path.parent / "traj_data.json").is_file():
            continue
        try:
            game = json.loads(path.read_text(encoding="utf-8"))
            if not game["solvable"]:
                continue
            task = _TASK.search(game["grammar"])
            if task is None:
                raise UserError(f"env.data: {path} names no task.")
            yield make_game(ident, task.group(1), game["pddl_problem"], str(path))
        except (OSError, UnicodeDecodeError, json.JSONDecodeError, KeyError, TypeError) as error:
            raise UserError(f"env.data: {path} cannot be read: {type(error).__name__}: {error}.") from error
