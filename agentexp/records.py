"""One episode as one line of JSON, and back.

The order of keys is fixed and nothing depends on hashing, so the same episode always gives the same bytes. The head of a line
is `{"schema":…,"key":…,"status":…,"end_reason":…,"success":…`, so that an index of a large file needs no full parsing. Text
stays readable; only what could break a line or UTF-8 is escaped: line separators and lone surrogates.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Mapping
from operator import attrgetter
from pathlib import PurePath
from typing import Any

from agentexp.core import SCHEMA_VERSION, Call, Episode, Message, StepRecord, Task, Usage
from agentexp.errors import UserError

Record = dict[str, Any]

# valid inside JSON strings, but they break a line for some readers (str.splitlines) or cannot be encoded
_UNSAFE = re.compile("[\u0085\u2028\u2029\ud800-\udfff]")


def episode_to_json(episode: Episode) -> bytes:
    """The line of `episodes.jsonl`, UTF-8, without the newline.

    Raises:
        TypeError: a note or an info value is not JSON and has no obvious JSON form.
    """
    task = episode.task
    record: Record = {"schema": episode.schema, "key": task.key, "status": episode.status}
    record |= {"end_reason": episode.end_reason, "success": episode.success}
    for name in _NAMES[Episode]:
        if name not in record:
            record[name] = getattr(episode, name)
    record["task"] = {name: getattr(task, name) for name in _NAMES[Task]}
    record["usage"] = _usage(episode.usage)
    record["wasted"] = _usage(episode.wasted)
    record["usage_by_role"] = {role: _usage(usage) for role, usage in episode.usage_by_role.items()}
    record["trajectory"] = [_sparse(step) for step in episode.trajectory]
    record["chats"] = {name: [message._asdict() for message in messages] for name, messages in episode.chats.items()}
    record["calls"] = [{**_sparse(call), "usage": _usage(call.usage)} for call in episode.calls]
    return dump(record)


def dump(value: Any) -> bytes:
    """Compact readable JSON in UTF-8 on one line. NaN and infinities become null."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain)
    except ValueError as error:
        if "ircular" in str(error):
            raise TypeError("a value contains itself") from error
        text = json.dumps(_finite(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain)
    if text.isascii():  # nothing unsafe in it, and told a hundred times faster
        return text.encode()
    return _UNSAFE.sub(lambda match: f"\\u{ord(match.group()):04x}", text).encode()


def slim_record(line: bytes) -> Record | None:
    """A line without its "chats" and "calls", which stand between its trajectory and its notes; None where that cannot be told.

    A cut at the wrong place (the same words inside of something else) leaves brackets that do not fit, or notes that are not
    the record's own.
    """
    start, end = line.find(b',"chats":{'), line.rfind(b',"notes":{')
    if not 0 < start < end:
        return None
    try:
        record = json.loads(line[:start] + line[end:])
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) and {"status", "task", "trajectory", "notes"} <= record.keys() else None


def episode_from_json(line: bytes | str | Mapping[str, Any]) -> Episode:
    """The episode of a line (or of a parsed line). Keys that this version does not know are ignored.

    Raises:
        UserError: the record was written by a newer schema.
    """
    record = json.loads(line) if isinstance(line, (bytes, str)) else line
    if record["schema"] > SCHEMA_VERSION:
        raise UserError(
            f"This record has schema {record['schema']}, this agentexp reads up to {SCHEMA_VERSION}. "
            "Read it with the agentexp that wrote it."
        )
    values = {name: record[name] for name in _NAMES[Episode] if name in record}
    values["task"] = Task(**_known(Task, record["task"]))
    values["usage"] = Usage(**record["usage"])
    values["wasted"] = Usage(**record.get("wasted") or {})
    values["usage_by_role"] = {role: Usage(**usage) for role, usage in record["usage_by_role"].items()}
    values["trajectory"] = [StepRecord(**_known(StepRecord, step)) for step in record["trajectory"]]
    values["chats"] = {name: [Message(m["role"], m["content"]) for m in messages] for name, messages in record["chats"].items()}
    values["calls"] = [Call(**{**_known(Call, call), "usage": Usage(**call["usage"])}) for call in record["calls"]]
    return Episode(**values)


_NAMES: dict[type[Any], tuple[str, ...]] = {
    cls: tuple(field.name for field in dataclasses.fields(cls)) for cls in (Episode, Task, Usage, StepRecord, Call)
}


_REQUIRED = object()


def _defaults(cls: type[Any]) -> tuple[tuple[str, Any], ...]:
    """(name, default) of the fields; a record leaves a field out while it has its default."""
    result: list[tuple[str, Any]] = []
    for field in dataclasses.fields(cls):
        default: Any = field.default
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        result.append((field.name, _REQUIRED if default is dataclasses.MISSING else default))
    return tuple(result)


_SPARSE = {cls: (_defaults(cls), attrgetter(*_NAMES[cls])) for cls in (StepRecord, Call)}


def _sparse(item: StepRecord | Call) -> Record:
    defaults, values = _SPARSE[type(item)]
    record: Record = {
        name: value
        for (name, default), value in zip(defaults, values(item), strict=True)
        if value is not default and value != default
    }
    if "seconds" in record:
        record["seconds"] = round(record["seconds"], 6)
    return record


def _usage(usage: Usage) -> Record:
    return {name: getattr(usage, name) for name in _NAMES[Usage]}


def _known(cls: type[Any], record: Mapping[str, Any]) -> Record:
    return {name: record[name] for name in _NAMES[cls] if name in record}


def _plain(value: Any) -> Any:
    """JSON form of the values that plug-ins put into notes and infos besides JSON types."""
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=repr)
    if isinstance(value, Mapping):
        return dict(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {name: getattr(value, name) for name in (field.name for field in dataclasses.fields(value))}
    if isinstance(value, PurePath):
        return str(value)
    if hasattr(value, "tolist"):  # numpy scalars and arrays, without importing numpy
        return value.tolist()
    raise TypeError(f"{type(value).__name__} value {value!r:.80} has no JSON form")


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    if isinstance(value, (str, int, bool)) or value is None:
        return value
    return _finite(_plain(value))
