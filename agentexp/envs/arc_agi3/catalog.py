"""Which games there are: splits and tasks, listed without executing any game.

train   our own games with belts, portals and trails, in three turns each: nine, for stage 1, whatever is tested
dev     our own game with flooding, in three turns
test    own: our six other games; folder or online: every game there
main6   folder or online: the six games of MAP's table 2
other19 folder or online: the nineteen of its table 7
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from math import ceil
from pathlib import Path
from typing import Any

from agentexp.core import Task
from agentexp.envs.arc_agi3 import games
from agentexp.errors import UserError

NAME = "arc_agi3"
MAIN6 = ("tu93", "sb26", "vc33", "re86", "ar25", "wa30")
OTHER19 = (
    *("bp35", "cd82", "cn04", "dc22", "ft09", "g50t", "ka59", "lf52", "lp85", "ls20", "m0r0", "r11l", "s5i5", "sk48", "sp80"),
    *("su15", "tn36", "tr87", "sc25"),
)
WITHOUT_BASELINE = 80  # actions of a game that nobody has published a baseline for: what public agents allow


@cache
def published_baselines() -> dict[str, list[int]]:
    """Actions of the human baseline by level, by game version (ARC Prize's metadata; they differ between versions)."""
    text = resources.files("agentexp.envs.arc_agi3").joinpath("baselines.json").read_text(encoding="utf-8")
    found: dict[str, list[int]] = json.loads(text)
    return found


def splits(source: str) -> tuple[str, ...]:
    """Names of the splits of a source."""
    return ("train", "dev", "test") if source == "own" else ("train", "dev", "test", "main6", "other19")


def own_tasks(split: str, cutoff: float | None) -> list[Task]:
    """Tasks of our own games."""
    kinds = {"train": games.TRAIN, "dev": games.DEV, "test": games.TEST}[split]
    found = []
    for game_id in games.game_ids(kinds, ("",) if split == "test" else games.TURNS):
        puzzle = games.make(game_id)
        found.append(_task(game_id, split, "own", puzzle.title, puzzle.baseline, cutoff))
    return found


def folder_tasks(folder: Path, split: str, only: Sequence[str], cutoff: float | None) -> list[Task]:
    """Tasks of a folder with one folder per game: metadata.json and the source, at any depth.

    Raises:
        UserError: there is no game, or a metadata.json cannot be read.
    """
    found = []
    for file in sorted(folder.rglob("metadata.json")):
        data = read_metadata(file)
        game_id = str(data["game_id"])
        more = {"folder": str(file.parent.relative_to(folder)), "class": class_name(data)}
        found.append(_task(game_id, split, "folder", str(data.get("title") or game_id), baseline_of(data), cutoff, more))
    if not found:
        raise UserError(f"env.games={folder} holds no game: each needs a folder with metadata.json and its source.")
    return chosen(found, split, only)


def online_tasks(listed: Sequence[Mapping[str, Any]], split: str, only: Sequence[str], cutoff: float | None) -> list[Task]:
    """Tasks of the online API, from its list of games."""
    rows = sorted(listed, key=lambda row: str(row.get("game_id", "")))
    found = [
        _task(str(row["game_id"]), split, "online", str(row.get("title") or row["game_id"]), baseline_of(row), cutoff)
        for row in rows
        if row.get("game_id")
    ]
    return chosen(found, split, only)


def read_metadata(file: Path) -> dict[str, Any]:
    """A game's metadata.json."""
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{file} is not readable JSON: {error}. Every game of env.games needs one.") from error
    if not isinstance(data, dict) or not isinstance(data.get("game_id"), str):
        raise UserError(f"{file} has no game_id.")
    return data


def class_name(data: Mapping[str, Any]) -> str:
    """The class of a game: as stated, or the first four letters of its id, capitalised."""
    stated = data.get("class_name")
    first = str(data["game_id"])[:4]
    return str(stated) if stated else first[:1].upper() + first[1:]


def baseline_of(data: Mapping[str, Any]) -> list[int]:
    """The human baseline in a game's metadata, or the published one of that very version; empty where there is none."""
    stated = data.get("baseline_actions") or published_baselines().get(str(data["game_id"])) or []
    return [int(n) for n in stated]


def chosen(found: list[Task], split: str, only: Sequence[str]) -> list[Task]:
    """The tasks of a split, in its order, further cut to `env.only`.

    Raises:
        UserError: nothing is left, or two versions of a game are.
    """
    wanted = {"main6": MAIN6, "other19": OTHER19}.get(split)
    if wanted is not None:
        order = {name: i for i, name in enumerate(wanted)}
        found = sorted((task for task in found if short(task.id) in order), key=lambda task: order[short(task.id)])
    if only:
        names = [name.lower() for name in only]
        found = [task for task in found if task.id.lower() in names or short(task.id) in names]
    if not found:
        what = f"env.only={list(only)}" if only else f"env.split={split}"
        raise UserError(f"{what} selects none of the games that are there; choose split test to see all of them.")
    return found


def short(game_id: str) -> str:
    """The game's name without its version: "tu93"."""
    return game_id.partition("-")[0].lower()


def _task(
    game_id: str,
    split: str,
    source: str,
    title: str,
    baseline: Sequence[int],
    cutoff: float | None,
    more: Mapping[str, Any] | None = None,
) -> Task:
    spec: dict[str, Any] = {"source": source, "game": game_id, "title": title, "baseline": list(baseline), **(more or {})}
    if cutoff is not None:
        spec["acting_steps"] = sum(ceil(cutoff * n) for n in baseline) or WITHOUT_BASELINE
    return Task(game_id, NAME, split, kind=short(game_id), spec=spec)
