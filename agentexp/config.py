"""From a composed Hydra config to checked, constructed components.

The schema of a component is the signature of its constructor: every key is checked against the parameter names and every
value against the annotations, so that a plug-in brings its own schema and a misspelt or mistyped setting is refused with the
nearest match instead of being carried along. The top level is checked against `RootSettings` and `EnvSettings`.
"""

from __future__ import annotations

import difflib
import hashlib
import inspect
import json
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, Literal

from agentexp import targets
from agentexp.errors import UserError
from agentexp.kinds import check_component, check_target, kind_of
from agentexp.limits import Limits

Json = Any


@dataclass(frozen=True, slots=True)
class BudgetSettings:
    """Environment steps per phase (`budget`)."""

    mapping: int
    acting: int


@dataclass(frozen=True, slots=True)
class EnvSettings:
    """Keys of `env` that belong to the runner and are not passed to the world's constructor."""

    split: str
    limit: int | None = None
    seed: int = 0
    step_timeout: float = 60.0
    reset_timeout: float = 180.0
    in_process: bool = False
    max_episodes_per_worker: int | None = None
    budget: BudgetSettings | None = None


@dataclass(frozen=True, slots=True)
class RootSettings:
    """Top-level keys of the running commands, without the component groups."""

    command: str
    output_root: str
    seed: int
    repeats: int
    concurrency: int | None
    workers: int | None
    max_steps: int | None
    resume: Literal["refuse", "ignore"]
    progress: Literal["auto", "rich", "plain", "off"]
    limits: Limits
    budget: BudgetSettings
    maps: str | None = None
    prompts: str | None = None
    shard: str | None = None


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """Keys of `model` that the prompts use and that are not passed to the model's constructor."""

    style: Literal["full", "compact"] = "full"
    show_admissible: bool | None = None


REQUIRED = ("paradigm", "env", "model", "parsing", "logger")
COMPONENTS = ("paradigm", "env", "model", "stopping", "parsing", "logger", "explore")
ENV_KEYS = tuple(f.name for f in fields(EnvSettings))
MODEL_KEYS = tuple(f.name for f in fields(ModelSettings))


@dataclass(slots=True)
class Overrides:
    """The overrides as typed, by key: what a value was before Hydra's grammar gave it a type ("1e5" is not 100000.0)."""

    raw: dict[str, str] = field(default_factory=dict)

    @staticmethod
    def of(lines: Iterable[str]) -> Overrides:
        """From lines such as "model.name=1e5"."""
        raw = {}
        for line in lines:
            key, found, value = line.partition("=")
            if found:
                raw[key.lstrip("+~")] = value
        return Overrides(raw)


def nearest(word: str, choices: Iterable[str]) -> str:
    """A sentence that names the closest choice (with a leading blank), or an empty string."""
    found = difflib.get_close_matches(word, list(choices), n=1, cutoff=0.6)
    return f" Did you mean {found[0]}?" if found else ""


def check_root(config: Mapping[str, Json], overrides: Overrides) -> RootSettings:
    """Check the top-level keys. Components are checked by `build`.

    Raises:
        UserError: unknown key, missing value or wrong type, with the nearest valid key or the valid choices.
    """
    known = {f.name for f in fields(RootSettings)} | set(COMPONENTS) | {"roles"}
    for key in config:
        if key not in known:
            raise UserError(f"'{key}' is not a setting.{nearest(key, known)} Valid keys: {', '.join(sorted(known))}.")
    for key in REQUIRED:
        if key not in config:
            raise UserError(f"{key} has no value. Choose one: {key}=<choice>; `agentexp eval --help` lists the choices.")
    plain = {key: value for key, value in config.items() if key not in COMPONENTS and key != "roles"}
    settings: RootSettings = checked_dataclass(RootSettings, plain, "", overrides)
    if settings.repeats < 1:
        raise UserError("repeats must be at least 1.")
    _check_positive(settings, ("concurrency", "workers"), "")
    _check_positive(settings.limits, [f.name for f in fields(Limits) if f.name != "context"], "limits.")
    if settings.budget.mapping < 0 or settings.budget.acting < 1:
        raise UserError("budget.mapping must be at least 0 and budget.acting at least 1.")
    return settings


def parse_shard(text: str | None) -> tuple[int, int] | None:
    """`shard=i/n` (1-based, as test runners count) as (i - 1, n).

    Raises:
        UserError: it is not of this form, or i is not one of 1 to n.
    """
    if text is None:
        return None
    found = re.fullmatch(r"(\d+)/(\d+)", text)
    if found is None or not 1 <= int(found[1]) <= int(found[2]):
        raise UserError(f"shard={text} is not valid: write shard=i/n with i from 1 to n, for example shard=1/4.")
    return int(found[1]) - 1, int(found[2])


def split_env(node: Mapping[str, Json], overrides: Overrides) -> tuple[EnvSettings, dict[str, Json]]:
    """Separate the runner's keys of `env` from the world's constructor arguments."""
    ours = {key: value for key, value in node.items() if key in ENV_KEYS}
    spec = {key: value for key, value in node.items() if key not in ENV_KEYS}
    settings: EnvSettings = checked_dataclass(EnvSettings, ours, "env", overrides)
    if settings.limit is not None and settings.limit < 1:
        raise UserError("env.limit must be at least 1, or null for the whole split.")
    _check_positive(settings, ("step_timeout", "reset_timeout", "max_episodes_per_worker"), "env.")
    return settings, spec


def _check_positive(settings: Any, names: Iterable[str], prefix: str) -> None:
    hints = typing.get_type_hints(type(settings))
    for name in names:
        value = getattr(settings, name)
        if value is not None and not value > 0:
            null = ", or null" if types.NoneType in typing.get_args(hints[name]) else ""
            raise UserError(f"{prefix}{name} must be greater than 0{null}, not {value}.")


def split_model(node: Json, path: str, overrides: Overrides) -> dict[str, Json]:
    """The model's constructor arguments; the prompts' keys are checked and taken out."""
    if not isinstance(node, Mapping):
        raise UserError(f"{path} must be a model, for example +model@{path}=openai.")
    checked_dataclass(ModelSettings, {key: value for key, value in node.items() if key in MODEL_KEYS}, path, overrides)
    return {key: value for key, value in node.items() if key not in MODEL_KEYS}


def build(node: Json, path: str, overrides: Overrides, kind: type | None = None) -> Any:
    """Check `node` against the signature of its `_target_` and construct it; nested components first.

    Args:
        kind: the protocol or class that the component has to follow, see `agentexp.kinds`; None: any.

    Raises:
        UserError: unknown key, wrong type, missing value, or a `_target_` that cannot be imported or is of another kind.
    """
    component = targets.build(checked(node, path, overrides, kind))
    if kind is not None:
        check_component(component, kind, path, str(node["_target_"]))
    return component


def checked(node: Json, path: str, overrides: Overrides, kind: type | None = None) -> dict[str, Json]:
    """The component's config with every value checked and text restored, ready for `targets.build` (also in a worker)."""
    if not isinstance(node, Mapping) or "_target_" not in node:
        raise UserError(f"{path} must be a component with a _target_ (a Python class), for example {path}=<choice>.")
    target = targets.locate(str(node["_target_"]), path)
    if kind is not None:
        check_target(target, kind, path, str(node["_target_"]))
    parameters = targets.parameters(target, f"{path}._target_={node['_target_']}")
    hints = _hints(target)
    takes_any = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
    result: dict[str, Json] = {"_target_": node["_target_"]}
    for key, value in node.items():
        if key == "_target_":
            continue
        where = f"{path}.{key}"
        if key not in parameters:
            if takes_any:
                result[key] = value
                continue
            valid = [*parameters, *(ENV_KEYS if path == "env" else ())]
            hint = nearest(str(key), valid)
            raise UserError(f"'{where}' is not a setting of {node['_target_']}.{hint} Valid keys: {', '.join(sorted(valid))}.")
        if isinstance(value, Mapping) and "_target_" in value:
            result[key] = checked(value, where, overrides, kind_of(hints.get(key)))
        else:
            result[key] = check_value(value, hints.get(key, Any), where, overrides)
    for key, parameter in parameters.items():
        required = parameter.default is inspect.Parameter.empty and parameter.kind not in (
            inspect.Parameter.VAR_KEYWORD,
            inspect.Parameter.VAR_POSITIONAL,
        )
        if required and key not in result:
            raise UserError(f"{path}.{key} has no value. Set {path}.{key}=...")
    return result


def _hints(target: Callable[..., Any]) -> dict[str, Any]:
    made_of_fields = "__dataclass_fields__" in getattr(target, "__dict__", {})
    try:
        if made_of_fields:  # inherited ones may be of types that only the module of the parent class knows
            return typing.get_type_hints(target)
        return typing.get_type_hints(target.__init__ if inspect.isclass(target) else target)
    except (NameError, TypeError):  # annotations of foreign code that do not resolve: its settings are not checked by type
        return {}


def check_value(value: Json, annotation: Any, path: str, overrides: Overrides) -> Json:
    """Check one value against an annotation, strictly ("abc" is no int, 3 is no str), and return it.

    A string setting that Hydra's grammar read as a number gets its text back from the command line.
    """
    from pydantic import TypeAdapter, ValidationError

    if value == "???":
        raise UserError(f"{path} has no value. Set {path}=...")
    if value is None and types.NoneType in typing.get_args(annotation):  # also where the rest is a class: no component
        return None
    if not isinstance(value, str) and value is not None and _accepts_text(annotation) and path in overrides.raw:
        text = overrides.raw[path]
        if not isinstance(value, (list, dict)) and not _valid(value, annotation):
            value = text.strip("'\"")
    try:
        TypeAdapter(annotation).validate_json(json.dumps(value), strict=True)
    except ValidationError as error:
        raise UserError(f"{path}={_shown(value)} is not valid: {_wanted(annotation, error)}.") from error
    except TypeError as error:
        raise UserError(f"{path}={_shown(value)} is not a JSON value: {error}.") from error
    return value


def _valid(value: Json, annotation: Any) -> bool:
    from pydantic import TypeAdapter, ValidationError

    try:
        TypeAdapter(annotation).validate_json(json.dumps(value), strict=True)
    except ValidationError:
        return False
    return True


def _accepts_text(annotation: Any) -> bool:
    if annotation is str or typing.get_origin(annotation) is Literal:
        return True
    return any(_accepts_text(a) for a in typing.get_args(annotation) if a is not types.NoneType)


def _wanted(annotation: Any, error: Any) -> str:
    plain = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}
    if annotation in plain:
        return f"it must be {plain[annotation]}"
    first = error.errors()[0]
    text = str(first["msg"])
    place = ".".join(str(p) for p in first["loc"] if isinstance(p, int) or p not in ("int", "str", "float", "bool"))
    return (text[0].lower() + text[1:]) + (f" (at {place})" if place else "")


def _shown(value: Json) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else text[:77] + "..."


def checked_dataclass(cls: type[Any], node: Mapping[str, Json], path: str, overrides: Overrides) -> Any:
    """Check a mapping against a dataclass, nested ones too, and construct it. Raises `UserError` as `check_root` does."""
    hints = typing.get_type_hints(cls)
    names = [f.name for f in fields(cls)]
    values: dict[str, Any] = {}
    for key, value in node.items():
        where = f"{path}.{key}" if path else key
        if key not in names:
            raise UserError(f"'{where}' is not a setting.{nearest(key, names)} Valid keys: {', '.join(names)}.")
        nested = _nested(hints[key])
        if nested is not None and isinstance(value, Mapping):
            values[key] = checked_dataclass(nested, value, where, overrides)
        else:
            values[key] = check_value(value, hints[key], where, overrides)
    for f in fields(cls):
        if f.name not in values and f.default is MISSING and f.default_factory is MISSING:
            where = f"{path}.{f.name}" if path else f.name
            raise UserError(f"{where} has no value. Set {where}=...")
    return cls(**values)


def _nested(annotation: Any) -> type[Any] | None:
    for candidate in (annotation, *typing.get_args(annotation)):
        if isinstance(candidate, type) and hasattr(candidate, "__dataclass_fields__"):
            return candidate
    return None


def fingerprint(value: Json) -> str:
    """Eight hex digits of a JSON value, independent of key order."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:8]
