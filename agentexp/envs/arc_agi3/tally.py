"""Actions and levels of one instance, counted as the official scorecard does (arc-agi 0.9.9).

Every action that was sent counts for the level at which it was sent, a RESET of the level too. A RESET that starts the whole
game again begins a new play and counts nothing; the best play is the score. What a game answers without a frame (anything but
RESET after GAME_OVER) counts nothing either.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from agentexp.envs.arc_agi3.frames import Frame


@dataclass(slots=True)
class Play:
    """One play: actions by level, levels completed."""

    used: list[int]
    completed: int = 0


@dataclass(slots=True)
class Tally:
    """All plays since a reset.

    Attributes:
        baseline: actions of the human baseline by level; empty where nobody has published it.
        levels: number of levels.
        plays: oldest first.
        state: of the game, see `Frame`.
    """

    baseline: Sequence[int]
    levels: int
    plays: list[Play] = field(default_factory=list)
    state: str = "NOT_FINISHED"

    def __post_init__(self) -> None:
        self.plays = self.plays or [Play([0] * self.levels)]

    @property
    def now(self) -> Play:
        """The present play."""
        return self.plays[-1]

    @property
    def level(self) -> int:
        """0-based level that is being played; the last one after a win."""
        return min(self.now.completed, self.levels - 1)

    def count(self, frame: Frame) -> bool:
        """Take in the answer to an action; returns whether it completed a level."""
        if frame.full_reset:
            self.plays.append(Play([0] * self.levels))
            self.state = frame.state
            return False
        before, play = self.now.completed, self.now
        play.used[self.level] += 1
        play.completed = max(before, frame.completed)
        self.state = frame.state
        return play.completed > before

    def best(self) -> int:
        """Levels completed in the best play."""
        return max(play.completed for play in self.plays)

    def info(self) -> dict[str, Any]:
        """JSON for `Step.info`, from which `agentexp.metrics.arc` computes the score."""
        return {
            "state": self.state,
            "levels": self.levels,
            "completed": self.best(),
            "baseline": list(self.baseline),
            "plays": [{"used": list(play.used), "completed": play.completed} for play in self.plays],
        }
