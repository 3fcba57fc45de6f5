"""What a run consists of: its plan (the denominator of every rate) and the folder that its settings lead to.

No time stamp is part of the folder's name, so the same command issued again finds its results and goes on.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from agentexp.config import fingerprint
from agentexp.core import Task
from agentexp.errors import UserError
from agentexp.scrub import scrub

VOLATILE = (
    # where results go and what is shown
    "output_root",
    "logger",
    "logger.*",
    "progress",
    "resume",
    "hydra",
    "hydra.*",
    # how much of the same plan, and which part of it this process runs
    "env.limit",
    "shard",
    # how fast
    "concurrency",
    "workers",
    "limits.seconds",
    "limits.attempts",
    "limits.run_*",
    "env.in_process",
    "env.*timeout",
    "env.max_episodes_per_worker",
    "*.concurrency",
    "*.timeout",
    "*.*_timeout",
    "*.retries",
    "*.max_retries",
    "*.cache",
    "*.cache.*",
    "*.threads",
    "*.n_threads",
    "*.n_parallel",
    "*.cache_mib",
    "*.api_key_env",
    # what it costs
    "*.prices",
    "*.prices.*",
    "*.max_cost",
    "*.max_tokens_total",
    # of a training: what is kept, and how much is computed at once
    "trainer.save_every",
    "trainer.keep",
    "trainer.eval_every",
    "trainer.micro_batch",
    "trainer.micro_batch_tokens",
    "trainer.sample_every",
    "trainer.rollout.workers",
    "trainer.gradient_checkpointing",
    "base.device",
)
"""Settings that do not change an episode's result, as patterns over dotted keys. They may differ when a run is resumed and
are no part of the folder's name. Everything else is, also settings of plug-ins that agentexp has never seen."""


def flatten(config: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """(dotted key, value) of every leaf; lists and empty mappings are leaves."""
    for key, value in config.items():
        if isinstance(value, Mapping) and value:
            yield from flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def identity(config: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that change results, flat: dotted key -> value."""
    return {
        key: value for key, value in sorted(flatten(config)) if not any(fnmatch.fnmatchcase(key, name) for name in VOLATILE)
    }


def run_folder(output_root: Path, command: str, env: str, paradigm: str, model_label: str, config: Mapping[str, Any]) -> Path:
    """`<output_root>/<command>/<env>/<paradigm>/<model>-<hash8 of what changes results>`. Secrets change none."""
    label = re.sub(r"[^\w.+-]+", "_", model_label).strip("_.") or "model"
    return output_root / command / env / paradigm / f"{label[:80]}-{fingerprint(identity(scrub(config)))}"


def make_plan(tasks: Sequence[Task], seeds: Sequence[int], repeats: int, limit: int | None = None) -> list[Task]:
    """The first `limit` tasks x seeds x repeats, in frozen order.

    Whole passes over the tasks come first, so that a partial run has seen every task before any task twice.

    Raises:
        UserError: nothing to run, or a key that occurs twice.
    """
    chosen = tasks if limit is None else tasks[:limit]
    plan = [replace(task, seed=seed, repeat=repeat) for repeat in range(repeats) for seed in seeds for task in chosen]
    return checked(plan)


def checked(plan: list[Task]) -> list[Task]:
    """The plan, if it is not empty and every key is unique."""
    if not plan:
        raise UserError("There is nothing to run: the split has no tasks, or env.limit, seeds or repeats is 0.")
    if len({task.key for task in plan}) < len(plan):
        seen: set[str] = set()
        twice = next(task.key for task in plan if task.key in seen or seen.add(task.key))  # type: ignore[func-returns-value]
        raise UserError(
            f"The task {twice} occurs twice in the plan. Give every seed once, and every task of the world its own id."
        )
    return plan
