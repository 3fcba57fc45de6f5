"""The JSON files of a run folder as readers meet them: whole, or refused in one sentence."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentexp.errors import UserError

MOST_BYTES = 1 << 30  # of a file that is read at once

_MEND = "Remove it, or restore it from a copy."
_SHAPES: Mapping[str, Mapping[str, type]] = {
    "manifest.json": {
        **dict.fromkeys(("command", "env", "paradigm", "model", "split"), str),
        **dict.fromkeys(("planned", "seeds"), list),
        **dict.fromkeys(("config", "code", "env_versions", "model_versions", "prompts", "task_list", "packages"), dict),
        **dict.fromkeys(("config.paradigm", "config.env", "config.model", "config.roles", "config.parsing"), dict),
        **dict.fromkeys(("config.limits", "config.budget", "config.stopping"), dict),
    },
    "summary.json": {**dict.fromkeys(("finished", "planned", "harness_errors"), int), "end_reasons": dict, "warnings": list},
    "artefacts.json": {"k_g": dict, "k_g_from": dict},
    "kg.json": {"k_g": dict, "provenance": dict},
    "result.json": {"episodes": list},
}
"""What the readers of a run folder rely on: dotted place -> type. A place may be missing."""


def read_json(path: Path) -> dict[str, Any] | None:
    """The JSON object in a file of a run folder, None where the file does not exist.

    Raises:
        UserError: the file cannot be read or is not what agentexp writes there (cut, another type, far too large).
    """
    try:
        if (size := path.stat().st_size) > MOST_BYTES:
            raise UserError(f"{path} has {size >> 20} MiB, which no run writes. {_MEND}")
        value = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is not valid JSON ({str(error) or 'empty'}). {_MEND}") from error
    if not isinstance(value, dict):
        raise UserError(f"{path} must hold a JSON object, not a {type(value).__name__}. {_MEND}")
    for place, kind in _SHAPES.get(path.name, {}).items():
        _check_shape(path, value, place, kind)
    return value


def _check_shape(path: Path, value: Any, place: str, kind: type) -> None:
    for name in place.split("."):
        if not isinstance(value, dict) or name not in value:
            return
        value = value[name]
    if value is None and "." in place:  # a group that was not chosen
        return
    whole = isinstance(value, kind)
    if not whole or (place == "planned" and isinstance(value, list) and not all(isinstance(key, str) for key in value)):
        names = {str: "a text", list: "a list", dict: "an object", int: "a number"}
        raise UserError(f"{path}: '{place}' must be {names[kind]}{' of texts' if place == 'planned' else ''}. {_MEND}")
