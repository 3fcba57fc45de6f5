"""TRL's trainer as `train-sft` uses it: what its loss sees is counted, and a callback follows it step by step."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import trl
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from agentexp.errors import FatalError
from agentexp.training import checkpoints
from agentexp.training.core import TrainRun
from agentexp.training.grpo.records import sample_text
from agentexp.training.sft import Course, SftTrainer

IGNORED = -100


class FixedOrderTrainer(trl.SFTTrainer):  # type: ignore[misc]
    """TRL's trainer that counts what its loss sees.

    Attributes:
        seen: tokens of this process since `take_seen`: trained, all.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.seen = [0, 0]
        super().__init__(*args, **kwargs)

    def compute_loss(
        self, model: Any, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """TRL's loss: the mean over the trained tokens of the optimiser step, on all processes."""
        if self.model.training:
            mask = inputs.get("attention_mask")
            self.seen[0] += int((inputs["labels"][:, 1:] != IGNORED).sum())
            self.seen[1] += int(inputs["input_ids"].numel() if mask is None else mask.sum())
        return super().compute_loss(model, inputs, return_outputs, num_items_in_batch)

    def take_seen(self, stop: bool) -> tuple[int, int, bool]:
        """Trained tokens and all tokens of a step over all processes, and whether any process was asked to stop."""
        counts = torch.tensor([*self.seen, int(stop)], device=self.accelerator.device)
        self.seen = [0, 0]
        trained, every, stops = self.accelerator.reduce(counts, "sum").tolist()
        return trained, every, stops > 0

    def create_model_card(self, *args: Any, **kwargs: Any) -> None:
        """None: what was trained is in the run folder's manifest."""


def check_finite(model: torch.nn.Module) -> None:
    """Refuse to keep a model that an update has broken: no checkpoint to go on from, no model that says nothing.

    Raises:
        FatalError: a parameter is not finite.
    """
    for name, value in model.named_parameters():
        if not bool(torch.isfinite(value).all()):
            raise FatalError(
                f"The parameter {name} is not finite any more, so it is not written. Lower trainer.lr, or try "
                "trainer.precision=fp32. Complete checkpoints are kept."
            )


class Follow(TrainerCallback):  # type: ignore[misc]
    """Metrics, tokens, complete checkpoints, stopping, and evaluation by playing.

    Args:
        before: what the checkpoint kept with it; empty at the start.
    """

    def __init__(self, settings: SftTrainer, run: TrainRun, course: Course, before: Mapping[str, Any]) -> None:
        self.settings, self.run, self.course = settings, run, course
        self.trained, self.tokens = int(before.get("trained_tokens", 0)), int(before.get("tokens", 0))
        self.result: dict[str, Any] = dict(before.get("result", {}))
        self.stopped = False
        self.trainer: FixedOrderTrainer
        self._step: dict[str, float] = {}
        self._began = time.monotonic()

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Show one row as text, what is trained of it between » and «."""
        file = self.run.folder / "samples" / "first-row.txt"
        if state.is_world_process_zero:
            file.parent.mkdir(parents=True, exist_ok=True)
            shown = sample_text(self.course.prepared.rows[self.course.order[0][0]], self.trainer.processing_class)
            file.write_text(shown, encoding="utf-8")

    def on_step_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """The clock of a step does not run during evaluations and checkpoints."""
        self._began = time.monotonic()

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Count tokens; stop on all processes once one was asked to."""
        seconds = max(time.monotonic() - self._began, 1e-9)
        trained, every, stop = self.trainer.take_seen(self.run.stopping())
        self.trained += trained
        self.tokens += every
        self._step = {"trained_tokens": self.trained, "tokens": self.tokens, "tokens_per_s": every / seconds}
        if stop:
            self.stopped = control.should_save = control.should_training_stop = True

    def _play(self, step: int) -> None:
        """Let the first process play with the weights as they are; the others wait."""
        if self.run.evaluation is None:
            return
        if self.trainer.accelerator.process_index == 0:
            model = self.trainer.accelerator.unwrap_model(self.trainer.model)
            with torch.random.fork_rng():  # so that the training that follows is the same with and without evaluation
                values = self.run.evaluation.play(self.run.folder, step, model, self.trainer.processing_class)
            model.train()
            self.run.metrics(step, values)
            self.result |= values
        self.trainer.accelerator.wait_for_everyone()

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, float] | None = None,
        **kwargs: Any,
    ) -> None:
        """Record a step, or an evaluation of it."""
        logs = logs or {}
        if "eval_loss" in logs:
            self.result["eval_loss"] = logs["eval_loss"]
            self.run.metrics(state.global_step, {"eval_loss": logs["eval_loss"]})
        elif "loss" in logs:
            loss = logs["loss"]
            names = {"grad_norm": "grad_norm", "learning_rate": "lr", "mean_token_accuracy": "accuracy", "entropy": "entropy"}
            numbers = {ours: logs[theirs] for theirs, ours in names.items() if theirs in logs}
            self.run.metrics(state.global_step, {"loss": loss, **numbers, **self._step})
            self.result.setdefault("first_loss", loss)
            self.result["last_loss"] = loss
            if not math.isfinite(loss):
                raise FatalError(
                    f"The loss of step {state.global_step} is {loss}. Lower trainer.lr, or try trainer.precision=fp32. "
                    "The last checkpoint is kept."
                )
            if not self.stopped and (
                state.global_step % self.settings.eval_every == 0 or state.global_step == self.course.steps
            ):
                self._play(state.global_step)

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Mark the checkpoint as complete; only then older ones go."""
        check_finite(self.trainer.model)
        if self.trainer.accelerator.num_processes > 1:
            torch.distributed.barrier()  # every process has written its part
        if state.is_world_process_zero:
            folder = Path(args.output_dir or "")
            kept = {"step": state.global_step, "trained_tokens": self.trained, "tokens": self.tokens, "result": self.result}
            checkpoints.mark(folder / f"checkpoint-{state.global_step}", {**kept, "course": self.course.digest()})
            checkpoints.keep_newest(folder, self.settings.keep)

    def on_train_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """The last update comes after the last loss, which shows nothing of it."""
        check_finite(self.trainer.model)

    def done(self) -> dict[str, Any]:
        """What was done, for `summary.json`."""
        counts = self.course.prepared.counts
        return {
            "steps": self.trainer.state.global_step,
            "conversations": counts.conversations,
            "rows": len(self.course.prepared.rows),
            "held_out": len(self.course.prepared.held_out),
            "cut": counts.cut,
            "refused": len(counts.unused),
            "unused": counts.unused,
            "sequences": len(self.course.order),
            "passes": sum(map(len, self.course.order)) / len(self.course.prepared.rows),
            "tokens": self.tokens,
            "trained_tokens": self.trained,
            "processes": self.trainer.accelerator.num_processes,
            **self.result,
        }
