"""The part of `train-sft` that needs torch: TRL's SFTTrainer on a fixed order of token rows.

What is ours: the order (sequential, see `schedule`), the labels, the counting of tokens, complete checkpoints, and stopping.
The loss, the optimiser, mixed precision, DeepSpeed and DDP are those of TRL, transformers and accelerate.
"""

from __future__ import annotations

import copy
import logging
import math
import os
import shutil
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import datasets
import torch
import transformers
import trl
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from agentexp.errors import FatalError, UserError
from agentexp.training import checkpoints
from agentexp.training.base import torch_device
from agentexp.training.core import Interrupted, Row, TrainRun
from agentexp.training.sft import Course, SftTrainer, labels

IGNORED = -100


def fit(settings: SftTrainer, run: TrainRun, course: Course) -> dict[str, Any]:
    """Train, from the last complete checkpoint where there is one, and save the model.

    Raises:
        Interrupted: the user stopped it; the checkpoint is written.
        UserError: the checkpoint is of another course, or the settings do not fit the number of processes.
        FatalError: the loss is not finite any more.
    """
    quieten()
    folder = run.folder / "checkpoints"
    arguments = make_arguments(settings, folder, course, run.seed)
    first = arguments.process_index == 0
    if first:
        for torn in checkpoints.remove_incomplete(folder):
            run.say(f"{torn.name} was not complete and is removed.")
    if arguments.world_size > 1:
        torch.distributed.barrier()
    found = checkpoints.newest(folder)
    if found is not None and found[1].get("course") != course.digest():
        raise UserError(
            f"{found[0]} was written for other data or another order. Start afresh with another output_root=, or remove "
            f"{run.folder}."
        )
    model, tokenizer = load(settings), settings.base.load_tokenizer()
    follow = Follow(settings, run, course, found[1] if found else {})
    trainer = FixedOrderTrainer(
        model=model,
        args=arguments,
        train_dataset=as_dataset(course.prepared.rows, course.order),
        eval_dataset=as_dataset(course.prepared.held_out) if course.prepared.held_out else None,
        processing_class=tokenizer,
        callbacks=[follow],
        peft_config=None if settings.full else adapters(settings),
    )
    trainer.remove_callback(transformers.PrinterCallback)
    follow.trainer = trainer
    plugin = trainer.accelerator.state.deepspeed_plugin
    if run.evaluation is not None and plugin is not None and plugin.zero_stage == 3:
        raise UserError("No process has the whole model under ZeRO-3, so none can play. Leave env out, or use ZeRO-2.")
    if os.environ.get("ACCELERATE_USE_DEEPSPEED") == "true" and not trainer.is_deepspeed_enabled:
        raise UserError("The launcher asks for DeepSpeed, but it is not in use: on a CPU, leave base.device=auto.")
    run.planned_steps = course.steps
    if found is not None:
        run.say(f"Going on from {found[0].name} of {course.steps} steps.")
    trainer.train(resume_from_checkpoint=str(found[0]) if found else None)
    if follow.stopped and trainer.state.global_step < course.steps:
        raise Interrupted
    return follow.finish()


def make_arguments(settings: SftTrainer, folder: Path, course: Course, seed: int) -> trl.SFTConfig:
    """The trainer's arguments; everything that has a default elsewhere and matters is said here.

    Raises:
        UserError: `global_batch` does not divide by the processes and `micro_batch`.
    """
    world = int(os.environ.get("WORLD_SIZE", "1") or 1)
    if settings.global_batch % (settings.micro_batch * world):
        raise UserError(
            f"trainer.global_batch={settings.global_batch} must be a multiple of trainer.micro_batch={settings.micro_batch} "
            f"times the number of processes ({world})."
        )
    deepspeed = os.environ.get("ACCELERATE_USE_DEEPSPEED") == "true"  # with use_cpu, accelerate would silently leave it out
    on_cpu = torch_device(settings.base.device).type == "cpu"
    evaluates = bool(course.prepared.held_out)
    return trl.SFTConfig(
        output_dir=str(folder),
        per_device_train_batch_size=settings.micro_batch,
        per_device_eval_batch_size=settings.micro_batch,
        gradient_accumulation_steps=settings.global_batch // (settings.micro_batch * world),
        num_train_epochs=1,  # the order holds all epochs
        train_sampling_strategy="sequential",
        learning_rate=settings.lr,
        lr_scheduler_type=settings.schedule if settings.schedule == "cosine" else "constant_with_warmup",
        warmup_steps=math.ceil(settings.warmup * course.steps),
        weight_decay=settings.weight_decay,
        max_grad_norm=settings.max_grad_norm,
        optim="adamw_torch",
        bf16=settings.precision == "bf16",
        fp16=False,
        use_cpu=on_cpu and not deepspeed,
        ddp_backend="gloo" if on_cpu and world > 1 else None,  # else DeepSpeed's processes would not know of each other
        gradient_checkpointing=settings.gradient_checkpointing,
        logging_strategy="steps",
        logging_steps=1,
        logging_nan_inf_filter=False,  # else a loss that is not a number is shown as the last one that was
        save_strategy="steps",
        save_steps=settings.save_every,
        eval_strategy="steps" if evaluates else "no",
        eval_steps=settings.eval_every if evaluates else None,
        seed=seed,
        data_seed=seed,
        report_to=[],
        disable_tqdm=True,
        max_length=None,
        packing=False,  # done beforehand, see `schedule`
        padding_free=settings.packing,
        shuffle_dataset=False,
        dataset_kwargs={"skip_prepare_dataset": True},
        remove_unused_columns=False,
        dataloader_pin_memory=torch.cuda.is_available(),
        ddp_find_unused_parameters=False,
        ddp_timeout=24 * 3600,  # seconds; the other processes wait while the first one plays
    )


def load(settings: SftTrainer) -> Any:
    """The base model on the CPU, its weights in the type that the precision asks for; the trainer moves them to its device."""
    base = copy.copy(settings.base)
    base.device = "cpu"
    base.dtype = "bfloat16" if settings.precision == "bf16_weights" else "float32"
    model = base.load_model()
    model.config.use_cache = False
    return model


def adapters(settings: SftTrainer) -> Any:
    """LoRA as peft's config.

    Raises:
        UserError: on `lm_head`, which TRL's fused head would never train.
    """
    from peft import LoraConfig

    if "lm_head" in settings.lora_targets:
        raise UserError("trainer.lora_targets: lm_head cannot have an adapter. Leave it out.")
    return LoraConfig(
        task_type="CAUSAL_LM",
        r=settings.lora_rank,
        lora_alpha=settings.lora_alpha,
        lora_dropout=settings.lora_dropout,
        target_modules=settings.lora_targets,
    )


def as_dataset(rows: list[Row], order: list[list[int]] | None = None) -> datasets.Dataset:
    """Sequences as TRL's collator takes them, made when they are asked for: `input_ids`, `labels`, and with several rows in a
    sequence `seq_lengths`, from which positions start anew in each row.
    """
    chosen = [[row] for row in range(len(rows))] if order is None else order

    def examples(batch: Mapping[str, list[list[int]]]) -> dict[str, list[list[int]]]:
        sequences = [[rows[row] for row in sequence] for sequence in batch["rows"]]
        return {
            "input_ids": [[token for row in sequence for token in row.ids] for sequence in sequences],
            "labels": [[label for row in sequence for label in labels(row)] for sequence in sequences],
            "seq_lengths": [[len(row.ids) for row in sequence] for sequence in sequences],
        }

    made: datasets.Dataset = datasets.Dataset.from_dict({"rows": chosen}).with_transform(examples)
    return made


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
        if self.trainer.accelerator.num_processes > 1:
            torch.distributed.barrier()  # every process has written its part
        if state.is_world_process_zero:
            folder = Path(args.output_dir or "")
            kept = {"step": state.global_step, "trained_tokens": self.trained, "tokens": self.tokens, "result": self.result}
            checkpoints.mark(folder / f"checkpoint-{state.global_step}", {**kept, "course": self.course.digest()})
            checkpoints.keep_newest(folder, self.settings.keep)

    def finish(self) -> dict[str, Any]:
        """Save the model where it belongs and say what was done."""
        save(self.trainer, self.run.folder / "model")
        counts = self.course.prepared.counts
        return {
            "steps": self.trainer.state.global_step,
            "conversations": counts.conversations,
            "rows": len(self.course.prepared.rows),
            "held_out": len(self.course.prepared.held_out),
            "cut": counts.cut,
            "refused": counts.nothing_to_train + counts.too_long + counts.refused,
            "sequences": len(self.course.order),
            "passes": sum(map(len, self.course.order)) / len(self.course.prepared.rows),
            "tokens": self.tokens,
            "trained_tokens": self.trained,
            "processes": self.trainer.accelerator.num_processes,
            **self.result,
        }


def save(trainer: FixedOrderTrainer, folder: Path) -> None:
    """Write weights, config, tokenizer and chat template; adapters also merged: `folder` is a whole model in either case."""
    parts = folder.parent / ".model"
    model = trainer.accelerator.unwrap_model(trainer.model)
    if hasattr(model, "merge_and_unload") and not trainer.is_deepspeed_enabled:
        if trainer.args.should_save:
            model.save_pretrained(folder.parent / "adapter")
            merged = copy.deepcopy(model).merge_and_unload()
            merged.config.use_cache = True
            merged.save_pretrained(parts)
            trainer.processing_class.save_pretrained(parts)
    else:
        model.config.use_cache = True
        trainer.save_model(str(parts))  # gathers what DeepSpeed has spread
    if trainer.args.should_save:
        (parts / "training_args.bin").unlink(missing_ok=True)
        if folder.exists():
            shutil.rmtree(folder)
        parts.replace(folder)
    if trainer.accelerator.num_processes > 1:
        torch.distributed.barrier()


def quieten() -> None:
    """Libraries speak only of errors: what a user must know is said by the run."""
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    datasets.utils.logging.set_verbosity_error()
    datasets.disable_progress_bars()
    logging.getLogger("accelerate").setLevel(logging.ERROR)
    logging.getLogger("trl").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", category=UserWarning, module=r"torch|accelerate|transformers|trl|deepspeed")
    warnings.filterwarnings("ignore", category=FutureWarning, module=r"torch|accelerate|transformers|trl|deepspeed")
