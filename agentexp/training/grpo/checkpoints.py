"""Checkpoints of a GRPO training, `checkpoints/checkpoint-10`.

Model, optimiser and random states are written by accelerate, each process its part and DeepSpeed in its own format. What makes
a checkpoint count is the marker of `agentexp.training.checkpoints`.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentexp.errors import FatalError, UserError
from agentexp.training.checkpoints import keep_newest, mark, newest, remove_incomplete


def save(accelerator: Any, folder: Path, step: int, state: Mapping[str, Any], keep: int) -> None:
    """Write the checkpoint after `step` steps and drop the oldest beyond `keep`. Every process calls it.

    Raises:
        FatalError: the disk refused.
    """
    path = folder / f"checkpoint-{step}"
    try:
        if accelerator.is_main_process:
            shutil.rmtree(path, ignore_errors=True)
            path.mkdir(parents=True)
        accelerator.wait_for_everyone()
        accelerator.save_state(str(path))
        accelerator.wait_for_everyone()
        if accelerator.is_main_process:
            _sync(path)
            mark(path, {"step": step, "processes": accelerator.num_processes, **state})
            keep_newest(folder, keep)
    except OSError as error:
        raise FatalError(f"The checkpoint {path} cannot be written: {error.strerror or error}.") from error
    accelerator.wait_for_everyone()


def load(accelerator: Any, folder: Path) -> dict[str, Any]:
    """Restore the newest checkpoint; what was kept with it, or {} where there is none. Every process calls it.

    Raises:
        UserError: it was written by another number of processes, or does not fit the model.
    """
    if accelerator.is_main_process:
        remove_incomplete(folder)
    accelerator.wait_for_everyone()
    found = newest(folder)
    if found is None:
        return {}
    path, state = found
    if state.get("processes") != accelerator.num_processes:
        raise UserError(
            f"{path} was written by {state.get('processes')} processes, and this launch has {accelerator.num_processes}; "
            "each keeps its part. Launch as many again, or start afresh with another output_root=."
        )
    try:
        accelerator.load_state(str(path))
    except (RuntimeError, ValueError, KeyError) as error:
        raise UserError(f"{path} does not fit this model: {str(error).splitlines()[0]}") from error
    return state


def _sync(folder: Path) -> None:
    """Wait until everything below `folder` is on the disk itself."""
    for path in [*folder.rglob("*"), folder]:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
