"""Keys and values of many conversations at once, for models of transformers.

A running conversation owns a row: its tokens stand in columns 0, 1, 2 ... of that row, whatever the other rows hold, so its
positions and its attention mask do not depend on them. Running rows are always the first ones, and a forward pass works on a
view of them. A conversation that waits for its next turn is parked: its part of the row is copied out, and back in later.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

_FIRST_COLUMNS = 256


@dataclass(slots=True)
class Parked:
    """The computed beginning of a conversation.

    Attributes:
        tokens: its token ids, shape (T,).
        layers: per layer keys and values, each of shape (heads, T, size).
    """

    tokens: list[int]
    layers: list[tuple[torch.Tensor, torch.Tensor]]

    @property
    def size(self) -> int:
        """Bytes."""
        return sum(part.numel() * part.element_size() for layer in self.layers for part in layer)


class RowCache:
    """What transformers' models take as their `cache`; `aim` says where the next forward pass reads and writes.

    Args:
        layers: number of layers.
        max_columns: longest conversation in tokens.
    """

    def __init__(self, layers: int, max_columns: int) -> None:
        self.max_columns = max_columns
        self._layers: list[tuple[torch.Tensor, torch.Tensor] | None] = [None] * layers
        self._rows = self._columns = 0  # room in every buffer
        self._first = self._n = self._end = 0
        self._starts: list[int] = []
        self._places: tuple[torch.Tensor, torch.Tensor] | None = None  # rows and columns to write; None: the same columns

    # ------------------------------------------------------------------------------------------- what the models call

    def update(self, keys: Any, values: Any, layer_idx: int, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        """Take in the keys and values of one layer, shape (rows, heads, new tokens, size), and return all of these rows."""
        kept = self._layer(layer_idx, keys, values)
        first, last, end = self._first, self._first + self._n, self._end
        for buffer, new in zip(kept, (keys, values), strict=True):
            if self._places is None:
                buffer[first:last, :, end - new.shape[2] : end] = new
            else:
                rows, columns = self._places
                buffer[rows, :, columns] = new.transpose(1, 2)
        return kept[0][first:last, :, :end], kept[1][first:last, :, :end]

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """Tokens before the newest ones, in the longest of the rows."""
        return max(self._starts, default=0)

    def get_query_offset(self, layer_idx: int = 0) -> int:
        """Column of the first new token. Asked only where all rows are new."""
        return self.get_seq_length(layer_idx)

    def get_mask_sizes(self, query_length: int, layer_idx: int = 0) -> tuple[int, int]:
        """Number of columns, and the first of them. Asked only where all rows are new."""
        return self._end, 0

    # ------------------------------------------------------------------------------------------------------ our side

    def aim(self, first: int, starts: Sequence[int], columns: torch.Tensor) -> int:
        """Prepare a forward pass over rows `first`, `first + 1` ..., and return how many columns it will see.

        Args:
            first: the first row.
            starts: per row, the column of its first new token.
            columns: of all new tokens, shape (rows, new tokens).
        """
        n, width = columns.shape
        self._first, self._n, self._starts = first, n, list(starts)
        self._end = max(starts) + width
        self._grow(first + n, self._end)
        rows = torch.arange(first, first + n, device=columns.device)[:, None]
        self._places = None if len(set(starts)) == 1 else (rows, columns)
        return self._end

    def put(self, row: int, parked: Parked, n: int) -> None:
        """Copy the first `n` tokens of a parked conversation into a row."""
        self._grow(row + 1, n)
        for i, (keys, values) in enumerate(parked.layers):
            kept = self._layer(i, keys[None], values[None])
            kept[0][row, :, :n] = keys[:, :n]
            kept[1][row, :, :n] = values[:, :n]

    def copy(self, source: int, target: int, n: int) -> None:
        """Copy the first `n` tokens of one row into another."""
        self._grow(target + 1, n)
        for layer in self._layers:
            if layer is not None:
                for buffer in layer:
                    buffer[target, :, :n] = buffer[source, :, :n]

    def park(self, row: int, tokens: list[int]) -> Parked:
        """Copy a row out; `tokens` are what it holds."""
        n = len(tokens)
        layers = [(k[row, :, :n].clone(), v[row, :, :n].clone()) for k, v in (layer for layer in self._layers if layer)]
        return Parked(tokens, layers)

    def clear(self) -> None:
        """Forget everything and release the memory."""
        self._layers = [None] * len(self._layers)
        self._rows = self._columns = 0

    def _grow(self, rows: int, columns: int) -> None:
        """Make room for rows and columns; what is there stays."""
        if rows <= self._rows and columns <= self._columns:
            return
        if columns > self._columns:
            columns = min(max(columns + columns // 4, _FIRST_COLUMNS), max(columns, self.max_columns))
        self._rows, self._columns = max(rows, self._rows), max(columns, self._columns)
        for i, layer in enumerate(self._layers):
            if layer is not None:
                self._layers[i] = (self._larger(layer[0]), self._larger(layer[1]))

    def _larger(self, old: torch.Tensor) -> torch.Tensor:
        new = old.new_zeros((self._rows, old.shape[1], self._columns, old.shape[3]))
        new[: old.shape[0], :, : old.shape[2]] = old
        return new

    def _layer(self, i: int, keys: torch.Tensor, values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        layer = self._layers[i]
        if layer is None:
            # Zeros: a masked column takes part in the product with weight 0, and 0 times NaN would be NaN.
            made = [new.new_zeros((self._rows, new.shape[1], self._columns, new.shape[3])) for new in (keys, values)]
            layer = self._layers[i] = (made[0], made[1])
        return layer


class ParkedChats:
    """Parked conversations by name, within a memory limit; the one that was used longest ago goes first.

    Args:
        most_bytes: kept at most.
    """

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes, self._bytes = most_bytes, 0
        self._kept: OrderedDict[str, Parked] = OrderedDict()

    def add(self, chat: str, parked: Parked) -> None:
        """Keep a conversation, in place of an earlier one of that name."""
        self.drop(chat)
        if (size := parked.size) > self.most_bytes:
            return
        self._kept[chat] = parked
        self._bytes += size
        while self._bytes > self.most_bytes:
            _, dropped = self._kept.popitem(last=False)
            self._bytes -= dropped.size

    def drop(self, chat: str) -> None:
        """Forget one conversation."""
        if (parked := self._kept.pop(chat, None)) is not None:
            self._bytes -= parked.size

    def clear(self) -> None:
        """Forget all."""
        self._kept.clear()
        self._bytes = 0

    def best(self, chat: str, prompt: Sequence[int]) -> tuple[Parked | None, int]:
        """The conversation that shares the longest beginning with `prompt`, and its length in tokens."""
        own = self._kept.get(chat)
        if own is not None and shared(own.tokens, prompt) == len(own.tokens):
            return own, len(own.tokens)  # the usual case: the next turn of a conversation
        found, most = None, 0
        for parked in self._kept.values():
            if (n := shared(parked.tokens, prompt)) > most:
                found, most = parked, n
        return found, most


def shared(a: Sequence[int], b: Sequence[int]) -> int:
    """Length of the common beginning of two token lists."""
    low, high = 0, min(len(a), len(b))
    if a[:high] == b[:high]:
        return high
    while low < high:  # slices are compared at C speed, unlike items one by one
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
