"""The likeliest of a list of replies: exact, without scoring all of them.

A language model gives each candidate y = (y_1 .. y_n), of which y_n is the token that ends it, the score

    "none":    sum_i log p(y_i | prompt, y_<i)
    "tokens":  that sum divided by n.

The candidates form a trie over tokens. Log-probabilities are never positive, so the sum along a path (for "tokens": divided by
the length of the longest candidate below) bounds the score of everything below. Best-first search by that bound: the first
whole candidate that comes up is the exact maximum, and unlikely branches are never opened.

A model call returns the likeliest next tokens only. A candidate's token that is not among them is bounded by the least of
those; if that bound comes up first, the call is repeated with more tokens.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Normalise = Literal["none", "tokens"]


@dataclass(frozen=True, slots=True)
class NextTokens:
    """Log-probabilities of the next token, for the likeliest ones.

    Attributes:
        logprobs: by token id.
        floor: no token outside `logprobs` is likelier than this.
        cached_tokens: tokens of the prompt that were not computed again.
    """

    logprobs: Mapping[int, float]
    floor: float
    cached_tokens: int = 0


Scorer = Callable[[tuple[int, ...], int], Awaitable[NextTokens]]
"""`(tokens after the prompt, n)` -> log-probabilities of the n likeliest next tokens."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """The outcome of a search.

    Attributes:
        index: the winner's index in the list of candidates; ties go to the earlier one.
        score: its score.
        logprob: its sum of log-probabilities.
        margin: every other candidate scores lower by at least this; None when there is no other.
        evaluations: model calls.
    """

    index: int
    score: float
    logprob: float
    margin: float | None
    evaluations: int


@dataclass(slots=True)
class _Node:
    path: tuple[int, ...] = ()
    parent: _Node | None = None
    children: dict[int, _Node] = field(default_factory=dict)
    first: int = 0  # smallest index of the candidates at or below this node: breaks ties
    longest: int = 0  # tokens of the longest of them
    leaf: int | None = None
    total: float = 0.0  # sum of log-probabilities, or an upper bound of it
    exact: bool = False  # it is the sum
    width: int = 0  # tokens that were asked for to score the children
    entry: int = 0  # number of the valid heap entry


def _trie(candidates: Sequence[Sequence[int]]) -> _Node:
    root = _Node(exact=True)
    for index, tokens in enumerate(candidates):
        node = root
        node.longest = max(node.longest, len(tokens))
        for token in tokens:
            if token not in node.children:
                node.children[token] = _Node((*node.path, token), node, first=index)
            node = node.children[token]
            node.longest = max(node.longest, len(tokens))
        if node.leaf is None:
            node.leaf = index
    return root


def _check(node: _Node) -> None:
    stack = [node]
    while stack:
        node = stack.pop()
        if node.leaf is not None and node.children:
            raise ValueError("A candidate is the beginning of another one: end each with the token that ends it.")
        stack.extend(node.children.values())


class _Search:
    """Best-first search over one trie."""

    def __init__(self, root: _Node, scorer: Scorer, vocabulary: int, normalise: Normalise) -> None:
        self.scorer, self.vocabulary, self.normalise = scorer, vocabulary, normalise
        self.evaluations = 0
        self.pushed = 0
        self.heap: list[tuple[float, int, int, _Node]] = []
        self.push(root)

    def bound(self, node: _Node) -> float:
        return node.total if self.normalise == "none" else node.total / max(1, node.longest)

    def push(self, node: _Node) -> None:
        self.pushed += 1
        node.entry = self.pushed
        # Equal bounds: the earlier candidate first. The number also keeps nodes from being compared.
        heapq.heappush(self.heap, (-self.bound(node), node.first, self.pushed, node))

    def pop(self) -> _Node | None:
        while self.heap:
            _, _, number, node = heapq.heappop(self.heap)
            if number == node.entry:  # else it has been scored anew since
                return node
        return None

    async def open(self, node: _Node, width: int) -> None:
        """Score the children of `node` that have no exact score yet."""
        node.width = min(width, self.vocabulary)
        self.evaluations += 1
        top = await self.scorer(node.path, node.width)
        for token, child in node.children.items():
            if child.exact:
                continue
            known = top.logprobs.get(token)
            if known is None and node.width == self.vocabulary:
                known = -math.inf
            child.exact = known is not None
            child.total = node.total + (top.floor if known is None else known)
            self.push(child)


async def best(
    candidates: Sequence[Sequence[int]],
    scorer: Scorer,
    vocabulary: int,
    normalise: Normalise = "none",
    width: int = 64,
) -> Ranking:
    """Find the candidate with the highest score.

    Args:
        candidates: token ids, each with the token that ends it; none may be empty or the beginning of another one.
        scorer: asks the model.
        vocabulary: number of tokens that the model knows.
        normalise: see the module.
        width: next tokens to ask for at first.

    Raises:
        ValueError: there is no candidate, or one is empty or the beginning of another one.
    """
    if not candidates or not all(candidates):
        raise ValueError("There must be candidates, and none may be empty.")
    root = _trie(candidates)
    _check(root)
    search = _Search(root, scorer, vocabulary, normalise)
    while (node := search.pop()) is not None:
        if not node.exact and node.parent is not None:
            await search.open(node.parent, node.parent.width * 16)
        elif node.leaf is None:
            await search.open(node, width)
        else:
            score = search.bound(node)
            other = search.pop()
            rest = None if other is None else search.bound(other)
            margin = None if rest is None else 0.0 if rest == score else score - rest
            return Ranking(node.leaf, score, node.total, margin, search.evaluations)
    raise AssertionError("unreachable: every path of the trie ends in a leaf")
