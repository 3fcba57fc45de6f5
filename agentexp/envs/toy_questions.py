"""Questions about a ToyRooms instance, the rules reader, and the check of its maps (Map QA; MAP, appendix C.3)."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence

from agentexp.capabilities import Alignment, Question
from agentexp.core import CognitiveMap
from agentexp.envs.map_index import UNKNOWN, MapIndex, affordance, word

CARRIED, REFUSED = "you carry it", "it is refused"
YES_NO, WAYS = ("yes", "no"), ("east", "west")


def questions(rooms: Sequence[str], where: Mapping[str, str], goal: tuple[str, str], task: str, seed: int) -> list[Question]:
    """All questions, in an order drawn from `seed`.

    Args:
        rooms: from west to east.
        where: room of each thing.
        goal: wanted thing, and the room to bring it to or "".
        task: the goal's text.
        seed: of the order.
    """
    found = [*_things(rooms, where), *_errands(rooms, where, goal, task)]
    random.Random(seed).shuffle(found)
    return found


def _things(rooms: Sequence[str], where: Mapping[str, str]) -> Iterator[Question]:
    for thing, there in sorted(where.items()):
        seen = (rf"You are in the {there}\. You see [^.]*\ba {thing}\b",)
        yield Question("object_location", f"Where is the {thing}?", (there,), (), tuple(rooms), thing, seen, ("where", thing))
        yield Question(
            "affordance",
            f"What happens if you take the {thing} with free hands?",
            (CARRIED,),
            (CARRIED, REFUSED),
            (),
            thing,
            (rf"^You take the {thing}\.$",),
            ("take", thing),
        )
        for room in rooms:
            yield Question(
                "negative",
                f"Is there a {thing} in the {room}?",
                ("yes" if room == there else "no",),
                YES_NO,
                (),
                room,
                seen if room == there else (rf"You are in the {room}\. You see ",),
                ("inside", thing, room),
            )


def _errands(rooms: Sequence[str], where: Mapping[str, str], goal: tuple[str, str], task: str) -> Iterator[Question]:
    thing, target = goal
    there = where[thing]
    seen = rf"You are in the {there}\. You see [^.]*\ba {thing}\b"
    ask = f"The task is: {task} In which room must something be taken?"
    yield Question(
        "task_reasoning", ask, (there,), (), tuple(r for r in rooms if r != target), thing, (seen,), ("where", thing)
    )
    if target:
        ask = f"The task is: {task} Which way must it be carried after it was taken?"
        way = WAYS[rooms.index(target) < rooms.index(there)]
        between = rooms[min(rooms.index(target), rooms.index(there)) : max(rooms.index(target), rooms.index(there)) + 1]
        walked = tuple(rf"You are in the {room}\." for room in between)
        yield Question("task_reasoning", ask, (way,), WAYS, (), thing, (seen, *walked), ("way", thing, target))


def look_up(question: Question, known: CognitiveMap) -> str:
    """The answer that a map gives, or "unknown"; a room that was seen holds what the map lists and nothing else."""
    index = MapIndex(known)
    kind, thing, *rest = question.query
    there = next(iter(index.where.get(thing, ())), UNKNOWN)
    if kind == "where":
        return there
    if kind == "take":
        works = next((a.works for a in index.affordances if a.action == "take" and a.target == thing), None)
        return UNKNOWN if works is None else CARRIED if works else REFUSED
    if kind == "inside":
        return "yes" if there == rest[0] else "no" if index.seen_inside(rest[0]) else UNKNOWN
    east_of = dict(index.connects)
    for way, start, end in (("east", there, rest[0]), ("west", rest[0], there)):
        for _ in range(len(east_of)):
            start = east_of.get(start, "")
            if start == end:
                return way
    return UNKNOWN


def align(rooms: Sequence[str], where: Mapping[str, str], known: CognitiveMap) -> Alignment:
    """Judge a map; coverage counts rooms.

    Args:
        rooms: from west to east.
        where: room of each thing.
        known: the map.
    """
    verdicts: dict[tuple[str, int], bool | None] = {}
    for i, entry in enumerate(known.spatial):
        thing, relation, place = (word(entry.get(key)) for key in ("thing", "relation", "place"))
        if relation == "connects":
            verdicts["spatial", i] = {thing, place} <= set(rooms) and abs(rooms.index(thing) - rooms.index(place)) == 1
        elif relation in ("in", "on", "at"):
            verdicts["spatial", i] = where.get(thing) == place
        else:
            verdicts["spatial", i] = where.get(place) == thing if relation == "contains" else None
    for i, entry in enumerate(known.absent):
        place, what = word(entry.get("place")), word(entry.get("what"))
        inside = [thing for thing, room in where.items() if room == place]
        verdicts["absent", i] = place in rooms and (what not in inside if what not in ("anything", "") else not inside)
    for i, entry in enumerate(known.affordances):
        said = affordance(entry)
        handled = re.fullmatch(r"take|drop", said.action) is not None
        verdicts["affordances", i] = ((said.target in where) is said.works) if handled else None
    index = MapIndex(known)
    return Alignment(
        right=sum(verdict is True for verdict in verdicts.values()),
        wrong=tuple(key for key, verdict in verdicts.items() if verdict is False),
        unjudged=sum(verdict is None for verdict in verdicts.values()),
        found=sum(index.seen_inside(room) for room in rooms),
        places=len(rooms),
    )
