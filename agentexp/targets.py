"""From `_target_` to an object, for the command line and for worker processes, which start fast: nothing heavy is imported."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from agentexp.errors import MissingDependency, UserError


def locate(name: str, path: str = "") -> Callable[..., Any]:
    """Import what a dotted name stands for.

    Args:
        name: "package.module.Class".
        path: the component's place in the config, for messages.

    Raises:
        UserError: there is no such class or function.
        MissingDependency: its module needs a package that is not installed.
    """
    what = f"{path}._target_={name}" if path else f"_target_={name}"
    module_name, _, attribute = name.rpartition(".")
    if not module_name or "" in module_name.split("."):
        raise UserError(f"{what} must be a dotted name such as agentexp.envs.toy.ToyRooms.")
    try:
        found = getattr(import_module(module_name), attribute, None)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if f"{module_name}.".startswith(f"{missing}."):
            raise UserError(
                f"{what} cannot be imported: there is no module {missing}. Install it, or name its folder in PYTHONPATH."
            ) from error
        raise MissingDependency(f"{what} needs the package {missing}, which is not installed.") from error
    except ImportError as error:
        raise UserError(f"{what} cannot be imported: {error}.") from error
    if not callable(found):
        raise UserError(f"{what} cannot be imported: module {module_name} has no class or function {attribute!r}.")
    return found  # type: ignore[no-any-return]


def parameters(target: Callable[..., Any], what: str) -> Mapping[str, inspect.Parameter]:
    """The settings that a class or function takes. Raises `UserError` where it does not say (built-in functions)."""
    try:
        return inspect.signature(target).parameters
    except ValueError as error:
        raise UserError(f"{what} is not a component: it does not say which settings it takes.") from error


def build(spec: Mapping[str, Any]) -> Any:
    """Instantiate a plain configuration: `_target_` is a dotted name, the other keys are keyword arguments.

    Nested mappings with a `_target_` of their own are built first (wrappers around a world). This is the part of Hydra's
    `instantiate` that agentexp needs.

    Raises:
        UserError: the target does not exist or does not take these arguments.
        MissingDependency: the target's module needs a package that is not installed.
    """
    if "_target_" not in spec:
        raise UserError(f"The environment's configuration has no _target_ key; it has {sorted(spec)}.")
    target = locate(str(spec["_target_"]))
    known = parameters(target, f"_target_={spec['_target_']}")
    arguments = {key: _nested(value) for key, value in spec.items() if not (key.startswith("_") and key.endswith("_"))}
    try:
        inspect.signature(target).bind(**arguments)
    except TypeError as error:
        raise UserError(f"{spec['_target_']} does not take these settings ({error}); it knows: {', '.join(known)}.") from None
    return target(**arguments)


def _nested(value: Any) -> Any:
    if isinstance(value, Mapping):
        return build(value) if "_target_" in value else {key: _nested(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_nested(item) for item in value]
    return value
