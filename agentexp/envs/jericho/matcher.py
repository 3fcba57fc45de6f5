"""What a step of an exploration proves about a story (paper 001, section 3.2)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from agentexp.capabilities import Checkpoint
from agentexp.core import Step
from agentexp.envs.jericho.commands import NO_AFFORDANCE, read, resolve
from agentexp.envs.jericho.texts import Thing, read_contents, read_inventory, read_room

_EACH = re.compile(r"^(?P<name>[a-z][a-z' -]*): (?:Taken|Removed)\.$", re.MULTILINE)


class StoryMatcher:
    """Implements `CheckpointMatcher`.

    location    the room's description was shown
    object      it is listed: in a room, in an exit, in or on something, among what is carried, in what was opened
    affordance  the command was carried out; it names its thing in full, or by words that fit one thing seen so far
    """

    def __init__(self) -> None:
        self._names: set[str] = set()

    def observe(self, action: str | None, step: Step) -> set[Checkpoint]:
        """See `CheckpointMatcher`."""
        if step.error:
            return set()
        found: set[Checkpoint] = set()
        text = step.observation.strip()
        listed = list(_EACH.findall(text))
        if room := read_room(text, str(step.info.get("place", ""))):
            found.add(Checkpoint("location", room.name))
            listed += [*_flat(room.things), *(door.door for door in (room.exits or {}).values() if door.door)]
        for _, _, things in read_contents(text):
            listed += _flat(things)
        listed += _flat(read_inventory(text) or ())
        command = read(action or "")
        if command.verb not in NO_AFFORDANCE:
            targets = _EACH.findall(text) if command.thing == "all" else [resolve(command.thing, self._names)]
            found |= {Checkpoint("affordance", f"{command.verb} {name}") for name in targets}
        self._names |= set(listed)
        return found | {Checkpoint("object", name) for name in listed} if action is not None else set()


def _flat(things: Iterable[Thing]) -> Iterator[str]:
    for thing in things:
        yield thing.name
        yield from _flat(thing.contents)
