"""Episodes as conversations for supervised fine-tuning: chat `messages` and ShareGPT, one JSON line per conversation.

Every conversation of an episode is a row of its own: a prompt that a paradigm rewrites (a new map, a shorter trajectory) is a
branch and has its own conversation in the record. Messages are exactly those that the history kept, so the assistant turns are
what later turns were conditioned on: text that a model wrote in the world's name is cut off there, `calls.reply` of the tables
has it.

Harness errors are left out unless asked for, and so are conversations without any reply.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentexp.errors import UserError
from agentexp.export.sources import Source, instance_of, key_of, result_of
from agentexp.records import Record, dump

Row = dict[str, Any]

METADATA = {
    "run": "name of the run among those exported",
    "key": "task key, unique within a run",
    "instance": "env/split/id",
    "env": "world",
    "split": "split of the world; keep test instances out of training",
    "kind": "task type",
    "seed": "the run's seed",
    "repeat": "0-based repetition of the same (id, seed)",
    "paradigm": "paradigm",
    "model": "label of the episode's acting model",
    "chat": "name of the conversation in the episode",
    "phase": "phase in which it began",
    "roles": "roles that replied in it; empty for recalled ones",
    "success": "the episode solved its task; null for harness errors and phases without success criterion",
    "score": "score of the episode in [0, 1]; null as for success",
    "status": "ok, or error: the harness failed",
    "end_reason": "how the episode ended",
    "replies": "assistant messages",
    "unreadable": "replies among them that held no possible action",
    "recalled": "copied from an earlier run, which may be among those exported as well",
    "partial": "the run lacks planned episodes; null where there is no manifest",
}
"""What every row says besides its messages. Frozen, like the columns of the tables."""

SHAREGPT = {"system": "system", "user": "human", "assistant": "gpt"}


@dataclass(frozen=True, slots=True)
class Filters:
    """Which conversations to export.

    Attributes:
        only_success: of solved tasks only.
        roles: only conversations in which one of these roles replied; empty: all.
        phases: only conversations of these phases; empty: all.
        errors: also those of harness errors.
    """

    only_success: bool = False
    roles: tuple[str, ...] = ()
    phases: tuple[str, ...] = ()
    errors: bool = False

    @property
    def given(self) -> bool:
        """Anything differs from the default."""
        return self != Filters()


@dataclass(slots=True)
class Counts:
    """What an export took and what it left out; `roles` and `phases` are those seen in episodes that passed."""

    episodes: int = 0
    harness_errors: int = 0
    not_solved: int = 0
    rows: int = 0
    without_reply: int = 0
    filtered: int = 0
    recalled: int = 0
    roles: Counter[str] = field(default_factory=Counter)
    phases: Counter[str] = field(default_factory=Counter)


def conversation_rows(sources: Iterable[Source], filters: Filters, counts: Counts) -> Iterator[Row]:
    """The rows of the chat format: {"messages": [{"role", "content"}, ...], metadata as in `METADATA`}.

    Args:
        sources: the runs.
        filters: what to take.
        counts: filled while the rows are used up.
    """
    for source in sources:
        for record in source.episodes():
            counts.episodes += 1
            if record["status"] != "ok" and not filters.errors:
                counts.harness_errors += 1
            elif filters.only_success and not result_of(record)[0]:
                counts.not_solved += 1
            else:
                yield from _chats(source, record, filters, counts)


def _chats(source: Source, record: Record, filters: Filters, counts: Counts) -> Iterator[Row]:
    task, calls = record["task"], record.get("calls", ())
    success, score = result_of(record)
    for chat, messages in record.get("chats", {}).items():
        mine = [call for call in calls if call["chat"] == chat]
        replies = sum(message["role"] == "assistant" for message in messages)
        if not replies:
            counts.without_reply += 1
            continue
        roles = list(dict.fromkeys(call["role"] for call in mine))
        phases = list(dict.fromkeys(call["phase"] for call in mine)) or _phase_by_name(chat, record)
        counts.roles.update(roles)
        counts.phases.update(phases)
        if (filters.roles and not {*filters.roles} & {*roles}) or (filters.phases and not {*filters.phases} & {*phases}):
            counts.filtered += 1
            continue
        counts.rows += 1
        counts.recalled += not mine
        yield {
            "messages": [{"role": message["role"], "content": message["content"]} for message in messages],
            "run": source.name,
            "key": key_of(record),
            "instance": instance_of(task),
            "env": task["env"],
            "split": task["split"],
            "kind": task.get("kind", ""),
            "seed": task.get("seed", 0),
            "repeat": task.get("repeat", 0),
            "paradigm": record.get("paradigm", ""),
            "model": record.get("model", ""),
            "chat": chat,
            "phase": phases[0] if phases else "",
            "roles": roles,
            "success": success,
            "score": score,
            "status": record["status"],
            "end_reason": record.get("end_reason", ""),
            "replies": replies,
            "unreadable": _unreadable(record, chat),
            "recalled": not mine,
            "partial": source.partial,
        }


def _phase_by_name(chat: str, record: Record) -> list[str]:
    """Phase of a conversation without calls (recalled from an earlier run): its name, where that is a phase."""
    name = chat.partition(".")[0]
    return [name] if name in record.get("steps_by_phase", {}) else []


def _unreadable(record: Record, chat: str) -> int:
    calls = record.get("calls", ())
    steps = (step for step in record.get("trajectory", ()) if step["status"] != "ok" and step.get("call") is not None)
    return sum(calls[step["call"]]["chat"] == chat for step in steps)


def sharegpt_row(row: Mapping[str, Any]) -> Row:
    """A row in ShareGPT's form: {"conversations": [{"from": "system" | "human" | "gpt", "value"}, ...], metadata}.

    A last prompt without a reply is dropped: readers of this form want every prompt answered.
    """
    messages = list(row["messages"])
    while messages and messages[-1]["role"] != "assistant":
        messages.pop()
    turns = [{"from": SHAREGPT[message["role"]], "value": message["content"]} for message in messages]
    return {"conversations": turns, **{name: row[name] for name in METADATA}}


def write_conversations(sources: list[Source], file: Path, filters: Filters, *, sharegpt: bool = False) -> Counts:
    """Write the conversations as JSON lines, replacing `file`.

    Raises:
        UserError: nothing is left because no conversation has such a role or phase.
        OSError: the file cannot be written.
    """
    counts = Counts()
    temporary = file.with_name(f".{file.name}.tmp")
    try:
        with temporary.open("wb") as lines:
            for row in conversation_rows(sources, filters, counts):
                lines.write(dump(sharegpt_row(row) if sharegpt else row) + b"\n")
        for option, wanted, seen in (("--role", filters.roles, counts.roles), ("--phase", filters.phases, counts.phases)):
            unknown = [name for name in wanted if name not in seen]
            if unknown and seen:
                raise UserError(f"No conversation has {option} {unknown[0]}. Choices in these runs: {', '.join(sorted(seen))}.")
        temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)
    return counts


def count_lines(counts: Counts, filters: Filters) -> list[str]:
    """What was left out and why, one sentence each."""
    lines = []
    if counts.harness_errors:
        lines.append(
            f"{counts.harness_errors} of {counts.episodes} episodes left out: harness errors (--with-errors takes them)."
        )
    if counts.not_solved:
        lines.append(f"{counts.not_solved} of {counts.episodes} episodes left out: not solved (--only-success).")
    if counts.filtered:
        lines.append(f"{counts.filtered} conversations left out: another role or phase.")
    if counts.without_reply:
        lines.append(f"{counts.without_reply} conversations left out: no reply in them.")
    if counts.recalled:
        lines.append(f"{counts.recalled} conversations were recalled from earlier runs (column recalled); mind duplicates.")
    return lines
