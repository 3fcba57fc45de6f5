"""Run folders as pandas frames: the surface for analyses of one's own.

    from agentexp.export.frames import episodes_frame
    episodes = episodes_frame("outputs/eval/alfworld")
    episodes.groupby(["paradigm", "model", "kind"]).success.agg(["mean", "count"])

Columns and their meaning: `agentexp.export.columns`. Harness errors are rows too (status "error", success NA), so means leave
them out and counts of rows do not. The whole table is held in memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agentexp.export.columns import CALLS, EPISODES, RUNS, STEPS, TABLES, Column
from agentexp.export.sources import Runs, Source, encodable, find_sources, instance_of, key_of, result_of
from agentexp.records import Record, dump

if TYPE_CHECKING:
    from pandas import DataFrame

Row = dict[str, Any]


def runs_frame(runs: Runs) -> DataFrame:
    """One row per run folder, with what was planned and what is there; columns `agentexp.export.columns.RUNS`.

    Args:
        runs: a run folder, a folder above run folders, or several of them.

    Raises:
        UserError: a path holds no run.
    """
    return _frame(RUNS, map(_run_row, find_sources(runs)))


def episodes_frame(runs: Runs) -> DataFrame:
    """One row per recorded episode; columns `agentexp.export.columns.EPISODES`. Arguments and errors: `runs_frame`."""
    return _frame(EPISODES, (_episode_row(*item) for item in _records(find_sources(runs))))


def steps_frame(runs: Runs) -> DataFrame:
    """One row per environment step; columns `agentexp.export.columns.STEPS`. Arguments and errors: `runs_frame`."""
    return _frame(STEPS, (row for item in _records(find_sources(runs)) for row in _step_rows(*item)))


def calls_frame(runs: Runs) -> DataFrame:
    """One row per model call; columns `agentexp.export.columns.CALLS`. Arguments and errors: `runs_frame`."""
    return _frame(CALLS, (row for item in _records(find_sources(runs)) for row in _call_rows(*item)))


def all_frames(sources: Sequence[Source]) -> dict[str, DataFrame]:
    """All tables by name ("runs", "episodes", "steps", "calls"), reading every record once."""
    values: dict[str, list[Row]] = {name: [] for name in TABLES}
    values["runs"] = [_run_row(source) for source in sources]
    for source, record in _records(sources):
        values["episodes"].append(_episode_row(source, record))
        values["steps"].extend(_step_rows(source, record))
        values["calls"].extend(_call_rows(source, record))
    return {name: _frame(columns, values[name]) for name, columns in TABLES.items()}


def _frame(columns: Sequence[Column], rows: Iterable[Row]) -> DataFrame:
    import pandas as pd

    values: dict[str, list[Any]] = {column.name: [] for column in columns}
    for row in rows:
        for name, cells in values.items():
            cells.append(row[name])
    return pd.DataFrame({column.name: pd.array(values[column.name], dtype=column.dtype) for column in columns})


def _records(sources: Iterable[Source]) -> Iterator[tuple[Source, Record]]:
    for source in sources:
        for record in source.episodes():
            yield source, record


def _run_row(source: Source) -> Row:
    manifest = source.manifest
    labels = {name: _text(manifest.get(name)) for name in ("command", "env", "split", "paradigm", "model", "created")}
    return labels | {
        "run": _text(source.name),
        "seeds": _json(manifest.get("seeds")),
        "repeats": manifest.get("repeats"),
        "planned": len(source.planned),
        "recorded": source.recorded,
        "harness_errors": source.harness_errors,
        "partial": source.partial,
        "version": _text((manifest.get("code") or {}).get("version")),
        "config": _json(manifest.get("config")),
    }


def _episode_row(source: Source, record: Record) -> Row:
    task, trajectory = record["task"], record.get("trajectory", ())
    success, score = result_of(record)
    texts = ("paradigm", "model", "status", "end_reason", "goal", "error")
    return {
        **{name: _text(record.get(name, "")) for name in texts},
        **{name: _text(task.get(name, "")) for name in ("env", "split", "id", "kind")},
        **_tokens(record),
        "run": _text(source.name),
        "key": _text(key_of(record)),
        "instance": _text(instance_of(task)),
        "seed": task.get("seed", 0),
        "repeat": task.get("repeat", 0),
        "success": success,
        "score": score,
        "steps": record.get("steps"),
        "steps_by_phase": _json(record.get("steps_by_phase", {})),
        "unreadable": sum(step["status"] != "ok" for step in trajectory),
        "calls": len(record.get("calls", ())),
        "usage_by_role": _json(record.get("usage_by_role", {})),
        "seconds": record.get("seconds"),
        "attempts": record.get("attempts"),
        "notes": _json(record.get("notes", {})),
        "partial": source.partial,
        "schema": record.get("schema"),
    }


def _step_rows(source: Source, record: Record) -> Iterator[Row]:
    run, key, in_phase = _text(source.name), _text(key_of(record)), Counter[str]()
    for number, step in enumerate(record.get("trajectory", ()), 1):
        phase = step.get("phase", "")
        in_phase[phase] += 1
        yield {
            "run": run,
            "key": key,
            "step": number,
            "phase": _text(phase),
            "phase_step": in_phase[phase],
            "call": step.get("call"),
            "status": _text(step["status"]),
            "action": _text(step.get("action")),
            "written": _text(step.get("rewrite", "")),
            "flags": _json(step.get("flags", [])),
            "observation": _text(step.get("observation")),
            **{name: step.get(name) for name in ("score", "done", "success", "error")},
            "seconds": step.get("seconds", 0.0),
            "info": _json(step.get("info", {})),
        }


def _call_rows(source: Source, record: Record) -> Iterator[Row]:
    run, key, chats = _text(source.name), _text(key_of(record)), record.get("chats", {})
    for number, call in enumerate(record.get("calls", ())):
        yield {
            **_tokens(call),
            **{name: _text(call[name]) for name in ("chat", "role", "purpose", "phase", "finish_reason")},
            "run": run,
            "key": key,
            "call": number,
            "upto": call["upto"],
            "seconds": call.get("seconds"),
            "retries": call.get("retries", 0),
            "cached": call.get("cached", False),
            "reply": _text(reply_of(call, chats)),
            "edited": call.get("raw") is not None,
            "reasoning": _text(call.get("reasoning", "")),
            "token_ids": _json(call.get("token_ids")),
            "logprobs": _json(call.get("logprobs")),
            "info": _json(call.get("info", {})),
        }


def reply_of(call: Mapping[str, Any], chats: Mapping[str, Sequence[Mapping[str, str]]]) -> str | None:
    """The reply of a call as it was received; None where the record holds it nowhere."""
    if call.get("raw") is not None:
        return str(call["raw"])
    messages, upto = chats.get(call["chat"], ()), call["upto"]
    return messages[upto]["content"] if upto < len(messages) and messages[upto]["role"] == "assistant" else None


def _tokens(item: Mapping[str, Any]) -> Row:
    usage = item.get("usage") or {}
    return {name: usage.get(name) for name in ("prompt_tokens", "completion_tokens", "cached_tokens", "cost")}


def _text(value: Any) -> str | None:
    return None if value is None else encodable(str(value))


def _json(value: Any) -> str | None:
    return None if value is None else dump(value).decode()
