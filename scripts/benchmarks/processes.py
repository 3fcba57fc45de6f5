"""Commands in processes of their own, timed: until they end, or until their first model request."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from typing import NamedTuple

import psutil
from fake_server import FakeServer

_LONGEST = 300.0


class Took(NamedTuple):
    """Seconds of a command: on the clock, and of the processor (with its child processes)."""

    wall_s: float
    cpu_s: float

    @classmethod
    def least(cls, several: Sequence[Took]) -> Took:
        """The smallest of each."""
        return cls(round(min(one.wall_s for one in several), 3), round(min(one.cpu_s for one in several), 3))


def environment() -> dict[str, str]:
    """The environment of the commands: bytecode is kept, as after an installation, and no key is there."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONDONTWRITEBYTECODE", "OPENAI_API_KEY")}
    return {**kept, "PYTHONPYCACHEPREFIX": _bytecode().name}


@cache
def _bytecode() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="bench-bytecode-")  # for as long as this process lives


def command(name: str, *arguments: str) -> list[str]:
    """An `agentexp` command line of this interpreter."""
    return [sys.executable, "-m", "agentexp", name, *arguments]


def until_end(line: Sequence[str], environ: dict[str, str]) -> Took:
    """Run a command to its end.

    Raises:
        RuntimeError: it failed.
    """
    with tempfile.TemporaryFile() as output:
        started, before = time.perf_counter(), _children()
        done = subprocess.run(line, env=environ, stdout=output, stderr=output, timeout=_LONGEST, check=False)
        took = Took(time.perf_counter() - started, _children() - before)
        if done.returncode:
            output.seek(0)
            raise RuntimeError(f"{' '.join(line)} failed: {output.read()[-800:].decode(errors='replace')}")
    return took


def _children() -> float:
    times = os.times()
    return times.children_user + times.children_system


def model_at(port: int) -> list[str]:
    """Overrides for a fake server at a port of this machine."""
    return ["model=openai", "model.name=fake", f"model.base_url=http://127.0.0.1:{port}/v1"]


def free_port() -> int:
    """A port that nobody uses now: a run folder belongs to its server's address, so that must stay the same."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def until_request(line: Sequence[str], environ: dict[str, str], port: int) -> Took:
    """Run a command whose model is at `port` until its first model request arrives, then end it.

    Raises:
        RuntimeError: it ended before.
    """
    return asyncio.run(_until_request(line, environ, port))


async def _until_request(line: Sequence[str], environ: dict[str, str], port: int) -> Took:
    server = FakeServer(delay=_LONGEST, log=False)
    await server.start(port=port)
    try:
        started = time.perf_counter()
        asked = [*line, *model_at(port)]
        child = subprocess.Popen(asked, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)
        try:
            while not server.count:
                if child.poll() is not None or time.perf_counter() - started > _LONGEST:
                    said = child.stderr.read()[-800:].decode(errors="replace") if child.stderr and child.returncode else ""
                    raise RuntimeError(f"{' '.join(asked)} made no request: {said}")
                await asyncio.sleep(0.001)
            return Took(time.perf_counter() - started, _cpu(child.pid))
        finally:
            for process in _tree(child.pid):
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            child.wait()
    finally:
        await server.stop()


def _tree(pid: int) -> list[psutil.Process]:
    process = psutil.Process(pid)
    return [*process.children(recursive=True), process]


def _cpu(pid: int) -> float:
    total = 0.0
    for process in _tree(pid):
        with suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total
