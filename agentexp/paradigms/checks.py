"""Checks that several paradigms make before anything runs. All raise `UserError`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agentexp.core import Env, Task
from agentexp.errors import UserError


def require_choice(setting: str, value: str, choices: tuple[str, ...]) -> None:
    """`value` must be one of `choices`."""
    if value not in choices:
        raise UserError(f"{setting}={value} is not possible; choose one of: {', '.join(choices)}.")


def is_test_split(split: str) -> bool:
    """Whether results are reported on this split. Everything counts that is not named after training or development.

    Official ALFWorld names: `valid_train` is part of the training scenes, `valid_seen` and `valid_unseen` are test data.
    """
    return "train" not in split and split not in ("dev", "development")


def usable_splits(env: Env) -> str:
    """The splits that may be explored, for messages."""
    return ", ".join(split for split in env.splits() if not is_test_split(split)) or "this world has none"


def check_not_test(tasks: Iterable[Task], env: Env) -> None:
    """No task may belong to a test split, by the split's name or by being the same instance as a test task.

    Ids are names inside their split, so an equal id in another split is not a leak unless the instance data agree.
    """
    chosen = list(tasks)
    for task in chosen:
        if is_test_split(task.split):
            raise UserError(
                f"Task {task.id} is in split '{task.split}', and exploring test data would leak it into K_g. "
                f"Choose a training split: {usable_splits(env)}."
            )
    wanted = {_fingerprint(task): task for task in chosen if task.spec}  # without a spec there is only the id
    for split in filter(is_test_split, env.splits()):
        try:
            held_out = env.tasks(split)
        except UserError:
            continue  # its data are not installed: nothing of it can have been explored
        for task in held_out:
            if (twin := wanted.get(_fingerprint(task))) is not None:
                raise UserError(f"Task {twin.id} of split '{twin.split}' is the same instance as task {task.id} of '{split}'.")


def _fingerprint(task: Task) -> tuple[str, str]:
    return task.id, repr(sorted(task.spec.items()))


def check_sources(document: dict[str, Any], env: Env, where: str) -> None:
    """A saved K_g must be of this world and must not come from test tasks."""
    if document.get("env") not in (None, env.name):
        raise UserError(
            f"{where} holds knowledge of env={document['env']}, but this run has env={env.name}. "
            "Build it with `agentexp explore`."
        )
    sources = document.get("provenance", {}).get("tasks", [])
    leaks = [source for source in sources if is_test_split(str(source.get("split", "train")))]
    if leaks:
        raise UserError(f"{where} was explored on test tasks ({leaks[0]['id']} of '{leaks[0]['split']}'): it must not be used.")
