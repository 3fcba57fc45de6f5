"""The loss of GRPO (paper 001, eq. 5) on torch tensors, as a sum over tokens with weights.

    J = w * min(r A, clip(r, 1 - c, 1 + c) A) - beta w KL      r = exp(logp - logp_old)
    KL = exp(logp_ref - logp) - (logp_ref - logp) - 1                                     (k3)

Eq. 5 has no clipping; with one inner epoch r = 1 and the gradient is that of A log pi. What is masked is replaced before it is
used, not multiplied by 0 afterwards: a masked token has a gradient of exactly 0, also where its values are infinite.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch

if TYPE_CHECKING:
    from torch import Tensor


class Loss(NamedTuple):
    """Scalars of one batch; all but `loss` are detached.

    Attributes:
        loss: to minimise: beta * kl - policy.
        policy: the weighted objective.
        kl: the weighted divergence from the reference.
        clipped: number of tokens whose ratio was clipped.
    """

    loss: Tensor
    policy: Tensor
    kl: Tensor
    clipped: Tensor


def grpo_loss(
    logp: Tensor,
    logp_old: Tensor,
    logp_ref: Tensor | None,
    advantages: Tensor,
    mask: Tensor,
    weights: Tensor,
    beta: float = 0.001,
    clip: float = 0.2,
    kl_weights: Tensor | None = None,
) -> Loss:
    """Loss of rows, see the module.

    Args:
        logp: log-probabilities of the policy, with gradient, shape (B, T).
        logp_old: of the policy that sampled, same shape.
        logp_ref: of the reference; None where beta is 0.
        advantages: one per row, shape (B,).
        mask: bool, which tokens count, shape (B, T).
        weights: of each token of a row, shape (B,); see `batches.token_weights`.
        beta: weight of the KL term.
        clip: c.
        kl_weights: factor of the row in the KL term, shape (B,); None = 1.
    """
    zero = torch.zeros((), dtype=logp.dtype, device=logp.device)
    advantage, weight = advantages[:, None], torch.where(mask, weights[:, None], zero)
    ratio = torch.exp(torch.where(mask, logp - logp_old, zero))
    clipped_ratio = ratio.clamp(1.0 - clip, 1.0 + clip)
    plain, bounded = ratio * advantage, clipped_ratio * advantage
    policy = (weight * torch.minimum(plain, bounded)).sum()
    kl = zero
    if logp_ref is not None and beta:
        ahead = torch.where(mask, logp_ref - logp, zero)
        factor = weight if kl_weights is None else weight * kl_weights[:, None]
        kl = (factor * (torch.exp(ahead) - ahead - 1.0)).sum()
    clipped = ((bounded < plain) & mask).sum()
    return Loss(beta * kl - policy, policy.detach(), kl.detach(), clipped.detach())


def token_logprobs(logits: Tensor, ids: Tensor, temperature: Tensor, chunk: int = 1024) -> tuple[Tensor, Tensor]:
    """Log-probabilities of tokens under logits, and the entropy of the distributions (without gradient), in float32.

    Args:
        logits: shape (N, V).
        ids: the tokens, shape (N,).
        temperature: that each token was sampled with, shape (N,); the logits are divided by it, as the sampler did.
        chunk: positions at a time, so that the float32 copy of all logits never exists at once.

    Returns:
        Two tensors of shape (N,).
    """
    from torch.utils.checkpoint import checkpoint

    def part(some: Tensor, wanted: Tensor, heat: Tensor) -> tuple[Tensor, Tensor]:
        logp = torch.log_softmax(some.float() / heat[:, None], dim=-1)
        with torch.no_grad():
            entropy = -(logp.exp() * logp).sum(-1)
        return logp.gather(-1, wanted[:, None])[:, 0], entropy

    if len(ids) <= chunk:
        return part(logits, ids, temperature)
    parts = zip(logits.split(chunk), ids.split(chunk), temperature.split(chunk), strict=True)
    found = [checkpoint(part, *arguments, use_reentrant=False) for arguments in parts]
    return torch.cat([logp for logp, _ in found]), torch.cat([entropy for _, entropy in found])
