"""Exact log-likelihoods of many continuations of one prompt in one forward pass.

The continuations form a tree over tokens; each node attends to the prompt and to its own ancestors only, at the position that
it would have in the plain sequence. Nothing of the prompt is computed or copied again, and no token twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from agentexp.models.transformers_forward import Forward

_MOST_NODES = 1024  # per forward pass


@dataclass(frozen=True, slots=True)
class Scored:
    """Log-likelihood of one continuation.

    Attributes:
        logprob: sum over its tokens, at temperature 1.
        tokens: number of tokens.
    """

    logprob: float
    tokens: int


@dataclass(slots=True)
class _Tree:
    """Nodes in order, each after its parent; the last token of a continuation is no node unless another one goes on there."""

    ids: list[int]
    parents: list[int]
    places: dict[tuple[int, int], int]

    def add(self, tokens: Sequence[int]) -> None:
        parent = -1
        for token in tokens:
            if (parent, token) not in self.places:
                self.places[parent, token] = len(self.ids)
                self.ids.append(token)
                self.parents.append(parent)
            parent = self.places[parent, token]

    def path(self, tokens: Sequence[int]) -> list[int]:
        nodes, parent = [], -1
        for token in tokens:
            parent = self.places[parent, token]
            nodes.append(parent)
        return nodes


def score(forward: Forward, row: int, start: int, first: torch.Tensor, candidates: Sequence[Sequence[int]]) -> list[Scored]:
    """Score continuations of a row, which is left as it is.

    Args:
        forward: the model.
        row: the row that holds the prompt.
        start: tokens of the prompt.
        first: logits after the prompt, shape (vocabulary,).
        candidates: token ids, none empty.
    """
    scored: list[Scored] = []
    for some, tree in _trees(candidates):
        logits = first[None]
        if tree.ids:
            logits = torch.cat([logits, forward.tree(row, start, tree.ids, tree.parents)])
        logits = logits.float()
        norms = torch.logsumexp(logits, dim=-1)
        for tokens in some:
            before = torch.tensor([0, *(node + 1 for node in tree.path(tokens[:-1]))], device=logits.device)
            after = torch.tensor(list(tokens), device=logits.device)
            total = (logits[before, after] - norms[before]).double().sum()
            scored.append(Scored(float(total.item()), len(tokens)))
    return scored


def _trees(candidates: Sequence[Sequence[int]]) -> Iterator[tuple[list[Sequence[int]], _Tree]]:
    """The candidates in groups whose trees are small enough."""
    some: list[Sequence[int]] = []
    tree = _Tree([], [], {})
    for tokens in candidates:
        if some and len(tree.ids) + len(tokens) > _MOST_NODES:
            yield some, tree
            some, tree = [], _Tree([], [], {})
        some.append(tokens)
        tree.add(tokens[:-1])
    if some:
        yield some, tree
