"""From the episodes of run folders to rows: filter, compare with held-out instances, pair MAP with ACT, make them equal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Literal

from agentexp import targets
from agentexp.config import Overrides, checked, fingerprint, split_env
from agentexp.core import Env, Task
from agentexp.errors import UserError
from agentexp.export.sources import Source, key_of
from agentexp.records import Record
from agentexp.training.collect.dataset import Row
from agentexp.training.collect.decontaminate import HeldOut, worlds_to_check
from agentexp.training.collect.filters import ACT_PARADIGM, MAP_PARADIGM, Quality, quality, reason_against
from agentexp.training.collect.samples import Turns, act_samples, map_samples

if TYPE_CHECKING:
    from pathlib import Path

    from agentexp.training.collect.build import Options
    from agentexp.training.collect.tokens import Counter as TokenCounter

Kind = Literal["map", "act"]
KINDS: dict[str, Kind] = {MAP_PARADIGM: "map", ACT_PARADIGM: "act"}
_NO_PARTNER: dict[Kind, str] = {"map": "no act trace of the same instance", "act": "no map of the same instance"}


@dataclass(slots=True)
class Collected:
    """One data set before it is written.

    Attributes:
        kind: map or act.
        rows: with the columns of `dataset.COLUMNS`.
        taken: task keys that have rows, or had before MAP and ACT were paired.
        episodes: per world, how many were looked at.
        rejected: per world, reasons and how often.
        measured: per world, accuracy and coverage of every map that was compared with the engine, kept or not.
        sources: the runs.
        held_out: per world, what its instances were compared with.
    """

    kind: Kind
    rows: list[Row] = field(default_factory=list)
    taken: set[str] = field(default_factory=set)
    episodes: Counter[str] = field(default_factory=Counter)
    rejected: dict[str, Counter[str]] = field(default_factory=dict)
    measured: dict[str, list[Quality]] = field(default_factory=dict)
    sources: list[Source] = field(default_factory=list)
    held_out: dict[str, HeldOut] = field(default_factory=dict)

    def reject(self, env: str, reason: str) -> None:
        """Count a reason."""
        self.rejected.setdefault(env, Counter())[reason] += 1

    def instances(self) -> dict[str, str]:
        """Task key -> world of the rows, in their order."""
        return {str(row["key"]): str(row["env"]) for row in self.rows}

    def keep(self, keys: Iterable[str], reason: str) -> None:
        """Leave out all rows of other keys, and count the reason once per key."""
        wanted = set(keys)
        for key, env in self.instances().items():
            if key not in wanted:
                self.reject(env, reason)
        self.rows = [row for row in self.rows if row["key"] in wanted]


def gather(sources: Sequence[Source], options: Options, counts: TokenCounter) -> dict[Kind, Collected]:
    """The data sets of some runs, by kind, map first.

    Raises:
        UserError: a run of another paradigm, or one whose world cannot be built.
    """
    sets: dict[Kind, Collected] = {}
    worlds = _Worlds(options.official)
    for source in sources:
        paradigm = str(source.manifest.get("paradigm", ""))
        if paradigm not in KINDS:
            raise UserError(
                f"{source.name} is a run of paradigm={paradigm or '?'}. Training data are collected from runs of "
                f"paradigm={MAP_PARADIGM} (map-then-act) and paradigm={ACT_PARADIGM} (act)."
            )
        kind = KINDS[paradigm]
        found = sets.setdefault(kind, Collected(kind))
        found.sources.append(source)
        held_out = worlds.held_out(source)
        found.held_out[str(source.manifest.get("env", ""))] = held_out
        for record in source.episodes():
            _take(found, source, record, held_out, options, counts)
    ordered = {kind: sets[kind] for kind in ("map", "act") if kind in sets}
    _pair(ordered, options.limit)
    if options.match == "tokens" and len(ordered) == 2:
        ordered["act"].rows = _matched(ordered["act"].rows, ordered["map"].rows)
    return ordered


class _Worlds:
    """The runs' worlds, never started, and the held-out instances of each."""

    def __init__(self, official: Path | None) -> None:
        self._official = official
        self._known: dict[str, HeldOut] = {}

    def held_out(self, source: Source) -> HeldOut:
        node = source.manifest.get("config", {}).get("env")
        if not isinstance(node, Mapping):
            raise UserError(f"{source.folder} has no manifest.json with the settings of its world; collect it again.")
        _, spec = split_env(node, Overrides())
        key = fingerprint(spec)
        if key not in self._known:
            env: Env = targets.build(checked(spec, "env", Overrides(), Env))
            self._known[key] = HeldOut(worlds_to_check(env, self._official))
        return self._known[key]


def _take(found: Collected, source: Source, record: Record, held_out: HeldOut, options: Options, counts: TokenCounter) -> None:
    """Add the rows of an episode, or the reason against it."""
    task, key = record["task"], key_of(record)
    env = str(task["env"])
    found.episodes[env] += 1
    if record.get("notes", {}).get("alignment"):
        found.measured.setdefault(env, []).append(quality(record))
    reason = reason_against(record, options.thresholds) or held_out.reason(_task(task))
    if not reason and key in found.taken:
        reason = "same instance twice"
    rows = [] if reason else list(_rows(found.kind, source, record, options, counts))
    if not reason and not rows:
        reason = "no conversation"
    if options.max_tokens is not None and any(row["tokens"] > options.max_tokens for row in rows):
        reason = f"longer than {options.max_tokens} tokens"
    if reason:
        found.reject(env, reason)
    else:
        found.rows += rows
        found.taken.add(key)


def _task(saved: Mapping[str, Any]) -> Task:
    return Task(
        str(saved["id"]), str(saved["env"]), str(saved["split"]), kind=saved.get("kind", ""), spec=saved.get("spec", {})
    )


def _rows(kind: Kind, source: Source, record: Record, options: Options, counts: TokenCounter) -> Iterator[Row]:
    samples: dict[str, Turns] = map_samples(record, options.form) if kind == "map" else act_samples(record)
    task, checked_map = record["task"], quality(record)
    style = source.manifest.get("config", {}).get("paradigm", {}).get("style", "")
    for stage, messages in samples.items():
        if kind == "map" and options.form == "stages" and stage not in options.stages:
            continue
        length = counts.count(messages)
        yield {
            "messages": messages,
            "kind": kind,
            "stage": stage,
            "env": task["env"],
            "split": task["split"],
            "id": task["id"],
            "key": key_of(record),
            "task_kind": task.get("kind", ""),
            "seed": task.get("seed", 0),
            "steps": record.get("steps", 0),
            "tokens": length.tokens,
            "trained_tokens": length.trained,
            "repetition": 0,
            "accuracy": checked_map.accuracy if kind == "map" else None,
            "coverage": checked_map.coverage if kind == "map" else None,
            "teacher": record.get("model", ""),
            "style": style,
            "run": source.name,
        }


def _pair(sets: Mapping[Kind, Collected], limit: int | None) -> None:
    """Keep what both kinds have, where there are both; then at most `limit` instances of each world."""
    if len(sets) == 2:
        both = sets["map"].instances().keys() & sets["act"].instances().keys()
        for kind, found in sets.items():
            found.keep(both, _NO_PARTNER[kind])
    if limit is None or not sets:
        return
    taken: dict[str, list[str]] = {}
    for key, env in next(iter(sets.values())).instances().items():
        taken.setdefault(env, []).append(key)
    chosen = [key for keys in taken.values() for key in keys[:limit]]
    for found in sets.values():
        found.keep(chosen, "beyond --limit")


def _matched(act: Sequence[Row], maps: Sequence[Row]) -> list[Row]:
    """ACT rows with as many tokens as the MAP rows have, in each world by itself."""
    made: list[Row] = []
    for env in dict.fromkeys(row["env"] for row in act):
        budget = sum(row["tokens"] for row in maps if row["env"] == env)
        made += repeated([row for row in act if row["env"] == env], budget)
    return made


def repeated(rows: Sequence[Row], budget: int) -> list[Row]:
    """Whole passes over the rows and the first part of one more, so that their tokens come closest to a budget.

    At least one pass, so fewer tokens than that are not possible. Repetitions are numbered from 0.
    """
    once = [int(row["tokens"]) for row in rows]
    passes, rest = divmod(max(budget, sum(once)), max(1, sum(once)))
    sums = [0, *accumulate(once)]
    more = min(range(len(sums)), key=lambda n: abs(sums[n] - rest))
    numbered = [{**row, "repetition": n} for n in range(passes) for row in rows]
    return numbered + [{**row, "repetition": passes} for row in rows[:more]]
