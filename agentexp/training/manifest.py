"""`manifest.json` of a training run: the same file as other runs', with the base model and the data in place of a world."""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import agentexp
from agentexp import manifest, prompts
from agentexp.core import SCHEMA_VERSION
from agentexp.manifest import Manifest, git_state
from agentexp.packages import installed
from agentexp.scrub import scrub

if TYPE_CHECKING:
    from agentexp.training.job import Job

PACKAGES = ("torch", "transformers", "trl", "peft", "accelerate", "datasets", "deepspeed")


@runtime_checkable
class Versions(Protocol):
    """A component that says what made its results (hashes of weights and data)."""

    def versions(self) -> dict[str, str]:
        """Name -> version or hash. Compared when a training is resumed."""
        ...


def build_manifest(job: Job) -> Manifest:
    """Describe a training; nothing of it needs to be started."""
    base = getattr(job.trainer, "base", None)
    return {
        "schema": SCHEMA_VERSION,
        "command": job.command,
        "env": "",
        "paradigm": "",
        "model": job.label,
        "split": "",
        "seeds": [job.seed],
        "repeats": 1,
        "code": {"version": agentexp.__version__, **git_state()},
        "env_versions": {},
        "model_versions": {"base": _versions(base), "trainer": _versions(job.trainer)},
        "prompts": prompts.hashes(),
        "task_list": {"hash": "", "tasks": 0},
        "config": scrub(job.config),
        "python": platform.python_version(),
        "platform": platform.platform(),
        **({"evaluation": scrub(job.evaluation.config)} if job.evaluation else {}),
        "packages": installed((*manifest.PACKAGES, *PACKAGES)),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "planned": [],
    }


def _versions(component: Any) -> dict[str, str]:
    return dict(component.versions()) if isinstance(component, Versions) else {}
