"""The contract of an environment as a checklist: `agentexp check env=...` for a world of yours or of ours.

The world is run as in an experiment, in a worker process, so hanging, dying, printing and results that cannot be pickled
show as findings. What is played through is in `check_play.py`.

A world that cannot be deterministic says so with the class attribute `deterministic = False`; then differences between replays
are warnings, and only sorted lines are compared.
"""

from __future__ import annotations

import asyncio
import json
import pickle
import re
from collections import Counter
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from agentexp.core import Env, EnvCard, Task
from agentexp.envs.pool import EnvPool
from agentexp.envs.worker import attempt
from agentexp.errors import EngineError, UserError
from agentexp.targets import build

Level = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One point of the contract: `name` is the point, `text` what was found and, unless it is ok, how to mend it."""

    level: Level
    name: str
    text: str

    def __str__(self) -> str:
        return f"{self.name}: {self.text}"


@dataclass(slots=True)
class Findings:
    """Collects findings; a point that failed before is not reported again."""

    all: list[Finding] = field(default_factory=list)

    def add(self, level: Level, name: str, text: str) -> None:
        """Note a finding once. A worse finding about the same point replaces an ok."""
        if level == "ok" and any(f.name == name for f in self.all):
            return
        self.all = [f for f in self.all if f.name != name or f.level != "ok"]
        if not any(f.name == name and f.text == text for f in self.all):
            self.all.append(Finding(level, name, text))

    def expect(self, holds: bool, name: str, good: str, bad: str, level: Level = "fail") -> bool:
        """Note `good` if the point holds, else `bad`."""
        self.add("ok" if holds else level, name, good if holds else bad)
        return holds

    async def guard(self, name: str, part: Awaitable[None]) -> None:
        """Turn an engine's failure in a part of the check into a finding."""
        try:
            await part
        except EngineError as error:
            self.add("fail", name, f"{error}")
        except UserError as error:
            self.add("fail", name, f"A UserError is for wrong settings or data, not for this: {error}")


@dataclass(frozen=True, slots=True)
class CheckSettings:
    """How much to play.

    Attributes:
        n_tasks: instances that are played through, spread over the splits.
        steps: length of the random walk.
        seed: of the walk.
        step_timeout: seconds for one step.
        reset_timeout: seconds for a start, a reset or a plan.
    """

    n_tasks: int = 2
    steps: int = 20
    seed: int = 0
    step_timeout: float = 60.0
    reset_timeout: float = 600.0


def check_env(env_or_spec: Env | Mapping[str, Any], n_tasks: int = 2, steps: int = 20, seed: int = 0) -> list[Finding]:
    """Check an environment against the contract in `agentexp.core.Env`.

    Args:
        env_or_spec: a `_target_` configuration (checked in worker processes), or an environment (checked in this process:
            without protection against hanging, and nothing can be said about other processes).
        n_tasks: instances that are played through, spread over the splits.
        steps: length of the random walk in each.
        seed: of the walk.

    Returns:
        Findings in the order of the checks.
    """
    return asyncio.run(_check(env_or_spec, CheckSettings(n_tasks, steps, seed)))


async def _check(env_or_spec: Env | Mapping[str, Any], settings: CheckSettings) -> list[Finding]:
    from agentexp.envs.check_play import check_play

    found = Findings()
    in_process = not isinstance(env_or_spec, Mapping)
    spec = dict(env_or_spec) if isinstance(env_or_spec, Mapping) else {"_target_": f"{__name__}.given", "env": env_or_spec}
    limits = settings.step_timeout, settings.reset_timeout
    # Another hash seed shows whether the order of a set or of a folder's files decides anything.
    other = EnvPool(spec, 1, *limits, in_process=in_process, environ={"PYTHONHASHSEED": "12345"})
    async with EnvPool(spec, 1, *limits, in_process=in_process, environ={"PYTHONHASHSEED": "0"}) as pool, other:
        try:
            async with pool.lease():
                found.add("ok", "Start", "An engine's process starts.")
        except (EngineError, UserError) as error:
            found.add("fail", "Start", f"The environment cannot be built in a worker process. {error}")
            return found.all
        env: Env = build(spec)
        if not _protocol(env, found):
            return found.all
        tasks = _tasks(env, found)
        await found.guard("Versions", _static(env, pool, found))
        await found.guard("SameTasksElsewhere", _elsewhere(tasks, other, found))
        for task in _chosen(tasks, settings.n_tasks):
            await check_play(task, env, pool, other, found, settings)
        await found.guard("CloseTwice", _close(pool, found))
    return found.all


def given(env: Env) -> Env:
    """Target of the configuration of an environment that exists already."""
    return env


def _protocol(env: Any, found: Findings) -> bool:
    needed = ("name", "card", "splits", "tasks", "reset", "step", "close", "versions")
    missing = [name for name in needed if not hasattr(env, name)]
    return found.expect(
        not missing,
        "Protocol",
        "All members of agentexp.core.Env are there.",
        f"Add {', '.join(missing)} to {type(env).__name__}; agentexp.core.Env says what they do.",
    )


def _tasks(env: Env, found: Findings) -> dict[str, list[Task]]:
    splits = list(env.splits())
    found.expect(
        bool(splits) and len(set(splits)) == len(splits), "Splits", f"Splits: {', '.join(splits)}.", "Name each split once."
    )
    tasks: dict[str, list[Task]] = {}
    for split in splits:
        listed, result = attempt(env.tasks, split)
        if not listed:
            level: Level = "warn" if result.is_user_error() else "fail"
            found.add(level, "SplitData", f"Split {split!r} cannot be used here: {result.message}")
            continue
        tasks[split] = result
        found.expect(
            bool(tasks[split]), "SplitData", "Every split has instances.", f"Split {split!r} is empty; raise a UserError."
        )
        again = env.tasks(split)
        found.expect(
            again == tasks[split], "FrozenOrder", "tasks() gives the same list again.", f"Sort the tasks of {split!r}."
        )
    everything = [task for some in tasks.values() for task in some]
    twice = [key for key, n in Counter((task.split, task.id) for task in everything).items() if n > 1]
    found.expect(
        not twice, "UniqueIds", f"{len(everything)} ids, none twice in a split.", f"Make these ids unique: {twice[:3]}."
    )
    other_lists = getattr(env, "alternative_splits", ())  # other published selections of the same test data
    disjoint = [task.id for task in everything if task.split not in other_lists]
    shared = [name for name, n in Counter(disjoint).items() if n > 1] if not twice else []
    found.expect(
        not shared,
        "DisjointSplits",
        "No id occurs in two splits.",
        f"{len(shared)} ids occur in several splits ({shared[:3]}): take them out, or put the split's name into the id.",
    )
    wrong = [t.id for name, some in tasks.items() for t in some if (t.env, t.split, t.seed, t.repeat) != (env.name, name, 0, 0)]
    found.expect(
        not wrong, "TaskFields", "Tasks carry their world and split, seed 0, repeat 0.", f"Correct the fields of {wrong[:3]}."
    )
    bad = [task.id for task in everything if not _is_json(task.spec) or pickle.loads(pickle.dumps(task)) != task]
    found.expect(not bad, "JsonSpec", "Every spec is plain JSON.", f"Put only JSON values into Task.spec (see {bad[:3]}).")
    paths = [task.id for task in everything if re.search(r'"(/|[A-Za-z]:\\\\)[^"]*[/\\]', json.dumps(task.spec, default=str))]
    found.expect(
        not paths,
        "NoPaths",
        "No spec holds an absolute path.",
        f"Make the paths in the spec of {paths[:2]} relative: results travel.",
        "warn",
    )
    unknown, refusal = attempt(env.tasks, "no such split")
    found.expect(
        not unknown and refusal.is_user_error(),
        "UnknownSplit",
        "tasks() of an unknown split raises a UserError.",
        "tasks() of an unknown split must raise a UserError that lists the splits.",
    )
    return tasks


def _is_json(value: Any) -> bool:
    try:
        return bool(json.loads(json.dumps(value, allow_nan=False)) == value)
    except (TypeError, ValueError):
        return False


async def _static(env: Env, pool: EnvPool, found: Findings) -> None:
    versions = env.versions()
    good = (
        isinstance(versions, dict) and bool(versions) and all(isinstance(v, str) and v for kv in versions.items() for v in kv)
    )
    found.expect(
        good, "Versions", f"versions() says {versions}.", "Return non-empty strings for engine, data and logic from versions()."
    )
    card = env.card
    if found.expect(isinstance(card, EnvCard), "Card", "There is an EnvCard.", "Set `card` to an agentexp.core.EnvCard."):
        patterns = [pattern for pattern, _ in card.aliases] + [card.info_actions, card.forbidden]
        broken = [pattern for pattern in patterns if not _compiles(pattern)]
        found.expect(not broken, "Patterns", "The card's patterns are regular expressions.", f"Correct the patterns {broken}.")
        full = bool(card.intro.strip() and card.actions.strip())
        found.expect(
            full, "CardText", "The card has an intro and action forms.", "Fill card.intro and card.actions: prompts show them."
        )
    if not pool.in_process:
        async with pool.lease() as world:
            remote = await world.call("versions")
        found.expect(remote == versions, "Versions", "", "versions() must say the same in a worker as in the parent process.")


def _compiles(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except re.error:
        return False
    return True


async def _elsewhere(tasks: Mapping[str, list[Task]], other: EnvPool, found: Findings) -> None:
    async with other.lease() as world:
        differ = [split for split, some in tasks.items() if await world.call("tasks", split) != some]
    found.expect(
        not differ,
        "SameTasksElsewhere",
        "Another process with another hash seed lists the same tasks.",
        f"tasks() of {differ} differs in another process: sort files and sets, draw from a seeded random.Random.",
    )


def _chosen(tasks: Mapping[str, list[Task]], n: int) -> list[Task]:
    """`n` tasks: the first of each split, then the second, ..."""
    longest = max(map(len, tasks.values()), default=0)
    return [some[i] for i in range(min(longest, n)) for some in tasks.values() if i < len(some)][:n]


async def _close(pool: EnvPool, found: Findings) -> None:
    async with pool.lease() as world:
        await world.call("close")
        await world.call("close")
    found.add("ok", "CloseTwice", "close() twice does no harm.")
