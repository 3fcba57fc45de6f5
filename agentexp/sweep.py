"""The jobs of a sweep (`-m`), whoever runs them: this process, or others that joblib, submitit or Ray start.

A job that fails must not stop the others, and its cause must be seen where the sweep was started. Launchers differ in both:
some end at the first exception, some keep a job's output in files, one cannot carry every exception between processes. So a
job raises nothing: it leaves a small file in the sweep's folder that says how it ended, and the process that started the sweep
reads those files at the end. Hydra itself writes to that folder, so a sweep over several machines shares it already.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO, cast

import psutil
from hydra.core.hydra_config import HydraConfig
from hydra.experimental.callback import Callback

from agentexp.errors import FatalError, UserError
from agentexp.interrupt import GRACE_SECONDS, end_now, handled
from agentexp.scrub import clean, remember, remember_overrides, scrub

SWEEP_VARIABLE = "AGENTEXP_SWEEP"
"""Name of the sweep that a job belongs to, in its environment: trackers group the jobs by it."""

TAIL = 10
"""Lines of a failed job that are shown: a run says at its end why it did not finish."""

SUBMITIT = "submitit"
"""Folder of submitit's files in that of the sweep."""

_begun: list[Path] = []
"""Where the sweep of this process writes. Hydra makes the callback that learns it, so there is no one to hand it to."""


class Begin(Callback):
    """Learns from Hydra where the sweep writes, in the process that starts it, and removes what an earlier issue left there."""

    def __init__(self, name: str) -> None:
        self.name = name

    def on_multirun_start(self, config: Any, **kwargs: Any) -> None:
        """Called once, before the first job."""
        folder = Path(config.hydra.sweep.dir).absolute() / self.name
        for file in folder.glob("*.json"):
            file.unlink()
        _begun[:] = [folder]


def run_job(job: Callable[[Any], int], config: Any, name: str) -> None:
    """Run one job of the sweep `name` and leave a file about its end.

    Raises:
        SystemExit: it was interrupted: no further job starts in this process.
    """
    hydra_config = HydraConfig.get()
    overrides = [str(line) for line in hydra_config.overrides.task]
    remember_overrides(overrides)  # again: this may be a process of its own
    _scrub_sweep_file(Path(hydra_config.sweep.dir) / "multirun.yaml")
    os.environ[SWEEP_VARIABLE] = name
    number = int(hydra_config.job.num)
    file = Path(hydra_config.sweep.dir).absolute() / name / f"{number}.json"
    said = {"job": number, "overrides": [clean(line) for line in overrides]}
    _write(file, {**said, "code": None})
    with _tail() as lines:
        code = _code(job, config)
    _write(file, {**said, "code": code, "said": list(lines) if code else []})
    if code >= 128:
        raise SystemExit(code)


def _code(job: Callable[[Any], int], config: Any) -> int:
    """The exit code. Errors are shown where they happen: an exception that leaves the job would stop other jobs."""
    from omegaconf.errors import OmegaConfBaseException

    try:
        return job(config)
    except UserError as error:
        sys.stderr.write(f"Error: {error}\n")
        return 2
    except OmegaConfBaseException as error:
        sys.stderr.write(f"Error: {str(error).splitlines()[0]}\n")
        return 2
    except FatalError as error:
        sys.stderr.write(f"Error: {error}\n")
    except Exception:  # noqa: BLE001 - the process boundary: some launchers lose all jobs over an exception they cannot pickle
        sys.stderr.write(traceback.format_exc())
    return 1


def _write(file: Path, content: dict[str, Any]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    temporary.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    temporary.replace(file)


class _Tail:
    """stderr that remembers its last lines, cleaned of secrets: a job's own process may not have a guard."""

    def __init__(self, stream: TextIO, lines: deque[str]) -> None:
        self._stream, self._lines = stream, lines

    def write(self, text: str) -> int:
        """Write and remember; lines that a progress bar draws over are none."""
        cleaned = clean(text)
        self._stream.write(cleaned)
        self._lines.extend(line for line in cleaned.splitlines() if line.strip() and "\x1b" not in line)
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def _tail() -> Iterator[deque[str]]:
    lines: deque[str] = deque(maxlen=TAIL)
    before = sys.stderr
    sys.stderr = cast(TextIO, _Tail(before, lines))
    try:
        yield lines
    finally:
        sys.stderr = before


def _scrub_sweep_file(file: Path) -> None:
    """Hydra writes the whole config of a sweep beside its jobs: take the secrets out, once a job knows where that is."""
    import yaml

    if not file.is_file():
        return
    text = file.read_text(encoding="utf-8")
    config = yaml.safe_load(text)
    remember(config)
    if (cleaned := scrub(config)) != config:
        temporary = file.with_name(f".{file.name}.{os.getpid()}.tmp")
        temporary.write_text(yaml.safe_dump(cleaned, sort_keys=False, allow_unicode=True), encoding="utf-8")
        temporary.replace(file)


def tell(launcher_failed: Exception | None = None) -> int:
    """Say which jobs of this process' sweep did not succeed, and why.

    Args:
        launcher_failed: what the launcher raised: jobs that have no end died with it or go on without it.

    Returns:
        The exit code of the first job that has another one than 0, 1 if the launcher failed, else 0.
    """
    jobs = _jobs()
    bad = [job for job in jobs if job["code"] != 0]
    for job in bad:
        lines = job.get("said") or ["It did not say how it ended: its process was killed, or still runs."]
        shown = "".join(f"    {line}\n" for line in lines)
        sys.stderr.write(f"Job {job['job']} ({' '.join(job['overrides'])}) {_ended(job['code'])}:\n{shown}")
    if launcher_failed is not None:  # the other jobs may go on, and read their files
        text = clean(str(launcher_failed)).strip().splitlines() or [""]
        sys.stderr.write(f"The launcher stopped: {type(launcher_failed).__name__}: {text[0]}\n")
    else:
        for file in [file for folder in _begun for file in folder.glob(f"{SUBMITIT}/*/*.pkl")]:
            file.unlink()  # the whole config as it was typed, keys included
    if bad or launcher_failed is not None:
        count = f"{len(bad)} of {len(jobs)} jobs failed. " if jobs else ""
        sys.stderr.write(f"{count}The same line again runs only what is missing.\n")
    codes = [int(job["code"] or 1) for job in bad]
    return codes[0] if codes else int(launcher_failed is not None)


def _ended(code: int | None) -> str:
    return "was interrupted" if (code or 0) >= 128 else "failed"


def _jobs() -> list[dict[str, Any]]:
    files = [file for folder in _begun for file in folder.glob("*.json")]
    return sorted((json.loads(file.read_text(encoding="utf-8")) for file in files), key=lambda job: int(job["job"]))


@contextmanager
def between_jobs(interrupted: list[int]) -> Iterator[None]:
    """Remember a signal that arrives between two jobs of a sweep, where an exception could be swallowed by a destructor.

    A running job has handlers of its own. A second signal ends the process.
    """

    def remember_signal(number: int, _: Any) -> None:
        interrupted.append(number)
        if len(interrupted) > 1:
            end_now(number)

    with handled(remember_signal):
        yield


@contextmanager
def with_children() -> Iterator[None]:
    """Within the block a signal also stops the processes that a launcher has started: some would live on without their parent.

    Jobs that wait in the queue of a cluster are nobody's children, and stay there.
    """
    signals: list[int] = []

    def stop(number: int, _: Any) -> None:
        signals.append(number)
        if len(signals) > 1:
            end_now(number)
        children = [child for child in psutil.Process().children() if not _is_helper(child)]
        for child in children:
            with suppress(psutil.Error, ProcessLookupError):
                if not (number == signal.SIGINT and os.getpgid(child.pid) == os.getpgrp() and os.isatty(0)):
                    child.terminate()  # else the terminal has told it already, and a second signal means "at once"
        psutil.wait_procs(children, timeout=GRACE_SECONDS)
        sys.stderr.write(f"Stopped by {signal.Signals(number).name}. The same line again runs only what is missing.\n")
        end_now(number)

    with handled(stop):
        yield


def _is_helper(process: psutil.Process) -> bool:
    """joblib's resource tracker heeds no signal; it ends, and tidies up, when its parent is gone."""
    with suppress(psutil.Error):
        return any("resource_tracker" in word for word in process.cmdline())
    return True


def launcher(overrides: Sequence[str]) -> str:
    """The launcher that is asked for ("joblib", "ray" ...); empty for Hydra's basic one."""
    found = [match[1] for override in overrides if (match := re.match(r"\+*hydra/launcher=(.+)", override))]
    return found[-1].strip("'\"") if found and found[-1] != "basic" else ""


LOCAL_RAY = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_USAGE_STATS_ENABLED": "0"}
"""Environment of a Ray of our own. The first is Ray's word for "one machine only": it then listens on the loopback interface
(given 127.0.0.1 as its address it takes the outer one all the same). The second: nothing leaves this machine unasked."""


def settings(overrides: Sequence[str], name: str) -> list[str]:
    """Overrides for the sweep `name`, where the user leaves these settings of Hydra open.

    A Ray that a sweep starts for itself: see `LOCAL_RAY`; a cluster that is there already keeps its own ways. submitit keeps
    its files in the sweep's folder, from where `tell` removes those that nobody needs any more.
    """
    given = {override.partition("=")[0].lstrip("+") for override in overrides}
    added = {"+hydra.callbacks.agentexp": f"{{_target_: agentexp.sweep.Begin, name: {name}}}"}
    kind, init = launcher(overrides), "hydra.launcher.ray.init"
    if kind.startswith("submitit"):
        added["hydra.launcher.submitit_folder"] = f"${{hydra.sweep.dir}}/{name}/{SUBMITIT}/%j"
    if kind == "ray" and (f"{init}.address" in given or "RAY_ADDRESS" in os.environ):
        added[f"+{init}.object_store_memory"] = "null"  # the launcher sets one, which Ray refuses for a cluster that is there
    elif kind == "ray" and init not in given:
        added[f"+{init}.include_dashboard"] = "false"
        for variable, value in LOCAL_RAY.items():
            os.environ.setdefault(variable, value)
    return [f"{key}={value}" for key, value in added.items() if key.lstrip("+") not in given]
