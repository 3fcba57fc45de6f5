"""What a component of each config group has to be; a `_target_` of another kind is refused before anything of it is called."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from typing import Any

from agentexp.errors import UserError

_NAMES = {
    "Env": ("an environment", "env"),
    "Model": ("a model", "model"),
    "Paradigm": ("a paradigm", "paradigm"),
    "Tracker": ("a logger", "logger"),
    "Stopping": ("a stop rule", "stopping"),
    "VoxelWorld": ("a voxel world", "world"),
    "Explorer": ("an explorer", "method"),
    "Navigator": ("a navigator", "method"),
    "EpisodeMemory": ("a memory", "memory"),
    "Scheduler": ("a scheduler", "scheduler"),
    "Controller": ("a controller", "controller"),
    "Encoder": ("an encoder", "encoder"),
    "VisionModel": ("a vision model", "vision"),
    "SparseTask": ("a sparse task", "task"),
    "ParseSettings": ("the parser's settings", "parsing"),
    "Trainer": ("a trainer", "trainer"),
}
"""Protocol or class -> what it is called, and the config group of its choices."""


def check_target(target: Callable[..., Any], kind: type, path: str, name: str) -> None:
    """Refuse a class whose instances cannot be of this kind, and a function whose annotation does not promise one.

    Raises:
        UserError: it names what is missing, the protocol and the choices.
    """
    made = target if inspect.isclass(target) else _returned(target)
    if made is kind and made is not target:
        return
    if made is None or (made is kind and _is_protocol(kind)):
        missing = [""]
    else:
        missing = _missing_methods(made, kind) if _is_protocol(kind) else [] if issubclass(made, kind) else [""]
    if missing:
        raise UserError(_sentence(kind, missing, path, name))


def _returned(function: Callable[..., Any]) -> type | None:
    """The class that a function says it returns."""
    try:
        made = typing.get_type_hints(function).get("return")
    except (NameError, TypeError):
        return None
    return made if inspect.isclass(made) else None


def check_component(component: Any, kind: type, path: str, name: str) -> None:
    """Refuse a constructed component that is not of this kind. Raises `UserError` as `check_target` does."""
    if not _is_protocol(kind):
        missing = [] if isinstance(component, kind) else [""]
    else:
        attributes = [name for name in typing.get_type_hints(kind) if not hasattr(component, name)]
        missing = [*_missing_methods(type(component), kind), *attributes]
    if missing:
        raise UserError(_sentence(kind, missing, path, name))


def kind_of(annotation: Any) -> type | None:
    """The protocol in the annotation of a nested component (`Stopping | None`); None where there is none of ours."""
    for candidate in (annotation, *typing.get_args(annotation)):
        if inspect.isclass(candidate) and candidate.__name__ in _NAMES and candidate.__module__.startswith("agentexp."):
            return candidate
    return None


def _is_protocol(kind: type) -> bool:
    return bool(getattr(kind, "_is_protocol", False))


def _missing_methods(found: type, kind: type) -> list[str]:
    wanted = [name for name, value in vars(kind).items() if inspect.isfunction(value) and _is_ours(name)]
    return [f"{name}()" for name in wanted if not any(callable(vars(base).get(name)) for base in found.__mro__)]


def _is_ours(name: str) -> bool:
    return not name.startswith("_") or name == "__call__"


def _sentence(kind: type, missing: list[str], path: str, name: str) -> str:
    from agentexp.launch import groups

    what, group = _NAMES[kind.__name__]
    lacks = f": it has no {', '.join(missing)}" if any(missing) else ""
    file = kind.__module__.replace(".", "/") + ".py"
    rule = f"the protocol {kind.__name__}" if _is_protocol(kind) else f"the class {kind.__name__}"
    choices = ", ".join(groups().get(group, ()))
    return f"{path}._target_={name} is not {what}{lacks}. It must follow {rule} in {file}. Choices of {group}: {choices}."
