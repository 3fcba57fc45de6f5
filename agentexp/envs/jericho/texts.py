"""Reading the sentences of an Inform story: room descriptions, lists of things, what was opened, found or carried."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from agentexp.envs.jericho.scene import DIRECTIONS

_ROOM = re.compile(
    r"(?:\A|\n)(?P<name>[A-Z][^\n.!?]{0,48})\n(?P<text>[^\n]+(?:\n[^\n]+)*)"
    r"(?:\n\n+You can (?:also )?see (?P<things>[^\n]+?) here\.)?"
    r"(?:\n\n+Exits: (?P<exits>[^\n]+)\.)?\s*\Z"
)
_EXIT = re.compile(r"(?P<way>[a-z]+)(?: \(the (?P<door>[^,()]+)(?P<shut>, closed)?\))?")
_INSIDE = re.compile(r"^(?P<how>in|on|In|On) (?:which|the (?P<holder>[a-z' -]+?)) (?:is|are) (?P<what>.+)$")
_STATES = re.compile(r"\b(closed|open|locked|empty|providing light|worn)\b")
_ARTICLE = re.compile(r"^(?:an?|the|some|your) ", re.IGNORECASE)
_OPENED = re.compile(r"^You open the (?P<name>.+?)(?:, revealing (?P<what>.+))?\.$", re.MULTILINE)
_FOUND = re.compile(r"^(?P<how>In|On) the (?P<holder>.+?) (?:is|are) (?P<what>.+)\.$", re.MULTILINE)
_NOTHING = re.compile(r"^(?:The (?P<one>.+?) is empty|There is nothing on the (?P<two>.+?))\.$", re.MULTILINE)
_CARRYING = re.compile(r"^You(?:'re| are) carrying(?: nothing\.|:\n(?P<list>(?: +.+\n?)+))", re.MULTILINE)
SHORT = {"n": "north", "s": "south", "e": "east", "w": "west", "u": "up", "d": "down", "ne": "northeast", "nw": "northwest",
         "se": "southeast", "sw": "southwest"}  # fmt: skip


@dataclass(slots=True)
class Thing:
    """A thing in a list: name without article, states ("closed", "empty" ...), and what is seen in or on it."""

    name: str
    states: list[str] = field(default_factory=list)
    relation: str = "in"
    contents: list[Thing] = field(default_factory=list)


@dataclass(slots=True)
class Door:
    """A way out: the door in it ("" for none) and whether that is closed."""

    door: str = ""
    closed: bool = False


@dataclass(slots=True)
class Room:
    """One room description. `exits` is None where the story does not list them."""

    name: str
    text: str
    things: list[Thing]
    exits: dict[str, Door] | None


def direction(action: str) -> str:
    """The direction of a move in its long form; "" for any other command."""
    words = re.sub(r"^(?:go|walk|run) (?:to (?:the )?)?", "", " ".join(action.lower().split()))
    word = SHORT.get(words, words)
    return word if word in DIRECTIONS else ""


def read_room(text: str, place: str = "") -> Room | None:
    """The room description at the end of a text; None if there is none.

    Args:
        text: the answer.
        place: the room's name where it is known; then a description need not list exits.
    """
    match = _ROOM.search(text.strip("\n"))
    if match is None or not (match["exits"] or (place and match["name"].strip() == place)):
        return None
    exits = None
    if match["exits"]:
        found = (part for part in _EXIT.finditer(match["exits"]) if part["way"] in DIRECTIONS)
        exits = {part["way"]: Door(part["door"] or "", bool(part["shut"])) for part in found}
    return Room(match["name"].strip(), match["text"], read_list(match["things"] or ""), exits)


def read_list(text: str) -> list[Thing]:
    """The things of "a pot (in which is a key), a rake and a lamp"."""
    return [_thing(part) for part in _split(text) if part.strip() and part.strip() not in ("nothing", "here")]


def read_contents(text: str) -> list[tuple[str, str, list[Thing]]]:
    """(holder, "in" or "on", things) for each sentence that tells what a thing holds."""
    found = [(m["name"], "in", read_list(m["what"])) for m in _OPENED.finditer(text) if m["what"]]
    found += [(m["holder"], m["how"].lower(), read_list(m["what"])) for m in _FOUND.finditer(text)]
    found += [(m["one"] or m["two"], "in" if m["one"] else "on", []) for m in _NOTHING.finditer(text)]
    return found


def read_inventory(text: str) -> list[Thing] | None:
    """What is carried; None if the text is no inventory."""
    match = _CARRYING.search(text)
    if match is None:
        return None
    lines = (match["list"] or "").splitlines()
    return [_thing(line) for line in lines if line.startswith("  ") and not line.startswith("    ")]


def plain(name: str) -> str:
    """A name without article."""
    return _ARTICLE.sub("", " ".join(name.split()))


def _thing(text: str) -> Thing:
    name, _, rest = text.strip().partition(" (")
    thing = Thing(plain(name))
    for note in rest.removesuffix(")").split(") ("):
        if inside := _INSIDE.match(note):
            thing.relation, thing.contents = inside["how"].lower(), read_list(inside["what"])
        else:
            thing.states += _STATES.findall(note)
    return thing


def _split(text: str) -> list[str]:
    """Split at commas and "and" outside parentheses."""
    parts, depth, start, at = [], 0, 0, 0
    while at < len(text):
        depth += (text[at] == "(") - (text[at] == ")")
        step = next((mark for mark in (", and ", ", ", " and ") if depth == 0 and text.startswith(mark, at)), "")
        if step:
            parts.append(text[start:at])
            start = at = at + len(step)
        else:
            at += 1
    return [*parts, text[start:]]
