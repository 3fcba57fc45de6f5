"""The disturbances of the chaos test: a server that fails, engines that are killed or stopped, a runner that is killed.

When they strike is counted in requests rather than seconds, so that a slow machine sees them as often as a fast one, and in the
middle of things.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psutil

from agentexp.store import index

PASSING = (
    "rate_limit_bare", "server_error", "bad_gateway", "unavailable", "gateway_timeout", "error_in_200", "drop", "truncate",
    "never", "stall", "die", "invalid_json", "no_choice", "no_usage", "wrong_model",
)  # fmt: skip
"""Faults after which another attempt succeeds, and those that a reply survives."""

LASTING = ("no_key", "quota", "bad_request", "forbidden", "no_model")
"""Faults that end an episode or the run with a harness error; the same command line then goes on."""

ANSWERS = (
    "null", "long", "context_openai", "context_openai_input", "context_vllm", "context_vllm_passed", "context_vllm_decoder",
    "context_vllm_max_tokens", "context_llama.cpp", "context_llama.cpp_old", "context_ollama", "context_sglang",
)  # fmt: skip
"""Faults that are an answer of the model: they change what an agent does."""


@dataclass(frozen=True)
class Setup:
    """One chaos run.

    Attributes:
        env: the world.
        settings: further overrides of the command line.
        shards: parts of the plan that run at the same time.
        streams: the server answers in events.
        answers: `ANSWERS` are in the mix.
        kills: times that a runner is killed.
        hurts: times that an engine is killed or stopped.
    """

    seed: int
    env: str
    settings: tuple[str, ...] = ()
    episodes: int = 200
    steps: int = 20
    concurrency: int = 4
    shards: int = 1
    streams: bool = False
    answers: bool = False
    kills: int = 20
    hurts: int = 20
    lasting: tuple[str, ...] = LASTING
    request_timeout: float = 1.5
    step_timeout: float = 5.0
    reset_timeout: float = 60.0
    limit: float = 1800.0

    def calm(self) -> Setup:
        """The same plan undisturbed: nothing is cut short because the machine is slow."""
        return replace(self, shards=1, request_timeout=60.0, step_timeout=60.0, reset_timeout=180.0)

    def command(self, url: str, root: Path, shard: int = 0) -> list[str]:
        """The command line of the run, or of one shard (from 1)."""
        settings = [
            f"env={self.env}",
            "paradigm=react",
            "paradigm.show_admissible=true",
            "model=openai",
            "model.name=fake",
            f"model.base_url={url}",
            f"model.request_timeout={self.request_timeout:g}",
            "model.total_timeout=60",
            "env.in_process=false",
            f"env.step_timeout={self.step_timeout:g}",
            f"env.reset_timeout={self.reset_timeout:g}",
            f"env.limit={self.episodes}",
            f"output_root={root}",
            f"concurrency={max(1, self.concurrency // self.shards)}",
            "progress=off",
            f"max_steps={self.steps}",
            *self.settings,
            *([f"shard={shard}/{self.shards}"] if shard else []),
        ]
        return [sys.executable, "-m", "agentexp", "eval", *settings]


class Server:
    """The fake server's controls."""

    def __init__(self, url: str) -> None:
        self.root = url.removesuffix("/v1")
        self._count = 0

    def steer(self, script: Sequence[Any]) -> None:
        """Give it another script."""
        self._ask("/script", json.dumps(script).encode())

    def state(self) -> dict[str, Any]:
        """Its log."""
        state: dict[str, Any] = json.loads(self._ask("/log"))
        return state

    def count(self) -> int:
        """Requests so far; what was known last while it is dead."""
        try:
            with urllib.request.urlopen(self.root + "/log", timeout=2) as answer:
                self._count = json.load(answer)["count"]
        except OSError:
            pass
        return self._count

    def _ask(self, path: str, data: bytes | None = None) -> bytes:
        request = urllib.request.Request(self.root + path, data, {"Content-Type": "application/json"})
        for _ in range(100):
            try:
                with urllib.request.urlopen(request, timeout=5) as answer:
                    body: bytes = answer.read()
                    return body
            except OSError:
                time.sleep(0.2)  # it is dead just now
        raise SystemExit("The fake server does not come back.")


def fault_script(rng: random.Random, answers: bool) -> list[dict[str, Any]]:
    """A mix of standing faults, each striking at its own rhythm: about one request in ten, with odd answers one in five."""
    rhythms = dict(zip(PASSING, rng.sample(range(90, 400), len(PASSING)), strict=True))
    if answers:  # first, so that they are not covered by the others
        rhythms = dict(zip(ANSWERS, rng.sample(range(50, 200), len(ANSWERS)), strict=True)) | rhythms
    script: list[dict[str, Any]] = [{"do": kind, "every": every} for kind, every in rhythms.items()]
    for entry in script:
        if entry["do"] == "die":
            entry["down"] = round(rng.uniform(0.2, 1.2), 2)
    script.append({"do": "rate_limit", "retry_after": "0.2", "every": rng.randrange(50, 120)})
    script.append({"do": "slow", "delay": round(rng.uniform(0.1, 1.2), 2), "every": rng.randrange(50, 120)})
    return script


@dataclass
class Disturbance:
    """Keeps one run alive under faults until its plan is finished.

    Args:
        setup: what is run.
        url: of the fake server.
        root: its output root.
        environment: of its processes; `mark` in it tells them apart from all others.
        log: where its processes write.
        requests: how many an undisturbed run makes.
        startup: seconds from its start to its first request.
    """

    setup: Setup
    url: str
    root: Path
    environment: Mapping[str, str]
    mark: str
    log: Path
    requests: int
    startup: float
    done: Counter[str] = field(default_factory=Counter)
    events: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.setup.seed)
        self.server = Server(self.url)
        self.began = time.monotonic()
        self.running: dict[int, subprocess.Popen[bytes]] = {}
        self.finished: set[int] = set()
        self.kills = self._schedule()
        self.since = 0  # requests at the last kill
        self.hurts = sorted(self.rng.uniform(0, 0.95) * self.requests for _ in range(self.setup.hurts))

    def _schedule(self) -> list[tuple[str, float]]:
        """The kills to come: after so many requests, so many seconds after a start, and one when the last episode ends."""
        n = self.setup.kills
        if not n:
            return []
        weights = [self.rng.uniform(0.3, 1.7) for _ in range(n - n // 4 - 1)]
        kills = [("requests", 0.8 * self.requests * weight / sum(weights)) for weight in weights]
        kills += [("start", self.rng.uniform(0, 1.3 * self.startup)) for _ in range(n // 4)]
        self.rng.shuffle(kills)
        return [*kills, ("end", 0.0)]

    def run(self) -> None:
        """Start it again and again until every part has ended well, and once more: then there is nothing to do."""
        parts = set(range(1, self.setup.shards + 1)) if self.setup.shards > 1 else {0}
        self.server.steer(fault_script(self.rng, self.setup.answers))
        while self.finished != parts:
            self._check_time()
            for part in sorted(parts - self.finished - set(self.running)):
                self._start(part)
            time.sleep(self.rng.uniform(0.01, 0.08))
            self._disturb()
            self._reap()
        self.server.steer([])
        before = self.server.count()
        while self.kills:  # too fast for the last kill: a finished run that is issued again dies as well
            process = self._start(min(parts))
            time.sleep(self.rng.uniform(0, self.startup))
            self.kills.pop(0)
            self._kill(process, "while there was nothing to do")
            self.running.clear()
        for part in sorted(parts):
            code = self._start(part).wait(timeout=300)
            if code or self.server.count() != before:
                self.done["a finished run was not at rest"] += 1
        self.running.clear()

    def _check_time(self) -> None:
        if time.monotonic() - self.began > self.setup.limit:
            for process in self.running.values():
                process.kill()
            raise SystemExit(f"The run did not end within {self.setup.limit:g} s: {dict(self.done)}; see {self.log}")

    def _start(self, part: int) -> subprocess.Popen[bytes]:
        self.done["starts"] += 1
        if self.setup.lasting and self.rng.random() < 0.2 and part not in self.finished:
            kind = self.rng.choice(self.setup.lasting)
            self.server.steer([{"do": kind}, *fault_script(self.rng, self.setup.answers)])
        with self.log.open("ab") as log:
            log.write(f"--- start {self.done['starts']}, part {part}\n".encode())
            log.flush()
            process = subprocess.Popen(
                self.setup.command(self.url, self.root, part), env=dict(self.environment), stdout=log, stderr=log
            )
        self.running[part] = process
        self._tell(f"start {process.pid}" + (f" shard {part}" if part else ""))
        self.started = time.monotonic()
        return process

    def _reap(self) -> None:
        for part, process in list(self.running.items()):
            if process.poll() is not None:
                del self.running[part]
                self._tell(f"{process.pid} ended with code {process.returncode}")
                if process.returncode == 0:
                    self.finished.add(part)
                else:
                    self.done[f"ended with code {process.returncode}"] += 1
                    if self.done["starts"] > 3 * self.setup.kills + 40:
                        raise SystemExit(f"The run fails again and again: {dict(self.done)}; see {self.log}")

    def _disturb(self) -> None:
        count = self.server.count()
        alive = [process for process in self.running.values() if process.poll() is None]
        if self.hurts and count >= self.hurts[0] and alive and self._hurt(self.rng.choice(alive)):
            self.hurts.pop(0)
        if not self.kills or not alive:
            return
        kind, n = self.kills[0]
        due = {
            "requests": count - self.since >= n,
            "start": time.monotonic() - self.started >= n,
            "end": kind == "end" and self._all_stored(),
        }
        if due[kind]:
            self.kills.pop(0)
            self._kill(
                self.rng.choice(alive), {"requests": "in the middle", "start": "while starting", "end": "at the end"}[kind]
            )
            self.since = count

    def _all_stored(self) -> bool:
        for manifest in self.root.glob("eval/**/manifest.json"):
            found = index(manifest.parent)
            return len(found) >= self.setup.episodes and all(place.status == "ok" for place in found.values())
        return False

    def _kill(self, process: subprocess.Popen[bytes], when: str) -> None:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        self.running = {part: other for part, other in self.running.items() if other is not process}
        self.done["runner killed"] += 1
        self.done[f"runner killed {when}"] += 1
        self._tell(f"{process.pid} killed {when}")

    def _hurt(self, runner: subprocess.Popen[bytes]) -> bool:
        """Kill or stop something that a runner started; whether there was anything."""
        try:
            engines = psutil.Process(runner.pid).children(recursive=True)
            if not engines:
                return False
            engine, stops = self.rng.choice(engines), self.rng.random() < 0.25
            if stops:
                engine.suspend()
            else:
                engine.kill()
        except psutil.NoSuchProcess:
            return False
        self.done["engine stopped" if stops else "engine killed"] += 1
        self._tell(f"engine {engine.pid} {'stopped' if stops else 'killed'}")
        return True

    def _tell(self, what: str) -> None:
        self.events.append(f"{time.monotonic() - self.began:7.2f} s  {what}")

    def orphans(self) -> list[str]:
        """Processes of the run that are still there, after a moment of grace."""
        deadline = time.monotonic() + 20
        while left := list(_marked(self.mark)):
            if time.monotonic() > deadline:
                return left
            time.sleep(0.2)
        return []


def _marked(mark: str) -> list[str]:
    found = []
    for process in psutil.process_iter():
        try:
            if mark in process.environ().get("AGENTEXP_CHAOS", "") and process.status() != psutil.STATUS_ZOMBIE:
                found.append(f"{process.pid} {' '.join(process.cmdline())[:80]}")
        except psutil.Error:
            continue
    return found
