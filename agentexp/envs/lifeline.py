"""A worker must not outlive its parent, nor may anything that the worker started (a JVM): also if the parent gets SIGKILL.

The parent holds the only write end of a pipe and never writes. When the parent ends, however it ends, the pipe closes.
Three mechanisms in the worker notice, because each has a gap:

* Linux, kernel: the pipe's read end sends SIGKILL to the worker's whole process group (F_SETSIG). Works also while an engine
  hangs in C code with the interpreter locked.
* A thread that waits for the end of the pipe and kills the group. Portable; needs the interpreter.
* Linux, PR_SET_PDEATHSIG: kills the worker alone. Needed when a process forked off the parent holds a copy of the write end.
  The kernel closes a dying parent's files before it sends this signal, so the whole group goes first where the pipe works.
"""

from __future__ import annotations

import fcntl
import os
import signal
import sys
import threading

_F_SETSIG = 10  # <fcntl.h> of Linux; Python's fcntl does not export it
_PR_SET_PDEATHSIG = 1  # <sys/prctl.h>


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
        if tie_to_thread:
            _die_with_parent()
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


def _die_with_parent() -> None:
    import ctypes

    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
