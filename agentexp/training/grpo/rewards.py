"""What a rollout is worth: components, so that a reward of your own is a class with one method."""

from __future__ import annotations

from typing import Protocol

from agentexp.core import Episode
from agentexp.metrics.ecc import ecc_of_episode


class Reward(Protocol):
    """The reward of one finished episode."""

    def __call__(self, episode: Episode) -> float | None:
        """A number, or None where the episode has no reward; it then takes no part in its group."""
        ...


class Success:
    """R_task in {0, 1}: the world's own test (paper 001, section 3.1)."""

    def __call__(self, episode: Episode) -> float | None:
        """See `Reward`."""
        return float(episode.success)


class Score:
    """The world's score at the end, in [0, 1]: denser than success where the world has sub-goals."""

    def __call__(self, episode: Episode) -> float | None:
        """See `Reward`."""
        return episode.score


class Coverage:
    """R_exp = ECC, the share of the instance's checkpoints that an exploration covered (paper 001, eq. 2 and 3)."""

    def __call__(self, episode: Episode) -> float | None:
        """See `Reward`. None for an instance without checkpoints."""
        ecc = ecc_of_episode({"notes": episode.notes})
        return ecc.value if ecc else None


class Letters:
    """The share of certain characters in the replies: says nothing about the task, but varies even for random weights.

    For smoke runs and tests of the machinery.

    Args:
        letters: the characters that count.
    """

    def __init__(self, letters: str = "abcdefghijklmnopqrstuvwxyz") -> None:
        self._letters = frozenset(letters)

    def __call__(self, episode: Episode) -> float | None:
        """See `Reward`. None where nothing was said."""
        text = "".join(m.content for chat in episode.chats.values() for m in chat if m.role == "assistant")
        return sum(character in self._letters for character in text) / len(text) if text else None
