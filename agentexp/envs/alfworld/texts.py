"""Reading what the game writes and what agents type. Works for both logics."""

from __future__ import annotations

import re
from dataclasses import dataclass

NOTHING = "Nothing happens."

_NAME = r"[a-z]+ \d+"
_START = re.compile(r"looking quickly around you, you see (.*?)\.", re.IGNORECASE | re.DOTALL)
_CLOSED = re.compile(rf"the ({_NAME}) is closed\.", re.IGNORECASE)
_OPEN = re.compile(rf"the ({_NAME}) is open\. in it, you see (.*?)\.", re.IGNORECASE | re.DOTALL)
_ON = re.compile(rf"on the ({_NAME}), you see (.*?)\.", re.IGNORECASE | re.DOTALL)
_CARRYING = re.compile(rf"you are carrying: a ({_NAME})\.", re.IGNORECASE)
_ENTITY = re.compile(rf"\b{_NAME}\b")
_LIST = re.compile(r"(?:\ba )?<e>(?:,? (?:and )?(?:a )?<e>)*")
_ACTIONS = (
    (re.compile(rf"(go to|open|close) ({_NAME})"), ("verb", "place")),
    (re.compile(rf"(examine) ({_NAME})"), ("verb", "thing")),
    (re.compile(rf"(use) ({_NAME})"), ("verb", "thing")),
    (re.compile(rf"(take) ({_NAME}) from ({_NAME})"), ("verb", "thing", "place")),
    (re.compile(rf"(move) ({_NAME}) to ({_NAME})"), ("verb", "thing", "place")),
    (re.compile(rf"(put) ({_NAME}) in/on ({_NAME})"), ("verb", "thing", "place")),
    (re.compile(rf"(heat|cool|clean|slice) ({_NAME}) with ({_NAME})"), ("verb", "thing", "place")),
    (re.compile(r"(look|inventory|help)"), ("verb",)),
)


@dataclass(frozen=True, slots=True)
class Command:
    """An action of the game's grammar; `place` and `thing` are names like "fridge 1", empty where there is none."""

    verb: str
    thing: str = ""
    place: str = ""


@dataclass(frozen=True, slots=True)
class Sight:
    """What a text says of one place: its contents, or that it is closed (contents None)."""

    place: str
    contents: tuple[str, ...] | None
    can_open: bool


def kind(name: str) -> str:
    """Type word of a name: "fridge" of "fridge 1"."""
    return name.rsplit(" ", 1)[0]


def command(action: str) -> Command | None:
    """Read an action; None if it is none of the game's forms."""
    cleaned = action.strip().lower()
    for pattern, parts in _ACTIONS:
        match = pattern.fullmatch(cleaned)
        if match:
            return Command(**dict(zip(parts, match.groups(), strict=True)))
    return None


def places(text: str) -> list[str]:
    """The places that the text at the start lists, in its order."""
    match = _START.search(text)
    return _ENTITY.findall(match.group(1).lower()) if match else []


def sights(text: str) -> list[Sight]:
    """What a text shows of places."""
    found = [Sight(match.group(1).lower(), None, True) for match in _CLOSED.finditer(text)]
    for pattern, can_open in ((_OPEN, True), (_ON, False)):
        for match in pattern.finditer(text):
            contents = tuple(_ENTITY.findall(match.group(2).lower()))
            found.append(Sight(match.group(1).lower(), contents, can_open))
    return found


def carried(text: str) -> str | None:
    """What an inventory text says is carried: a name, empty for nothing, None if the text is no inventory."""
    match = _CARRYING.search(text)
    if match:
        return match.group(1).lower()
    return "" if "you are not carrying anything" in text.lower() else None


def mask(text: str) -> str:
    """Lower case, blanks collapsed, entities and lists of entities as <e>, other digits as <n>."""
    masked = _ENTITY.sub("<e>", " ".join(text.lower().split()))
    return re.sub(r"\d+", "<n>", _LIST.sub("<e>", masked))
