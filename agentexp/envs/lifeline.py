"""A worker must not outlive its parent, nor may anything that the worker started (a JVM): also if the parent gets SIGKILL.

The parent holds the only write end of a pipe and never writes. When the parent ends, however it ends, the pipe closes.
Three mechanisms in the worker notice, because each has a gap:

* Linux, kernel: the pipe's read end sends SIGKILL to the worker's whole process group (F_SETSIG). Works also while an engine
  hangs in C code with the interpreter locked.
* A thread that waits for the end of the pipe and kills the group. Portable; needs the interpreter.
* Linux, PR_SET_PDEATHSIG: kills the worker alone. Needed when a process forked off the parent holds a copy of the write end.
  The kernel closes a dying parent's files before it sends this signal, so the whole group goes first where the pipe works.

An engine may start a process in a session of its own (some Minecraft launchers do), which no signal to the group reaches. On
Linux a parent that ends a worker itself finds those as its descendants (`strays`); the worker adopts what was orphaned below
it. After a SIGKILL of the parent they are on their own.
"""

from __future__ import annotations

import fcntl
import os
import signal
import sys
import threading
from contextlib import suppress
from pathlib import Path

_F_SETSIG = 10  # <fcntl.h> of Linux; Python's fcntl does not export it
_PR_SET_PDEATHSIG = 1  # <sys/prctl.h>
_PR_SET_CHILD_SUBREAPER = 36


def hold(fd: int, *, tie_to_thread: bool) -> None:
    """Tie this process' group to the write end of the pipe `fd`. The process must lead its group.

    Args:
        fd: read end of the pipe.
        tie_to_thread: also die with the thread that started this process; only sound when that is the parent's main thread.
    """
    os.set_inheritable(fd, False)
    parent = os.getppid()
    if sys.platform == "linux":
        fcntl.fcntl(fd, fcntl.F_SETOWN, -os.getpgrp())
        fcntl.fcntl(fd, _F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_ASYNC)
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)
        if tie_to_thread:
            _prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
    threading.Thread(target=_watch, args=(fd, parent), name="agentexp-lifeline", daemon=True).start()


def kill_group(pid: int) -> None:
    """SIGKILL to a whole process group; no error if it is gone already."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):  # macOS says EPERM for a group of zombies
        return


def _watch(fd: int, parent: int) -> None:
    if os.getppid() == parent:  # else it died before this process could listen
        os.read(fd, 1)
    kill_group(os.getpgrp())


def _prctl(option: int, value: int) -> None:
    import ctypes

    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def strays(pid: int) -> dict[int, str]:
    """Descendants of a living worker outside of its group, with the time of their start. Empty where there is no /proc."""
    found: dict[int, str] = {}
    waiting = [pid]
    while waiting:
        for child in _children(waiting.pop()):
            stat = _stat(child)
            if stat and child not in found:
                found[child] = stat[_START]
                waiting.append(child)
    return {child: start for child, start in found.items() if (stat := _stat(child)) and stat[_GROUP] != str(pid)}


def kill_strays(found: dict[int, str]) -> None:
    """SIGKILL to those of `found` that still run; a process that got the number of one is left alone."""
    for pid, start in found.items():
        stat = _stat(pid)
        if stat and stat[_START] == start:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


_GROUP, _START = 2, 19  # of the fields of /proc/<pid>/stat after the name, see proc(5)


def _children(pid: int) -> list[int]:
    texts = []
    with suppress(OSError):
        for file in Path(f"/proc/{pid}/task").glob("*/children"):
            with suppress(OSError):
                texts.append(file.read_text())
    return [int(number) for number in " ".join(texts).split()]


def _stat(pid: int) -> list[str]:
    """The fields of /proc/<pid>/stat after the name; empty once it is gone."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    return []
