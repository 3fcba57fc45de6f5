"""From rollouts to rows with weights, and from rows to micro-batches of equal size in tokens. No torch.

Every trained token carries its share of the loss, so that a step is one sum over tokens: it does not matter into how many
micro-batches or processes the rows are split, nor into how many rows an episode was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from agentexp.training.core import Row

LossAgg = Literal["sequence", "sum"]


@dataclass(slots=True)
class Sample:
    """One row of a step.

    Attributes:
        row: tokens.
        advantage: of its trajectory.
        weight: of each trained token in the policy term and, times `kl`, in the KL term.
        kl: 0 takes the row out of the KL term.
        old: the trainer's own log-probabilities before the step, shape (T,); known from the second inner epoch on.
    """

    row: Row
    advantage: float
    weight: float
    kl: float = 1.0
    old: list[float] = field(default_factory=list)


def token_weights(n_trained: Sequence[int], trajectory: Sequence[Hashable], agg: LossAgg, n: float) -> list[float]:
    """Each row's weight per trained token.

    Args:
        n_trained: trained tokens of each row.
        trajectory: which trajectory each row belongs to.
        agg: "sequence": mean over the tokens of a trajectory, then over trajectories; "sum": their sum, eq. 5 to the letter.
        n: trajectories of the whole step, over all processes.

    Returns:
        With "sequence" the weights of all trained tokens of a trajectory sum up to 1 / n.
    """
    if agg == "sum":
        return [1.0 / n] * len(n_trained)
    total: Counter[Hashable] = Counter()
    for count, name in zip(n_trained, trajectory, strict=True):
        total[name] += count
    return [1.0 / (n * total[name]) if total[name] else 0.0 for name in trajectory]


def fit(rows: Sequence[Row], cap: int) -> tuple[list[Row], bool]:
    """The rows of a trajectory cut to `cap` tokens in all, and whether that cut anything off."""
    kept: list[Row] = []
    left = cap
    for row in rows:
        n = min(len(row.ids), left)
        if n < len(row.ids):
            row = Row(row.ids[:n], row.trained[:n], row.logprobs[:n], row.temperature, dict(row.tags))
        if row.ids and row.n_trained:
            kept.append(row)
        left -= n
        if left <= 0:
            break
    return kept, sum(len(row.ids) for row in rows) > cap


def micro_batches(lengths: Sequence[int], tokens: int) -> list[list[int]]:
    """Indices of rows for each forward pass, so that padded size (rows x longest) stays within `tokens`.

    Rows of like length come together; a row that is longer than `tokens` is alone.
    """
    batches: list[list[int]] = []
    for i in sorted(range(len(lengths)), key=lambda i: (-lengths[i], i)):
        if batches and (len(batches[-1]) + 1) * lengths[batches[-1][0]] <= tokens:
            batches[-1].append(i)
        else:
            batches.append([i])
    return batches
