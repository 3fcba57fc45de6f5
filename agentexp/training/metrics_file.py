"""`metrics.jsonl` of a training run: one line per optimiser step, in order, each step once."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from agentexp.records import dump


class MetricsFile:
    """The lines of `metrics.jsonl`, opened for writing. Torn ends have been repaired by `RunFolder`.

    A training that was killed has recorded steps after its last checkpoint. It makes them again, so the first step that comes
    again takes its old line away and everything after it.

    Args:
        path: the file; made where it is missing.

    Attributes:
        last: numbers of the newest line; empty before the first.
    """

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        self._starts: dict[int, int] = {}  # step -> byte at which its line begins; ascending in both
        self.last: dict[str, float] = {}
        self._own: set[int] = set()
        with path.open("rb") as lines:
            offset = 0
            for line in lines:
                self.last = json.loads(line)
                self._starts[int(self.last["step"])] = offset
                offset += len(line)

    def __len__(self) -> int:
        return len(self._starts)

    def record(self, step: int, values: Mapping[str, float]) -> dict[str, float]:
        """Write the line of a step; numbers of the same step that this process recorded before are kept beside the new ones.

        Returns:
            The whole line.

        Raises:
            OSError: the disk refused.
            ValueError: this process has recorded a later step already.
        """
        if self._own and step < max(self._own):
            raise ValueError(f"Step {step} comes after step {max(self._own)}.")
        before = self.last if step in self._own else {}
        line = {"step": step, **{key: value for key, value in before.items() if key != "step"}, **values}
        later = [start for known, start in self._starts.items() if known >= step]
        start = min(later, default=os.fstat(self._file).st_size)
        data = dump(line) + b"\n"
        os.pwrite(self._file, data, start)  # over the old line first: no moment without one
        os.ftruncate(self._file, start + len(data))
        self._starts = {known: at for known, at in self._starts.items() if known < step} | {step: start}
        self._own.add(step)
        self.last = line
        return line

    def close(self) -> None:
        """Onto the disk. Safe to call twice."""
        if self._file >= 0:
            os.fsync(self._file)
            os.close(self._file)
            self._file = -1


def read_metrics(folder: Path) -> list[dict[str, float]]:
    """The lines of a run folder's `metrics.jsonl`, oldest first; a torn last line (of a running training) is left out."""
    with (folder / "metrics.jsonl").open("rb") as lines:
        return [json.loads(line) for line in lines if line.endswith(b"\n")]
