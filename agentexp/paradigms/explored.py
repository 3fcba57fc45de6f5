"""Goal-free explorations and their summaries on disk, so that executors and budgets can be swept without exploring again.

    <output_root>/knowledge/<env>/<explorer>-<hash8>/explorer.json        what the hash stands for
    <output_root>/knowledge/<env>/<explorer>-<hash8>/<task>-<hash8>.jsonl one instance, seed and repeat

The hash covers whatever can change an exploration: the explorer's settings and versions, the world's, prompts, parsing. The
executor is no part of it. A file holds lines of two kinds: an exploration with a budget, and a summary of the first N steps of
the exploration with a certain budget. The first line of its kind counts, so no later run changes a result. Files are locked
while their task is explored: a second job that needs the same exploration waits for it instead of paying twice. A torn line
(a killed process) is skipped by readers and closed by the next writer.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

from agentexp.config import fingerprint
from agentexp.core import Message, StepRecord, Task, Usage
from agentexp.hooks import Context
from agentexp.plan import identity
from agentexp.prompts import hashes
from agentexp.records import dump
from agentexp.scrub import scrub
from agentexp.store import append_line, write_json

FOLDER = "knowledge"
SCHEMA = 1
_WAIT = 0.2  # seconds between two looks at a lock
# Keys of `env` that the task or the runner stands for, and `perturb`, which spares explorations.
_OF_THE_RUN = ("split", "seed", "limit", "budget", "perturb")


@dataclass(slots=True)
class Exploration:
    """One goal-free session.

    Attributes:
        budget: steps that the explorer was given.
        explorer: label of the model.
        goal: what was hidden, for the record of the episodes that use it.
        start: the first observation.
        steps: what was done; `call` is None, because the calls belong to the episode that made them.
        chat: the explorer's conversation.
        stopped: "budget", "model" (it said the stop word), "context_limit" or "invalid_limit".
        endings: when the world would have ended, see `agentexp.envs.goal_free.Ending`; with "step", counted from 1.
        usage: what it cost when it was made.
        seconds: how long it took then.
    """

    budget: int
    explorer: str
    goal: str
    start: str
    steps: list[StepRecord] = field(default_factory=list)
    chat: list[Message] = field(default_factory=list)
    stopped: str = "budget"
    endings: list[dict[str, Any]] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0


@dataclass(slots=True)
class Summary:
    """K of the first `steps` steps of the exploration with budget `budget`.

    Attributes:
        key: what wrote it: hash of the summariser and its prompt.
        text: K.
        cut: it was longer than allowed and was cut.
        usage: what it cost when it was made.
    """

    budget: int
    steps: int
    key: str
    text: str
    cut: bool = False
    usage: Usage = field(default_factory=Usage)


class ExplorationStore:
    """All explorations of one explorer in one world.

    Args:
        folder: see the module; made when the first exploration is kept.
        summary_key: of the summaries that are wanted.
    """

    def __init__(self, folder: Path, summary_key: str = "") -> None:
        self.folder, self.summary_key = folder, summary_key

    @staticmethod
    def of(
        ctx: Context, explorer: str, summariser: str, settings: Mapping[str, Any], summary: Mapping[str, Any]
    ) -> ExplorationStore:
        """The store for a run.

        Args:
            explorer: role of the exploring model; must be one of `ctx.models`.
            summariser: role of the model that writes K; likewise.
            settings: of the paradigm, as far as they change an exploration.
            summary: likewise a summary.
        """
        stands_for = _explorer_identity(ctx, explorer, settings)
        key = fingerprint(
            {
                "model": _model_identity(ctx, summariser),
                "settings": dict(summary),
                "prompts": _prompts("explore_then_act/summarize"),
            }
        )
        label = re.sub(r"[^\w.+-]+", "_", ctx.models[explorer].label).strip("_.") or "model"
        store = ExplorationStore(ctx.output_root / FOLDER / ctx.env.name / f"{label[:80]}-{fingerprint(stands_for)}", key)
        if not (store.folder / "explorer.json").is_file():
            write_json(store.folder / "explorer.json", stands_for)
        return store

    @asynccontextmanager
    async def locked(self, task: Task) -> AsyncIterator[Slot]:
        """The file of a task, for this coroutine alone. Waits while any other coroutine or process has it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.path(task), os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            while True:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    await asyncio.sleep(_WAIT)
            yield Slot(descriptor, self.path(task), task.key, self.summary_key)
        finally:
            os.close(descriptor)  # gives up the lock

    def path(self, task: Task) -> Path:
        """Where a task's explorations are. Tasks differ by key and by instance data (a variant keeps its task's name)."""
        spec = json.dumps(dict(task.spec), sort_keys=True, ensure_ascii=False, default=str)
        digest = blake2b(f"{task.key}\x1f{spec}".encode(), digest_size=4).hexdigest()
        name = re.sub(r"[^\w.+-]+", "_", task.id).strip("_.")[-60:]
        return self.folder / f"{name or 'task'}-{digest}.jsonl"


class Slot:
    """One task's file, locked."""

    def __init__(self, descriptor: int, path: Path, key: str, summary_key: str) -> None:
        self._descriptor, self._path, self._key, self._summary_key = descriptor, path, key, summary_key

    def exploration(self, budget: int) -> Exploration | None:
        """The exploration with exactly this budget: a model that knows of more steps explores differently."""
        for line in self._lines("exploration"):
            if line.get("budget") == budget:
                steps = [StepRecord(**step) for step in line["steps"]]
                chat = [Message(*message) for message in line["chat"]]
                rest = {name: line[name] for name in ("budget", "explorer", "goal", "start", "stopped", "endings", "seconds")}
                return Exploration(steps=steps, chat=chat, usage=Usage(**line["usage"]), **rest)
        return None

    def summary(self, budget: int, steps: int) -> Summary | None:
        """K of the first `steps` steps of the exploration with this budget, by the store's summariser."""
        for line in self._lines("summary"):
            if (line.get("budget"), line.get("steps"), line.get("key")) == (budget, steps, self._summary_key):
                return Summary(budget, steps, line["key"], line["text"], line["cut"], Usage(**line["usage"]))
        return None

    def add(self, found: Exploration | Summary) -> None:
        """Keep it; on the disk when this returns."""
        kind = "exploration" if isinstance(found, Exploration) else "summary"
        record = {"schema": SCHEMA, "kind": kind, "task": self._key, **asdict(found)}
        size = os.fstat(self._descriptor).st_size
        torn = size > 0 and os.pread(self._descriptor, 1, size - 1) != b"\n"
        append_line(self._descriptor, (b"\n" if torn else b"") + dump(record))
        os.fsync(self._descriptor)

    def _lines(self, kind: str) -> Iterator[dict[str, Any]]:
        with self._path.open("rb") as file:
            for text in file:
                try:
                    line = json.loads(text)
                except ValueError:
                    continue  # torn
                if isinstance(line, dict) and (line.get("schema"), line.get("kind")) == (SCHEMA, kind):
                    yield line


def _explorer_identity(ctx: Context, role: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Everything that can change an exploration, without what the task's key says."""
    config = scrub(ctx.config)
    world = {key: value for key, value in config.get("env", {}).items() if key not in _OF_THE_RUN}
    return {
        "schema": SCHEMA,
        "env": identity({"env": world}),
        "env_versions": dict(ctx.env.versions()),
        "model": _model_identity(ctx, role),
        "parsing": config.get("parsing"),
        "invalid_in_a_row": (config.get("limits") or {}).get("invalid_in_a_row"),
        "settings": dict(settings),
        "prompts": _prompts("explore_then_act/explore", "format/", "react/first", "react/next"),
    }


def _model_identity(ctx: Context, role: str) -> dict[str, Any]:
    config = scrub(ctx.config)
    node = config.get("model") if role == "actor" else (config.get("roles") or {}).get(role)
    model = ctx.models[role]
    # under one name whatever the role: `explore model=X` and `eval +model@roles.explorer=X` mean the same explorer
    return {"label": model.label, "settings": identity({"model": node or {}}), "versions": dict(model.versions())}


def _prompts(*prefixes: str) -> dict[str, str]:
    return {name: value for name, value in hashes().items() if name.startswith(prefixes)}
