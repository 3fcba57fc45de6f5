"""The proof of ScienceWorld's checkpoints in its texts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from agentexp.capabilities import Checkpoint
from agentexp.core import Step
from agentexp.envs.scienceworld.names import kinds_of
from agentexp.envs.scienceworld.texts import Thing, choices, read_list, read_room, read_thing

_ARRIVED = re.compile(r"^You (?:move|teleport) to the (.+?)\.$")
_MOVED = re.compile(r"^(?:\(.*\))?You move the (.+?) to the .+\.$")
_MADE = re.compile(r"\bmix to produce (.+?)\.$")
_WHERE = r"(?: (?:in|into|on|to|from|containing|at) .*)?"
_SWITCHED = re.compile(r"^The (.+?) is now (open|activated)\.")
_POURED = re.compile(r"^(?:\(.*\))?You pour the (?:contents of the )?(.+?) (?:in|into|on|to) the ")
_DONE = re.compile(rf"^(use|mix|connect) (?:the )?(.+?){_WHERE}$")
_PART = re.compile(r" (?:anode|cathode|terminal(?: \d)?)$|^(?:anode|cathode|terminal(?: \d)?) (?:in|on) ")
_NOTE = re.compile(r"\s*\([^()]*\)")


class LabMatcher:
    """Implements `CheckpointMatcher`.

    location    the answer is the room's description, or says that the agent moved there
    object      the answer describes the thing, and the action did not name it: "examine X" echoes X
    affordance  the command was carried out; a change shows in the name or the state of a described thing

    A number that picks one of the listed choices counts as the command it stands for.
    """

    def __init__(self) -> None:
        self._choices: list[str] = []

    def observe(self, action: str | None, step: Step) -> set[Checkpoint]:
        """See `CheckpointMatcher`."""
        command = " ".join((action or "").lower().split())
        if command.isdecimal() and int(command) < len(self._choices):
            command = _NOTE.sub("", self._choices[int(command)]).lower().strip()
        text = step.observation.strip()
        self._choices = choices(text)
        if action is None or step.error or self._choices:
            return set()
        found = set(self._places(command, text)) | set(self._affordances(command, text))
        for thing in _flat(_described(command, text)):
            named = thing.name.lower().rstrip(".")
            found.add(Checkpoint("affordance", f"become {named}"))
            if {"on", "activated"} & set(thing.states):
                found.add(Checkpoint("affordance", f"run {named}"))
            if not re.search(rf"\b{re.escape(named)}\b", command):
                found |= {Checkpoint("object", kind) for kind in kinds_of(thing.name)}
        return found

    def _places(self, command: str, text: str) -> Iterator[Checkpoint]:
        if room := read_room(text):
            yield Checkpoint("location", room.name)
        elif command.startswith(("go ", "teleport ")) and (match := _ARRIVED.match(text)):
            yield Checkpoint("location", match[1])

    def _affordances(self, command: str, text: str) -> Iterator[Checkpoint]:
        # The answer has the full name where it names the thing; a command may say "cupboard" for the large cupboard.
        if match := _MOVED.match(text):
            if not command.startswith(("go ", "teleport ")):
                yield from (Checkpoint("affordance", f"move {kind}") for kind in kinds_of(match[1]))
        elif match := _SWITCHED.match(text):
            verb = "open" if match[2] == "open" else "activate"
            yield from (Checkpoint("affordance", f"{verb} {kind}") for kind in kinds_of(match[1]))
        elif match := _POURED.match(text):
            yield from (Checkpoint("affordance", f"pour {kind}") for kind in kinds_of(match[1]))
        elif match := _DONE.match(command):
            verb, target = match[1], match[2]
            targets = [target, command[len(verb) + 1 :].rpartition(" to ")[2]] if verb == "connect" else [target]
            for name in targets:
                yield from (Checkpoint("affordance", f"{verb} {kind}") for kind in kinds_of(_PART.sub("", name)))


def _described(command: str, text: str) -> list[Thing]:
    """The things that an answer describes, outermost only."""
    if room := read_room(text):
        return [thing for thing in room.things if thing.name != "air"]
    if text.startswith(("Inside the ", "In your inventory")):
        return read_list(text)
    if command.startswith(("look at ", "examine ")):
        return [read_thing(text)]
    if made := _MADE.search(text):
        return [Thing(made[1])]
    return []


def _flat(things: Iterable[Thing]) -> Iterator[Thing]:
    for thing in things:
        yield thing
        yield from _flat(thing.contents)
