"""AgentBoard's progress rate, with sub-goals made from the mission.

AgentBoard's hand-written label files (text patterns such as "There is a red ball ** right in front of you 1 steps away.")
are not freely at hand, so the sub-goals are ours, by one rule: for each part of the mission, a thing that fits its
description was seen; and it was reached ("go to"), picked up, or its door was opened. They are read off the state instead
of the text, because a description like "the ball on your left" is not decided by a text. As in AgentBoard, what holds at
the end of a step counts, in any order, and a step is credited with one sub-goal at most.

Ours: the rate is 1 if and only if minigrid says that the mission is done, and stays below 1 without that.
"""

from __future__ import annotations

from collections.abc import Sequence

from agentexp.envs.babyai.engine import Clause
from agentexp.envs.babyai.scene import OPEN, Scene, in_view


class Progress:
    """The progress of one episode.

    Args:
        clauses: the parts of the mission.
        start: the scene at reset; a door that is open there has not been opened.
    """

    def __init__(self, clauses: Sequence[Clause], start: Scene) -> None:
        self._was_open = {thing.number for thing in start.things.values() if thing.state == OPEN}
        self._open = [(clause, goal) for clause in clauses for goal in ("seen", "done")]
        self._total = len(self._open)
        self.rate = 0.0

    def observe(self, scene: Scene, won: bool) -> float:
        """Take in the end of a step; returns the rate, which never falls."""
        hit = next((sub for sub in self._open if self._holds(*sub, scene)), None)
        if hit is not None:
            self._open.remove(hit)
        reached = min(self._total - len(self._open), self._total - 1)
        self.rate = 1.0 if won else max(self.rate, reached / self._total)
        return self.rate

    def _holds(self, clause: Clause, goal: str, scene: Scene) -> bool:
        if goal == "seen":
            return any(sight.thing is not None and sight.thing.number in clause.things for sight in in_view(scene))
        front, held = scene.things.get(scene.front), scene.carrying
        if clause.verb == "go to":
            return front is not None and front.number in clause.things
        if clause.verb == "pick up":
            return held is not None and held.number in clause.things
        opened = {thing.number for thing in scene.things.values() if thing.state == OPEN} - self._was_open
        return bool(opened & clause.things)
