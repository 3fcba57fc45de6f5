"""Policy, reference and optimiser: forward passes over rows, one optimiser step at a time. Needs torch and accelerate."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from agentexp.training.core import Row
from agentexp.training.grpo.batches import Sample, micro_batches
from agentexp.training.grpo.loss import grpo_loss, token_logprobs
from agentexp.training.grpo.settings import LrSchedule, OldLogprobs

if TYPE_CHECKING:
    from torch import Tensor

_SUMS = ("loss", "policy", "kl", "clipped", "tokens", "entropy", "k3", "diff", "first_tokens", "trained_rows", "row_tokens")


@dataclass(frozen=True, slots=True)
class Update:
    """Settings of the optimiser step; see `PolicySettings` for their meaning."""

    lr: float
    lr_schedule: LrSchedule = "constant"
    warmup_steps: int = 0
    max_steps: int = 300
    weight_decay: float = 0.0
    max_grad_norm: float = 1.0
    beta: float = 0.001
    clip: float = 0.2
    inner_epochs: int = 1
    old_logprobs: OldLogprobs = "trainer"
    micro_batch_tokens: int = 32768

    def rate(self, step: int) -> float:
        """Learning rate of step `step` (0-based): a function of the step alone, so that nothing has to be resumed."""
        if step < self.warmup_steps:
            return self.lr * (step + 1) / self.warmup_steps
        if self.lr_schedule == "constant":
            return self.lr
        done = (step - self.warmup_steps) / max(1, self.max_steps - self.warmup_steps)
        return self.lr * (1.0 - done) if self.lr_schedule == "linear" else self.lr * 0.5 * (1.0 + math.cos(math.pi * done))


@dataclass(slots=True)
class Sums:
    """What the forward passes of one step add up to in this process."""

    values: dict[str, float] = field(default_factory=dict)
    max_diff: float = 0.0

    def add(self, **values: float) -> None:
        """Add to the sums."""
        for name, value in values.items():
            self.values[name] = self.values.get(name, 0.0) + value


class Learner:
    """Holds what is trained. With several processes (`accelerate launch`) every one has its own.

    Args:
        model: a causal language model, with adapters where only those are trained.
        accelerator: an `accelerate.Accelerator`.
        update: settings.
        gradient_checkpointing: recompute activations in the backward pass.

    Attributes:
        policy: the unwrapped live model, shared with the sampler.
        prepared: the same as accelerate wraps it.
    """

    def __init__(self, model: Any, accelerator: Any, update: Update, gradient_checkpointing: bool = False) -> None:
        self.update, self.accelerator = update, accelerator
        self._adapters = hasattr(model, "disable_adapter")
        self._reference: Any = None
        if update.beta and not self._adapters:
            self._reference = copy.deepcopy(model).eval().requires_grad_(False).to(accelerator.device)
            if accelerator.mixed_precision == "bf16":  # half the memory, and the arithmetic that the policy has as well
                self._reference.to(torch.bfloat16)
        if gradient_checkpointing:
            model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
            if self._adapters:
                model.enable_input_require_grads()
        trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
        optimizer = torch.optim.AdamW(trained, lr=update.lr, weight_decay=update.weight_decay)
        self.prepared, self._optimizer = accelerator.prepare(model, optimizer)
        self.policy = accelerator.unwrap_model(self.prepared)
        self.policy.eval()

    @property
    def sharded(self) -> bool:
        """No process holds the whole model (ZeRO-3, FSDP)."""
        plugin = getattr(self.accelerator.state, "deepspeed_plugin", None)
        return str(self.accelerator.distributed_type).endswith("FSDP") or bool(plugin is not None and plugin.zero_stage == 3)

    # -------------------------------------------------------------------------------------------------------- one step

    def step(self, step: int, samples: Sequence[Sample]) -> dict[str, float]:
        """One optimiser step per inner epoch on this process' rows; returns numbers over all processes.

        Rows that neither the advantage nor the KL term touches are left out. Where no process has any row, nothing is updated
        ("updated" 0): not even the optimiser's momentum moves the policy. Nor does a gradient that is not finite ("skipped").
        """
        update, sums = self.update, Sums()
        used = [sample for sample in samples if sample.weight and (sample.advantage or (update.beta and sample.kl))]
        numbers: dict[str, float] = {"lr": update.rate(step), "grad_norm": 0.0, "updated": 0.0, "skipped": 0.0}
        for group in self._optimizer.param_groups:
            group["lr"] = update.rate(step)
        for epoch in range(update.inner_epochs):
            batches = [[used[i] for i in batch] for batch in self._split([sample.row for sample in used])]
            rounds = int(self._all_max(float(len(batches))))
            if not rounds:
                break
            norm = self._epoch(epoch, batches, rounds, sums)
            usable = math.isfinite(norm)
            numbers["updated" if usable else "skipped"] += 1.0
            numbers["grad_norm"] = max(numbers["grad_norm"], norm) if usable else numbers["grad_norm"]
        return numbers | self._means(sums)

    def _epoch(self, epoch: int, batches: Sequence[Sequence[Sample]], rounds: int, sums: Sums) -> float:
        """One pass over the rows and one optimiser step; returns the gradient norm, not finite where the step was skipped."""
        self.prepared.train()
        for i in range(rounds):
            last = i == rounds - 1
            batch = batches[i] if i < len(batches) else [_dummy()]
            self.accelerator.sync_gradients = last  # DeepSpeed makes its step in the backward pass that syncs
            with nullcontext() if last else self.accelerator.no_sync(self.prepared):
                self._backward(epoch, batch, sums)
        norm = self.accelerator.clip_grad_norm_(self.prepared.parameters(), self.update.max_grad_norm)
        found = float("nan") if norm is None else float(norm)
        if math.isfinite(found) or norm is None:
            self._optimizer.step()
        self._optimizer.zero_grad()
        self.prepared.eval()
        return 0.0 if norm is None else found

    def _backward(self, epoch: int, batch: Sequence[Sample], sums: Sums) -> None:
        update, rows = self.update, [sample.row for sample in batch]
        logp, entropy = self._forward(self.prepared, rows)
        sampled = _flat([row.logprobs for row in rows], rows, logp)
        if epoch == 0:
            old = sampled if update.old_logprobs == "sampler" else logp.detach()
            self._remember(batch, logp.detach())
        else:
            old = _flat([sample.old for sample in batch], rows, logp)
        reference = self._reference_logprobs(rows) if update.beta else None
        counts = torch.tensor([row.n_trained for row in rows], device=logp.device)

        def spread(values: Sequence[float]) -> Tensor:
            return torch.tensor(values, dtype=logp.dtype, device=logp.device).repeat_interleave(counts)

        parts = grpo_loss(
            logp[:, None],
            old[:, None],
            None if reference is None else reference[:, None],
            spread([sample.advantage for sample in batch]),
            torch.ones_like(logp, dtype=torch.bool)[:, None],
            spread([sample.weight for sample in batch]),
            update.beta,
            update.clip,
            spread([sample.kl for sample in batch]),
        )
        # processes are averaged, and the weights already hold the number of trajectories of all of them
        self.accelerator.backward(parts.loss * self.accelerator.num_processes)
        if any(sample.weight for sample in batch):
            difference = (logp.detach() - sampled).abs()
            sums.add(loss=float(parts.loss.detach()), policy=float(parts.policy), kl=float(parts.kl))
            sums.add(clipped=float(parts.clipped), tokens=float(len(logp)), entropy=float(entropy.sum()))
            sums.add(trained_rows=float(len(rows)), row_tokens=float(sum(len(row.ids) for row in rows)))
            if epoch == 0:
                sums.add(diff=float(difference.sum()), first_tokens=float(len(logp)))
                sums.max_diff = max(sums.max_diff, float(difference.max()))
            if reference is not None:
                ahead = reference - logp.detach()
                sums.add(k3=float((torch.exp(ahead) - ahead - 1.0).sum()))

    def _remember(self, batch: Sequence[Sample], logp: Tensor) -> None:
        if self.update.inner_epochs == 1:
            return
        values, at = logp.tolist(), 0
        for sample in batch:
            sample.old = [0.0] * len(sample.row.ids)
            for i, trained in enumerate(sample.row.trained):
                if trained:
                    sample.old[i] = values[at]
                    at += 1

    # ---------------------------------------------------------------------------------------------------- forward passes

    def logprobs(self, rows: Sequence[Row]) -> list[list[float]]:
        """The policy's log-probabilities of the trained tokens of each row, without gradient."""
        found: list[list[float]] = [[] for _ in rows]
        with torch.no_grad():
            for batch in self._split(rows):
                values = self._forward(self.prepared, [rows[i] for i in batch])[0].tolist()
                at = 0
                for i in batch:
                    found[i] = values[at : at + rows[i].n_trained]
                    at += rows[i].n_trained
        return found

    def _split(self, rows: Sequence[Row]) -> list[list[int]]:
        return micro_batches([len(row.ids) for row in rows], self.update.micro_batch_tokens)

    def _reference_logprobs(self, rows: Sequence[Row]) -> Tensor:
        with torch.no_grad():
            if self._adapters:
                with self.policy.disable_adapter():
                    return self._forward(self.prepared, rows)[0]
            return self._forward(self._reference, rows)[0]

    def _forward(self, model: Any, rows: Sequence[Row]) -> tuple[Tensor, Tensor]:
        """Log-probabilities and entropies at the trained tokens, flat in the order of the rows, shape (N,)."""
        device, longest = self.accelerator.device, max(len(row.ids) for row in rows)
        ids = torch.zeros(len(rows), longest, dtype=torch.long)
        real, trained = torch.zeros_like(ids), torch.zeros_like(ids, dtype=torch.bool)
        for i, row in enumerate(rows):
            n = len(row.ids)
            ids[i, :n], real[i, :n], trained[i, :n] = torch.tensor(row.ids), 1, torch.tensor(row.trained)
        # What predicts token t stands at t - 1. Logits are computed for trained tokens only: most tokens are the world's.
        wanted = trained[:, 1:]
        places = wanted.any(0).nonzero()[:, 0]
        heat = torch.tensor([row.temperature or 1.0 for row in rows])[:, None].expand_as(wanted)
        output = model(
            input_ids=ids.to(device), attention_mask=real.to(device), logits_to_keep=places.to(device), use_cache=False
        )
        chosen = wanted[:, places]
        logits = output.logits[chosen.to(device)]
        targets, heats = ids[:, 1:][:, places][chosen], heat[:, places][chosen]
        return token_logprobs(logits, targets.to(device), heats.to(device))

    # --------------------------------------------------------------------------------------------------- several processes

    def _all_max(self, value: float) -> float:
        gathered: Tensor = self.accelerator.gather(torch.tensor([value], device=self.accelerator.device))
        return float(gathered.max())

    def total(self, values: Sequence[float]) -> list[float]:
        """Sums over all processes."""
        tensor = torch.tensor(list(values), dtype=torch.float64)
        summed: Tensor = self.accelerator.reduce(tensor.to(self.accelerator.device), "sum")
        return [float(value) for value in summed]

    def _means(self, sums: Sums) -> dict[str, float]:
        total = dict(zip(_SUMS, self.total([sums.values.get(name, 0.0) for name in _SUMS]), strict=True))
        tokens, epochs = total["tokens"] or 1.0, self.update.inner_epochs
        return {
            "loss": total["loss"] / epochs,
            "objective": total["policy"] / epochs,
            "kl_loss": total["kl"] / epochs,
            "kl": total["k3"] / tokens,
            "entropy": total["entropy"] / tokens,
            "clip_share": total["clipped"] / tokens,
            "trained_tokens": total["tokens"] / epochs,
            "trained_rows": total["trained_rows"] / epochs,
            "row_tokens": total["row_tokens"] / epochs,
            "logprob_diff_mean": total["diff"] / (total["first_tokens"] or 1.0),
            "logprob_diff_max": self._all_max(sums.max_diff),
        }


def _dummy() -> Sample:
    """A row that adds nothing: processes with fewer rows than others still take part in every forward pass."""
    return Sample(Row([0, 0], [False, True], [0.0, 0.0]), 0.0, 0.0)


def _flat(values: Sequence[Sequence[float]], rows: Sequence[Row], like: Tensor) -> Tensor:
    """The values at the trained tokens, flat in the order of the rows."""
    chosen = [value for some, row in zip(values, rows, strict=True) for value, on in zip(some, row.trained, strict=True) if on]
    return torch.tensor(chosen, dtype=like.dtype, device=like.device)
