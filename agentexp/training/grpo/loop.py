"""The loop of a policy-gradient training: step after step, with evaluations, checkpoints and stopping in between.

    load the last checkpoint -> [evaluate] -> step -> [evaluate] -> metrics -> [checkpoint] -> step -> ... -> model

What a step does follows from its number and the weights, so a training that was killed goes on from its last checkpoint as if
nothing had happened. Needs torch and accelerate.
"""

from __future__ import annotations

import asyncio
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from agentexp.errors import FatalError
from agentexp.training.core import Interrupted, TrainRun
from agentexp.training.grpo import checkpoints, records
from agentexp.training.grpo.rollouts import Played
from agentexp.training.grpo.settings import PolicySettings
from agentexp.training.grpo.setup import Setup
from agentexp.training.grpo.watch import SignalWatch

T = TypeVar("T")


class PolicyLoop(ABC):
    """One training in one process. Subclasses draw, play and learn one step (`_step`), and evaluate.

    Args:
        settings: with the model to start from as `base`.
        run: folder, config, seed, metrics.
        before: optimiser steps that the run made before this loop: its step numbers go on from there.

    Attributes:
        what: a step's name for people.
        totals: numbers of a step that are added up over the training, for checkpoints and the summary.
    """

    what = "step"
    totals: tuple[str, ...] = ()

    def __init__(self, settings: PolicySettings, run: TrainRun, before: int = 0) -> None:
        self.settings, self.run, self.before = settings, run, before
        self.setup = Setup.of(settings)
        self.accelerator, self.learner = self.setup.accelerator, self.setup.learner
        self.engine = settings.rollout.open(self.learner, self.setup.tokenizer, self.setup.window, settings.base.name)
        self.watch = SignalWatch(settings.no_signal_steps)

    # ------------------------------------------------------------------------------------------------------ subclasses

    @abstractmethod
    def _step(self, loop: asyncio.Runner, step: int) -> dict[str, float]:
        """Step `step` (0-based): roll out and learn. Returns its numbers."""

    @abstractmethod
    def _due(self, step: int) -> bool:
        """Whether to evaluate after `step` steps; 0: before the first."""

    @abstractmethod
    def _evaluate(self, loop: asyncio.Runner, step: int) -> dict[str, float]:
        """Play what is held out after `step` steps, write `evaluation.jsonl`, and return numbers."""

    async def _start(self) -> None:
        await self.engine.start()

    async def _close(self) -> None:
        await self.engine.close()

    # -------------------------------------------------------------------------------------------------------- the loop

    def go(self) -> dict[str, Any]:
        """Train to the end; see `Trainer.train`."""
        with asyncio.Runner() as loop:
            try:
                loop.run(self._start())
                return self._go(loop)
            finally:
                loop.run(self._close())

    def _go(self, loop: asyncio.Runner) -> dict[str, Any]:
        run, folder, last = self.run, self.run.folder, self.settings.max_steps
        run.planned_steps = self.before + last
        state = checkpoints.load(self.accelerator, folder / "checkpoints")
        start, result = int(state.get("step", 0)), dict(state.get("result", {}))
        if self.accelerator.is_main_process:
            records.rewind(folder / "rollouts.jsonl", start + 1)
            records.rewind(folder / "evaluation.jsonl", start + 1 if start else 0)
        if start:
            run.say(f"Going on from {self.what} {start} of {last}.")
        elif self._due(0):
            found = self._evaluate(loop, 0)
            run.metrics(self.before, found)
            result |= {f"before/{name}": value for name, value in found.items()}
        for done in range(start + 1, last + 1):
            found = self._step(loop, done - 1)
            if self._due(done):
                held_out = self._evaluate(loop, done)
                found |= held_out
                result |= {f"after/{name}": value for name, value in held_out.items()}
            run.metrics(self.before + done, found)
            result |= {name: int(result.get(name, 0) + found[name]) for name in self.totals}
            stop = self.learner.total([float(run.stopping())])[0] > 0
            if stop or done % self.settings.save_every == 0 or done == last:
                checkpoints.save(self.accelerator, folder / "checkpoints", done, {"result": result}, self.settings.keep)
            if stop and done < last:
                raise Interrupted
        self.setup.save(folder)
        return self._result(result)

    def _result(self, result: dict[str, Any]) -> dict[str, Any]:
        """For the summary."""
        return {"steps": self.before + self.settings.max_steps, "processes": self.accelerator.num_processes, **result}

    # ---------------------------------------------------------------------------------------------------- for each step

    def _mine(self, groups: Sequence[T]) -> list[T]:
        """This process' part of a step's groups."""
        return list(groups[self.accelerator.process_index :: self.accelerator.num_processes])

    def _look(self, step: int, made: Mapping[str, float], reward: float) -> None:
        """Speak up when nothing is learnt (case R04), and when the loss is no number.

        Args:
            step: 0-based.
            made: its numbers.
            reward: mean reward; NaN where there was none.

        Raises:
            FatalError: the loss is not finite, or nothing is learnt and `on_no_signal` is "stop".
        """
        name = f"{self.what} {step + 1}"
        if not math.isfinite(made["loss"]):
            raise FatalError(
                f"The loss of {name} is {made['loss']}. Lower trainer.lr, or try trainer.precision=fp32. The last "
                "checkpoint is kept."
            )
        if made["skipped"]:
            self.run.say(f"{name[0].upper()}{name[1:]}: the gradient was not finite and was not used.")
        warning = self._worded(self.watch.look(made["frac_no_signal"], max(made["truncated"], made["cut_replies"]), reward))
        if warning and self.settings.on_no_signal == "stop":
            raise FatalError(f"{warning} Stopped, as trainer.on_no_signal=stop asks.")
        if warning:
            self.run.say(warning)

    def _worded(self, warning: str) -> str:
        """A warning of `SignalWatch` in the words of this training's settings."""
        return warning

    def _record(self, step: int, lines: list[dict[str, Any]], played: Sequence[Sequence[Played]]) -> None:
        """Write a step's groups, of all processes; see `records.write`."""
        lines = self.setup.gather(lines)
        if self.accelerator.is_main_process:
            records.write(self.run.folder, step, lines, played, self.settings.sample_every, self.setup.tokenizer)

    def _write_evaluation(self, lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Add lines to `evaluation.jsonl`; returns those of all processes."""
        lines = self.setup.gather(lines)
        if self.accelerator.is_main_process:
            records.append(self.run.folder / "evaluation.jsonl", lines)
        return lines
