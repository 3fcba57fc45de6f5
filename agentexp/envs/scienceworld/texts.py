"""Reading ScienceWorld's sentences: errors, open choices, room descriptions and nested lists of things."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

REFUSED = re.compile(
    r"^(no known action|unknown action|ambiguous request|i'm not sure|it'?s not clear|that can't|that is (already|not)|"
    r"that object |that thing doesn't|you can't|you must disconnect|something can't|the door doesn't appear|the paper does not)"
    r"|\b(is already (open|closed|activated|deactivated|on fire)|is not (a container|closeable|currently passable|edible|"
    r"flammable|moveable|open|openable|something that can)|isn't open|is in is not movable|appears broken, and|"
    r"does not appear to be|is empty, so|can't be poured|aren't able to move|does not contain any liquids)",
    re.IGNORECASE,
)
CHOICE = re.compile(r"^\s*(\d+):\t(.+?)\s*$", re.MULTILINE)
ROOM = re.compile(r"^This (?:room|outside location) is called the (.+?)\.")
DOOR = re.compile(r"^A door to the (.+?) \(that is (open|closed)\)")
HEAD_END = re.compile(r" \(containing | titled |, which is |, currently |, with: | \(that |\. | in the \w+ stage|\.?$")
STATE = re.compile(r"\b(?:which is (?:turned )?|door is )(on|off|open|closed|activated|deactivated)\b")


@dataclass(slots=True)
class Thing:
    """A thing as it is described: its name without article, its states, what is in or on it ("nothing" gives an empty list).

    `seen_inside` tells an empty container from one whose inside is not described; `relation` is "in" or "on".
    """

    name: str
    states: list[str] = field(default_factory=list)
    contents: list[Thing] = field(default_factory=list)
    seen_inside: bool = False
    relation: str = "in"


@dataclass(slots=True)
class Room:
    """One look around: the things, and the doors with their state by the room behind them."""

    name: str
    things: list[Thing]
    doors: dict[str, str]


def is_error(text: str) -> bool:
    """The engine refused the command or did not understand it (only short answers: descriptions are never refusals)."""
    first = text.strip().split("\n", 1)[0]
    return bool(REFUSED.search(first)) and not ROOM.match(first)


def choices(text: str) -> list[str]:
    """The numbered commands of an open choice; empty when none is open."""
    return [match[2] for match in CHOICE.finditer(text)] if text.lstrip().startswith("Ambiguous request") else []


def read_room(text: str) -> Room | None:
    """A room description; None for any other text."""
    match = ROOM.match(text.strip())
    if not match:
        return None
    room = Room(match[1], [], {})
    for line in text.split("\n")[1:]:
        line = line.strip()
        if door := DOOR.match(line):
            room.doors[door[1]] = door[2]
        elif line and not line.endswith(("see:", "the agent")):
            room.things.append(read_thing(line))
    return room


def read_list(text: str) -> list[Thing]:
    """The things of an answer with one thing a line ("Inside the bowl is: ...", an inventory)."""
    return [read_thing(line.strip()) for line in text.split("\n")[1:] if line.strip() and line.strip() != "nothing"]


def read_thing(text: str) -> Thing:
    """One description, with everything nested in it."""
    text = re.sub(r"^(an?|the) |^(?=\S)", "", text.strip(), count=1, flags=re.IGNORECASE)
    text = text.removeprefix("substance called ")
    end = HEAD_END.search(text)
    head, rest = (text[: end.start()], text[end.start() :]) if end else (text, "")
    thing = Thing(head.strip())
    inside = re.search(r"^ \(containing (.*)\)", rest) or re.search(r"\b(On|In) the [^:]*: (.*)$", rest, re.DOTALL)
    own = rest[: inside.start()] if inside else rest
    thing.states = [match[1] for match in STATE.finditer(own)]
    if stage := re.search(r" in the (\w+) stage", own):
        thing.states.append(stage[1])
    if inside:
        thing.seen_inside = True
        thing.relation = "on" if inside[1] == "On" else "in"
        listing = inside[inside.lastindex or 1]
        thing.contents = [read_thing(part) for part in _split(listing) if part.strip(" .\n") not in ("", "nothing")]
    return thing


def _split(listing: str) -> list[str]:
    """Split at commas and line ends outside parentheses; ", which is off" belongs to the thing before it."""
    parts, depth, start = [], 0, 0
    for i, char in enumerate(listing):
        depth += (char == "(") - (char == ")")
        if depth == 0 and (char == "\n" or (char == "," and not re.match(r", (which is|currently|with:)", listing[i:]))):
            parts.append(listing[start:i])
            start = i + 1
    return [*parts, listing[start:]]
