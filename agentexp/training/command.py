"""`agentexp train-sft`, `train-grpo`, `train-thinker`: from a composed config to a training job."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from agentexp.commands import resolved
from agentexp.config import Overrides, build, checked_dataclass, fingerprint, nearest
from agentexp.errors import UserError
from agentexp.plan import identity
from agentexp.scrub import scrub
from agentexp.tracking import Tracker
from agentexp.training.core import Trainer
from agentexp.training.evaluate import Evaluation
from agentexp.training.job import Job, Plans, rank

COMPONENTS = ("base", "trainer", "logger")
EPISODES = ("env", "model", "paradigm", "stopping", "parsing", "budget", "limits", "explore", "roles", "evaluation")
"""Groups of the commands that run episodes. A trainer that plays finds those of its config in `TrainRun.config`."""


@dataclass(frozen=True, slots=True)
class TrainSettings:
    """Top-level keys of the training commands, without the component groups."""

    command: str
    output_root: str
    seed: int
    threads: int | None
    resume: Literal["refuse", "ignore"]
    progress: Literal["auto", "rich", "plain", "off"]


def aliased(command: str, overrides: Sequence[str]) -> list[str]:
    """`+experiment=smoke` as the command's own smoke experiment, for example `smoke_sft`."""
    own = f"+experiment=smoke_{command.removeprefix('train-')}"
    return [own if override in ("+experiment=smoke", "experiment=smoke") else override for override in overrides]


def train_job(*, dry_run: bool = False) -> Callable[[Any], int]:
    """The job of a training command; returns the exit code."""

    def job(node: Any) -> int:
        made = make_job(*resolved(_without_world(node)))
        if dry_run:
            show_plan(made)
            return 0
        return made.run()

    return job


def _without_world(node: Any) -> Any:
    """The config without what only an evaluation in the loop would use, where no world is chosen: it cannot be resolved."""
    from omegaconf import OmegaConf

    if "evaluation" not in node or node.get("env") is not None:
        return node
    return OmegaConf.masked_copy(node, [key for key in node if key not in EPISODES])


def make_job(config: Mapping[str, Any], overrides: Overrides) -> Job:
    """Check everything and construct the training; starts nothing and imports no torch.

    Raises:
        UserError: a wrong setting.
    """
    plain = {key: value for key, value in config.items() if key not in (*COMPONENTS, *EPISODES)}
    for key in plain:
        known = (*TrainSettings.__dataclass_fields__, *COMPONENTS, *EPISODES)
        if key not in known:
            raise UserError(f"'{key}' is not a setting.{nearest(key, known)} Valid keys: {', '.join(sorted(known))}.")
    settings: TrainSettings = checked_dataclass(TrainSettings, plain, "", overrides)
    if settings.threads is not None and settings.threads < 1:
        raise UserError(f"threads must be at least 1, or null, not {settings.threads}.")
    trainer = build(config["trainer"], "trainer", overrides, Trainer)
    # `base` is part of the trainer's settings as well
    known_config = {**config, "trainer": {key: value for key, value in config["trainer"].items() if key != "base"}}
    known_config.pop("threads")  # how fast
    wanted = (config.get("evaluation") or {}).get("tasks") != 0
    evaluation = Evaluation(config, overrides) if "evaluation" in config and wanted else None
    if not getattr(trainer, "learns_from_episodes", True):  # what is played on the way changes no weights
        known_config = {key: value for key, value in known_config.items() if key not in EPISODES}
    label = base_label(trainer, config["base"])
    root = Path(settings.output_root).expanduser()
    return Job(
        command=settings.command,
        config=known_config,
        folder=root / settings.command / f"{label}-{fingerprint(identity(scrub(known_config)))}",
        label=label,
        seed=settings.seed,
        trainer=trainer,
        logger=build(config["logger"], "logger", overrides, Tracker),
        resume=settings.resume,
        progress=settings.progress,
        threads=settings.threads,
        evaluation=evaluation,
    )


def base_label(trainer: Trainer, node: Mapping[str, Any]) -> str:
    """A short name of the base model, fit for a folder's name."""
    import re

    label = getattr(getattr(trainer, "base", None), "name", None) or str(node.get("path") or "base").rstrip("/")
    return re.sub(r"[^\w.+-]+", "_", str(label).rpartition("/")[2]).strip("_.")[:80] or "base"


def show_plan(job: Job) -> None:
    """Print the checked settings and what would be trained."""
    import yaml
    from rich.console import Console

    if rank() > 0:
        return
    console = Console(soft_wrap=True, highlight=False)
    console.print(yaml.safe_dump(scrub(dict(job.config)), sort_keys=False, allow_unicode=True), markup=False)
    for line in job.trainer.plan() if isinstance(job.trainer, Plans) else ():
        console.print(line, markup=False)
    console.print(f"Run folder: {job.folder}", markup=False)
