"""Which training tasks stage 1 explores: chosen by rule, so that K_g does not depend on luck (SPEC: one per task type)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from agentexp.core import Env, Task
from agentexp.errors import UserError
from agentexp.paradigms.checks import check_not_test, usable_splits

MAX_DEPTH = 3  # TextCraft: recipes deeper than this are too rare to be typical


def select_tasks(env: Env, n: int = 6, split: str = "train", seed: int = 0, skip: Sequence[Task] = ()) -> list[Task]:
    """`n` tasks spread over the kinds of task: as many kinds as possible, the same number of each, first ones first.

    With six ALFWorld kinds that is one of each; with ScienceWorld's thirty, six kinds evenly spaced; with TextCraft's recipe
    depths, two each of depths 1, 2 and 3.

    Args:
        env: the world.
        n: how many.
        split: where from; must not be a test split.
        seed: set in every task.
        skip: tasks that must not be chosen again.

    Raises:
        UserError: there is no such split, it is a test split, or it has fewer than `n` tasks.
    """
    if split not in env.splits():
        raise UserError(f"env={env.name} has no split '{split}'; usable for exploration: {usable_splits(env)}.")
    taken = {task.id for task in skip}
    tasks = [task for task in env.tasks(split) if task.id not in taken]
    by_kind: dict[str, list[Task]] = {}
    for task in tasks:
        by_kind.setdefault(task.kind, []).append(task)
    kinds = sorted(by_kind, key=_natural)
    if env.name == "textcraft":
        kinds = [kind for kind in kinds if (depth := re.search(r"\d+", kind)) and int(depth[0]) <= MAX_DEPTH] or kinds
    if len(kinds) > n:
        kinds = [kinds[i * len(kinds) // n] for i in range(n)]
    chosen: list[Task] = []
    rounds = max((len(by_kind[kind]) for kind in kinds), default=0)
    for i in range(rounds):
        chosen += [by_kind[kind][i] for kind in kinds if i < len(by_kind[kind])]
    if len(chosen) < n:
        raise UserError(
            f"Split '{split}' of env={env.name} has only {len(chosen)} tasks to explore, but {n} are wanted: "
            "set paradigm.n_tasks."
        )
    check_not_test(chosen[:n], env)
    return [replace(task, seed=seed) for task in chosen[:n]]


def _natural(kind: str) -> list[tuple[int, str]]:
    """Sort key with numbers in numeric order."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", kind) if part]
