"""`ThinkerTrainer`, what `agentexp train-thinker` runs. Only the settings are here; `training` needs torch, this does not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from agentexp.errors import UserError
from agentexp.training.base import Base
from agentexp.training.core import TrainRun
from agentexp.training.grpo.batches import LossAgg
from agentexp.training.grpo.engine import RolloutEngine
from agentexp.training.grpo.watch import OnNoSignal
from agentexp.training.thinker.coldstart import ColdStart
from agentexp.training.thinker.data import Division
from agentexp.training.thinker.rollouts import RewardKind


class ThinkerTrainer:
    """A thinker for a frozen actor: nodes, cold start, RL (TTExplore, paper 003).

    World (`env`), actor (`model`), prompts (`paradigm`, a `TTExplore`) and the writer of the cold start's thoughts
    (`roles.thinker`) are those of the command.

    Args:
        base: the model to start from.
        strong: successful trajectories, see `agentexp.training.thinker.strong.Strong`.
        division: how nodes are made of them.
        rollout: how thoughts are sampled. `max_tokens` is that of a thought, `concurrency` also that of all other episodes.
        coldstart: None = none: RL starts from `base`.
        data: folder of nodes and thoughts; made where they are missing, else used; None = `data` in the run folder.
        stage: "data" = nodes and thoughts only; "all" = training as well.
        held_out: share of the instances whose nodes are not trained on, but tell how good the thinker is.
        eval_every: RL steps between two looks at the held-out nodes, besides before the first and after the last; 0 = no more.
        reward: "binary": did the process score rise; "delta": by how much.
        nodes: per RL step, over all processes.
        thoughts: m, sampled at every node.
        max_steps: RL steps; 0 = the cold start alone.
        max_rollout_tokens: tokens of a thought and its prompt.
        lr: learning rate of AdamW in RL.
        lr_schedule: "constant", or to 0 at `max_steps`: "linear", "cosine".
        warmup_steps: steps over which the rate rises.
        weight_decay: of AdamW.
        max_grad_norm: gradients are clipped to this norm.
        beta: weight of the KL term, towards the model after the cold start; 0 needs no reference model.
        clip: of the ratio.
        inner_epochs: optimiser steps on the same thoughts.
        old_logprobs: see `GrpoTrainer`.
        loss_agg: "sequence" = mean over the tokens of a thought, then over thoughts; "sum" = their sum.
        adv_eps: added to the std of a node's rewards.
        micro_batch_tokens: padded tokens of one forward pass.
        full: train all parameters; False = LoRA, in both parts.
        lora_rank: rank of the adapters.
        lora_alpha: their scale, times the rank.
        lora_dropout: dropout before them.
        lora_targets: "all-linear", or names of modules.
        precision: see `GrpoTrainer`.
        gradient_checkpointing: less memory, about a third slower.
        no_signal_steps: steps in a row without two different rewards at any node after which to speak up.
        on_no_signal: "warn", or "stop" the training then.
        save_every: RL steps between checkpoints.
        keep: newest checkpoints that stay.
        sample_every: RL steps between sample texts in `samples/`; 0 = none.

    Raises:
        UserError: a setting has an impossible value.
    """

    requires = ("torch", "transformers", "accelerate", "trl", "datasets")

    def __init__(
        self,
        *,
        base: Base,
        strong: Any,
        division: Division,
        rollout: RolloutEngine,
        coldstart: ColdStart | None = None,
        data: str | None = None,
        stage: Literal["all", "data"] = "all",
        held_out: float = 0.1,
        eval_every: int = 20,
        reward: RewardKind = "binary",
        nodes: int = 16,
        thoughts: int = 8,
        max_steps: int = 200,
        max_rollout_tokens: int = 8192,
        lr: float = 1e-6,
        lr_schedule: Literal["constant", "linear", "cosine"] = "constant",
        warmup_steps: int = 0,
        weight_decay: float = 0.0,
        max_grad_norm: float = 1.0,
        beta: float = 0.001,
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
        self.base, self.strong, self.division, self.rollout, self.coldstart = base, strong, division, rollout, coldstart
        self.data, self.stage, self.held_out, self.eval_every = data, stage, held_out, eval_every
        self.reward, self.nodes, self.thoughts, self.max_steps = reward, nodes, thoughts, max_steps
        self.max_rollout_tokens = max_rollout_tokens
        self.lr, self.lr_schedule, self.warmup_steps, self.weight_decay = lr, lr_schedule, warmup_steps, weight_decay
        self.max_grad_norm, self.beta, self.clip, self.inner_epochs = max_grad_norm, beta, clip, inner_epochs
        self.old_logprobs, self.loss_agg, self.adv_eps = old_logprobs, loss_agg, adv_eps
        self.micro_batch_tokens, self.full, self.lora_rank, self.lora_alpha = micro_batch_tokens, full, lora_rank, lora_alpha
        self.lora_dropout, self.lora_targets = lora_dropout, lora_targets
        self.precision, self.gradient_checkpointing = precision, gradient_checkpointing
        self.no_signal_steps, self.on_no_signal = no_signal_steps, on_no_signal
        self.save_every, self.keep, self.sample_every = save_every, keep, sample_every
        self._check()

    def train(self, run: TrainRun) -> Mapping[str, Any]:
        """See `Trainer.train`."""
        from agentexp.training.thinker.training import train

        return train(self, run)

    def plan(self) -> list[str]:
        """What would be done, for `--dry-run`."""
        lines = [f"Nodes: {self.division.tries} tries of the actor at every sub-task of the trajectories."]
        if self.coldstart:
            lines.append(f"Cold start: up to {self.coldstart.thoughts} thoughts at every node, then fine-tuning.")
        if self.stage == "all" and self.max_steps:
            every = self.nodes * self.thoughts
            lines.append(f"RL: {self.max_steps} steps of {self.nodes} nodes x {self.thoughts} thoughts: {every} per step.")
        return lines

    def _check(self) -> None:
        least = {**dict.fromkeys(("max_rollout_tokens", "inner_epochs", "micro_batch_tokens", "no_signal_steps"), 1)}
        least |= dict.fromkeys(("nodes", "save_every", "keep", "lora_rank"), 1)
        least |= dict.fromkeys(
            ("max_steps", "eval_every", "warmup_steps", "sample_every", "beta", "weight_decay", "adv_eps"), 0
        )
        for name, value in least.items():
            if getattr(self, name) < value:
                raise UserError(f"trainer.{name} must be at least {value}, not {getattr(self, name)}.")
        if self.thoughts < 2:
            raise UserError(f"trainer.thoughts={self.thoughts} leaves nothing to compare: a node needs at least 2 thoughts.")
        if not 0 <= self.held_out < 1 or not 0 < self.clip < 1:
            raise UserError("trainer.held_out must be from 0 to below 1, and trainer.clip between 0 and 1.")
        if self.lr <= 0 or self.max_grad_norm <= 0:
            raise UserError("trainer.lr and trainer.max_grad_norm must be above 0.")
        if not self.max_steps and self.coldstart is None and self.stage == "all":
            raise UserError("trainer.max_steps=0 with trainer.coldstart=null leaves nothing to train.")
