"""What one phase of an episode has shown: the part that tracker, matcher and scripted agents share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agentexp.core import Step
from agentexp.envs.pddl.language import Atom
from agentexp.envs.pddl.phrases import Phrases

LISTING = "Valid actions are: "


@dataclass(frozen=True, slots=True)
class Event:
    """What one answer told.

    Attributes:
        action: the ground action that was sent; None for anything else.
        worked: it changed something.
        new: atoms that hold now and did not before.
        gone: atoms that held before and do not now, as far as the text tells.
        listed: actions that the world listed as possible.
    """

    action: Atom | None = None
    worked: bool = False
    new: tuple[Atom, ...] = ()
    gone: tuple[Atom, ...] = ()
    listed: tuple[Atom, ...] = ()


class Reading:
    """Reads the answers of one phase.

    Attributes:
        phrases: of the domain; those with the most facts in the first text.
        start: atoms at the start.
        now: atoms that are believed to hold. Where answers tell only what is new, an atom that became false stays until the
            next look around.
    """

    def __init__(self, known: Sequence[Phrases]) -> None:
        self._known = known
        self.phrases = known[0]
        self.start: tuple[Atom, ...] = ()
        self.now: set[Atom] = set()

    def read(self, action: str | None, step: Step) -> Event:
        """Take in one answer (action None for the reset)."""
        if action is None:
            return self._begin(step)
        name = self.phrases.read_action(action)
        text = step.observation
        if step.error:
            return Event(name)
        if text.startswith(LISTING):
            listed = (self.phrases.read_action(part) for part in text.removeprefix(LISTING).split(", "))
            return Event(listed=tuple(found for found in listed if found))
        shown = self.phrases.read_facts(text)
        new = tuple(atom for atom in shown if atom not in self.now)
        whole = name is None or not self.phrases.news_only
        gone = tuple(sorted(self.now - set(shown))) if whole else ()
        self.now = set(shown) if whole else self.now | set(shown)
        if name is None:
            return Event(gone=gone)
        if self.phrases.news_only:
            new = tuple(shown)
        return Event(name, True, new, gone)

    def _begin(self, step: Step) -> Event:
        facts = step.observation.rpartition("\n\n")[2]
        wanted = step.info.get("domain")
        named = [phrases for phrases in self._known if phrases.kind == wanted]
        self.phrases = max(named or self._known, key=lambda phrases: len(phrases.read_facts(facts)))
        self.start = tuple(self.phrases.read_facts(facts))
        self.now = set(self.start)
        return Event()
