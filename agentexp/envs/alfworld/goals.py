"""The six task types and their wordings, shared by games, oracle, facts and policies."""

from __future__ import annotations

import re
from dataclasses import dataclass

KINDS = (
    "pick_and_place_simple",
    "look_at_obj_in_light",
    "pick_clean_then_place_in_recep",
    "pick_heat_then_place_in_recep",
    "pick_cool_then_place_in_recep",
    "pick_two_obj_and_place",
)
"""Task types, in the numbering of ALFWorld (1-6)."""

SHORT = {"pick": KINDS[0], "light": KINDS[1], "clean": KINDS[2], "heat": KINDS[3], "cool": KINDS[4], "two": KINDS[5]}
"""Short names of the task types, as in tables."""

_WORD = r"([a-z]+)"
_FORMS = (
    ("pick_two_obj_and_place", rf"(?:put|find) two {_WORD} (?:and put them )?in {_WORD}"),
    ("pick_clean_then_place_in_recep", rf"(?:put a clean|clean some) {_WORD} (?:and put it )?in {_WORD}"),
    ("pick_heat_then_place_in_recep", rf"(?:put a hot|heat some) {_WORD} (?:and put it )?in {_WORD}"),
    ("pick_cool_then_place_in_recep", rf"(?:put a cool|cool some) {_WORD} (?:and put it )?in {_WORD}"),
    ("look_at_obj_in_light", rf"(?:look at|examine the) {_WORD} (?:under|with) the {_WORD}"),
    ("pick_and_place_simple", rf"put (?:a|some) {_WORD} (?:in|on) {_WORD}"),
)
_TREATMENT = {
    "pick_clean_then_place_in_recep": ("clean", "sinkbasin"),
    "pick_heat_then_place_in_recep": ("heat", "microwave"),
    "pick_cool_then_place_in_recep": ("cool", "fridge"),
}


@dataclass(frozen=True, slots=True)
class Goal:
    """What a task asks for, in the type words of the game ("soapbar", "sinkbasin").

    Attributes:
        kind: one of `KINDS`.
        thing: type of the object that is wanted.
        place: type of the receptacle it goes to; empty for look_at_obj_in_light.
        lamp: type of the lamp; empty otherwise.
    """

    kind: str
    thing: str
    place: str = ""
    lamp: str = ""

    @property
    def count(self) -> int:
        """How many things of the type are needed."""
        return 2 if self.kind == "pick_two_obj_and_place" else 1

    @property
    def treatment(self) -> str:
        """The verb clean, heat or cool; empty if none is needed."""
        return _TREATMENT.get(self.kind, ("", ""))[0]

    @property
    def appliance(self) -> str:
        """Type of the receptacle that does the treatment; empty if none is needed."""
        return _TREATMENT.get(self.kind, ("", ""))[1]


def parse_goal(text: str) -> Goal | None:
    """Read "put a hot mug in coffeemachine" and the like; None for any other wording (human annotations, empty)."""
    cleaned = re.sub(r"\s+", " ", text).strip().strip(".").lower()
    cleaned = re.sub(r"^your task is to: ?", "", cleaned)
    for kind, form in _FORMS:
        match = re.fullmatch(form, cleaned)
        if match:
            thing, other = match.groups()
            return Goal(kind, thing, lamp=other) if kind == "look_at_obj_in_light" else Goal(kind, thing, place=other)
    return None
