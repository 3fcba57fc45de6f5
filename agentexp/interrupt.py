"""Ctrl-C and SIGTERM: the first one stops a run cleanly, the second one, or a stop that hangs, ends the process at once.

A run whose time is up (`limits.run_seconds`) stops in the same way.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

GRACE_SECONDS = 20.0

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def on_interrupt(stop: Callable[[str], None]) -> Iterator[None]:
    """Within the block, the first signal calls `stop(name)` on the running event loop.

    `signal.signal` instead of the loop's own handlers, because the second Ctrl-C must work while the loop is busy. A SIGHUP
    that is ignored (nohup) stays ignored. Does nothing outside the main thread, where Python delivers no signals.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    seen: list[int] = []
    timers: list[asyncio.TimerHandle] = []

    def first(number: int) -> None:
        timers.append(loop.call_later(GRACE_SECONDS, end_now, number))
        stop(signal.Signals(number).name)

    def handle(number: int, _: FrameType | None) -> None:
        seen.append(number)
        if len(seen) > 1:
            end_now(number)
        loop.call_soon_threadsafe(first, number)

    with handled(handle):
        try:
            yield
        finally:
            for timer in timers:
                timer.cancel()


@contextmanager
def stopping_after(seconds: float | None, stop: Callable[[str], None]) -> Iterator[None]:
    """Call `stop("timeout")` on the running event loop if the block takes longer; None: it may."""
    timer = None if seconds is None else asyncio.get_running_loop().call_later(seconds, stop, "timeout")
    try:
        yield
    finally:
        if timer is not None:
            timer.cancel()


@contextmanager
def handled(handle: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Let `handle` have `SIGNALS` in this block; a hang-up that was ignored (`nohup`) stays so."""
    before = {
        number: signal.getsignal(number)
        for number in SIGNALS
        if not (number == signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN)
    }
    for number in before:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)


def end_now(number: int) -> None:
    """Kill every child process and leave without cleaning up; finished episodes are on disk."""
    import psutil

    for child in psutil.Process().children(recursive=True):
        try:
            child.kill()
        except psutil.NoSuchProcess:
            continue
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(exit_code(signal.Signals(number).name))


def exit_code(name: str) -> int:
    """128 + the signal's number, as shells have it: 130 for SIGINT, 143 for SIGTERM."""
    return 128 + signal.Signals[name].value
