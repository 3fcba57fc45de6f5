"""`--help` of the running commands: Typer's part, then the config groups with their choices."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from typer.core import TyperCommand

# Of `wise-run` alone; it shares only the logger with the other commands.
WISE_GROUPS = ("method", "world", "task", "vision", "encoder", "controller", "memory", "scheduler")
TRAIN_GROUPS = ("base", "trainer")  # of the training commands alone
HIDDEN_GROUPS = ("accelerate",)  # files for accelerate

# Experiments of ours by the beginning of their names, and the command that each is for; all others are for `eval` and its like.
EXPERIMENTS = {
    "wise_": "wise-run",
    "sft_": "train-sft",
    "smoke_sft": "train-sft",
    "grpo_": "train-grpo",
    "smoke_grpo": "train-grpo",
    "thinker_": "train-thinker",
    "smoke_thinker": "train-thinker",
}

EXAMPLES = {
    "wise": "budget=2000 seeds=5 world.obstacles=rooms. Sweep: -m method=wise,mrsteve",
    "train": "trainer.lr=2e-5 seed=1. A tiny training from nothing: +experiment=smoke. Sweep: -m seed=0,1,2",
    "": "env.limit=10 model.temperature=0.7 seed=1. Sweep: -m paradigm=react,map",
}


class HydraHelp(TyperCommand):
    """A command whose help also lists the config groups, including those of `--config-dir`."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Append the groups; read from disk, without importing Hydra."""
        from agentexp.launch import groups

        family = next((name for name in ("wise", "train") if str(ctx.info_name).startswith(f"{name}-")), "")
        formatter.write("\nConfig groups (choose with group=choice):\n")
        for group, choices in groups(_config_dir(sys.argv)).items():
            if group == "experiment":
                mine = [name for name in choices if not _of_another(name, str(ctx.info_name))]
                formatter.write(f"  +experiment={' | '.join(mine)}\n")
            elif _shown(group, family):
                formatter.write(f"  {group}={' | '.join(choices)}\n")
        formatter.write(f"\nAny value can be overridden: {EXAMPLES[family]}.\n")
        formatter.write("All settings with their values: --cfg job. Your own configs: --config-dir DIR.\n")


def _shown(group: str, family: str) -> bool:
    """Whether the commands of this family use the group."""
    if group == "logger":
        return True
    own = {"wise": WISE_GROUPS, "train": (*TRAIN_GROUPS, "env", "model", "paradigm")}
    if family:
        return group in own[family]
    return group not in (*WISE_GROUPS, *TRAIN_GROUPS, *HIDDEN_GROUPS)


def _of_another(experiment: str, command: str) -> str:
    """The command that an experiment of ours is for, unless it is this one or one like it."""
    from agentexp.launch import conf_dir

    if not (conf_dir() / "experiment" / f"{experiment}.yaml").is_file():
        return ""
    found = next((name for start, name in EXPERIMENTS.items() if experiment.startswith(start)), "eval")
    own = command if command in EXPERIMENTS.values() else "eval"
    return "" if found == own else found


def check_experiments(command: str, overrides: Sequence[str]) -> None:
    """Refuse an experiment of ours that is for another command: what Hydra says of it names settings that nobody typed.

    Raises:
        UserError: with the command that it is for.
    """
    from agentexp.errors import UserError

    for override in overrides:
        key, _, value = override.partition("=")
        if key.lstrip("+") == "experiment":
            for name in value.split(","):
                if other := _of_another(name, command):
                    raise UserError(f"experiment={name} is for agentexp {other}, not for agentexp {command}.")


def _config_dir(arguments: list[str]) -> str | None:
    for position, word in enumerate(arguments):
        if word == "--config-dir" and position + 1 < len(arguments):
            return arguments[position + 1]
        if word.startswith("--config-dir="):
            return word.partition("=")[2]
    return None
