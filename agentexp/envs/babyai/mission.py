"""Reading missions as agents do: from their words."""

from __future__ import annotations

import re
from typing import NamedTuple

from agentexp.envs.babyai.engine import Verb
from agentexp.envs.babyai.frame import Room, Spot

_PART = re.compile(
    r"(?P<verb>go to|pick up|open) (?:the|an?) (?:(?P<colour>red|green|blue|purple|yellow|grey) )?"
    r"(?P<kind>ball|box|key|door|object)"
    r"(?: (?P<side>in front of you|behind you|on your left|on your right))?"
)
_VERBS: dict[str, Verb] = {"go to": "go to", "pick up": "pick up", "open": "open"}
_SIDES = {"in front of you": (1, 0), "behind you": (-1, 0), "on your left": (0, -1), "on your right": (0, 1)}


class Part(NamedTuple):
    """One part of a mission; empty `colour` and `side` fit all. `rank`: lower ones first, equal ones in any order."""

    verb: Verb
    colour: str
    kind: str
    side: str
    rank: int

    def fits(self, name: str, spot: Spot | None = None, start: Room | None = None) -> bool:
        """Whether a thing ("red ball") fits the description; its side counts if its spot is given.

        Args:
            name: colour and kind.
            spot: where it was at the start.
            start: the room of the start; sides are told of things in it.
        """
        colour, _, kind = name.partition(" ")
        if self.colour not in ("", colour) or self.kind not in ("object", kind):
            return False
        if not self.side or spot is None:
            return True
        ahead, right = _SIDES[self.side]
        near = start is None or (
            start.low[0] - 1 <= spot[0] <= start.high[0] + 1 and start.low[1] - 1 <= spot[1] <= start.high[1] + 1
        )
        return near and ahead * spot[0] + right * spot[1] > 0


def parse_goal(goal: str) -> list[Part] | None:
    """The parts of a mission in the order in which they have to be done; None if it cannot be read.

    AgentBoard's wording ("and" for "then" and "after you") tells no order: all parts then have the same rank.
    """
    text = " ".join(goal.lower().split()).rstrip(".")
    if " after you " in text:
        later, _, first = text.partition(" after you ")
        halves = [first, later]
    else:
        halves = text.split(", then ")
    parts = []
    for rank, half in enumerate(halves):
        for words in re.split(r",? and ", half):
            match = _PART.fullmatch(words)
            if match is None:
                return None
            parts.append(Part(_VERBS[match["verb"]], match["colour"] or "", match["kind"], match["side"] or "", rank))
    return parts
