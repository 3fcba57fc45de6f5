"""Process scores: how far an episode came on its way to the goal."""

from __future__ import annotations

from collections.abc import Sequence


def agentboard_progress(hits: Sequence[bool], done: bool) -> float:
    """AgentBoard's progress rate in ALFWorld: the goal itself is one more sub-goal, and reaching it is all of them.

    Args:
        hits: which sub-goals were met.
        done: the world says that the task is solved.
    """
    return 1.0 if done else sum(map(bool, hits)) / (len(hits) + 1)
