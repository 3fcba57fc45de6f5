"""Actions and levels of one instance, counted as the official scorecard does (arc-agi 0.9.9), and its RHAE.

Every action that was sent counts for the level at which it was sent, a RESET of the level too. A RESET that starts the whole
game again begins a new play and counts nothing; the best play is the score.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentexp.envs.arc_agi3.frames import Frame
from agentexp.metrics.rhae import rhae_game

KEY = "progress"
"""Name of the entry in `Step.info`; goal-free exploration hides it."""


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
        play.completed = max(before, frame.completed)  # an empty frame after GAME_OVER says 0: no level is lost
        self.state = frame.state
        return play.completed > before

    def count_unsent(self) -> None:
        """An action after GAME_OVER: the engine would ignore it, the scorecard counts it."""
        self.now.used[self.level] += 1

    def best(self) -> int:
        """Levels completed in the best play."""
        return max(play.completed for play in self.plays)

    def info(self) -> dict[str, Any]:
        """JSON for `Step.info`, from which `rhae` computes the score."""
        return {
            "state": self.state,
            "levels": self.levels,
            "completed": self.best(),
            "baseline": list(self.baseline),
            "plays": [{"used": list(play.used), "completed": play.completed} for play in self.plays],
        }


def rhae(progress: Mapping[str, Any], *, completion_cap: bool = True, mapping_actions: int = 0) -> float | None:
    """RHAE in percent of an instance from what `Tally.info` wrote; None without a baseline.

    A baseline for a level that the game does not have (CN04-65d47d14 has one too many) counts as a level that was not
    completed, as in the official scorecard.

    Args:
        progress: the entry.
        completion_cap: see `rhae_game`.
        mapping_actions: see `rhae_game`.
    """
    human = list(progress["baseline"])
    if len(human) < int(progress["levels"]):
        return None
    scores = []
    for play in progress["plays"]:
        used = [*play["used"], *[0] * (len(human) - len(play["used"]))]
        done = [i < play["completed"] for i in range(len(human))]
        scores.append(rhae_game(human, used, done, completion_cap=completion_cap, mapping_actions=mapping_actions))
    return max(scores)
