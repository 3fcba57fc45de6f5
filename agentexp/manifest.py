"""`manifest.json`: everything that made the results of a run, and the check that a resumed run is still the same run."""

from __future__ import annotations

import hashlib
import json
import logging
import platform
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import agentexp
from agentexp import prompts
from agentexp.core import SCHEMA_VERSION, Task
from agentexp.errors import UserError
from agentexp.packages import installed
from agentexp.plan import identity
from agentexp.records import dump
from agentexp.scrub import scrub

if TYPE_CHECKING:
    from agentexp.run import Run

log = logging.getLogger(__name__)

Resume = Literal["refuse", "ignore"]
Manifest = dict[str, Any]
Change = tuple[str, Any, Any]

PACKAGES = ("agentexp", "hydra-core", "omegaconf", "openai", "aiohttp", "jinja2", "pydantic", "scipy", "pandas", "wandb")
"""Recorded; only a warning when they differ. What runs worlds and models comes from their own `versions()` and is compared."""

SHOWING = (
    "cli.py",
    "cli_app.py",
    "doctor.py",
    "export",
    "inventory.py",
    "launch.py",
    "launch_help.py",
    "metrics",
    "output.py",
    "progress.py",
    "reports",
    "summary.py",
    "sweep.py",
    "tracking.py",
    "view",
)
"""Parts of the package that only show what the records hold."""

WAYS_ON = "Go on there all the same with resume=ignore, start afresh elsewhere with output_root=, or remove the folder."


def build_manifest(run: Run, tasks: Sequence[Task], plan: Sequence[Task]) -> Manifest:
    """Describe a run.

    Args:
        run: nothing of it needs to be started.
        tasks: all tasks of the split, before any limit; their hash tells whether the data changed.
        plan: what this command runs.
    """
    return {
        "schema": SCHEMA_VERSION,
        "command": run.command,
        "env": run.env.name,
        "paradigm": run.paradigm.name,
        "model": run.models["actor"].label,
        "split": run.split,
        "seeds": list(run.seeds),
        "repeats": run.repeats,
        "code": {"version": agentexp.__version__, **git_state()},
        "env_versions": dict(run.env.versions()),
        "model_versions": {role: dict(model.versions()) for role, model in sorted(run.models.items())},
        "prompts": prompts.hashes(),  # of all: paradigms use each other's (MAP acts with ReAct's)
        "task_list": {"hash": task_list_hash(tasks), "tasks": len(tasks)},
        "config": scrub(run.config),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": installed(PACKAGES),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "planned": [task.key for task in plan],
    }


def settle(old: Manifest | None, new: Manifest, resume: Resume, folder: Path) -> Manifest:
    """The manifest to keep when `new` is about to go on with the run that `old` describes.

    Raises:
        UserError: with `resume` "refuse", when something differs that changes results; the message lists every difference.
    """
    if old is None:
        return new
    changes = list(differences(old, new))
    if changes and resume == "refuse":
        listed = "\n".join(f"  {key}: {_short(a)} -> {_short(b)}" for key, a, b in changes)
        raise UserError(f"{folder} holds episodes of another run:\n{listed}\n{WAYS_ON}")
    for key, a, b in changes:
        log.warning("Resuming although %s changed: %s -> %s.", key, _short(a), _short(b))
    for key, a, b in _compare(old.get("packages", {}), new["packages"], "packages"):
        log.warning("Resuming with another version of a package, %s: %s -> %s.", key, a, b)
    return continued(old, new, changes)


def continued(old: Manifest, new: Manifest, changes: Sequence[Change]) -> Manifest:
    """`new` for a run that goes on: with the date when it began, and under "history" what has changed on the way."""
    history = list(old.get("history", []))
    if changes:
        history.append({"at": new["created"], "changes": {key: [a, b] for key, a, b in changes}})
    kept = {**new, "created": old.get("created", new["created"])}
    return {**kept, "history": history} if history else kept


def differences(old: Manifest, new: Manifest) -> Iterable[Change]:
    """(key, old value, new value) of everything that changes results.

    Not compared: settings of `agentexp.plan.VOLATILE`, the plan's length, whether the checkout is dirty, the commit as such
    (the tree is, see `git_state`), packages.
    """
    for key in ("schema", "command", "env", "paradigm", "model", "split", "seeds", "repeats"):
        if old.get(key) != new[key]:
            yield key, old.get(key), new[key]
    yield from _compare(identity(old.get("config", {})), identity(_plain(new["config"])), "config")
    old_code, new_code = old.get("code", {}), new["code"]
    for key in ("version", "tree"):
        if old_code.get(key) != new_code.get(key):
            yield f"code.{key}", old_code.get(key), new_code.get(key)
    yield from _compare(old.get("env_versions", {}), new["env_versions"], "env_versions")
    for role in sorted({*old.get("model_versions", {}), *new["model_versions"]}):
        before, now = old.get("model_versions", {}).get(role, {}), new["model_versions"].get(role, {})
        yield from _compare(before, now, f"model_versions.{role}")
    yield from _compare(old.get("prompts", {}), new["prompts"], "prompts")
    if old.get("task_list", {}).get("hash") != new["task_list"]["hash"]:
        yield "task_list.hash", old.get("task_list", {}).get("hash"), new["task_list"]["hash"]


def _plain(config: Mapping[str, Any]) -> Any:
    """As it reads back from the file (tuples are lists there)."""
    return json.loads(dump(config))


def _compare(old: Mapping[str, Any], new: Mapping[str, Any], prefix: str) -> Iterable[Change]:
    for key in sorted({*old, *new}):
        if old.get(key) != new.get(key):
            yield f"{prefix}.{key}", old.get(key), new.get(key)


def _short(value: Any) -> str:
    text = dump(value).decode()
    return text if len(text) <= 120 else text[:117] + "..."


def task_list_hash(tasks: Sequence[Task]) -> str:
    """Hash over ids, kinds and specs of a split in its order."""
    digest = hashlib.blake2b(digest_size=12)
    for task in tasks:
        digest.update(dump([task.id, task.kind, task.spec]) + b"\n")
    return digest.hexdigest()


@cache
def git_state() -> dict[str, Any]:
    """Commit of the checkout that this code runs from, the tree of the package in it and whether it has uncommitted changes.

    All None for an installed package. "tree" is what is compared: a hash over the committed files that can change an episode,
    so that a commit to the documentation or to a table does not stop a run from being resumed.
    """
    package = Path(__file__).resolve().parent

    def git(*arguments: str) -> str | None:
        try:
            done = subprocess.run(
                ["git", "-C", str(package), *arguments], capture_output=True, text=True, timeout=10, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    entries = git("ls-tree", "HEAD", "./")  # lines "mode type hash<tab>name", relative to the package
    if not entries:  # no git, or a package that lies in somebody else's repository without being part of it
        return {"commit": None, "tree": None, "dirty": None}
    counted = "\n".join(line for line in entries.splitlines() if line.partition("\t")[2] not in SHOWING)
    tree = hashlib.blake2b(counted.encode(), digest_size=12).hexdigest()
    changed = git("status", "--porcelain", "--", ".")
    return {"commit": git("rev-parse", "HEAD"), "tree": tree, "dirty": bool(changed)}
