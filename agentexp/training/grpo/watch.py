"""Groups without any signal (case R04): when every group's rewards are equal for some steps, nothing is learnt, and hours pass.

The likely causes: replies are cut before they hold an action, the policy always fails, or it always wins.
"""

from __future__ import annotations

from collections import deque
from typing import Literal

OnNoSignal = Literal["warn", "stop"]


class SignalWatch:
    """Looks at one step after the other.

    Args:
        steps: consecutive steps without any signal that are worth a warning.
    """

    def __init__(self, steps: int = 5) -> None:
        self._seen: deque[tuple[float, float, float]] = deque(maxlen=steps)
        self._steps = steps

    def look(self, without_signal: float, cut: float, reward: float) -> str:
        """Take in a step.

        Args:
            without_signal: share of groups whose advantages are all 0, or that have none.
            cut: share of rollouts that were cut off, or whose replies mostly were.
            reward: mean reward; NaN where there was none.

        Returns:
            A sentence that names the likely cause, once after every `steps` steps without signal; else "".
        """
        if without_signal < 1.0:
            self._seen.clear()
            return ""
        self._seen.append((without_signal, cut, reward))
        if len(self._seen) < self._steps:
            return ""
        cuts = sum(entry[1] for entry in self._seen) / self._steps
        rewards = sum(entry[2] for entry in self._seen) / self._steps
        self._seen.clear()
        said = f"No group of the last {self._steps} steps had two different rewards, so nothing was learnt."
        if cuts >= 0.5:
            return (
                f"{said} {cuts:.0%} of the rollouts were cut: raise trainer.rollout.max_tokens or trainer.max_rollout_tokens."
            )
        if rewards != rewards:
            return f"{said} No rollout had a reward at all: look at the harness errors in rollouts.jsonl."
        if rewards <= 0.05:
            return f"{said} Every rollout fails: start from a better base (train-sft), or choose easier tasks."
        if rewards >= 0.95:
            return f"{said} Every rollout wins: choose harder tasks, or stop here."
        return f"{said} All rollouts of a group do the same: raise trainer.rollout.temperature or trainer.group_size."
