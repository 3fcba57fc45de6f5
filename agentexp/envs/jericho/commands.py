"""Reading a player's command: its verb in one form, and what it is about."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from agentexp.envs.jericho.texts import direction, plain

_VERBS = (
    ("examine", r"(?:x|examine|check|describe|watch|read|search|look (?:at|in|inside|into|on|under))"),
    ("look through", r"look through"),
    ("take", r"(?:take|get|pick up|carry|hold|remove)"),
    ("drop", r"(?:drop|discard|put down)"),
    ("open", r"(?:open|uncover|unwrap)"),
    ("close", r"(?:close|shut|cover)"),
    ("unlock", r"unlock"),
    ("lock", r"lock"),
    ("switch on", r"(?:switch on|turn on)"),
    ("switch off", r"(?:switch off|turn off)"),
    ("put", r"(?:put|insert|place)"),
    ("pour", r"(?:pour|fill)"),
    ("give", r"(?:give|offer|hand|show|feed|pay)"),
    ("talk to", r"(?:talk (?:to|with)|talk|chat (?:to|with)|ask)"),
    ("light", r"(?:light|burn)"),
    ("push", r"(?:push|press|move|shift)"),
    ("pull", r"(?:pull|drag)"),
    ("turn", r"(?:turn|rotate|twist)"),
    ("set", r"(?:set|adjust)"),
    ("wind", r"(?:wind|crank)"),
    ("ring", r"(?:ring|sound)"),
    ("mix", r"(?:mix|stir|knead)"),
    ("tie", r"(?:tie|attach|connect|fasten|fix|hook)"),
    ("cut", r"(?:cut|chop|prune|slice)"),
    ("dig", r"dig"),
    ("enter", r"(?:enter|board|climb into|get in|get into)"),
    ("eat", r"eat"),
)
_PATTERNS = tuple((name, re.compile(rf"^{words} +(.+)$")) for name, words in _VERBS)
_BETWEEN = re.compile(r" (?:with|in|into|inside|on|onto|to|from|about|at) ")
NO_AFFORDANCE = ("", "go", "examine", "drop", "close", "lock")  # moves, looking, and what only undoes something else
_TARGETED = ("put", "pour", "give", "tie")  # what these are about is the second thing


class Command(NamedTuple):
    """A command.

    Attributes:
        verb: "take", "put" ...; "go" for a move; "" if not known.
        thing: what it is about; the direction of a move.
        other: the second thing, for example the tool.
    """

    verb: str
    thing: str
    other: str = ""


def read(action: str) -> Command:
    """Read a command. "put lamp on shelf" and "give lamp to guard" are about the shelf and the guard."""
    if way := direction(action):
        return Command("go", way)
    words = " ".join(action.lower().split()).rstrip(".")
    swapped = re.sub(r"^(switch|turn) (.+) (on|off)$", r"\1 \3 \2", words)
    for verb, pattern in _PATTERNS:
        if match := pattern.match(swapped):
            one, *rest = _BETWEEN.split(match[1], maxsplit=1)
            other = plain(rest[0]) if rest else ""
            if verb in _TARGETED and other:
                return Command(verb, other, plain(one))
            return Command(verb, plain(one), other)
    return Command("", words)


def resolve(words: str, names: Iterable[str]) -> str:
    """The one name that holds all of the words ("key" for "rusty key"); the words as they are if none or several do."""
    if words in (known := list(names)):
        return words
    wanted = set(words.split())
    fitting = [name for name in dict.fromkeys(known) if wanted and wanted <= set(name.split())]
    return fitting[0] if len(fitting) == 1 else words
