"""AgentBoard's progress rate for ALFWorld: which parts of the task the answers of the game have shown.

AgentBoard labels every game with sub-goals, regular expressions over the answers; its label files are not at hand, so the
sub-goals are made from the goal by task type (ours): the wanted thing was seen, it was picked up, it was heated, cooled or
cleaned where the task says so, the first of two things was put down where it belongs, the lamp was seen. The rate is
hits / (n + 1), and 1 once the task is solved; it never falls, because a sub-goal that was met stays met.
"""

from __future__ import annotations

import re

from agentexp.envs.alfworld.goals import Goal
from agentexp.metrics.progress import agentboard_progress


def subgoals(goal: Goal) -> tuple[re.Pattern[str], ...]:
    """The sub-goals of a task as regular expressions, in the order in which they are usually met; the goal itself is none."""
    thing = rf"{re.escape(goal.thing)} \d+"
    parts = [rf"you see\b[^.]*\b{thing}", rf"you pick up the {thing}"]
    if goal.treatment:
        parts.append(rf"you {goal.treatment} the {thing}")
    if goal.count > 1:
        parts.append(rf"you (?:move|put) the {thing} (?:to|in/on) the {re.escape(goal.place)} \d+")
    if goal.lamp:
        parts.append(rf"you see\b[^.]*\b{re.escape(goal.lamp)} \d+")
    return tuple(re.compile(part, re.IGNORECASE) for part in parts)


class Progress:
    """The progress rate of one episode.

    Args:
        goal: None for a goal in other words than ALFWorld's own: then only success counts.
    """

    def __init__(self, goal: Goal | None) -> None:
        self._open = list(subgoals(goal)) if goal else []
        self._met = 0

    def observe(self, text: str, won: bool) -> float:
        """Take in one answer of the game; returns the rate now, in [0, 1]."""
        met = [part for part in self._open if part.search(text)]
        self._open = [part for part in self._open if part not in met]
        self._met += len(met)
        return agentboard_progress([True] * self._met + [False] * len(self._open), won)
