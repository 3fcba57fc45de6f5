"""The whole order of a supervised training, fixed before its first step: epochs, token budget, packing.

Because the order is a plain list that depends on the rows and the seed alone, a training that goes on after a kill sees the
same data in the same order, and how many tokens it will train is known beforehand.
"""

from __future__ import annotations

import bisect
import random
from collections.abc import Sequence

from agentexp.errors import UserError


def sequences(
    lengths: Sequence[int],
    counted: Sequence[int],
    *,
    epochs: int,
    seed: int,
    token_budget: int | None = None,
    pack_to: int | None = None,
) -> list[list[int]]:
    """What each training sequence holds: indices of rows, in order.

    Every epoch is a new shuffle. With a budget, rows are taken, epoch after epoch, until their counted tokens reach it; the
    last row may go beyond it.

    Args:
        lengths: tokens of each row.
        counted: tokens of each row that count for the budget.
        epochs: passes over the rows; without effect where there is a budget.
        seed: of the shuffles.
        token_budget: counted tokens to train; None: as many as the epochs have.
        pack_to: put several rows of an epoch into one sequence of at most so many tokens; None: one row per sequence.

    Raises:
        UserError: a budget that no number of epochs reaches.
    """
    if token_budget is not None and not sum(counted):
        raise UserError("trainer.token_budget cannot be reached: no row has a token that counts.")
    made: list[list[int]] = []
    left, epoch = token_budget, 0
    while (epoch < epochs) if left is None else left > 0:
        taken = list(range(len(lengths)))
        rng = random.Random(f"{seed}/{epoch}")
        rng.shuffle(taken)
        if left is not None:
            taken, left = _within(taken, counted, left)
        packed = [[row] for row in taken] if pack_to is None else pack(taken, lengths, pack_to)
        if pack_to is not None:
            rng.shuffle(packed)  # packing sorts by length
        made += packed
        epoch += 1
    return made


def _within(taken: list[int], counted: Sequence[int], budget: int) -> tuple[list[int], int]:
    """The first rows whose tokens reach the budget, and what is left of it."""
    for position, row in enumerate(taken):
        if budget <= 0:
            return taken[:position], 0
        budget -= counted[row]
    return taken, budget


def pack(rows: Sequence[int], lengths: Sequence[int], capacity: int) -> list[list[int]]:
    """Rows in as few sequences as best-fit decreasing finds (Ding et al. 2024, "Fewer Truncations"); none is split.

    Args:
        rows: indices into `lengths`, none longer than `capacity`.
        lengths: tokens.
        capacity: tokens of a sequence.
    """
    bins: list[list[int]] = []
    room: list[tuple[int, int]] = []  # (tokens left, bin), ascending
    for row in sorted(rows, key=lambda row: (-lengths[row], row)):
        at = bisect.bisect_left(room, (lengths[row], -1))
        left, number = room.pop(at) if at < len(room) else (capacity, len(bins))
        if number == len(bins):
            bins.append([])
        bins[number].append(row)
        bisect.insort(room, (left - lengths[row], number))
    return bins
