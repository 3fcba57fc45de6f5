"""What can be known about a ToyRooms instance, and the proof of it in the world's texts (for ECC, paper 001)."""

from __future__ import annotations

import re

from agentexp.capabilities import Checkpoint
from agentexp.core import Step
from agentexp.errors import UserError

_LOOK = re.compile(r"You are in the (?P<room>.+?)\. You see (?P<things>.+?)\. Doors lead ")


def checkpoints(rooms: list[str], things: list[str], goal: tuple[str, str], relevance: str) -> list[Checkpoint]:
    """Rooms; things; taking and dropping each thing.

    Args:
        rooms: all of them; the wanted thing may lie in any, so none is irrelevant.
        things: all of them.
        goal: wanted thing, and the room to bring it to or "".
        relevance: "task_closure" leaves the other things out, and dropping where the goal needs none; "all" leaves out nothing.

    Raises:
        UserError: another relevance.
    """
    if relevance not in ("task_closure", "all"):
        raise UserError(f"relevance={relevance} is unknown: choose task_closure or all.")
    wanted = things if relevance == "all" else [goal[0]]
    verbs = ("take", "drop") if relevance == "all" or goal[1] else ("take",)
    return sorted(
        [Checkpoint("location", room) for room in rooms]
        + [Checkpoint("object", thing) for thing in wanted]
        + [Checkpoint("affordance", f"{verb} {thing}") for verb in verbs for thing in wanted]
    )


class ToyMatcher:
    """Implements `CheckpointMatcher`. Stateless: a description proves its room and things, an accepted action itself."""

    def observe(self, action: str | None, step: Step) -> set[Checkpoint]:
        """See `CheckpointMatcher`."""
        if action is None or step.error:
            return set()
        command = " ".join(action.lower().split())
        if command.startswith(("take ", "drop ")):
            return {Checkpoint("affordance", command)}
        look = _LOOK.search(step.observation)
        if look is None:
            return set()
        things = re.findall(r"\ba (\w+)", look["things"])
        return {Checkpoint("location", look["room"]), *(Checkpoint("object", thing) for thing in things)}
