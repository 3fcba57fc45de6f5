"""The three escalating heuristics against standing still (appendix A.1).

replan: fewer than five blocks in 30 s. reset: the second failure on the same target drops it and asks the map for another.
rollback: the third, or coming back to the same key place again and again, goes to the nearest key node never visited.
"""

from __future__ import annotations

from collections import deque
from typing import Literal

from agentexp.wise.core import TICKS_PER_SECOND, Pose

Stage = Literal["replan", "reset", "rollback"]


class Escape:
    """Watches progress and says when to give up on a target, and how hard.

    Args:
        seconds: length of the window.
        blocks: fewest blocks that must be walked in it.
        revisits: how often the same goal may be given up on before the rollback; the paper gives no number.
        same: goals within this many blocks are the same target.
    """

    def __init__(self, seconds: float = 30.0, blocks: float = 5.0, revisits: int = 3, same: float = 6.0) -> None:
        self.ticks, self.blocks = round(seconds * TICKS_PER_SECOND), blocks
        self.revisits, self.same = revisits, same
        self.counts: dict[Stage, int] = {"replan": 0, "reset": 0, "rollback": 0}
        self._trail: deque[tuple[int, float]] = deque()
        self._walked = 0.0
        self._last: Pose | None = None
        self._failures: list[tuple[float, float, int]] = []

    def observe(self, pose: Pose, tick: int) -> None:
        """Take in one tick."""
        step = self._last.distance(pose.x, pose.z) if self._last else 0.0
        self._last = pose
        self._walked += step
        self._trail.append((tick, step))
        while self._trail and self._trail[0][0] <= tick - self.ticks:
            self._walked -= self._trail.popleft()[1]

    def restart(self) -> None:
        """Begin a new window: the agent was doing something else."""
        self._trail.clear()
        self._walked = 0.0

    @property
    def stagnant(self) -> bool:
        """Fewer than `blocks` walked in a whole window."""
        return len(self._trail) >= self.ticks and self._walked < self.blocks

    def failed(self, x: float, z: float) -> Stage:
        """A target was given up on; returns what to do about it, and starts a new window."""
        self.restart()
        for k, (a, b, times) in enumerate(self._failures):
            if (a - x) ** 2 + (b - z) ** 2 <= self.same**2:
                times += 1
                self._failures[k] = (a, b, times)
                break
        else:
            times = 1
            self._failures.append((x, z, times))
        stage: Stage = "replan" if times == 1 else "reset" if times < self.revisits else "rollback"
        self.counts[stage] += 1
        return stage
