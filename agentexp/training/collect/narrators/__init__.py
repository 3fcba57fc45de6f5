"""What the teacher thinks, by world: short sentences from history, facts, map and plan, never from what was not shown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Protocol

from agentexp.core import Env, EnvCard, View


class Narrator(Protocol):
    """Thoughts of one world. Stateless; what it has to remember lies in `View.memory`.

    Attributes:
        actor: the world's agent that acts best on a map: "mapuser" or "oracle".
    """

    actor: str

    def rules(self, card: EnvCard) -> dict[str, Any]:
        """K_g of somebody who has only read the card, for the world's scripted agents."""
        ...

    def seen_all(self, view: View, action: str) -> bool:
        """Whether the explorer's next action would show that nothing is left to see."""
        ...

    def exploring(self, view: View, action: str) -> str:
        """Why the explorer does this next."""
        ...

    def acting(self, view: View, action: str, ahead: Sequence[str]) -> str:
        """Why the actor does this next.

        Args:
            view: before the action.
            action: the action.
            ahead: the rest of the plan, without `action`; empty where the actor has none.
        """
        ...


class PlainNarrator:
    """For worlds without a narrator of their own: says what the plan says.

    Args:
        idle: what the world's explorer does when it has nothing left to do.
    """

    actor = "mapuser"

    def __init__(self, idle: str = "look") -> None:
        self.idle = idle

    def rules(self, card: EnvCard) -> dict[str, Any]:
        """The action forms."""
        return {"action_syntax": action_forms(card)}

    def seen_all(self, view: View, action: str) -> bool:
        """The explorer idles."""
        return action == self.idle

    def exploring(self, view: View, action: str) -> str:
        """How the last action ended, and what comes next."""
        return f"{outcome(view)}Next I try: {action}."

    def acting(self, view: View, action: str, ahead: Sequence[str]) -> str:
        """What the action is for: the next deed of the plan that is no walking."""
        deed = next((later for later in ahead if not later.startswith("go ")), "")
        why = f"I want to {deed}, so I {action}." if action.startswith("go ") and deed else f"The goal needs this: {action}."
        return outcome(view) + why


def action_forms(card: EnvCard) -> list[str]:
    """The card's action forms one by one."""
    return [form for form in re.split(r"\s*\|\s*", card.actions.strip()) if form]


def outcome(view: View) -> str:
    """A sentence with a blank behind it when the last action was refused; else nothing."""
    return "That did not work. " if view.history and view.step.error else ""


def narrator_for(env: Env) -> Narrator:
    """The narrator of a world."""
    if env.name == "alfworld":
        from agentexp.training.collect.narrators.alfworld import HouseNarrator

        return HouseNarrator()
    if env.name == "textcraft":
        from agentexp.training.collect.narrators.textcraft import CraftNarrator

        return CraftNarrator()
    if env.name == "scienceworld":
        from agentexp.training.collect.narrators.scienceworld import LabNarrator

        return LabNarrator()
    return PlainNarrator()
