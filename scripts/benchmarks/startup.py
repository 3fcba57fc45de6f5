"""How long `agentexp eval` takes to its first model request, beside the imports that it cannot do without."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.processes import Took, command, environment, free_port, until_end, until_request

FLOOR = "import hydra, openai"


def start_up(scratch: Path, worlds: Sequence[str], rounds: int) -> dict[str, Any]:
    """Seconds to the first request by world; the least of the rounds, commands and floor in turn.

    Args:
        scratch: a folder for the runs.
        worlds: choices of `env=`; those that cannot run are reported with the reason.
        rounds: after one that is not counted, in which bytecode is written.
    """
    environ, port = environment(), free_port()
    took: dict[str, list[Took]] = {name: [] for name in ("floor", *worlds)}
    skipped: dict[str, str] = {}
    for number in range(rounds + 1):
        for name in took:
            if name in skipped:
                continue
            try:
                if name == "floor":
                    one = until_end([sys.executable, "-c", FLOOR], environ)
                else:
                    fresh = f"output_root={scratch / f'start-{name}-{number}'}"
                    one = until_request(command("eval", "paradigm=react", f"env={name}", "env.limit=2", fresh), environ, port)
            except RuntimeError as error:
                skipped[name] = str(error)
                continue
            if number:
                took[name].append(one)
    floor = Took.least(took["floor"])
    found: dict[str, Any] = {"floor": FLOOR, "floor_s": floor._asdict()}
    for name in worlds:
        if name in skipped:
            found[name] = {"skipped": skipped[name].splitlines()[-1] if skipped[name] else "it failed"}
            continue
        least = Took.least(took[name])
        ratio = round(least.cpu_s / floor.cpu_s, 2)
        found[name] = {**least._asdict(), "cpu_ratio_to_floor": ratio}
    return found
