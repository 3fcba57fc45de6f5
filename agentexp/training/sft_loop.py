"""The part of `train-sft` that needs torch: TRL's SFTTrainer on a fixed order of token rows.

What is ours: the order (sequential, see `schedule`), the labels, and what `sft_follow` does: counting, checkpoints, stopping.
The loss, the optimiser, mixed precision, DeepSpeed and DDP are those of TRL, transformers and accelerate.
"""

from __future__ import annotations

import copy
import math
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import datasets
import torch
import transformers
import trl

from agentexp.errors import UserError
from agentexp.training import checkpoints
from agentexp.training.base import torch_device
from agentexp.training.core import Interrupted, Row, TrainRun
from agentexp.training.libraries import lora_config, quieten
from agentexp.training.sft import Course, SftTrainer, labels
from agentexp.training.sft_follow import FixedOrderTrainer, Follow


def fit(settings: SftTrainer, run: TrainRun, course: Course) -> dict[str, Any]:
    """Train, from the last complete checkpoint where there is one, and save the model.

    Raises:
        Interrupted: the user stopped it; the checkpoint is written.
        UserError: the checkpoint is of another course, or the settings do not fit the number of processes.
        FatalError: the loss is not finite any more.
    """
    quieten()
    datasets.utils.logging.set_verbosity_error()
    datasets.disable_progress_bars()
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
    save(trainer, run.folder / "model")
    return follow.done()


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
        MissingDependency: peft is not installed.
        UserError: on `lm_head`, which TRL's fused head would never train.
    """
    if "lm_head" in settings.lora_targets:
        raise UserError("trainer.lora_targets: lm_head cannot have an adapter. Leave it out.")
    return lora_config(settings)


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
