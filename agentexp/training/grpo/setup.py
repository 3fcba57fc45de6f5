"""From settings to what is trained: accelerator, model, adapters, tokenizer; and back to a model on disk."""

from __future__ import annotations

import copy
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from agentexp.errors import FatalError, UserError
from agentexp.training.grpo.learner import Learner, Update
from agentexp.training.grpo.settings import PolicySettings
from agentexp.training.libraries import lora_config, quieten


@dataclass(slots=True)
class Setup:
    """What a training works with.

    Attributes:
        window: most tokens of one conversation: the rollout's cap, or what the model can take.
    """

    settings: PolicySettings
    accelerator: Any
    learner: Learner
    tokenizer: Any
    window: int

    @staticmethod
    def of(settings: PolicySettings) -> Setup:
        """Load everything.

        Raises:
            MissingDependency: peft is not installed and asked for.
            UserError: the launcher asked for DeepSpeed and it is not in use.
        """
        from accelerate import Accelerator

        quieten()
        deepspeed = os.environ.get("ACCELERATE_USE_DEEPSPEED") == "true"
        precision = {} if settings.precision != "bf16" else {"mixed_precision": "bf16"}
        accelerator = Accelerator(cpu=settings.base.device == "cpu" and not deepspeed, **precision)
        if deepspeed and not str(accelerator.distributed_type).endswith("DEEPSPEED"):
            raise UserError("The launcher asks for DeepSpeed, but it is not in use: on a CPU, leave base.device=auto.")
        if deepspeed:  # there is no data loader from which accelerate could read a batch size
            plugin = accelerator.state.deepspeed_plugin.deepspeed_config
            plugin |= {"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1}
            plugin["gradient_clipping"] = settings.max_grad_norm
        base = copy.copy(settings.base)
        base.dtype = "bfloat16" if settings.precision == "bf16_weights" else "float32"
        base.device = str(accelerator.device)
        model, tokenizer = base.load_model(), base.load_tokenizer()
        if not settings.full:
            model = _with_adapters(model, settings)
        update = Update(**{name: getattr(settings, name) for name in Update.__dataclass_fields__})
        learner = Learner(model, accelerator, update, settings.gradient_checkpointing)
        limit = getattr(learner.policy.config, "max_position_embeddings", None) or settings.max_rollout_tokens
        return Setup(settings, accelerator, learner, tokenizer, min(settings.max_rollout_tokens, int(limit)))

    def gather(self, items: list[Any]) -> list[Any]:
        """The items of all processes, in every process."""
        if self.accelerator.num_processes == 1:
            return items
        from accelerate.utils import gather_object

        gathered: list[Any] = gather_object(items)
        return gathered

    def save(self, folder: Path) -> None:
        """Write `model` (a whole model, adapters merged) and, where there are any, `adapter`.

        Raises:
            FatalError: a parameter is not finite: such a model is worth nothing and is not written.
        """
        policy, parts = self.learner.policy, folder / ".model"
        state = self.accelerator.get_state_dict(self.learner.prepared)  # gathers what DeepSpeed or FSDP has spread
        if self.accelerator.is_main_process:
            for name, value in state.items():
                if value.is_floating_point() and not bool(torch.isfinite(value).all()):
                    raise FatalError(f"The trained parameter {name} is not finite; no model is written. Lower trainer.lr.")
            shutil.rmtree(parts, ignore_errors=True)
            if self.settings.full:
                policy.save_pretrained(parts, state_dict=state)
            else:
                policy.save_pretrained(folder / "adapter", state_dict=state)
                copy.deepcopy(policy).merge_and_unload().save_pretrained(parts)
            self.tokenizer.save_pretrained(parts)
            shutil.rmtree(folder / "model", ignore_errors=True)
            os.replace(parts, folder / "model")
        self.accelerator.wait_for_everyone()


def _with_adapters(model: Any, settings: PolicySettings) -> Any:
    config = lora_config(settings)
    from peft import get_peft_model

    return get_peft_model(model, config)
