"""Questions about a game of ours, with answers from its object tree at reset (Map QA; MAP, appendix C.3).

object_location  In which room is the rusty key? Also of what is hidden.
affordance       What happens if you open the kitchen cupboard? It opens, is locked, or is refused.
negative         Is there a mixing bowl in the pantry? Only of what stands in the open and cannot be carried away.
task_reasoning   Which room holds the thing that the task names?

Not asked is what opening does to things with rules of their own (a case with an alarm).
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

from agentexp.capabilities import Category, Question
from agentexp.core import CognitiveMap
from agentexp.envs.jericho.scene import Scene
from agentexp.envs.map_index import UNKNOWN, MapIndex

YES_NO = ("yes", "no")
OPENING = OPENS, LOCKED, REFUSED = ("it opens", "it is locked", "it is refused")
PER_ROOM = 3  # questions with yes, and with no, about each room


def questions(scene: Scene, goal: str, seed: int) -> list[Question]:
    """All questions, in an order drawn from `seed`.

    Args:
        scene: the world at reset.
        goal: the task.
        seed: of what is asked about each room, and of the order.
    """
    rng, game = random.Random(seed), _Game(scene)
    found = [*game.locations(), *game.opening(), *game.absences(rng), *game.errands(goal)]
    rng.shuffle(found)
    return found


class _Game:
    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        rooms = scene.reachable(scene.here)
        self.rooms = tuple(sorted(scene.name(room) for room in rooms))
        self.placed = {
            t: scene.name(scene.room_of(t)) for t in scene.things if scene.room_of(t) in rooms and not scene.holds(t)
        }

    def locations(self) -> Iterator[Question]:
        for thing in self.placed:
            yield self._where("object_location", thing, f"In which room is the {self.scene.name(thing)}?")

    def errands(self, goal: str) -> Iterator[Question]:
        for thing in self.placed:
            name = self.scene.name(thing)
            if re.search(rf"\b{re.escape(name)}\b", goal):
                yield self._where("task_reasoning", thing, f"The task is: {goal} Which room holds the {name}?")

    def _where(self, category: Category, thing: int, text: str) -> Question:
        name = self.scene.name(thing)
        seen = rf"(?:You can see|revealing|^In the|^On the)[^\n]*\b{re.escape(name)}\b"
        return Question(category, text, (self.placed[thing],), (), self.rooms, name, (seen,), ("where", name))

    def opening(self) -> Iterator[Question]:
        scene = self.scene
        for thing in (*self.placed, *scene.doors):
            if scene.has_rules(thing) or scene.has(thing, "open") or scene.has(thing, "animate"):
                continue
            name = scene.name(thing)
            the = re.escape(name)
            if not scene.has(thing, "openable"):
                answer, told = REFUSED, rf"^> open (?:the )?{the}\n[^\n]* not something you can open"
            elif scene.has(thing, "locked"):
                answer, told = LOCKED, rf"The {the} seems? to be locked"
            else:
                answer, told = OPENS, rf"^You open the {the}"
            text = f"What happens if you open the {name}, without doing anything else before?"
            yield Question("affordance", text, (answer,), OPENING, (), name, (told,), ("open", name))

    def absences(self, rng: random.Random) -> Iterator[Question]:
        scene = self.scene
        fixed = {t: room for t, room in self.placed.items() if scene.has(t, "static") and scene.holder(t) in scene.rooms}
        for room in self.rooms:
            for answer in YES_NO:
                names = sorted(scene.name(t) for t, place in fixed.items() if (place == room) is (answer == "yes"))
                for name in rng.sample(names, min(PER_ROOM, len(names))):
                    text = f"Is there {'an' if name[0] in 'aeiou' else 'a'} {name} in the {room}?"
                    seen = rf"(?:^|\n){re.escape(room)}\n[^\n]+"
                    yield Question("negative", text, (answer,), YES_NO, (), room, (seen,), ("inside", name, room, *self.rooms))


# --------------------------------------------------------------------------------------------------------- the rules reader


def look_up(question: Question, known: CognitiveMap) -> str:
    """The answer that a map gives, or "unknown"; a room that was looked at holds what the map lists and nothing else."""
    verb, name, *about = question.query
    index = MapIndex(known)
    if verb == "open":
        return _opening(index, name)
    if verb == "where":
        return next(iter(_rooms_of(index, name, {room.lower() for room in question.names})), UNKNOWN)
    room, *rooms = (text.lower() for text in about)
    if room in _rooms_of(index, name, set(rooms)):
        return "yes"
    seen = index.seen_inside(room) or any(a.target == room and a.action.startswith("go ") for a in index.affordances)
    return "no" if seen else UNKNOWN


def _opening(index: MapIndex, name: str) -> str:
    if "locked" in index.states.get(name, ()):
        return LOCKED
    done = next((a.works for a in index.affordances if a.action == f"open {name}"), None)
    return UNKNOWN if done is None else OPENS if done else REFUSED


def _rooms_of(index: MapIndex, name: str, rooms: set[str]) -> list[str]:
    """Rooms at the end of what is in what."""
    front, found = [name], dict[str, None]()
    for thing in front:  # grows while it is walked
        for place in index.where.get(thing, ()):
            if place in rooms:
                found[place] = None
            elif place not in front:
                front.append(place)
    return list(found)
