"""Thoughts in the science facility: which room is next, and what a walk is for."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agentexp.core import View
from agentexp.envs.scienceworld.tracker import ScienceWorldTracker
from agentexp.training.collect.narrators import PlainNarrator, outcome

_WALK = re.compile(r"go (?:to )?(.+)|teleport to (.+)|open door to (.+)|open (.+) door")
_WAITING = re.compile(r"wait\d*")
_WORDS = (
    (re.compile(r"focus on (.+)"), "The task asks for {0}, so I focus on it."),
    (re.compile(r"pick up (.+)"), "I need {0}, so I take it."),
    (re.compile(r"(?:move|pour) (.+) (?:to|into) (.+)"), "{0} has to go to {1}."),
    (re.compile(r"dunk (.+) into (.+)"), "I fill {0} from {1}."),
    (re.compile(r"mix (.+)"), "All is in {0}, so I mix it."),
    (re.compile(r"activate (.+)"), "I switch on {0}."),
    (re.compile(r"deactivate (.+)"), "I switch off {0}."),
    (re.compile(r"use (.+) on (.+)"), "I use {0} to learn about {1}."),
    (re.compile(r"connect (.+) to (.+)"), "{0} has to touch {1}."),
    (re.compile(r"open (.+)"), "{0} is closed, so I open it."),
    (re.compile(r"(?:look at|look in|examine|read) (.+)"), "I check {0}."),
)


class LabNarrator(PlainNarrator):
    """See `Narrator`. The world's mapuser masters 8 of the 30 tasks, so the expert acts."""

    actor = "oracle"

    def __init__(self) -> None:
        super().__init__(idle="look around")

    def seen_all(self, view: View, action: str) -> bool:
        """The explorer looks around in a room that it has seen."""
        known = view.tracker
        return action == self.idle and isinstance(known, ScienceWorldTracker) and known.room in known.rooms

    def exploring(self, view: View, action: str) -> str:
        """The room or the thing that was not looked into yet."""
        known = view.tracker
        if not isinstance(known, ScienceWorldTracker):
            return super().exploring(view, action)
        if action == self.idle:
            return f"{outcome(view)}I am in the {known.room} now. I look around."
        if walk := _WALK.fullmatch(action):
            room = next(filter(None, walk.groups()))
            if action.startswith("open"):
                return f"{outcome(view)}The door to the {room} is closed. I open it."
            return outcome(view) + (
                f"I go back through the {room}." if room in known.rooms else f"The {room} was not seen yet."
            )
        return outcome(view) + _deed(action)

    def acting(self, view: View, action: str, ahead: Sequence[str]) -> str:
        """What a walk is for; else what the action does."""
        if walk := _WALK.fullmatch(action):
            room = next(filter(None, walk.groups()))
            deed = next((later for later in ahead if not _WALK.fullmatch(later) and not later.startswith("look")), "")
            return outcome(view) + (f"I want to {deed}. " if deed else "") + f"The way leads through the {room}."
        if _WAITING.fullmatch(action):
            return f"{outcome(view)}This takes time, so I wait."
        if action == self.idle:
            return f"{outcome(view)}I look around."
        return outcome(view) + _deed(action)


def _deed(action: str) -> str:
    for pattern, words in _WORDS:
        if match := pattern.fullmatch(action):
            text = words.format(*(name.removesuffix(" in inventory") for name in match.groups()))
            return text[0].upper() + text[1:]
    return f"The next step is: {action}."
