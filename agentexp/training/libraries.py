"""What all trainings ask of transformers, accelerate and peft. Imports none of them by itself."""

from __future__ import annotations

import logging
import warnings
from typing import Any, Protocol

from agentexp.errors import MissingDependency


class LoraSettings(Protocol):
    """Settings of the adapters, see `PolicySettings` and `SftTrainer`."""

    lora_rank: int
    lora_alpha: int
    lora_dropout: float
    lora_targets: str | list[str]


def lora_config(settings: LoraSettings) -> Any:
    """LoRA as peft's config, for a causal language model.

    Raises:
        MissingDependency: peft is not installed.
    """
    try:
        from peft import LoraConfig
    except ImportError as error:
        raise MissingDependency("trainer.full=false needs the package peft: pip install peft.") from error
    return LoraConfig(
        task_type="CAUSAL_LM",
        r=settings.lora_rank,
        lora_alpha=settings.lora_alpha,
        lora_dropout=settings.lora_dropout,
        target_modules=settings.lora_targets,
    )


def quieten() -> None:
    """Libraries speak only of errors: what a user must know is said by the run."""
    import transformers

    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    for name in ("accelerate", "trl"):
        logging.getLogger(name).setLevel(logging.ERROR)
    for category in (UserWarning, FutureWarning):
        warnings.filterwarnings("ignore", category=category, module=r"torch|accelerate|transformers|trl|peft|deepspeed")
