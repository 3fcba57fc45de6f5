"""`--help` of the running commands: Typer's part, then the config groups with their choices."""

from __future__ import annotations

import sys
from typing import Any

from typer.core import TyperCommand

# Of `wise-run` alone; it shares only the logger with the other commands.
WISE_GROUPS = ("method", "world", "task", "vision", "encoder", "controller", "memory", "scheduler")
TRAIN_GROUPS = ("base", "trainer")  # of the training commands alone
HIDDEN_GROUPS = ("accelerate",)  # files for accelerate

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
            if _shown(group, family):
                sign = "+" if group == "experiment" else ""
                formatter.write(f"  {sign}{group}={' | '.join(choices)}\n")
        formatter.write(f"\nAny value can be overridden: {EXAMPLES[family]}.\n")
        formatter.write("All settings with their values: --cfg job. Your own configs: --config-dir DIR.\n")


def _shown(group: str, family: str) -> bool:
    """Whether the commands of this family use the group."""
    if group == "logger":
        return True
    own = {"wise": WISE_GROUPS, "train": (*TRAIN_GROUPS, "experiment", "env", "model", "paradigm")}
    if family:
        return group in own[family]
    return group not in (*WISE_GROUPS, *TRAIN_GROUPS, *HIDDEN_GROUPS)


def _config_dir(arguments: list[str]) -> str | None:
    for position, word in enumerate(arguments):
        if word == "--config-dir" and position + 1 < len(arguments):
            return arguments[position + 1]
        if word.startswith("--config-dir="):
            return word.partition("=")[2]
    return None
