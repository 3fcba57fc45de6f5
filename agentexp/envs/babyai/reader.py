"""Reading the protocol's texts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from agentexp.core import Step
from agentexp.envs.babyai.frame import Pose, Room, Spot, beside, read_info

_SIGHT = re.compile(
    r"There is a (?P<name>[a-z ]+?) (?P<number>\d+) (?:right in front of you (?P<straight>\d+) steps away"
    r"|(?P<ahead>\d+) steps in front of you and (?P<side>\d+) steps to your (?P<hand>left|right))\."
)
_HELD = re.compile(r"You are (?:carrying a (?P<name>[a-z ]+)|not carrying anything)\.")
_COMMAND = re.compile(r"(?P<verb>go to|go through|toggle and go through|pick ?up) (?P<name>[a-z ]+?) (?P<number>\d+)$")
_BARE = ("turn left", "turn right", "move forward", "drop", "toggle")


class Seen(NamedTuple):
    """A thing in a description: "ball", "red", "" or a door's state, with its number and where it is from the robot."""

    kind: str
    colour: str
    state: str
    number: int
    ahead: int
    right: int

    @property
    def name(self) -> str:
        """Colour and kind, which no action but picking up and opening changes."""
        return f"{self.colour} {self.kind}"

    @property
    def called(self) -> str:
        """As actions name it: "red locked door 1"."""
        return " ".join(filter(None, (self.colour, self.state, self.kind, str(self.number))))


@dataclass(frozen=True, slots=True)
class Description:
    """What a text shows; `held` empty for nothing."""

    seen: tuple[Seen, ...]
    held: str


class Command(NamedTuple):
    """An action: its verb, and for the verbs that take a thing what the thing is called ("red ball 1")."""

    verb: str
    called: str


def describe(text: str) -> Description | None:
    """The description in an observation; None if it is another answer, for example a list of actions."""
    held = _HELD.search(text)
    if held is None or "The room has walls around you." not in text:
        return None
    seen = []
    for match in _SIGHT.finditer(text):
        words = match["name"].split()
        state = words[1] if len(words) > 2 else ""
        side = int(match["side"] or 0) * (-1 if match["hand"] == "left" else 1)
        ahead = int(match["straight"] or match["ahead"])
        seen.append(Seen(words[-1], words[0], state, int(match["number"]), ahead, side))
    return Description(tuple(seen), held["name"] or "")


def command(action: str) -> Command | None:
    """An action in its parts; None for anything that is none."""
    action = " ".join(action.lower().split())
    if action in _BARE:
        return Command(action, "")
    match = _COMMAND.match(action)
    return Command(match["verb"].replace("pick up", "pickup"), f"{match['name']} {match['number']}") if match else None


class Follower:
    """Follows one exploration: the newest description, where the robot was then, and what things were called.

    Attributes:
        shown: the newest description; None before the first.
        pose: where it was given; None if the world did not say.
        room: the room around the robot; None in a doorway.
    """

    def __init__(self) -> None:
        self.shown: Description | None = None
        self.pose: Pose | None = None
        self.room: Room | None = None

    def called(self) -> Mapping[str, tuple[Seen, Spot]]:
        """What can be named now, and where it is."""
        if self.shown is None or self.pose is None:
            return {}
        return {seen.called: (seen, beside(self.pose, seen.ahead, seen.right)) for seen in self.shown.seen}

    def observe(self, step: Step) -> bool:
        """Take in a step; returns whether it shows the world from a known place."""
        shown = describe(step.observation)
        if shown is None:
            return False
        self.shown = shown
        self.pose, self.room = read_info(step.info)
        return self.pose is not None
