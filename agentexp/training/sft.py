"""`train-sft`: supervised fine-tuning on conversations (MAP, section 3.3, eq. 9).

    conversations --ChatFormat.supervised--> rows (ids, which are trained) --sequences--> the whole order, fixed beforehand
    order --TRL's SFTTrainer--> checkpoints/, metrics.jsonl, model/

TRL gets token ids and labels, never text: which tokens are trained is decided here and tested here. Imports no torch; what
does is in `sft_loop`.
"""

from __future__ import annotations

import hashlib
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from agentexp.errors import MissingDependency, UserError
from agentexp.training.base import Base
from agentexp.training.core import Row, TrainRun
from agentexp.training.schedule import sequences
from agentexp.training.sft_data import Conversation, Data
from agentexp.training.sft_rows import Prepared, TooLong, check, prepare

Precision = Literal["fp32", "bf16", "bf16_weights"]


@dataclass(slots=True)
class Course:
    """Everything that a training will do, known before its first step.

    Attributes:
        prepared: the rows.
        order: rows of each sequence.
        global_batch: sequences of an optimiser step.
    """

    prepared: Prepared
    order: list[list[int]]
    global_batch: int

    @property
    def steps(self) -> int:
        """Optimiser steps."""
        return -(-len(self.order) // self.global_batch)

    @property
    def tokens(self) -> int:
        """Tokens of all sequences."""
        return sum(len(self.prepared.rows[row].ids) for sequence in self.order for row in sequence)

    @property
    def trained_tokens(self) -> int:
        """Tokens that count in the loss, over all steps."""
        return sum(self.prepared.rows[row].n_trained for sequence in self.order for row in sequence)

    def digest(self) -> str:
        """A hash of every token, mask and place in the order: a checkpoint of another course is refused."""
        digest = hashlib.blake2b(digest_size=12)
        for row in self.prepared.rows:
            digest.update(f"{row.ids}{[int(trained) for trained in row.trained]}".encode())
        digest.update(f"{self.order}{self.global_batch}".encode())
        return digest.hexdigest()

    def sentences(self) -> list[str]:
        """For people."""
        rows, passes = self.prepared.rows, sum(map(len, self.order)) / max(len(self.prepared.rows), 1)
        apart = f", {len(self.prepared.held_out)} held out" if self.prepared.held_out else ""
        each = [row.n_trained for row in rows]
        every, trained = sum(len(row.ids) for row in rows), sum(each)
        return [
            f"{len(rows)} conversations{apart}: {every} tokens, {trained} of them trained.",
            f"Trained tokens of a conversation: {min(each)} to {max(each)}, median {statistics.median(each):g}.",
            *self.prepared.counts.sentences(),
            f"{self.steps} optimiser steps of {self.global_batch} sequences, {passes:.3g} passes: {self.tokens} tokens, "
            f"{self.trained_tokens} trained.",
        ]


class SftTrainer:
    """TRL's SFTTrainer on rows of our own. Resumes exactly: same data order, same losses.

    Args:
        base: the model to start from.
        data: the conversations.
        lr: learning rate of AdamW. Default: MAP, section 4.1.
        epochs: passes over the data. Default: MAP, section 4.1.
        token_budget: tokens to train instead of `epochs`; trainings on different data are compared at equal budgets.
        budget_counts: what the budget counts, the trained tokens or all.
        max_steps: optimiser steps at most; the schedule of the learning rate ends there.
        global_batch: sequences per optimiser step over all processes.
        micro_batch: sequences per process and forward pass; the rest is accumulated.
        schedule: of the learning rate after the warm-up.
        warmup: share of the steps in which the learning rate rises.
        weight_decay: of AdamW.
        max_grad_norm: gradients are scaled down to this norm.
        max_len: tokens of a sequence at most.
        too_long: what to do with longer conversations.
        packing: several conversations in one sequence; attention stays within each.
        template: variables of the chat template.
        full: train all parameters; False: LoRA.
        lora_rank: rank of the adapters.
        lora_alpha: their scale, times the rank.
        lora_dropout: dropout before them.
        lora_targets: "all-linear", or names of modules.
        precision: "fp32"; "bf16": weights in fp32, arithmetic in bf16; "bf16_weights": everything in bf16.
        gradient_checkpointing: compute activations twice instead of keeping them.
        held_out: share of the instances that gives `eval_loss`.
        save_every: steps between checkpoints.
        keep: newest checkpoints that stay.
        eval_every: steps between evaluations; None: `save_every`.

    Raises:
        UserError: a value that cannot be.
    """

    requires = ("torch", "transformers", "trl", "accelerate", "datasets")
    learns_from_episodes = False  # `env` of its config is only for evaluation

    def __init__(
        self,
        base: Base,
        data: Any,
        lr: float = 1e-5,
        epochs: int = 3,
        token_budget: int | None = None,
        budget_counts: Literal["trained", "all"] = "trained",
        max_steps: int | None = None,
        global_batch: int = 16,
        micro_batch: int = 1,
        schedule: Literal["cosine", "constant"] = "cosine",
        warmup: float = 0.05,
        weight_decay: float = 0.0,
        max_grad_norm: float = 1.0,
        max_len: int = 16384,
        too_long: TooLong = "cut",
        packing: bool = False,
        template: dict[str, Any] | None = None,
        full: bool = True,
        lora_rank: int = 16,
        lora_alpha: int = 32,
        lora_dropout: float = 0.0,
        lora_targets: str | list[str] = "all-linear",
        precision: Precision = "fp32",
        gradient_checkpointing: bool = False,
        held_out: float = 0.0,
        save_every: int = 50,
        keep: int = 2,
        eval_every: int | None = None,
    ) -> None:
        self.base, self.lr, self.epochs = base, lr, epochs
        self.data: Data = data
        self._conversations: list[Conversation] = []
        self.token_budget, self.budget_counts, self.max_steps = token_budget, budget_counts, max_steps
        self.global_batch, self.micro_batch = global_batch, micro_batch
        self.schedule, self.warmup, self.weight_decay, self.max_grad_norm = schedule, warmup, weight_decay, max_grad_norm
        self.max_len, self.too_long, self.packing, self.template = max_len, too_long, packing, dict(template or {})
        self.full, self.lora_rank, self.lora_alpha = full, lora_rank, lora_alpha
        self.lora_dropout, self.lora_targets = lora_dropout, lora_targets
        self.precision, self.gradient_checkpointing = precision, gradient_checkpointing
        self.held_out, self.save_every, self.keep = held_out, save_every, keep
        self.eval_every = save_every if eval_every is None else eval_every
        for name in ("epochs", "global_batch", "micro_batch", "save_every", "keep", "eval_every", "lora_rank", "max_len"):
            if getattr(self, name) < 1:
                raise UserError(f"trainer.{name} must be at least 1, not {getattr(self, name)}.")
        for name in ("token_budget", "max_steps"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise UserError(f"trainer.{name} must be at least 1, or null, not {getattr(self, name)}.")
        for name in ("warmup", "held_out", "lora_dropout"):
            if not 0 <= getattr(self, name) < 1:
                raise UserError(f"trainer.{name} must be from 0 to below 1, not {getattr(self, name)}.")
        if not lr > 0:
            raise UserError(f"trainer.lr must be greater than 0, not {lr}.")
        if max_len < 8:
            raise UserError(f"trainer.max_len={max_len} leaves no room for a conversation.")

    def check(self) -> None:
        """Read the conversations and refuse those that cannot be trained; see `agentexp.training.job.Checks`.

        Raises:
            UserError: a row is damaged, or nothing can be trained.
        """
        if not self._conversations:
            found = self.data.conversations()
            check(found)
            self._conversations = found

    def versions(self) -> dict[str, str]:
        """The data's hash, for the manifest."""
        return self.data.versions()

    def plan(self) -> list[str]:
        """See `agentexp.training.job.Plans`. Needs the tokenizer."""
        try:
            return self.course(0).sentences()
        except MissingDependency as error:
            return [f"Rows and steps are not known here: {error}"]

    def course(self, seed: int) -> Course:
        """Tokenise everything and fix the order.

        Raises:
            UserError: nothing to train on.
        """
        self.check()
        from agentexp.training.chat import TemplateFormat

        chat = TemplateFormat(self.base.load_tokenizer(), self.template)
        prepared = prepare(self._conversations, chat, max_len=self.max_len, too_long=self.too_long, held_out=self.held_out)
        lengths = [len(row.ids) for row in prepared.rows]
        order = sequences(
            lengths,
            lengths if self.budget_counts == "all" else [row.n_trained for row in prepared.rows],
            epochs=self.epochs,
            seed=seed,
            token_budget=self.token_budget,
            pack_to=self.max_len if self.packing else None,
        )
        if self.max_steps is not None:
            order = order[: self.max_steps * self.global_batch]
        return Course(prepared, order, self.global_batch)

    def train(self, run: TrainRun) -> Mapping[str, Any]:
        """See `Trainer`."""
        from agentexp.training.sft_loop import fit

        course = self.course(run.seed)
        for line in course.sentences():
            run.say(line)
        return fit(self, run, course)


def labels(row: Row) -> list[int]:
    """The row's ids where they are trained, -100 elsewhere: what the loss is told."""
    return [token if trained else -100 for token, trained in zip(row.ids, row.trained, strict=True)]
