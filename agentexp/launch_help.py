"""`--help` of the running commands: Typer's part, then the config groups with their choices."""

from __future__ import annotations

import sys
from typing import Any

from typer.core import TyperCommand


class HydraHelp(TyperCommand):
    """A command whose help also lists the config groups, including those of `--config-dir`."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Append the groups; read from disk, without importing Hydra."""
        from agentexp.launch import groups

        formatter.write("\nConfig groups (choose with group=choice):\n")
        for group, choices in groups(_config_dir(sys.argv)).items():
            sign = "+" if group == "experiment" else ""
            formatter.write(f"  {sign}{group}={' | '.join(choices)}\n")
        formatter.write(
            "\nAny value can be overridden: env.limit=10 model.temperature=0.7 seed=1. Sweep: -m paradigm=react,map.\n"
        )
        formatter.write("All settings with their values: --cfg job. Your own configs: --config-dir DIR.\n")


def _config_dir(arguments: list[str]) -> str | None:
    for position, word in enumerate(arguments):
        if word == "--config-dir" and position + 1 < len(arguments):
            return arguments[position + 1]
        if word.startswith("--config-dir="):
            return word.partition("=")[2]
    return None
