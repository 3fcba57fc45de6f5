"""A model server in a child process, which ends with us whatever happens.

The child gets a pipe as standard input and must end when it closes: `llama_server` does so itself, other programs run under
`guard`. The system closes the pipe even when this process is killed, so nothing is left behind.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import tempfile
import time
import weakref
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import IO

from agentexp.errors import UserError

STOP_SECONDS = 15.0


class ServerProcess:
    """One running server.

    Args:
        command: program and arguments. Its output goes to a temporary file that only error messages quote.
        name: what to call it in messages ("vllm serve NAME").
        env: environment; None = ours.
    """

    def __init__(self, command: Sequence[str], name: str, env: Mapping[str, str] | None = None) -> None:
        self.name = name
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `_end`
        # A session of its own: Ctrl-C must reach the runner only, which still needs the server while it winds down.
        self._child = subprocess.Popen(
            list(command), stdin=subprocess.PIPE, stdout=self._log, stderr=self._log, env=env, start_new_session=True
        )
        self._finalizer = weakref.finalize(self, _end, self._child, self._log)

    @property
    def pid(self) -> int:
        """Process id of the child."""
        return self._child.pid

    @property
    def alive(self) -> bool:
        """It has not ended yet."""
        return self._child.poll() is None

    async def wait_ready(self, ready: Callable[[], Awaitable[bool]], timeout: float, setting: str) -> None:
        """Poll `ready` until it holds.

        Args:
            ready: asks the server; must not raise.
            timeout: seconds.
            setting: the setting that holds the time limit, for the message.

        Raises:
            UserError: the server ended or was not ready in time; it is stopped then.
        """
        deadline = time.monotonic() + timeout
        pause = 0.02
        try:
            while not await ready():
                if not self.alive:
                    raise UserError(f"{self.name} ended with exit code {self._child.returncode} while starting. {self.said()}")
                if time.monotonic() > deadline:
                    raise UserError(f"{self.name} was not ready within {setting}={timeout:g} seconds. {self.said()}")
                await asyncio.sleep(pause)
                pause = min(pause * 1.3, 1.0)
        except BaseException:
            await self.stop()
            raise

    def output(self, last: int = 1 << 16) -> str:
        """The last bytes of what the server wrote; empty after `stop`."""
        if self._log.closed:
            return ""
        number = self._log.fileno()  # the file position is the child's: read without moving it
        size = os.fstat(number).st_size
        return os.pread(number, min(size, last), max(0, size - last)).decode("utf-8", "replace")

    def said(self) -> str:
        """The last lines of the server's output as a sentence for an error message."""
        lines = [line.strip() for line in self.output(4096).splitlines() if line.strip()][-6:]
        return "It said: " + " | ".join(lines)[-900:] if lines else "It said nothing."

    async def stop(self) -> None:
        """End it and wait until it is gone. Safe to call twice."""
        if self._finalizer.alive:
            await asyncio.shield(asyncio.to_thread(self._finalizer))


def _end(child: subprocess.Popen[bytes], log: IO[bytes]) -> None:
    if child.stdin is not None:
        child.stdin.close()
    try:
        child.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    log.close()
