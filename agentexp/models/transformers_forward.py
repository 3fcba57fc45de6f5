"""One forward pass of a model of transformers over rows of a `RowCache`, with explicit positions and masks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from agentexp.errors import UserError
from agentexp.models.transformers_rows import RowCache

_KINDS = {"full_attention", "sliding_attention"}


class Forward:
    """Runs one model.

    Args:
        model: a causal language model of transformers, wrapped by peft or not.
        max_columns: longest conversation in tokens; None = the model's own limit.

    Attributes:
        cache: keys and values of the running conversations.
        window: longest conversation in tokens.

    Raises:
        UserError: the model's layers are of a kind that cannot be run this way.
    """

    def __init__(self, model: Any, max_columns: int | None) -> None:
        config = model.config.get_text_config()
        kinds = set(getattr(config, "layer_types", None) or ())
        attention = config._attn_implementation
        if not kinds <= _KINDS or attention not in ("sdpa", "eager"):
            what = f"attention {attention}" if kinds <= _KINDS else f"layers of kind {', '.join(sorted(kinds - _KINDS))}"
            raise UserError(
                f"model=transformers cannot run {what} of {type(model).__name__}: it needs attention layers with sdpa or eager "
                "attention. Use model=vllm."
            )
        trained = int(getattr(config, "max_position_embeddings", 0) or 0)
        if max_columns is not None and trained and max_columns > trained:
            raise UserError(f"model.n_ctx={max_columns} is more than the {trained} tokens that the model was trained for.")
        self.model, self.window = model, max_columns or trained or 4096
        self.cache = RowCache(int(config.num_hidden_layers), self.window)
        self.vocabulary = int(config.vocab_size)
        weight = model.get_input_embeddings().weight
        self._device, self._dtype = weight.device, weight.dtype
        self._additive = attention == "eager"
        span = getattr(config, "sliding_window", None)
        self._span = int(span) if span and kinds != {"full_attention"} else None
        self._mixed = len(kinds) > 1 or kinds == {"sliding_attention"}

    def append(self, first: int, starts: Sequence[int], new: Sequence[Sequence[int]]) -> torch.Tensor:
        """Compute new tokens at the end of rows.

        Args:
            first: the first row; the others follow it.
            starts: tokens that each row already holds.
            new: token ids to add to each, at least one.

        Returns:
            Logits after the last new token of each row, shape (rows, vocabulary).
        """
        width = max(map(len, new))
        # Short rows are filled up at the right. What is computed there lands in columns that no mask admits, and that the
        # row's next tokens overwrite.
        ids = torch.tensor([[*row, *[0] * (width - len(row))] for row in new], device=self._device)
        positions = torch.tensor(starts, device=self._device)[:, None] + torch.arange(width, device=self._device)
        end = self.cache.aim(first, starts, positions)
        last = torch.tensor([[len(row) - 1] for row in new], device=self._device)
        if not any(starts):  # plain causal attention, for which the model has faster ways than a mask of ours
            return self._run(ids, positions, None, last)[:, 0]
        columns = torch.arange(end, device=self._device)
        return self._run(ids, positions, self._masks(positions, columns <= positions[:, :, None], columns), last)[:, 0]

    def tree(self, row: int, start: int, ids: Sequence[int], parents: Sequence[int]) -> torch.Tensor:
        """Compute a tree of tokens that continues a row; the row itself does not change.

        Args:
            row: the row.
            start: tokens that it holds.
            ids: token ids of the nodes, every node after its parent.
            parents: index of each node's parent, -1 for those that follow the row's last token.

        Returns:
            Logits after each node, shape (nodes, vocabulary).
        """
        n = len(ids)
        related = torch.zeros((n, n), dtype=torch.bool)
        depths = [0] * n
        for i, parent in enumerate(parents):
            if parent >= 0:
                related[i] = related[parent]
                depths[i] = depths[parent] + 1
            related[i, i] = True
        depth = torch.tensor(depths, device=self._device)
        columns = torch.arange(start, start + n, device=self._device)[None]
        end = self.cache.aim(row, [start], columns)
        seen = torch.ones((1, n, end), dtype=torch.bool, device=self._device)
        seen[0, :, start:] = related.to(self._device)
        places = torch.arange(end, device=self._device)
        places[start:] = start + depth
        nodes, positions = torch.tensor([list(ids)], device=self._device), (start + depth)[None]
        keep = torch.arange(n, device=self._device)[None]
        return self._run(nodes, positions, self._masks(positions, seen, places), keep)[0]

    def _run(self, ids: torch.Tensor, positions: torch.Tensor, masks: Any, keep: torch.Tensor) -> torch.Tensor:
        """Call the model.

        Args:
            ids: shape (rows, new tokens).
            positions: of the new tokens, the same shape.
            masks: what each new token may look at; None = all tokens before it.
            keep: new tokens whose logits are wanted, shape (rows, wanted).

        Returns:
            Shape (rows, wanted, vocabulary).
        """
        if self.model.training:
            self.model.eval()  # no dropout, and no checkpointing, which would refuse a cache
        with torch.no_grad():
            output = self.model(
                input_ids=ids,
                attention_mask=masks,
                position_ids=positions,
                cache=self.cache,
                use_cache=True,
                logits_to_keep=keep,
            )
        logits: torch.Tensor = output.logits
        return logits

    def _masks(self, positions: torch.Tensor, seen: torch.Tensor, places: torch.Tensor) -> Any:
        """Masks in the form that the model takes.

        Args:
            positions: of the new tokens, shape (rows, new tokens).
            seen: what each of them may look at, shape (rows, new tokens, columns).
            places: position of what stands in each column, shape (columns,).
        """
        whole = self._mask(seen)
        if self._span is None:
            return whole
        near = self._mask(seen & (positions[:, :, None] - places < self._span))
        return {"full_attention": whole, "sliding_attention": near} if self._mixed else near

    def _mask(self, seen: torch.Tensor) -> torch.Tensor:
        if not self._additive:
            return seen[:, None]
        barred = torch.zeros(seen.shape, dtype=self._dtype, device=seen.device)
        return barred.masked_fill(~seen, torch.finfo(self._dtype).min)[:, None]
