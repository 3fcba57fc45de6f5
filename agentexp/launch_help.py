"""`--help` of the running commands: Typer's part, then the config groups with their choices."""

from __future__ import annotations

import sys
from typing import Any

from typer.core import TyperCommand

WISE_GROUPS = ("method", "world")  # of `wise-run` alone; it shares only the logger with the other commands


class HydraHelp(TyperCommand):
    """A command whose help also lists the config groups, including those of `--config-dir`."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Append the groups; read from disk, without importing Hydra."""
        from agentexp.launch import groups

        wise = ctx.info_name == "wise-run"
        formatter.write("\nConfig groups (choose with group=choice):\n")
        for group, choices in groups(_config_dir(sys.argv)).items():
            if (group in WISE_GROUPS) != wise and group != "logger":
                continue
            sign = "+" if group == "experiment" else ""
            formatter.write(f"  {sign}{group}={' | '.join(choices)}\n")
        examples = (
            "budget=2000 seeds=5 world.obstacles=rooms. Sweep: -m method=wise,mrsteve"
            if wise
            else "env.limit=10 model.temperature=0.7 seed=1. Sweep: -m paradigm=react,map"
        )
        formatter.write(f"\nAny value can be overridden: {examples}.\n")
        formatter.write("All settings with their values: --cfg job. Your own configs: --config-dir DIR.\n")


def _config_dir(arguments: list[str]) -> str | None:
    for position, word in enumerate(arguments):
        if word == "--config-dir" and position + 1 < len(arguments):
            return arguments[position + 1]
        if word.startswith("--config-dir="):
            return word.partition("=")[2]
    return None
