"""`GrpoTrainer`, what `agentexp train-grpo` runs. Only the settings are here; `training` needs torch, this does not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from agentexp.core import Paradigm
from agentexp.errors import UserError
from agentexp.training.base import Base
from agentexp.training.core import TrainRun
from agentexp.training.grpo.batches import LossAgg
from agentexp.training.grpo.engine import RolloutEngine
from agentexp.training.grpo.evaluation import HeldOut
from agentexp.training.grpo.interleave import Ratio, Schedule, exploration_groups
from agentexp.training.grpo.rewards import Coverage, Reward, Success
from agentexp.training.grpo.watch import OnNoSignal


class GrpoTrainer:
    """GRPO over multi-turn episodes, task and exploration groups interleaved (paper 001, section 3.3).

    The policy is trained on the tokens it sampled, all turns of an episode, and on nothing else.

    Args:
        base: the model to start from.
        task: paradigm of task rollouts; a react loop in the paper, but map or explore_then_act work as well.
        explore: paradigm of exploration rollouts: goal-free exploration alone (`explore_then_act` with act=false).
        rollout: how replies are sampled.
        evaluation: held-out episodes in between; None = none.
        task_reward: reward of task rollouts; None = success.
        explore_reward: reward of exploration rollouts; None = ECC.
        limit: first N training instances of `env.split`; None = all.
        ratio: task groups to exploration groups.
        schedule: "mixed" = both kinds in every step (appendix C), "alternate" = whole steps (section 3.3).
        groups: per step, over all processes.
        group_size: G, rollouts of one group.
        max_steps: optimiser steps.
        task_steps: environment steps of a task rollout; None = those of the world (`env.budget.acting`).
        map_steps: environment steps of mapping, for a paradigm that maps.
        explore_steps: environment steps of an exploration rollout.
        max_rollout_tokens: tokens of a rollout, all its conversations together; what would grow beyond ends there.
        mask_truncated: truncated rollouts count in their group's mean, but are not trained on.
        max_row_tokens: leave longer rows out of the loss, for memory; None = none.
        lr: learning rate of AdamW.
        lr_schedule: "constant", or to 0 at `max_steps`: "linear", "cosine".
        warmup_steps: steps over which the rate rises.
        weight_decay: of AdamW.
        max_grad_norm: gradients are clipped to this norm.
        beta: weight of the KL term; 0 needs no reference model.
        kl_on_flat: groups with equal rewards, which have no advantage, still take part in the KL term.
        clip: of the ratio. With one inner epoch and `old_logprobs` "trainer" the ratio is 1 and nothing is clipped.
        inner_epochs: optimiser steps on the same rollouts.
        old_logprobs: what the ratio compares with: the trainer's own log-probabilities before the step, or the sampler's.
        loss_agg: "sequence" = mean over the tokens of a rollout, then over rollouts; "sum" = eq. 5 to the letter.
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

    requires = ("torch", "transformers", "accelerate")

    def __init__(
        self,
        *,
        base: Base,
        task: Paradigm,
        explore: Paradigm,
        rollout: RolloutEngine,
        evaluation: HeldOut | None = None,
        task_reward: Reward | None = None,
        explore_reward: Reward | None = None,
        limit: int | None = None,
        ratio: str = "5:1",
        schedule: Schedule = "mixed",
        groups: int = 16,
        group_size: int = 8,
        max_steps: int = 300,
        task_steps: int | None = None,
        map_steps: int = 0,
        explore_steps: int = 50,
        max_rollout_tokens: int = 32768,
        mask_truncated: bool = False,
        max_row_tokens: int | None = None,
        lr: float = 1e-6,
        lr_schedule: Literal["constant", "linear", "cosine"] = "constant",
        warmup_steps: int = 0,
        weight_decay: float = 0.0,
        max_grad_norm: float = 1.0,
        beta: float = 0.001,
        kl_on_flat: bool = True,
        clip: float = 0.2,
        inner_epochs: int = 1,
        old_logprobs: Literal["trainer", "sampler"] = "trainer",
        loss_agg: LossAgg = "sequence",
        adv_eps: float = 1e-4,
        micro_batch_tokens: int = 32768,
        full: bool = True,
        lora_rank: int = 16,
        lora_alpha: int = 32,
        lora_dropout: float = 0.0,
        lora_targets: str | list[str] = "all-linear",
        precision: Literal["fp32", "bf16", "bf16_weights"] = "fp32",
        gradient_checkpointing: bool = False,
        no_signal_steps: int = 5,
        on_no_signal: OnNoSignal = "warn",
        save_every: int = 10,
        keep: int = 2,
        sample_every: int = 10,
    ) -> None:
        self.base, self.task, self.explore, self.rollout, self.evaluation = base, task, explore, rollout, evaluation
        self.task_reward, self.explore_reward = task_reward or Success(), explore_reward or Coverage()
        self.limit, self.ratio, self.schedule = limit, Ratio.of(ratio), schedule
        self.groups, self.group_size, self.max_steps = groups, group_size, max_steps
        self.task_steps, self.map_steps, self.explore_steps = task_steps, map_steps, explore_steps
        self.max_rollout_tokens, self.mask_truncated, self.max_row_tokens = max_rollout_tokens, mask_truncated, max_row_tokens
        self.lr, self.lr_schedule, self.warmup_steps, self.weight_decay = lr, lr_schedule, warmup_steps, weight_decay
        self.max_grad_norm, self.beta, self.kl_on_flat, self.clip = max_grad_norm, beta, kl_on_flat, clip
        self.inner_epochs, self.old_logprobs, self.loss_agg, self.adv_eps = inner_epochs, old_logprobs, loss_agg, adv_eps
        self.micro_batch_tokens, self.full, self.lora_rank, self.lora_alpha = micro_batch_tokens, full, lora_rank, lora_alpha
        self.lora_dropout, self.lora_targets = lora_dropout, lora_targets
        self.precision, self.gradient_checkpointing = precision, gradient_checkpointing
        self.no_signal_steps, self.on_no_signal = no_signal_steps, on_no_signal
        self.save_every, self.keep, self.sample_every = save_every, keep, sample_every
        self._check()

    def train(self, run: TrainRun) -> Mapping[str, Any]:
        """See `Trainer.train`."""
        from agentexp.training.grpo.training import Training

        return Training(self, run).go()

    def plan(self) -> list[str]:
        """What would be rolled out, for `--dry-run`."""
        mixes = [exploration_groups(step, self.groups, self.ratio, self.schedule) for step in range(self.max_steps)]
        first = ", ".join(map(str, mixes[:12])) + (" ..." if len(mixes) > 12 else "")
        every = self.groups * self.group_size
        return [
            f"{self.max_steps} steps of {self.groups} groups x {self.group_size} rollouts: {every} per step, "
            f"{every * self.max_steps} in all.",
            f"Exploration groups per step: {first} - {sum(mixes)} of {self.groups * self.max_steps}.",
        ]

    def _check(self) -> None:
        counts = ("groups", "max_steps", "explore_steps", "max_rollout_tokens", "inner_epochs", "micro_batch_tokens")
        for name in (*counts, "no_signal_steps", "save_every", "keep", "lora_rank"):
            _at_least(name, getattr(self, name), 1)
        for name in ("limit", "task_steps", "max_row_tokens"):
            if getattr(self, name) is not None:
                _at_least(name, getattr(self, name), 1)
        for name in ("map_steps", "warmup_steps", "sample_every", "beta", "weight_decay", "adv_eps"):
            _at_least(name, getattr(self, name), 0)
        if self.group_size < 2:
            raise UserError(
                f"trainer.group_size={self.group_size} leaves nothing to compare: a group needs at least 2 rollouts."
            )
        if not 0 < self.clip < 1:
            raise UserError(f"trainer.clip must be between 0 and 1, not {self.clip}.")
        if self.lr <= 0 or self.max_grad_norm <= 0:
            raise UserError("trainer.lr and trainer.max_grad_norm must be above 0.")
        for name in ("task", "explore"):
            if getattr(getattr(self, name), "cache", False):
                raise UserError(f"trainer.{name}.cache must be false: what another policy explored cannot train this one.")


def _at_least(name: str, value: float, least: int) -> None:
    if value < least:
        raise UserError(f"trainer.{name} must be at least {least}, not {value}.")
