"""Settings that every policy-gradient training has: `train-grpo` and the RL of `train-thinker`. No torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from agentexp.errors import UserError
from agentexp.training.base import Base
from agentexp.training.grpo.batches import LossAgg
from agentexp.training.grpo.engine import RolloutEngine
from agentexp.training.grpo.watch import OnNoSignal
from agentexp.training.sft import Precision

LrSchedule = Literal["constant", "linear", "cosine"]
OldLogprobs = Literal["trainer", "sampler"]


@dataclass(kw_only=True, eq=False)
class PolicySettings:
    """The model, how it is sampled, and the optimiser step. Groups are what is compared: rollouts of one instance or node.

    Attributes:
        base: the model to start from.
        rollout: how replies are sampled.
        max_steps: optimiser steps.
        max_rollout_tokens: tokens of a rollout, all its conversations together; what would grow beyond ends there.
        lr: learning rate of AdamW.
        lr_schedule: "constant", or to 0 at `max_steps`: "linear", "cosine".
        warmup_steps: steps over which the rate rises.
        weight_decay: of AdamW.
        max_grad_norm: gradients are clipped to this norm.
        beta: weight of the KL term, towards the model before the first step; 0 needs no reference model.
        clip: of the ratio. With one inner epoch and `old_logprobs` "trainer" the ratio is 1 and nothing is clipped.
        inner_epochs: optimiser steps on the same rollouts.
        old_logprobs: what the ratio compares with: the trainer's own log-probabilities before the step, or the sampler's.
        loss_agg: "sequence" = mean over the tokens of a rollout, then over rollouts; "sum" = eq. 5 of paper 001 to the letter.
        adv_eps: added to the std of a group's rewards.
        micro_batch_tokens: padded tokens of one forward pass.
        full: train all parameters; False = LoRA, whose base model is also the reference.
        lora_rank: rank of the adapters.
        lora_alpha: their scale, times the rank.
        lora_dropout: dropout before them; above 0 the trainer's log-probabilities are not those of the sampler.
        lora_targets: "all-linear", or names of modules.
        precision: "fp32"; "bf16" = weights in fp32, arithmetic in bf16; "bf16_weights" = all in bf16, where steps below 1/256
            of a weight are lost.
        gradient_checkpointing: less memory, about a third slower.
        no_signal_steps: steps in a row without any two different rewards in a group after which to speak up.
        on_no_signal: "warn", or "stop" the training then.
        save_every: steps between checkpoints.
        keep: newest checkpoints that stay.
        sample_every: steps between sample texts in `samples/`; 0 = none.

    Raises:
        UserError: a setting has an impossible value.
    """

    base: Base
    rollout: RolloutEngine
    max_steps: int
    max_rollout_tokens: int
    lr: float = 1e-6
    lr_schedule: LrSchedule = "constant"
    warmup_steps: int = 0
    weight_decay: float = 0.0
    max_grad_norm: float = 1.0
    beta: float = 0.001
    clip: float = 0.2
    inner_epochs: int = 1
    old_logprobs: OldLogprobs = "trainer"
    loss_agg: LossAgg = "sequence"
    adv_eps: float = 1e-4
    micro_batch_tokens: int = 32768
    full: bool = True
    lora_rank: int = 16
    lora_alpha: int = 32
    lora_dropout: float = 0.0
    lora_targets: str | list[str] = "all-linear"
    precision: Precision = "fp32"
    gradient_checkpointing: bool = False
    no_signal_steps: int = 5
    on_no_signal: OnNoSignal = "warn"
    save_every: int = 10
    keep: int = 2
    sample_every: int = 10

    def __post_init__(self) -> None:
        self._at_least(1, "max_rollout_tokens", "inner_epochs", "micro_batch_tokens")
        self._at_least(1, "no_signal_steps", "save_every", "keep", "lora_rank")
        self._at_least(0, "warmup_steps", "sample_every", "beta", "weight_decay", "adv_eps")
        if not 0 < self.clip < 1:
            raise UserError(f"trainer.clip must be between 0 and 1, not {self.clip}.")
        if self.lr <= 0 or self.max_grad_norm <= 0:
            raise UserError("trainer.lr and trainer.max_grad_norm must be above 0.")

    def _at_least(self, least: float, *names: str) -> None:
        """Refuse what is below `least`; None is no number and passes."""
        for name in names:
            value = getattr(self, name)
            if value is not None and value < least:
                raise UserError(f"trainer.{name} must be at least {least}, not {value}.")
