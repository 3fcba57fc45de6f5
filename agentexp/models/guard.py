"""Runs a command that must not outlive the process that wants it: `python -m agentexp.models.guard COMMAND ...`.

The parent holds the other end of this process' standard input. When that end closes, because the parent is done or because it
was killed in any way, the command and everything that it started are ended. POSIX only.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading

GRACE_SECONDS = 10.0


def main(command: list[str]) -> int:
    """Run `command` until it ends or standard input does; its exit code."""
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=_end, args=(child,), daemon=True).start())
    threading.Thread(target=_end_with_stdin, args=(child,), daemon=True).start()
    code = child.wait()
    _kill(child, signal.SIGKILL)  # what the command left behind in its group
    return code if code >= 0 else 128 - code


def _end_with_stdin(child: subprocess.Popen[bytes]) -> None:
    while os.read(0, 4096):  # not through sys.stdin, whose lock would be held when the interpreter ends
        pass
    _end(child)


def _end(child: subprocess.Popen[bytes]) -> None:
    _kill(child, signal.SIGTERM)
    try:
        child.wait(GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        _kill(child, signal.SIGKILL)


def _kill(child: subprocess.Popen[bytes], number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, number)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
