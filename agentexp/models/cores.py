"""How many CPU cores are free."""

from __future__ import annotations

import os


def free_cores() -> int:
    """Cores that this process may use, less the load of the last minute; may be 0 or negative on a busy machine."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return cores - round(os.getloadavg()[0])
