"""One training run: its folder, its lock, its metrics, and what happens when it is stopped.

    <output_root>/<command>/<base>-<hash8 of what changes the result>/
        manifest.json  metrics.jsonl (one line per optimiser step)  summary.json  checkpoints/  model/

The same command goes on from the last checkpoint, and says so where nothing is left to do. In a launch with several processes
(torchrun, accelerate) the one of rank 0 owns the folder; the others only train.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Protocol, runtime_checkable

from agentexp.errors import FatalError, HarnessError, MissingDependency, UserError
from agentexp.interrupt import end_now, handled
from agentexp.manifest import WAYS_ON, Resume, continued, differences
from agentexp.models.cores import free_cores
from agentexp.progress import Mode
from agentexp.store import RunFolder, read_json
from agentexp.tracking import Tracker
from agentexp.training.core import Evaluation, Interrupted, Trainer
from agentexp.training.manifest import build_manifest
from agentexp.training.metrics_file import MetricsFile
from agentexp.training.progress import TrainProgress, show_result

log = logging.getLogger(__name__)

INTERRUPTED = 130

_INSTALL = "pip install torch==2.13.0 and then pip install 'agentexp[train]'"


@runtime_checkable
class Requires(Protocol):
    """A trainer that says which packages it imports; others need torch and transformers."""

    requires: tuple[str, ...]


@runtime_checkable
class Plans(Protocol):
    """A trainer that can say beforehand what it would do."""

    def plan(self) -> list[str]:
        """Sentences for `--dry-run`: rows, tokens, steps. Loads no weights."""
        ...


@runtime_checkable
class Checks(Protocol):
    """A trainer that can look at its data before anything heavy is imported."""

    def check(self) -> None:
        """Raises `UserError` for data that cannot be trained on. Takes no longer than reading them."""
        ...


class TrainFolder(RunFolder):
    """A run folder whose lines are those of `metrics.jsonl`."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.episodes_file = path / "metrics.jsonl"


@dataclass(slots=True, kw_only=True)
class Job:
    """One training run with everything instantiated and nothing started; what the trainer gets as its `TrainRun`.

    Attributes:
        command: train-sft, train-grpo or train-thinker.
        config: the resolved config, for the manifest and the trainer.
        folder: `<output_root>/<command>/<base>-<hash>`.
        label: name of the base model.
        threads: of torch; None: as many as cores are free.
        evaluation: plays on the way; None: nobody does.
    """

    command: str
    config: Mapping[str, Any]
    folder: Path
    label: str
    seed: int
    trainer: Trainer
    logger: Tracker
    resume: Resume = "refuse"
    progress: Mode = "auto"
    threads: int | None = None
    evaluation: Evaluation | None = None
    planned_steps: int | None = None
    _stopped_by: str = ""
    _polled: bool = False
    _metrics: MetricsFile | None = None
    _show: TrainProgress | None = None
    _seconds_before: float = 0.0
    _started: float = field(default_factory=time.monotonic)

    # -------------------------------------------------------------------------------------------- as the trainer sees it

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        """See `TrainRun`. `seconds` counts from the start of the training, over interruptions.

        Raises:
            FatalError: the disk refused.
        """
        self._polled = True
        if self._metrics is None:  # a process of another rank
            return
        try:
            line = self._metrics.record(step, {**values, "seconds": round(self._seconds(), 3)})
        except OSError as error:
            raise FatalError(f"{self.folder / 'metrics.jsonl'} cannot be written: {error.strerror}.") from error
        self.logger.log({"train_step": step, **{f"train/{key}": value for key, value in values.items()}})
        if self._show is not None:
            self._show.step(line, self.planned_steps)

    def say(self, text: str) -> None:
        """See `TrainRun`."""
        log.info("%s", text)
        if self._show is not None:
            self._show.say(text)

    def stopping(self) -> bool:
        """See `TrainRun`."""
        self._polled = True
        return bool(self._stopped_by)

    # -------------------------------------------------------------------------------------------------------- the command

    def run(self) -> int:
        """Train what is left. Returns the exit code: 0 finished, 130 interrupted.

        Raises:
            UserError: the command cannot run as given, or the folder holds another training.
            HarnessError: the training failed for good; its last checkpoint is kept.
        """
        require(self.command, self.trainer)
        if rank() > 0:
            return self._follow()
        with TrainFolder(self.folder) as folder:
            done = read_json(self.folder / "summary.json")
            manifest = self._settled(folder)
            if done is not None and done.get("status") == "finished":
                sys.stderr.write("Nothing to do: this training has finished.\n")
                show_result(done, self.folder, table=self.progress != "off")
                return 0
            folder.write_json("manifest.json", manifest)
            folder.remove("summary.json")
            return self._train(folder)

    def _train(self, folder: RunFolder) -> int:
        self._metrics = MetricsFile(folder.episodes_file)
        self._seconds_before = float(self._metrics.last.get("seconds", 0.0))
        self._started = time.monotonic()
        self._show = TrainProgress(f"{self.command} {self.label}", self.progress)
        summary: dict[str, Any] = {"command": self.command, "base": self.label}
        try:
            if isinstance(self.trainer, Checks):  # torch takes seconds to import
                self.trainer.check()
            self._set_threads()
            self.logger.start(self.folder, self.folder.name, self.config)
            with self._show, self._signals():
                result = self.trainer.train(self)
            summary |= {"status": "finished", **result}
        except Interrupted:
            summary |= {"status": "interrupted", "stopped_by": self._stopped_by}
        except UserError:
            self._metrics.close()
            folder.discard_unused("manifest.json")
            raise
        except HarnessError as error:
            summary |= {"status": "failed", "error": str(error)}
            raise
        finally:
            if "status" in summary:
                last = self._metrics.last
                summary |= {"recorded_steps": len(self._metrics), "seconds": last.get("seconds", 0.0)}
                folder.write_json("summary.json", summary)
            self._metrics.close()
            self.logger.finish(summary)
        if summary["status"] == "interrupted":
            at = f" at step {int(self._metrics.last['step'])}" if len(self._metrics) else ""
            sys.stderr.write(f"Stopped by {self._stopped_by}{at}. Issue the same command again to go on.\n")
        show_result(summary, self.folder, table=self.progress != "off")
        return 0 if summary["status"] == "finished" else INTERRUPTED

    def _follow(self) -> int:
        """The part of a process that is not of rank 0: it trains along, writes nothing and prints nothing."""
        done = read_json(self.folder / "summary.json")
        if done is not None and done.get("status") == "finished":
            return 0
        self._set_threads()
        try:
            with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere), self._signals():
                self.trainer.train(self)
        except Interrupted:
            return INTERRUPTED
        return 0

    def _settled(self, folder: RunFolder) -> dict[str, Any]:
        """The manifest to keep.

        Raises:
            UserError: with `resume` "refuse", when the folder holds a training by other code, data or settings.
        """
        new, old = build_manifest(self), folder.read_json("manifest.json")
        if old is None:
            return new
        changes = list(differences(old, new))
        kept = self.folder / "checkpoints"
        started = folder.episodes_file.stat().st_size > 0 or (kept.is_dir() and any(kept.iterdir()))
        if changes and started and self.resume == "refuse":
            listed = "\n".join(f"  {key}: {before} -> {now}" for key, before, now in changes)
            raise UserError(f"{self.folder} holds another training:\n{listed}\n{WAYS_ON}")
        return continued(old, new, changes) if started else new

    def _set_threads(self) -> None:
        if "torch" in needed(self.trainer):
            set_threads(self.threads)

    def _seconds(self) -> float:
        return self._seconds_before + time.monotonic() - self._started

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """Within the block the first signal asks the trainer to stop after its step, the second ends the process.

        Before the trainer has shown that it asks (`stopping`, `metrics`) there is nothing to save, and it stops at once.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def handle(number: int, _: FrameType | None) -> None:
            if self._stopped_by:
                end_now(number)
            self._stopped_by = signal.Signals(number).name
            if not self._polled:
                raise Interrupted(self._stopped_by)
            self.say("Stopping after this step; a second signal ends at once.")

        with handled(handle):
            yield


def rank() -> int:
    """Number of this process in a launch with several, 0 otherwise."""
    return int(os.environ.get("RANK", "0") or 0)


def needed(trainer: Trainer) -> tuple[str, ...]:
    """Packages that a trainer imports."""
    return trainer.requires if isinstance(trainer, Requires) else ("torch", "transformers")


def require(command: str, trainer: Trainer) -> None:
    """Refuse a training whose packages are missing.

    Raises:
        MissingDependency: it names the first one and how to install it.
    """
    names = needed(trainer)
    if os.environ.get("ACCELERATE_USE_DEEPSPEED") == "true":
        names = (*names, "deepspeed")
    for name in names:
        if importlib.util.find_spec(name) is None:
            how = "pip install 'agentexp[deepspeed]'" if name == "deepspeed" else _INSTALL
            raise MissingDependency(f"{command} needs {name}, which is not installed: {how}.")


def set_threads(threads: int | None) -> None:
    """Tell torch how many threads to use. A launcher that has set OMP_NUM_THREADS decides when `threads` is None."""
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")  # before TRL is imported, which reports its use
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # before torch: waiting threads take no core from an environment
    if threads is None and os.environ.get("OMP_NUM_THREADS"):
        return
    import torch

    torch.set_num_threads(threads or max(1, free_cores()))
