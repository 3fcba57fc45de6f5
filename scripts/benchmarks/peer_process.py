"""The side of a peer's process that is the same for all peers: one load per line of stdin, its CPU time per line of stdout.

Runs in the peer's own virtual environment, so it imports nothing of agentexp.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple


class Load(NamedTuple):
    """What is driven: as `benchmarks.workload.Load`, with the texts of the conversation and the server's address."""

    url: str
    system: str
    observation: str
    in_flight: int
    turns: int
    episodes: int


def serve(drive: Callable[[Load], int]) -> None:
    """Drive every load that is asked for.

    Args:
        drive: runs a load and returns how many replies it got.
    """
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the peer prints is not an answer
    for line in sys.stdin:
        load = Load(**json.loads(line))
        cpu, wall = time.process_time(), time.perf_counter()
        replies = drive(load)
        found: dict[str, Any] = {"cpu_s": time.process_time() - cpu, "wall_s": time.perf_counter() - wall}
        if replies != load.turns * load.episodes:
            found = {"error": f"{replies} replies instead of {load.turns * load.episodes}"}
        answers.write(json.dumps(found) + "\n")
        answers.flush()
