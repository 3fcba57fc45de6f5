"""The child side of the pool: one process that builds one environment and answers calls about it until it is told to stop.

This module is all that a worker imports before the environment itself, so it stays light: no Hydra, no asyncio, no numpy.
The parent side is `process.py`; both ends share the framing and the translation of errors that are defined here.
"""

from __future__ import annotations

import faulthandler
import os
import pickle
import signal
import socket
import struct
import sys
import traceback
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

from agentexp import errors
from agentexp.core import Env
from agentexp.envs import lifeline
from agentexp.errors import AgentExpError, EngineError, UserError
from agentexp.targets import build

BUILD = "<build>"
HEADER = struct.Struct("!I")


class Failure(NamedTuple):
    """An exception on its way to another process: the class in `agentexp.errors` it comes back as, and its text."""

    kind: str
    message: str

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        """Keep our own errors as they are; everything else is an `EngineError` with the end of its traceback."""
        if isinstance(error, AgentExpError):
            known = next(c for c in type(error).__mro__ if c.__module__ == errors.__name__)
            return cls(known.__name__, str(error))
        where = "".join(traceback.format_tb(error.__traceback__)[-3:]).rstrip()
        text = "".join(traceback.format_exception_only(error)).strip()
        return cls(EngineError.__name__, f"The engine raised {text}\n{where}".rstrip())

    def is_user_error(self) -> bool:
        """The configuration or the data is wrong, not the engine."""
        return issubclass(getattr(errors, self.kind), UserError)

    def throw(self) -> NoReturn:
        """Raise it here."""
        raise getattr(errors, self.kind)(self.message)


def attempt(function: Callable[..., Any], *args: Any) -> tuple[bool, Any]:
    """(True, result of the call) or (False, `Failure`)."""
    try:
        return True, function(*args)
    except Exception as error:  # noqa: BLE001 - the process boundary: whatever an engine raises is carried to the parent
        return False, Failure.of(error)


def invoke(env: Env, method: str, args: tuple[Any, ...]) -> Any:
    """Call a public method of the environment. Raises `UserError` where it has none of that name."""
    function = getattr(env, method, None)
    if method.startswith("_") or not callable(function):
        raise UserError(f"env={env.name} has no {method}(): choose a policy or an option that does not need it.")
    return function(*args)


# ------------------------------------------------------------------------------------------------------------------ serve


def frame(message: Any) -> bytes:
    """A message as bytes: length, then pickle. Both ends are the same user's processes, so pickle is safe here."""
    data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    return HEADER.pack(len(data)) + data


def _read(sock: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        chunk = sock.recv(min(size - len(data), 1 << 20))
        if not chunk:
            raise EOFError
        data += chunk
    return bytes(data)


def serve(sock: socket.socket) -> None:
    """Answer calls `(method, args)` with `(ok, result or Failure)` until None or the end of the stream arrives."""
    env: Env | None = None
    while True:
        try:
            message = pickle.loads(_read(sock, HEADER.unpack(_read(sock, HEADER.size))[0]))
        except (EOFError, ConnectionResetError):
            return
        if message is None:
            if env is not None:
                env.close()
            return
        method, args = message
        if method == BUILD:
            ok, result = attempt(build, *args)
            env = result if ok else None
            answer: Any = (ok, None if ok else result)
        else:
            assert env is not None
            answer = attempt(invoke, env, method, args)
        ok, data = attempt(frame, answer)
        if not ok:  # a result that cannot be pickled is the environment's mistake, and must be said, not hung upon
            data = frame((False, Failure(EngineError.__name__, f"{method}() returned what cannot be pickled. {data.message}")))
        sock.sendall(data)


def main(argv: list[str]) -> None:
    """Entry point of a worker: `argv` holds the numbers of its socket and lifeline, and "1" to die with the parent's thread."""
    socket_fd, lifeline_fd, tie = map(int, argv)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business; it decides what happens to this step
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=False)  # the parent asks where a hung engine hangs
    lifeline.hold(lifeline_fd, tie_to_thread=bool(tie))
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    os.set_inheritable(socket_fd, False)  # an engine's own children must not keep the connection open
    with socket.socket(fileno=socket_fd) as sock:
        serve(sock)
    lifeline.kill_group(os.getpgrp())  # this process too: engines leave children, threads and noisy destructors behind
