"""The parent side of one worker process: start it, talk to it without blocking the event loop, and get rid of it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pickle
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from typing import Any

from agentexp.envs.lifeline import kill_group, kill_strays, strays
from agentexp.envs.worker import BUILD, HEADER, Failure, frame
from agentexp.errors import EngineError, EngineTimeout, UserError

_BOOT = "import sys, json; sys.path[:] = json.loads(sys.argv[1]); from agentexp.envs.worker import main; main(sys.argv[2:])"
_KEPT = 8192  # bytes of a worker's output that are kept for error messages
_TAIL_LINES = 12


class _Expired(Exception):
    """The time limit of a call passed."""


class _Lost(Exception):
    """The worker closed its connection."""


class WorkerProcess:
    """One engine in one child process, leader of its own session and process group.

    Starting it raises `OSError` when the machine has no processes or descriptors left.

    It belongs to no event loop while it is idle; `attach` and `detach` bracket a lease. One call at a time.

    Attributes:
        pid: process id, also the id of its process group.
        fate: why it is gone: "" (alive), "timeout", "died", "failed", "cancelled" or "closed".
        leases: how often it was leased.
    """

    def __init__(self, spec: Mapping[str, Any], environ: Mapping[str, str] | None = None) -> None:
        self.fate = ""
        self.leases = 0
        self._spec = dict(spec)
        self._name = str(spec.get("_target_", "?")).rpartition(".")[2]
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiter: asyncio.Future[bytes] | None = None
        self._received = bytearray()
        self._output = bytearray()
        self._strays: dict[int, str] = {}
        self._sock, theirs = socket.socketpair()
        watched, self._lifeline = os.pipe()
        self._output_fd, written = os.pipe()
        main_thread = threading.current_thread() is threading.main_thread()
        arguments = [
            json.dumps([p for p in sys.path if isinstance(p, str)]),
            str(theirs.fileno()),
            str(watched),
            str(int(main_thread)),
        ]
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-u", "-c", _BOOT, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=written,
                stderr=written,
                pass_fds=(theirs.fileno(), watched),
                start_new_session=True,  # Ctrl-C in the terminal does not reach it; its group can be killed as one
                env=_environment(environ or {}),
            )
        except OSError:
            self._close_files()
            raise
        finally:
            theirs.close()
            os.close(watched)
            os.close(written)
        self.pid = self._process.pid
        self._sock.setblocking(False)
        os.set_blocking(self._output_fd, False)

    # ----------------------------------------------------------------------------------------------------------- leasing

    def alive(self) -> bool:
        """False once it was killed or has ended by itself."""
        return not self.fate and self._process.poll() is None

    def gone(self) -> bool:
        """True once the process has left the process table."""
        return self._process.poll() is not None

    def attach(self) -> None:
        """Listen in the running event loop."""
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._sock.fileno(), self._on_reply)
        self._loop.add_reader(self._output_fd, self._on_output)

    def detach(self) -> None:
        """Stop listening."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(self._sock.fileno())
            self._loop.remove_reader(self._output_fd)
        self._loop = None

    # ------------------------------------------------------------------------------------------------------------- calls

    async def start(self, seconds: float) -> None:
        """Build the environment in the worker."""
        try:
            await self.request(BUILD, (self._spec,), seconds, "reset_timeout")
        except UserError:
            self.kill("failed")
            raise

    async def request(self, method: str, args: tuple[Any, ...], seconds: float, setting: str) -> Any:
        """Call a method of the environment.

        Args:
            method: name of the method.
            args: its arguments.
            seconds: time limit.
            setting: name of the limit's setting, for the message.

        Raises:
            EngineTimeout: no answer in time; the worker has been killed.
            EngineError: the engine raised or the process died; the worker is gone.
            UserError: as raised by the environment; the worker lives on.
            asyncio.CancelledError: the worker has been killed, since a late reply would answer the next call.
        """
        if self.fate or self._loop is None:
            raise EngineError(f"The engine of {self._name} is gone ({self.fate or 'not leased'}); lease a new one.")
        if self._waiter is not None:
            raise EngineError(
                f"{self._name}.{method}() was called while another call was running: a world takes one at a time."
            )
        data = frame((method, args))
        waiter = self._waiter = self._loop.create_future()
        timer = self._loop.call_later(seconds, _expire, waiter)
        try:
            await self._send(data, seconds)
            ok, result = pickle.loads(await waiter)
        except (_Expired, TimeoutError):
            waiter.cancel()
            where = await self._where_it_hangs()
            self.kill("timeout")
            limit = f"did not answer within {setting}={seconds:g} seconds; its process was killed."
            raise EngineTimeout(f"{self._call(method, args)} {limit}{where}{self._tail()}") from None
        except (_Lost, OSError):
            waiter.cancel()
            cause = await self._cause_of_death()
            raise EngineError(f"The process of {self._call(method, args)} {cause}.{self._tail()}") from None
        except asyncio.CancelledError:
            waiter.cancel()
            self.kill("cancelled")
            raise
        finally:
            timer.cancel()
            self._waiter = None
        if ok:
            return result
        failure: Failure = result
        if not failure.is_user_error():
            self.kill("failed")  # after an exception nobody knows what state the engine is in
            failure = failure._replace(message=f"{self._call(method, args)}: {failure.message}{self._tail()}")
        return failure.throw()

    def _call(self, method: str, args: tuple[Any, ...]) -> str:
        return f"{self._name}.start()" if method == BUILD else f"{self._name}.{method}({_short(args)})"

    async def _send(self, data: bytes, seconds: float) -> None:
        try:
            sent = self._sock.send(data)
        except BlockingIOError:
            sent = 0
        if sent < len(data):
            assert self._loop is not None
            await asyncio.wait_for(self._loop.sock_sendall(self._sock, data[sent:]), seconds)

    def _on_reply(self) -> None:
        try:
            chunk = self._sock.recv(1 << 16)
        except BlockingIOError:
            return
        except ConnectionResetError:
            chunk = b""
        if not chunk:
            assert self._loop is not None
            self._loop.remove_reader(self._sock.fileno())
            if self._waiter is not None and not self._waiter.done():
                self._waiter.set_exception(_Lost())
            return
        self._received += chunk
        received = self._received
        if len(received) >= HEADER.size and len(received) >= (end := HEADER.size + HEADER.unpack_from(received)[0]):
            payload = bytes(received[HEADER.size : end])
            del received[:end]
            if self._waiter is not None and not self._waiter.done():
                self._waiter.set_result(payload)

    # ------------------------------------------------------------------------------------------------------------ output

    def _on_output(self) -> None:
        if self._read_output() == b"" and self._loop is not None:
            self._loop.remove_reader(self._output_fd)

    def _read_output(self) -> bytes | None:
        try:
            chunk = os.read(self._output_fd, 1 << 16)
        except BlockingIOError:
            return None
        self._output += chunk
        del self._output[:-_KEPT]
        return chunk

    def output(self) -> str:
        """The last lines that the worker and its engine printed."""
        if not self.fate:
            while self._read_output():
                pass
        return self._output.decode(errors="replace").strip()

    def _tail(self) -> str:
        lines = self.output().splitlines()[-_TAIL_LINES:]
        return "\nIts last output:\n" + "\n".join(f"  {line}" for line in lines) if lines else ""

    async def _where_it_hangs(self) -> str:
        """Ask the worker's fault handler for the Python stack; it answers from a C signal handler, also while hung."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGUSR1)
        for _ in range(10):
            await asyncio.sleep(0.02)
            text = self._output.decode(errors="replace")
            if found := re.search(r"\n?[^\n]*most recent call first\):\n((?:  File [^\n]*\n?)+)", text):
                self._output = bytearray(text.replace(found[0], "").encode())
                frames = [line.strip() for line in found[1].splitlines()[:4]]
                return "\nIt was here (innermost first):\n" + "\n".join(f"  {line}" for line in frames)
        return ""

    async def _cause_of_death(self) -> str:
        if self.fate:
            return "was ended because the pool stopped"
        for _ in range(200):  # the connection closes a moment before the process can be reaped
            if (code := self._process.poll()) is not None:
                break
            await asyncio.sleep(0.005)
        self.output()
        self.kill("died")
        if code is None:
            return "closed its connection and was killed"
        if code >= 0:
            return f"ended with exit code {code}"
        hint = "; is the machine out of memory?" if -code == signal.SIGKILL else ""
        return f"was ended by signal {signal.Signals(-code).name}{hint}"

    # --------------------------------------------------------------------------------------------------------------- end

    def kill(self, fate: str) -> None:
        """End the worker and everything it started, at once. Safe to call twice."""
        if self.fate:
            return
        self.fate = fate
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(_Lost())
        self.detach()
        self._strays |= strays(self.pid)
        kill_group(self.pid)
        kill_strays(self._strays)
        self._close_files()
        self._process.poll()

    def _close_files(self) -> None:
        self._sock.close()
        os.close(self._lifeline)
        os.close(self._output_fd)

    async def close(self, grace: float) -> None:
        """Let the environment close itself for at most `grace` seconds, then end what is left of the group."""
        try:
            if self.alive():
                self.attach()
                assert self._loop is not None
                self._waiter = self._loop.create_future()
                self._strays = strays(self.pid)  # now: once it has ended, nobody knows them any more
                with contextlib.suppress(_Lost, TimeoutError, OSError):
                    await self._send(frame(None), grace)
                    await asyncio.wait_for(self._waiter, grace)
        finally:
            self._waiter = None
            self.kill("closed")
        await self.reap()

    async def reap(self) -> None:
        """Wait until the killed process has left the process table (it is in the kernel's hands: milliseconds)."""
        while self._process.poll() is None:
            await asyncio.sleep(0.002)


def _expire(waiter: asyncio.Future[bytes]) -> None:
    if not waiter.done():
        waiter.set_exception(_Expired())


def _short(args: tuple[Any, ...]) -> str:
    text = ", ".join(str(getattr(arg, "key", "")) or repr(arg) for arg in args)
    return text if len(text) <= 80 else text[:77] + "..."


def _environment(extra: Mapping[str, str]) -> dict[str, str]:
    """The parent's environment, made reproducible and small: a fixed hash seed and one thread per numeric library."""
    environ = dict(os.environ)
    if environ.get("PYTHONHASHSEED", "random") == "random":
        environ["PYTHONHASHSEED"] = "0"
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        environ.setdefault(name, "1")
    environ.update(extra)
    return environ
