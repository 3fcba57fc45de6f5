"""One name for a kind of thing, from the object tree's names and from the printed ones.

The engine prints most things by the tree's name. The exceptions: numbers of equal things, stages of life ("baby wolf", "turtle
egg", "dead lemon tree"), traits of seeds and surfaces, and four fixed pairs.
"""

from __future__ import annotations

import re

_PRINTED = {"white pillow": "pillow", "red apple": "apple", "common toad": "frog", "moth": "butterfly"}
_STAGE = re.compile(
    r"^(?:dead )?(?:adult|baby|juvenile|hatchling|newborn) (.+)$|^(?:dead )?(.+) (?:egg|pupa|caterpillar|tadpole|larva)$"
)
_GROWTH = re.compile(r"^(?:dead )?(.+?) (?:seed|seedling|sapling|tree|plant)$")


def canonical(name: str) -> str:
    """The kind of a thing: "bee 4" and "adult bee" are "bee", "flower pot 3" is "flower pot"."""
    name = re.sub(r"\s+\d+$", "", name.strip().rstrip(".").lower())
    name = "inclined plane" if name.startswith("inclined plane") else name
    if stage := _STAGE.match(name):
        name = stage[1] or stage[2]
    return _PRINTED.get(name, name)


def kinds_of(printed: str) -> set[str]:
    """The kinds that a printed name proves. Plants are found under the name of their species in front of any trait:
    "round green pea seed" proves "pea plant", "lemon tree" proves "lemon plant".
    """
    name = canonical(printed)
    found = {name}
    if growth := _GROWTH.match(name):
        words = growth[1].split()
        found |= {f"{' '.join(words[i:])} plant" for i in range(len(words))}
    return found
