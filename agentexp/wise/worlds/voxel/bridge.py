"""The node process: requests and answers as JSON lines over its standard input and output.

A request is `{"id": 7, "op": "act", ...}`, its answer `{"id": 7, ...}` or `{"id": 7, "error": "...", "user": false}`. One
request at a time. The process leads a group of its own (node and Chromium), which ends with us however we end: node also holds
the read end of a pipe (the lifeline) that only we can write to, and kills its whole group when that closes, even while busy.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import selectors
import shutil
import subprocess
import tempfile
import time
import weakref
from collections.abc import Mapping, Sequence
from typing import IO, Any

from agentexp.envs.lifeline import kill_group
from agentexp.errors import EngineError, EngineTimeout, UserError

STOP_SECONDS = 3.0
LIFELINE, FOLDER = "AGENTEXP_LIFELINE", "agentexp-voxel-"
BLOCK = 1 << 16


class Bridge:
    """One running node process.

    Args:
        command: program and arguments.
        name: what to call it in messages.
        env: its environment; None = ours.

    Raises:
        EngineError: it could not be started.
    """

    def __init__(self, command: Sequence[str], name: str = "The voxel world", env: Mapping[str, str] | None = None) -> None:
        self.name = name
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `_end`
        self._folder = tempfile.mkdtemp(prefix=FOLDER)  # for what the processes write (Chromium's profile)
        watched, lifeline = os.pipe()
        try:
            self._child = subprocess.Popen(
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                pass_fds=(watched,),
                env={**(os.environ if env is None else env), LIFELINE: str(watched), "TMPDIR": self._folder},
                start_new_session=True,
                bufsize=0,
            )
        except OSError as error:
            os.close(lifeline)
            self._log.close()
            os.rmdir(self._folder)
            raise EngineError(f"{name} could not start {command[0]}: {error}.") from error
        finally:
            os.close(watched)
        self._finalizer = weakref.finalize(self, _end, self._child, lifeline, self._log, self._folder)
        assert self._child.stdout is not None
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._child.stdout, selectors.EVENT_READ)
        self._received = bytearray()
        self._numbers = itertools.count(1)

    @property
    def pid(self) -> int:
        """Process id, also that of the group."""
        return self._child.pid

    @property
    def alive(self) -> bool:
        """It has neither ended nor been closed."""
        return self._finalizer.alive and self._child.poll() is None

    def call(self, op: str, timeout: float = 60.0, **values: Any) -> dict[str, Any]:
        """Ask and wait for the answer.

        Args:
            op: name of the request.
            timeout: seconds; past them the process is killed.
            values: JSON values.

        Raises:
            EngineTimeout: no answer in time.
            EngineError: the process has died, or failed at the request.
            UserError: the request was wrong.
        """
        if not self._finalizer.alive:
            raise EngineError(f"{self.name} has been closed.")
        number = next(self._numbers)
        line = json.dumps({"id": number, "op": op, **values}, separators=(",", ":")).encode() + b"\n"
        assert self._child.stdin is not None
        try:
            self._child.stdin.write(line)
        except OSError as error:
            raise self._death(op) from error
        deadline = time.monotonic() + timeout
        while True:
            answer = self._line(op, deadline, timeout)
            if answer.get("id") == number:
                break
        if "error" in answer:
            if answer.get("user"):
                raise UserError(str(answer["error"]))
            raise EngineError(f"{self.name} failed in {op}: {answer['error']}")
        return answer

    def close(self) -> None:
        """End the process and all that it started. Safe to call twice."""
        self._selector.close()
        self._finalizer()

    def _line(self, op: str, deadline: float, timeout: float) -> dict[str, Any]:
        start = 0
        while (end := self._received.find(b"\n", start)) < 0:
            start = len(self._received)
            left = deadline - time.monotonic()
            if left <= 0 or not self._selector.select(left):
                said = self._said()
                self.close()
                raise EngineTimeout(f"{self.name} did not answer {op} within {timeout:g} seconds and was ended. {said}")
            block = os.read(self._child.stdout.fileno(), BLOCK)  # type: ignore[union-attr]
            if not block:
                raise self._death(op)
            self._received += block
        line = bytes(self._received[:end])
        del self._received[: end + 1]
        try:
            answer = json.loads(line)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            self.close()
            raise EngineError(f"{self.name} answered {op} with something that is no JSON object: {line[:200]!r}")
        return answer

    def _death(self, op: str) -> EngineError:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._child.wait(1)
        code, said = self._child.poll(), self._said()
        self.close()
        return EngineError(f"{self.name}'s node process died (exit status {code}) in {op}. {said}")

    def _said(self) -> str:
        if self._log.closed:
            return ""
        number = self._log.fileno()
        size = os.fstat(number).st_size
        text = os.pread(number, 4096, max(0, size - 4096)).decode("utf-8", "replace")
        lines = [line.strip() for line in text.splitlines() if line.strip()][-6:]
        return "It said: " + " | ".join(lines)[-900:] if lines else "It said nothing."


def _end(child: subprocess.Popen[bytes], lifeline: int, log: IO[bytes], folder: str) -> None:
    for file in (child.stdin, child.stdout):
        if file is not None:
            with contextlib.suppress(OSError):  # the pipe's other end may be gone
                file.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(STOP_SECONDS)
    kill_group(child.pid)  # also when node has ended: Chromium may be left
    child.wait()
    os.close(lifeline)
    log.close()
    for pause in (0.0, 0.1, 0.5):  # what was killed may not be gone yet
        time.sleep(pause)
        shutil.rmtree(folder, ignore_errors=True)
        if not os.path.exists(folder):
            break
