"""Which words stand for a subtask when memory is searched, and how alike two short texts are.

MrSteve searches with a hand-made text for each task ("near cow" for beef): the link from beef to cow is in that table. With
`raw` the task's own words are used, and whatever link there is must come from the encoder, or from the graph.
"""

from __future__ import annotations

import re
from typing import Literal, Protocol

from agentexp.wise.core import Encoder, Subtask
from agentexp.wise.knowledge.names import singular

TextQuery = Literal["raw", "skills"]

SKILLS = {
    "log": "near tree",
    "beef": "near cow",
    "leather": "near cow",
    "milk_bucket": "near cow",
    "wool": "near sheep",
    "mutton": "near sheep",
    "water_bucket": "near water",
    "porkchop": "near pig",
    "chicken": "near chicken",
    "wheat_seeds": "near grass",
    "dirt": "near dirt",
    "sand": "near sand",
}

# Words of instructions that say nothing about what is looked for.
_EMPTY = frozenset({"a", "an", "the", "to", "of", "some", "near", "in", "from", "with", "bucket"}) | frozenset(
    {"obtain", "get", "find", "collect", "kill", "cut", "go"}
)


def query_text(subtask: Subtask, how: TextQuery) -> str:
    """The text that memory is searched with."""
    return SKILLS.get(subtask.target, subtask.text) if how == "skills" else subtask.text


class Similarity(Protocol):
    """How alike two short texts are, in [0, 1]."""

    def __call__(self, a: str, b: str) -> float:
        """1 for the same thing, 0 for nothing in common."""
        ...


def word_similarity(a: str, b: str) -> float:
    """Best match of a word of `a` with one of `b` by their letter triples (Dice): spelling, not meaning: cow and beef are 0."""
    return max((_dice(x, y) for x in _words(a) for y in _words(b)), default=0.0)


class EncoderSimilarity:
    """Cosine of two texts in an encoder's space, negative ones as 0."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._known: dict[tuple[str, str], float] = {}

    def __call__(self, a: str, b: str) -> float:
        """See `Similarity`."""
        if (a, b) not in self._known:
            self._known[a, b] = max(0.0, float(self._encoder.text(a) @ self._encoder.text(b)))
        return self._known[a, b]


def _words(text: str) -> list[str]:
    found = [word for word in re.findall(r"[a-z]+", text.lower()) if word not in _EMPTY]
    return [forms[0] if (forms := singular(word)) else word for word in found]


def _dice(a: str, b: str) -> float:
    if a == b:
        return 1.0
    one, two = ({f" {w} "[i : i + 3] for i in range(len(w))} for w in (a, b))
    return 2 * len(one & two) / (len(one) + len(two)) if one and two else 0.0
