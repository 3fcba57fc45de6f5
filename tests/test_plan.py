from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentexp.core import Task
from agentexp.manifest import differences, git_state, task_list_hash
from agentexp.plan import identity, make_plan, run_folder

TASKS = [Task(f"t{i}", "w", "test") for i in range(3)]


def test_the_plan_sees_every_task_before_any_task_twice() -> None:
    plan = make_plan(TASKS, seeds=[0, 7], repeats=2, limit=2)
    assert [(t.repeat, t.seed, t.id) for t in plan] == [(r, s, t) for r in (0, 1) for s in (0, 7) for t in ("t0", "t1")]


CONFIG: dict[str, Any] = {
    "output_root": "outputs",
    "seed": 0,
    "concurrency": None,
    "env": {"_target_": "x.Env", "split": "test", "limit": 3, "step_timeout": 60.0, "in_process": False},
    "model": {"_target_": "x.Model", "name": "m", "temperature": 0.0, "timeout": 60, "prices": {"input": 1.0}},
    "roles": {"thinker": {"_target_": "x.Model", "name": "n", "retries": 3}},
    "limits": {"seconds": None, "tokens": 100},
    "logger": {"_target_": "x.L", "mode": "offline"},
}


def changed(path: str, value: Any) -> dict[str, Any]:
    head, _, rest = path.partition(".")
    if not rest:
        return {**CONFIG, head: value}
    middle, _, last = rest.partition(".")
    return {**CONFIG, head: {**CONFIG[head], middle: {**CONFIG[head][middle], last: value} if last else value}}


@pytest.mark.parametrize(
    "path",
    [
        *(
            "output_root",
            "concurrency",
            "env.limit",
            "env.step_timeout",
            "env.in_process",
            "model.timeout",
            "model.prices.input",
        ),
        *("limits.seconds", "logger.mode", "logger", "roles.thinker.retries"),
    ],
)
def test_the_folder_does_not_depend_on(path: str) -> None:
    assert folder(changed(path, "other")) == folder(CONFIG)


@pytest.mark.parametrize(
    "path", ["seed", "env.split", "model.name", "model.temperature", "roles.thinker.name", "limits.tokens"]
)
def test_the_folder_depends_on(path: str) -> None:
    assert folder(changed(path, "other")) != folder(CONFIG)


def folder(config: dict[str, Any]) -> Path:
    return run_folder(Path("out"), "eval", "w", "react", "Qwen/Qwen3-4B@rev", config)


def test_the_folder_is_readable_and_stable() -> None:
    assert folder(CONFIG).parent == Path("out/eval/w/react")
    assert folder(CONFIG).name.startswith("Qwen_Qwen3-4B_rev-")
    assert folder(dict(reversed(CONFIG.items()))) == folder(CONFIG)
    assert "env.limit" not in identity(CONFIG)


def test_the_task_list_hash_sees_order_and_content() -> None:
    assert task_list_hash(TASKS) == task_list_hash(list(TASKS))
    assert task_list_hash(TASKS) != task_list_hash(TASKS[::-1])
    assert task_list_hash(TASKS) != task_list_hash(TASKS[:2])


def test_git_state_has_commit_tree_and_dirty_or_none_of_them() -> None:
    state = git_state()
    assert set(state) == {"commit", "tree", "dirty"}
    assert len({value is None for value in state.values()}) == 1


def test_a_commit_that_leaves_the_package_alone_changes_nothing() -> None:
    manifest = {
        **dict.fromkeys(("schema", "command", "env", "paradigm", "model", "split", "seeds", "repeats")),
        "config": CONFIG,
        "code": {"version": "1", "commit": "a", "tree": "t", "dirty": False},
        "env_versions": {},
        "model_versions": {},
        "prompts": {"react/system.j2": "h"},
        "task_list": {"hash": "h"},
    }
    same = {**manifest, "code": {**manifest["code"], "commit": "b", "dirty": True}}  # type: ignore[dict-item]
    assert list(differences(manifest, same)) == []
    other = {**manifest, "code": {**manifest["code"], "tree": "u"}, "prompts": {"react/system.j2": "i"}}  # type: ignore[dict-item]
    assert list(differences(manifest, other)) == [("code.tree", "t", "u"), ("prompts.react/system.j2", "h", "i")]
