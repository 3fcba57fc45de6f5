"""Worlds that misbehave, for tests. Imported by worker processes, so it stays light."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

from agentexp.core import Step, Task
from agentexp.envs.toy import ToyRooms
from agentexp.errors import MissingDependency, UserError


class Troubled(ToyRooms):
    """ToyRooms that does `trouble` in step `at`.

    With `once`, only while that file does not exist (it makes it): the second try succeeds.
    With `sleeper`, a grandchild process is started at reset and its process id is written to that file, one per line; with
    `apart`, in a session of its own and by a process that ends at once.
    """

    def __init__(
        self, trouble: str = "", at: int = 3, once: str = "", sleeper: str = "", turns: int = 0, apart: bool = False
    ) -> None:
        super().__init__(turns=turns)
        self.trouble, self.at, self.once, self.sleeper, self.apart = trouble, at, once, sleeper, apart
        self.n = 0
        self.child: subprocess.Popen[bytes] | None = None
        if trouble == "no start":
            raise RuntimeError("cannot start")
        if trouble == "slow start":
            time.sleep(60)
        if trouble == "missing":
            raise MissingDependency("Install the engine with pip.")

    def reset(self, task: Task) -> Step:
        self.n = 0
        if self.trouble == "bad data":
            raise UserError("env.data is wrong.")
        if self.sleeper and self.child is None:
            self.child = subprocess.Popen(["sleep", "300"])
            with open(self.sleeper, "a") as file:
                file.write(f"{os.getpid()}\n{self.child.pid}\n")
            if self.apart:
                command = f"sleep 300 >/dev/null 2>&1 & echo $! >> {self.sleeper}"
                subprocess.run(["sh", "-c", command], start_new_session=True, check=True)
        return super().reset(task)

    def step(self, action: str) -> Step:
        self.n += 1
        if self.n == self.at and not (self.once and Path(self.once).exists()):
            if self.once:
                Path(self.once).touch()
            self.misbehave()
        answer = super().step(action)
        return replace(answer, info={"bad": lambda: 0}) if self.trouble == "unpicklable" else answer

    def misbehave(self) -> None:
        match self.trouble:
            case "hang":
                time.sleep(600)
            case "spin":
                while True:
                    pass
            case "kill":
                print("last words", file=sys.stderr)
                os.kill(os.getpid(), signal.SIGKILL)
            case "segfault":
                os.kill(os.getpid(), signal.SIGSEGV)
            case "exit":
                sys.exit(7)
            case "raise":
                raise KeyError("val1")
            case "noise":
                for i in range(20_000):
                    print("noise", i)

    def ping(self, size: int) -> bytes:
        return b"x" * size

    def pong(self, data: bytes) -> int:
        return len(data)

    def process(self) -> int:
        return os.getpid()

    def nap(self, seconds: float) -> None:
        time.sleep(seconds)
