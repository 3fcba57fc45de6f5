"""What the installed `alfworld` package brings as plain files: domain, grammar, layouts, constants.

Nothing here imports `alfworld` itself, because that makes a cache folder and sets an environment variable. The package is only
located; its text files are read, and its two files of plain constants are run on their own.
"""

from __future__ import annotations

import functools
import importlib.util
import json
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Literal

from agentexp.errors import EngineError, MissingDependency
from agentexp.packages import version_of

Logic = Literal["new", "old"]

PLANS: tuple[int, ...] = tuple(100 * wing + n for wing in (0, 2, 3, 4) for n in range(1, 31))
"""Numbers of the 120 floor plans: kitchens 1-30, living rooms 201-230, bedrooms 301-330, bathrooms 401-430."""

# ALFWorld before 0.4, as embedded in the json_2.1.1 games: "put X in/on Y", "arrive at loc N", sinks clean, no help. We declare
# the differences instead of reading the games' own grammars, because the engine eval()s whatever a grammar says.
_OLD_DOMAIN = (
    (";(receptacleType ?r SinkType)", "(receptacleType ?r SinkType)"),
    (
        "\n(:action help\n    :parameters (?a - agent)\n    :precondition\n        ()\n"
        "    :effect\n        (and\n            (checked ?a)\n        )\n)\n",
        "",
    ),
)
_OLD_GRAMMAR = (
    ("You arrive at {r.name}. ", "You arrive at {lend.name}. "),
    ("You move the {o.name} to the {r.name}.", "You put the {o.name} in/on the {r.name}."),
    ('"move {o} to {r}"', '"put {o} in/on {r}"'),
)

# Receptacles that are `full` take nothing until something is taken out of them: both lines stand in the wheel's domain already,
# as comments. Only the precondition variant has such receptacles. Putting something in does not fill them again.
_OCCUPIED_DOMAIN = ((";(not (full ?r))", "(not (full ?r))"),)


@functools.cache
def folder() -> Path:
    """Folder of the installed `alfworld` package. Raises `MissingDependency` if there is none."""
    spec = importlib.util.find_spec("alfworld")
    if spec is None or not spec.submodule_search_locations:
        raise MissingDependency("env=alfworld needs the ALFWorld engine. Install it with: pip install 'agentexp[alfworld]'")
    return Path(spec.submodule_search_locations[0])


def require_engine() -> None:
    """Raise `MissingDependency` unless TextWorld and its planner library can be imported."""
    folder()
    for package in ("textworld", "fast_downward"):
        if importlib.util.find_spec(package) is None:
            raise MissingDependency(f"env=alfworld needs {package}. Install it with: pip install 'agentexp[alfworld]'")


def _read(name: str) -> str:
    path = folder() / name
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise EngineError(f"The installed alfworld package lacks {name}; reinstall it with 'agentexp[alfworld]'.") from error


def _replaced(text: str, changes: tuple[tuple[str, str], ...], what: str, setting: str = "env.logic=old") -> str:
    for old, new in changes:
        if old not in text:
            raise EngineError(f"{setting} cannot be derived: the installed alfworld's {what} does not contain {old!r}.")
        text = text.replace(old, new)
    return text


@functools.cache
def domain(logic: Logic, occupied: bool = False) -> str:
    """The PDDL domain. `old` is the wheel's domain with the declared differences undone.

    Args:
        logic: see `AlfWorld`.
        occupied: receptacles can be full.
    """
    text = _read("data/alfred.pddl")
    if occupied:
        text = _replaced(text, _OCCUPIED_DOMAIN, "domain", "env.variant=precondition")
    return text if logic == "new" else _replaced(text, _OLD_DOMAIN, "domain")


@functools.cache
def grammar(logic: Logic) -> str:
    """The text grammar, with its placeholder goal. The engine evaluates it as Python, so it only ever comes from the wheel."""
    text = _read("data/alfred.twl2")
    if logic == "new":
        return text
    text = _replaced(text, _OLD_GRAMMAR, "grammar")
    start = text.find("\naction help {")
    if start < 0:
        raise EngineError("env.logic=old cannot be derived: the installed alfworld's grammar has no help action.")
    end = text.index("\n}\n", start) + len("\n}\n")
    return text[:start] + text[end:]


@functools.cache
def _module(name: str) -> ModuleType:
    path = folder() / "gen" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"_agentexp_alfworld_{name}", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise EngineError(f"The installed alfworld package lacks gen/{name}.py; reinstall it with 'agentexp[alfworld]'.")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@functools.cache
def can_contain() -> dict[str, frozenset[str]]:
    """Receptacle type -> object types it may hold, of the household's furniture (no bowls or pots)."""
    constants = _module("constants")
    movable = set(constants.MOVABLE_RECEPTACLES)
    table = constants.VAL_RECEPTACLE_OBJECTS
    return {place: frozenset(things) for place, things in sorted(table.items()) if place not in movable}


@functools.cache
def can_be() -> dict[str, frozenset[str]]:
    """Property (Heatable, Coolable, Cleanable, Sliceable, Toggleable) -> object types that have it."""
    return {name: frozenset(things) for name, things in sorted(_module("constants").VAL_ACTION_OBJECTS.items())}


@functools.cache
def movable_receptacles() -> frozenset[str]:
    """Object types that could hold other things."""
    return frozenset(_module("constants").MOVABLE_RECEPTACLES)


def goal_pddl(kind: str, thing: str, place: str, lamp: str) -> str:
    """The goal of a task type in PDDL, from the wheel's own goal library."""
    text: str = _module("goal_library").gdict[kind]["pddl"]
    return text.format(obj=thing, recep=place, toggle=lamp).replace("#", "-")


def goal_texts(kind: str) -> list[str]:
    """The wordings of a task type, with {obj}, {recep} and {toggle}."""
    return list(_module("goal_library").gdict[kind]["templates"])


@dataclass(frozen=True, slots=True)
class Layout:
    """One floor plan: named furniture with the pose (x, z, rotation, horizon) to use it from, and the object types in it."""

    plan: int
    furniture: tuple[tuple[str, tuple[float, float, int, int]], ...]
    things: tuple[str, ...]


@functools.cache
def layout(plan: int) -> Layout:
    """Read one floor plan of `PLANS`."""
    furniture = json.loads(_read(f"gen/layouts/FloorPlan{plan}-openable.json"))
    things = json.loads(_read(f"gen/layouts/FloorPlan{plan}-objects.json"))
    poses = []
    for name, (x, z, turn, tilt) in sorted(furniture.items()):
        poses.append((name, (float(x), float(z), round(turn), round(tilt))))
    return Layout(plan, tuple(poses), tuple(sorted(set(things))))


def versions() -> dict[str, str]:
    """Installed versions; "missing" where a package is not installed."""
    return {package: version_of(package, "missing") for package in ("alfworld", "textworld", "fast-downward-textworld")}
