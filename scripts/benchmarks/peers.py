"""Other harnesses on the same server and the same workload, each in a virtual environment of its own, in turn with ours."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fake_server import spawn

from benchmarks.turns import sample, warm_up
from benchmarks.workload import OBSERVATION, REPLY, SYSTEM, Load, harness


@dataclass(frozen=True, slots=True)
class Peer:
    """Another harness.

    Attributes:
        name: of the distribution.
        requirement: what pip installs.
        script: drives the workload, see `peer_process`.
    """

    name: str
    requirement: str
    script: str

    def python(self, root: Path) -> Path:
        """The interpreter of its environment below `root`, which is made when it is not there."""
        folder = root / self.name
        python, made = folder / "bin" / "python", folder / ".made"
        if not made.exists() or made.read_text() != self.requirement:
            print(f"Installing {self.requirement} into {folder} ...", flush=True)
            subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
            subprocess.run([str(python), "-m", "pip", "install", "--quiet", self.requirement], check=True)
            made.write_text(self.requirement)
        return python


PEERS = (
    Peer("inspect-ai", "inspect-ai>=0.3.285", "peer_inspect.py"),
    Peer("verifiers", "verifiers==0.1.14", "peer_verifiers.py"),
)


class Running:
    """A peer's process."""

    def __init__(self, peer: Peer, python: Path) -> None:
        self.peer = peer
        code = f"import importlib.metadata as m; print(m.version({peer.name!r}))"
        self.version = subprocess.run([str(python), "-c", code], check=True, capture_output=True, text=True).stdout.strip()
        script = Path(__file__).with_name(peer.script)
        self._process = subprocess.Popen(
            [str(python), str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def cpu_ms_per_turn(self, url: str, load: Load) -> float:
        """CPU milliseconds of the peer's process per turn. Raises `RuntimeError` where it did not do its work."""
        asked = {"url": url, "system": SYSTEM, "observation": OBSERVATION}
        asked |= {"in_flight": load.in_flight, "turns": load.turns, "episodes": load.episodes}
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline() or '{"error": "it ended"}')
        if "error" in answer:
            raise RuntimeError(f"{self.peer.name} did not play the episodes: {answer['error']}")
        return float(answer["cpu_s"]) / load.total * 1e3

    def end(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()


@contextmanager
def started(root: Path) -> Iterator[list[Running]]:
    """Processes of all peers."""
    running: list[Running] = []
    try:
        for peer in PEERS:
            running.append(Running(peer, peer.python(root)))  # noqa: PERF401 - those before a failure must be ended
        yield running
    finally:
        for one in running:
            one.end()


def compare(root: Path, turns: Sequence[int], in_flight: int, reply_ms: float) -> dict[str, Any]:
    """CPU per turn of every peer, between two measurements of ours, and how many times ours that is."""
    found: dict[str, Any] = {"cpu_ms_per_turn": {}}
    with started(root) as peers, spawn("--delay", str(reply_ms / 1e3), "--policy", REPLY, "--no-log") as url:
        warm_up(url, harness)
        for peer in peers:
            found[peer.peer.name] = {"version": peer.version, "cpu_ms_per_turn": {}, "times_ours": {}}
            peer.cpu_ms_per_turn(url, Load(4, 3, 4))  # imports and first connections
        for n in turns:
            load = Load.of(in_flight, n, 20 * in_flight)
            before = sample(url, harness, load).cpu_ms_per_turn
            costs = {peer.peer.name: peer.cpu_ms_per_turn(url, load) for peer in peers}
            ours = (before + sample(url, harness, load).cpu_ms_per_turn) / 2
            found["cpu_ms_per_turn"][str(n)] = round(ours, 4)
            for name, cost in costs.items():
                found[name]["cpu_ms_per_turn"][str(n)] = round(cost, 3)
                found[name]["times_ours"][str(n)] = round(cost / ours, 1)
    return found
