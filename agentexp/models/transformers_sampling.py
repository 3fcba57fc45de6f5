"""From next-token logits to sampled tokens and their log-probabilities."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch


@dataclass(slots=True)
class Choice:
    """How one conversation samples.

    Attributes:
        temperature: 0 = greedy.
        top_p: nucleus; None = off.
        random: its own source of chance: one number per token, so that it does not depend on the batch.
    """

    temperature: float
    top_p: float | None = None
    random: random.Random = field(default_factory=random.Random)


def choose(logits: torch.Tensor, choices: Sequence[Choice]) -> tuple[list[int], list[float]]:
    """Sample one token per conversation.

    Args:
        logits: shape (conversations, vocabulary), any floating type.
        choices: one per conversation.

    Returns:
        Token ids, and natural log-probabilities: of the softmax at the conversation's temperature, at 1 for greedy ones. The
        nucleus does not enter them: they are what a trainer computes from the same weights.
    """
    logits = logits.float()
    scale = torch.tensor([choice.temperature or 1.0 for choice in choices], device=logits.device)
    logprobs = torch.log_softmax(logits / scale[:, None], dim=-1)
    tokens = torch.argmax(logits, dim=-1)
    for row, choice in enumerate(choices):
        if choice.temperature > 0:
            tokens[row] = _sample(logprobs[row], choice)
    picked = torch.gather(logprobs, 1, tokens[:, None])[:, 0]
    return [int(token) for token in tokens.tolist()], [float(value) for value in picked.tolist()]


def _sample(logprobs: torch.Tensor, choice: Choice) -> torch.Tensor:
    """Inverse of the distribution function at one random number. Sums are in double precision: 50,000 terms add up to 1."""
    probabilities = logprobs.double().exp()
    if choice.top_p is None or choice.top_p >= 1:
        return _draw(probabilities, choice.random.random())
    ordered, tokens = torch.sort(probabilities, descending=True, stable=True)
    before = torch.cumsum(ordered, dim=0) - ordered
    keep = before < choice.top_p  # the likeliest token always is
    return tokens[_draw(torch.where(keep, ordered, torch.zeros_like(ordered)), choice.random.random())]


def _draw(weights: torch.Tensor, number: float) -> torch.Tensor:
    total = torch.cumsum(weights, dim=0)
    found = torch.searchsorted(total, total[-1:] * number, right=True)[0]
    return torch.minimum(found, torch.nonzero(weights)[-1, 0])  # rounding must not lead past the last possible token
