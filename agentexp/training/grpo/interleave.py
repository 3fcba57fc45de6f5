"""How many of a step's groups explore: exact counts by error diffusion (paper 001, section 3.3 and appendix C).

    mixed      exploration groups of step s = floor((s + 1) n e / (t + e)) - floor(s n e / (t + e))
    alternate  the same for whole steps (n = 1): with 5:1 the steps 5, 11, 17 ... explore, all their groups do

with n groups per step and the ratio t:e of task to exploration. Section 3.3 alternates steps, appendix C mixes both kinds in
each batch; 16 groups cannot be split 5:1, so the rest is carried over: 2, 3, 3, 2, 3, 3 ... Integers only, so nothing drifts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from agentexp.errors import UserError

Schedule = Literal["mixed", "alternate"]
Kind = Literal["task", "explore"]

TABLE_5 = ("0:1", "1:10", "1:5", "1:3", "3:1", "5:1", "10:1", "1:0")
"""The ratios of table 5, from Explore-Only to Task-Only."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """Task groups to exploration groups, "5:1"."""

    task: int
    explore: int

    @staticmethod
    def of(text: str) -> Ratio:
        """Read "T:E". Raises `UserError` where it is nothing of the kind, or 0:0."""
        found = re.fullmatch(r"\s*(\d+)\s*:\s*(\d+)\s*", text)
        if found is None or not int(found[1]) + int(found[2]):
            raise UserError(
                f"trainer.ratio={text} is no ratio of task to exploration groups. Write T:E, for example 5:1 (the paper's), "
                "1:0 for tasks only or 0:1 for exploration only."
            )
        return Ratio(int(found[1]), int(found[2]))

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds that occur."""
        every: tuple[tuple[Kind, int], ...] = (("task", self.task), ("explore", self.explore))
        return tuple(kind for kind, share in every if share)


def explored_before(step: int, groups: int, ratio: Ratio, schedule: Schedule = "mixed") -> int:
    """Exploration groups of all steps before `step` (0-based)."""
    whole = ratio.task + ratio.explore
    if schedule == "alternate":
        return groups * (step * ratio.explore // whole)
    return step * groups * ratio.explore // whole


def exploration_groups(step: int, groups: int, ratio: Ratio, schedule: Schedule = "mixed") -> int:
    """Exploration groups among the `groups` of step `step` (0-based)."""
    return explored_before(step + 1, groups, ratio, schedule) - explored_before(step, groups, ratio, schedule)
