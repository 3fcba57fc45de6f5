"""Actions as text: "ACTION1" to "ACTION7", "ACTION6 x y", "RESET"; lower case and other punctuation are accepted."""

from __future__ import annotations

import re
from typing import NamedTuple

from agentexp.envs.arc_agi3.frames import SIDE

RESET, CLICK = 0, 6
_FORM = re.compile(r"\W*(?:(reset)|action[ _]?([1-7]))\b(?:\W*x?\W*(\d{1,4})\W+y?\W*(\d{1,4}))?\W*", re.IGNORECASE)


class Action(NamedTuple):
    """One action; x and y are set for ACTION6 only."""

    number: int
    x: int | None = None
    y: int | None = None

    def __str__(self) -> str:
        if self.number == CLICK:
            return f"ACTION6 {self.x} {self.y}"
        return name(self.number)


def name(number: int) -> str:
    """The name of an action, for example "RESET" or "ACTION3"."""
    return f"ACTION{number}" if number else "RESET"


def parse(text: str, available: tuple[int, ...]) -> tuple[Action | None, str]:
    """Read an action.

    Args:
        text: what the agent wrote.
        available: numbers of the actions that the game knows.

    Returns:
        The action, or None and the reason for the agent.
    """
    match = _FORM.fullmatch(text.strip()[:100])
    if match is None:
        return None, f"There is no such action. {listing(available)}"
    number = 0 if match[1] else int(match[2])
    if number and number not in available:
        return None, f"This game does not use {name(number)}. {listing(available)}"
    if number != CLICK:
        return Action(number), ""
    if match[3] is None:
        return None, "ACTION6 needs a position: ACTION6 x y, with x and y from 0 to 63."
    x, y = int(match[3]), int(match[4])
    if x >= SIDE or y >= SIDE:
        return None, "ACTION6 takes x and y from 0 to 63."
    return Action(number, x, y), ""


def listing(available: tuple[int, ...]) -> str:
    """What a game knows, for example "Actions: ACTION1, ACTION6 x y, RESET."."""
    names = [name(number) + (" x y" if number == CLICK else "") for number in (*available, RESET)]
    return f"Actions: {', '.join(names)}."
