"""A scripted agent that knows the places of a game by heart: it stands in for a policy that was trained on these very games.

It is `mapuser` with a memory of the game as it was before `env.variant` changed it. It goes where things used to lie, and
searches as `mapuser` does when they are not there any more. Relocation makes its memory wrong (paper 001, figure 3);
a map of the house as it is now, from Explore-then-Act, overrules it.
"""

from __future__ import annotations

from collections.abc import Callable

from agentexp.core import Task, View
from agentexp.envs.alfworld.oracle import Household
from agentexp.envs.alfworld.policies import POLICIES, HousePolicy, MapUser
from agentexp.envs.alfworld.problem import Problem
from agentexp.envs.alfworld.rule_agents import Follower, RuleFinder
from agentexp.envs.alfworld.told import Known, Remembered
from agentexp.envs.alfworld.wheel import Logic
from agentexp.errors import UserError


class Memorised(MapUser):
    """Acts on where things lay in the original game, unless a map of the house as it is now says otherwise.

    Args:
        original: the house of a task before any variant.
    """

    def __init__(self, seed: int, logic: Logic, original: Callable[[Task], Problem]) -> None:
        super().__init__(seed, logic)
        self._original = original
        self._memory: list[tuple[str, str]] | None = None

    def know(self, view: View) -> Known:
        """The map, and the memory where the map has seen nothing."""
        if self._memory is None:
            problem = self._original(view.task)
            contents, names = Household(problem.init).contents, problem.names
            self._memory = [(names[thing], names[place]) for place, things in contents.items() for thing in things]
        return Remembered(view.map, self._memory)


class MemorisedFollower(Memorised, Follower):
    """`follower`: knows where things are, so that searching does not hide what a hidden rule does to it, see `rule_agents`."""


def make(name: str, seed: int, logic: Logic, original: Callable[[Task], Problem]) -> HousePolicy:
    """A fresh scripted agent.

    Args:
        name: mapuser, curious, myopic, follower, rulefinder or memorised.
        seed: of what it draws.
        logic: see `AlfWorld`.
        original: the house of a task before any variant; only `memorised` and `follower` ask for it.

    Raises:
        UserError: another name.
    """
    if name == "memorised":
        return Memorised(seed, logic, original)
    if name == "follower":
        return MemorisedFollower(seed, logic, original)
    agents: dict[str, type[HousePolicy]] = {**POLICIES, "rulefinder": RuleFinder}
    if name not in agents:
        known = ", ".join(sorted([*agents, "memorised", "follower"]))
        raise UserError(f"model.policy={name} is unknown to alfworld. Choose one of: {known}.")
    return agents[name](seed, logic)
