"""Questions about a ScienceWorld instance, with answers from its object tree at reset (Map QA; MAP, appendix C.3).

object_location  In which room is the thermometer? Any room that has one.
affordance       What happens if you activate the sink? If you open the cupboard?
negative         Is there a thermometer in the kitchen? Also in what stands there.
task_reasoning   Which room holds the thing that the task names?

Asked are things that stay what and where they are: nothing alive, and no substance save what the task names.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator

from agentexp.capabilities import Category, Question
from agentexp.core import CognitiveMap
from agentexp.envs.map_index import UNKNOWN, MapIndex
from agentexp.envs.scienceworld.inventory import CHANGING, Item, Stock
from agentexp.envs.scienceworld.names import canonical, kinds_of

YES_NO = ("yes", "no")
OPENING = OPENS, REFUSED = ("it opens", "it is refused")
SWITCHING = SWITCHED, _ = ("it is switched on", REFUSED)
PER_ROOM = 4  # questions with yes, and with no, about each room
_PLACED = re.compile(r"^.+ in (?:the )?(.+)$")  # a holder by its room: "table in workshop"
_PARTS = re.compile(r"^(?:inclined plane|drawer)$")  # of one printed name there are too many


def questions(stock: Stock, goal: str, seed: int) -> list[Question]:
    """All questions, in an order drawn from `seed`.

    Args:
        stock: what stands where at reset.
        goal: the task description.
        seed: of what is asked about each room, and of the order.
    """
    lab, rng = _Lab(stock), random.Random(seed)
    found = [*lab.locations(), *lab.actions(), *lab.absences(rng), *lab.errands(goal)]
    rng.shuffle(found)
    return found


class _Lab:
    def __init__(self, stock: Stock) -> None:
        self.stock = stock
        self.items: dict[str, list[Item]] = {}
        for item in stock.items:
            self.items.setdefault(item.name, []).append(item)
        self.asked = sorted(name for name, items in self.items.items() if not any(map(_restless, items)))

    def locations(self) -> Iterator[Question]:
        for name in self.asked:
            yield self._where("object_location", name, f"In which room is the {name}? If in several, name one.")

    def errands(self, goal: str) -> Iterator[Question]:
        """Things that the goal names; a room that it names is not told by it to hold them."""
        words = goal.lower()
        for name in sorted(self.items, key=lambda name: (-len(name), name)):
            words, named = re.subn(rf"\b{re.escape(name)}\b", "", words)  # the "orange box" is no orange
            if named and name not in CHANGING and not self.items[name][0].alive:
                text = f"The task is: {goal} Which room holds the {name}? If several, name one."
                yield self._where("task_reasoning", name, text)

    def _where(self, category: Category, name: str, text: str) -> Question:
        rooms = sorted({item.room for item in self.items[name]})
        return Question(
            category,
            text,
            tuple(rooms),
            names=self.stock.rooms,
            entity=name,
            evidence=("|".join(_seen(room, name) for room in rooms),),
            query=("where", name),
        )

    def actions(self) -> Iterator[Question]:
        """One answer must hold for all things of the name; what is open or running already is not asked about."""
        for name in self.asked:
            items, the = self.items[name], re.escape(name)
            if not any(item.opens and item.opened for item in items):
                for opens in _agreed(item.opens for item in items):
                    told = rf"^The {the} is now open\." if opens else rf"^The {the} is not openable\."
                    yield self._action(name, "open", OPENS if opens else REFUSED, OPENING, told)
            if not any(item.running for item in items):
                for works in _agreed(item.switches for item in items):
                    refusals = rf"^The {the} is not something that can be activated\.|^The {the} appears broken, and"
                    told = rf"^The {the} is now activated\." if works else refusals
                    yield self._action(name, "activate", SWITCHED if works else REFUSED, SWITCHING, told)

    def _action(self, name: str, verb: str, answer: str, choices: tuple[str, ...], evidence: str) -> Question:
        text = f"What happens if you {verb} the {name}?"
        return Question("affordance", text, (answer,), choices, (), name, (evidence,), (verb, name))

    def absences(self, rng: random.Random) -> Iterator[Question]:
        for room in self.stock.rooms:
            there = self.stock.inside(room)
            inside = [name for name in self.asked if name in there]
            outside = [name for name in self.asked if name not in there]
            for answer, names in zip(YES_NO, (inside, outside), strict=True):
                for name in rng.sample(names, min(PER_ROOM, len(names))):
                    looked = rf"^This (?:room|outside location) is called the {room}\."
                    yield Question(
                        "negative",
                        f"Is there {_a(name)} in the {room}?",
                        (answer,),
                        YES_NO,
                        (),
                        room,
                        (_seen(room, name) if answer == "yes" else looked,),
                        ("inside", name, room, *self.stock.rooms),
                    )


def _a(name: str) -> str:
    return f"an {name}" if name[0] in "aeiou" else f"a {name}"


def _restless(item: Item) -> bool:
    return item.alive or item.substance or item.name in CHANGING or bool(_PARTS.match(item.name))


def _agreed(values: Iterator[bool]) -> set[bool]:
    """The value that all have; empty if they differ."""
    found = set(values)
    return found if len(found) == 1 else set()


def _seen(room: str, name: str) -> str:
    """A description of the room, as "look around" gives it, with a thing of that name in it."""
    head = rf"This (?:room|outside location) is called the {re.escape(room)}\."
    return rf"^{head}[\s\S]*\b(?:an?|called) {re.escape(name)}(?: \d+)?(?=[,.)\n]| \(|$)"


# --------------------------------------------------------------------------------------------------------- the rules reader


def look_up(question: Question, known: CognitiveMap) -> str:
    """The answer that a map gives, or "unknown"; a room that was looked at holds what the map lists and nothing else."""
    verb, name, *about = question.query
    readers: dict[str, Callable[..., str]] = {"where": _where, "inside": _inside, "open": _works, "activate": _works}
    return readers[verb](MapIndex(known), verb, name, about or list(question.names))


def _where(index: MapIndex, verb: str, name: str, rooms: list[str]) -> str:
    return next(iter(_rooms_of(index, name, set(rooms))), UNKNOWN)


def _inside(index: MapIndex, verb: str, name: str, about: list[str]) -> str:
    room, *rooms = about
    if room in _rooms_of(index, name, set(rooms)):
        return "yes"
    return "no" if index.seen_inside(room) or (name, room) in index.missing else UNKNOWN


def _works(index: MapIndex, verb: str, name: str, about: list[str]) -> str:
    done = next((a.works for a in index.affordances if a.action in (f"{verb} {name}", verb) and a.target == name), None)
    return UNKNOWN if done is None else REFUSED if not done else OPENS if verb == "open" else SWITCHED


def _rooms_of(index: MapIndex, name: str, rooms: set[str]) -> list[str]:
    """Rooms at the end of what stands in what, direct ones first; a holder that stands in several leads to all of them."""
    front = [thing for thing in index.where if name in kinds_of(thing) or canonical(thing) == name]
    found: dict[str, None] = {}
    for thing in front:  # grows while it is walked
        for place in index.where.get(thing, ()):
            if place in rooms:
                found[place] = None
            elif (placed := _PLACED.match(place)) and placed[1] in rooms:
                found[placed[1]] = None
            elif place not in front:
                front.append(place)
    return list(found)
