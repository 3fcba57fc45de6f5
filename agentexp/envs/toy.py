"""ToyRooms: a corridor of named rooms with things in them; find a thing, or bring it to another room.

The smallest complete environment: tests, benchmarks and "add an environment" in the manual use it. Every optional capability
is here (oracle, facts, checkpoints, policies), each as plainly as it can be done. Its scripted agents are in `toy_agents.py`,
the checkpoints in `toy_coverage.py`, map questions in `toy_questions.py`.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import Literal

from agentexp.capabilities import Alignment, Checkpoint, CheckpointMatcher, Question
from agentexp.core import CognitiveMap, EnvCard, Fact, Policy, Step, Task
from agentexp.envs import toy_coverage, toy_questions
from agentexp.errors import UserError

COLOURS = ("red", "blue", "green", "white", "black", "grey", "brown", "pink", "amber", "violet")
KINDS = (
    "kitchen",
    "hall",
    "study",
    "cellar",
    "attic",
    "pantry",
    "parlour",
    "workshop",
    "library",
    "stable",
    "chapel",
    "gallery",
)
THINGS = (
    "key",
    "lamp",
    "book",
    "cup",
    "coin",
    "rope",
    "bell",
    "brush",
    "apple",
    "candle",
    "hammer",
    "mirror",
    "basket",
    "flute",
)
SPLITS = ("train", "dev", "test")

CARD = EnvCard(
    intro="You are in a corridor of rooms, one beside the other from west to east. Things lie in the rooms.",
    actions="go east | go west | take {thing} | drop {thing} | look | inventory",
    notes="You can carry one thing at a time.",
    complete_admissible=True,
    refusal="That is not possible.",
    plays_on=True,
)


class ToyRooms:
    """A tiny world in pure Python.

    Args:
        rooms: number of rooms in the corridor, at least 2.
        things: number of things lying about, at least 1.
        n_tasks: instances per split.
        turns: if above 0, every instance needs exactly so many actions: one has to walk from the west end to the east end
            and take a thing there (for benchmarks; `rooms` is then ignored).
    """

    name = "toy"
    card = CARD
    deterministic = True

    def __init__(self, rooms: int = 5, things: int = 4, n_tasks: int = 8, turns: int = 0) -> None:
        most = len(COLOURS) * len(KINDS)
        self._n_rooms = turns or rooms
        if not 2 <= self._n_rooms <= most:
            raise UserError(f"env.rooms (or env.turns) must be from 2 to {most}, not {self._n_rooms}.")
        if not 1 <= things <= len(THINGS):
            raise UserError(f"env.things must be from 1 to {len(THINGS)}, not {things}.")
        self._n_things, self._n_tasks, self._turns = things, n_tasks, turns
        self._goal: tuple[str, str] = ("", "")  # thing, room; no room: taking the thing is enough
        self._task = ""
        self._rooms: list[str] = []
        self._where: dict[str, str] = {}  # thing -> room, or "" in the agent's hands
        self._here = 0

    def splits(self) -> Sequence[str]:
        """See `Env`."""
        return SPLITS

    def tasks(self, split: str) -> list[Task]:
        """See `Env`. Kinds "find" and "bring" take turns."""
        if split not in SPLITS:
            raise UserError(f"env.split={split!r} is unknown; choose from {', '.join(SPLITS)}.")
        kinds = ("find",) if self._turns else ("find", "bring")
        return [Task(f"{split}-{i:03}", self.name, split, kind=kinds[i % len(kinds)]) for i in range(self._n_tasks)]

    def reset(self, task: Task) -> Step:
        """See `Env`."""
        rng = random.Random(task.instance_seed)
        self._rooms = rng.sample([f"{colour} {kind}" for colour in COLOURS for kind in KINDS], self._n_rooms)
        things = rng.sample(THINGS, self._n_things)
        self._here = 0 if self._turns else rng.randrange(self._n_rooms)
        elsewhere = [i for i in range(self._n_rooms) if i != self._here]
        place = elsewhere[-1] if self._turns else rng.choice(elsewhere)
        self._where = {thing: self._rooms[rng.randrange(self._n_rooms)] for thing in things}
        self._where[things[0]] = self._rooms[place]
        target_room = self._rooms[rng.choice([i for i in range(self._n_rooms) if i != place])]
        self._goal = (things[0], target_room if task.kind == "bring" else "")
        goal = f"Find the {things[0]} and take it." if task.kind == "find" else f"Bring the {things[0]} to the {target_room}."
        self._task = goal
        return self._answer(self._look(), goal=goal)

    def step(self, action: str) -> Step:
        """See `Env`."""
        action = action.strip().lower()
        if action not in self._admissible():
            return self._answer("That is not possible.", error=True)
        verb, _, rest = action.partition(" ")
        if verb == "go":
            self._here += 1 if rest == "east" else -1
            return self._answer(self._look())
        if verb == "take":
            self._where[rest] = ""
            return self._answer(f"You take the {rest}.")
        if verb == "drop":
            self._where[rest] = self._rooms[self._here]
            return self._answer(f"You drop the {rest}.")
        held = self._held()
        return self._answer(self._look() if verb == "look" else f"You carry the {held}." if held else "You carry nothing.")

    def close(self) -> None:
        """See `Env`."""

    def versions(self) -> dict[str, str]:
        """See `Env`."""
        return {"toy": "1"}

    # ------------------------------------------------------------------------------------------------------- capabilities

    def oracle(self) -> list[str]:
        """See `HasOracle`."""
        thing, room = self._goal
        if self._solved():
            return []
        plan: list[str] = []
        here, held = self._here, self._held()
        if held != thing:
            plan += [f"drop {held}"] if held else []
            there = self._rooms.index(self._where[thing])
            plan += [*self._walk(here, there), f"take {thing}"]
            here = there
        if room:
            plan += [*self._walk(here, self._rooms.index(room)), f"drop {thing}"]
        return plan

    def checkpoints(self, relevance: str = "task_closure") -> list[Checkpoint]:
        """See `HasCheckpoints`."""
        return toy_coverage.checkpoints(self._rooms, sorted(self._where), self._goal, relevance)

    def checkpoint_matcher(self) -> CheckpointMatcher:
        """See `HasCheckpoints`."""
        return toy_coverage.ToyMatcher()

    def questions(self, seed: int) -> list[Question]:
        """See `HasQuestions`."""
        return toy_questions.questions(self._rooms, self._where, self._goal, self._task, seed)

    def look_up(self, question: Question, known: CognitiveMap) -> str:
        """See `HasQuestions`."""
        return toy_questions.look_up(question, known)

    def align(self, known: CognitiveMap) -> Alignment:
        """See `HasAlignment`."""
        return toy_questions.align(self._rooms, self._where, known)

    def fact_tracker(self) -> ToyTracker:
        """See `HasFacts`."""
        return ToyTracker()

    def policy(self, name: str, seed: int) -> Policy:
        """See `HasPolicies`."""
        from agentexp.envs.toy_agents import POLICIES

        if name not in POLICIES:
            raise UserError(f"env=toy has no policy {name!r}; choose from {', '.join(POLICIES)}.")
        return POLICIES[name](seed)

    # ------------------------------------------------------------------------------------------------------------ inside

    def _walk(self, start: int, end: int) -> list[str]:
        return ["go east"] * (end - start) + ["go west"] * (start - end)

    def _held(self) -> str:
        return next((thing for thing, room in self._where.items() if not room), "")

    def _solved(self) -> bool:
        thing, room = self._goal
        return self._where.get(thing) == room

    def _look(self) -> str:
        room = self._rooms[self._here]
        things = sorted(thing for thing, place in self._where.items() if place == room)
        seen = " and ".join(f"a {thing}" for thing in things) or "nothing"
        doors = [d for d, ok in (("east", self._here < len(self._rooms) - 1), ("west", self._here > 0)) if ok]
        return f"You are in the {room}. You see {seen}. Doors lead {' and '.join(doors)}."

    def _admissible(self) -> tuple[str, ...]:
        if not self._rooms:
            return ()
        held, room = self._held(), self._rooms[self._here]
        moves = [f"go {d}" for d, ok in (("east", self._here < len(self._rooms) - 1), ("west", self._here > 0)) if ok]
        hands = [f"drop {held}"] if held else sorted(f"take {t}" for t, place in self._where.items() if place == room)
        return (*moves, *hands, "look", "inventory")

    def _answer(self, text: str, *, error: bool = False, goal: str = "") -> Step:
        won = self._solved()
        carried = bool(self._rooms) and self._held() == self._goal[0]
        return Step(text, won, won, 1.0 if won else 0.5 if carried else 0.0, error, self._admissible(), goal)


_LOOK = re.compile(r"You are in the (?P<room>.+?)\. You see (?P<things>.+?)\. Doors lead (?P<doors>.+?)\.")


class ToyTracker:
    """Reads ToyRooms' texts.

    Attributes:
        rooms: name of the room at each position; the start is at 0, east counts up.
        position: where the agent is.
        seen: the things in each room as they lay there first.
    """

    def __init__(self) -> None:
        self.rooms: dict[int, str] = {}
        self.position = 0
        self.seen: dict[str, tuple[str, ...]] = {}
        self._facts: dict[tuple[str, tuple[str, ...]], str] = {}

    def observe(self, action: str | None, step: Step) -> list[Fact]:
        """See `FactTracker`."""
        if action in ("go east", "go west") and not step.error:
            self.position += 1 if action == "go east" else -1
        found: list[Fact] = []
        if look := _LOOK.search(step.observation):
            room = self.rooms[self.position] = look["room"]
            things = tuple(re.findall(r"\ba (\w+)", look["things"]))
            moved = {subject[0] for kind, subject in self._facts if kind in ("take", "drop")}
            self.seen.setdefault(room, tuple(thing for thing in things if thing not in moved))
            found += [Fact("door", (room, d), self._beyond(d)) for d in look["doors"].split(" and ")]
            found += [Fact("thing", (thing,), room) for thing in things]
            found.append(Fact("room", (room,), ", ".join(things) or "nothing"))
        verb, _, thing = (action or "").partition(" ")
        if verb in ("take", "drop") and not step.error:
            found += [Fact(verb, (thing,), "works"), Fact("thing", (thing,), "carried" if verb == "take" else self.place())]
        new = [fact for fact in found if self._facts.get(fact[:2]) != fact.value]
        self._facts.update({fact[:2]: fact.value for fact in new})
        return new

    def facts(self) -> list[Fact]:
        """See `FactTracker`."""
        return [Fact(*key, value) for key, value in self._facts.items()]

    def mask(self, observation: str) -> str:
        """See `FactTracker`."""
        text = re.sub(rf"\b(?:{'|'.join(COLOURS)}) (?:{'|'.join(KINDS)})\b", "ROOM", observation)
        return re.sub(r"\ba \w+(?: and a \w+)*", "THINGS", re.sub(r"\bthe \w+(?=\.)", "the THING", text))

    def place(self) -> str:
        """See `FactTracker`."""
        return self.rooms.get(self.position, "")

    def map(self, goal: str) -> CognitiveMap:
        """See `FactTracker`. "connects" pairs are ordered from west to east."""
        facts = self._facts
        lies = [{"thing": t, "relation": "in", "place": room} for room, things in self.seen.items() for t in things]
        order = sorted(self.rooms)
        pairs = [(self.rooms[i], self.rooms[i + 1]) for i in order if i + 1 in self.rooms]
        return CognitiveMap(
            spatial=lies + [{"thing": west, "relation": "connects", "place": east} for west, east in pairs],
            absent=[{"place": room, "what": "anything"} for room, things in self.seen.items() if not things],
            affordances=[
                {
                    "action": kind,
                    "target": subject[0],
                    "works": True,
                    "effect": f"You {kind} the {subject[0]}.",
                    "requires": None,
                }
                for kind, subject in facts
                if kind in ("take", "drop")
            ],
            task_notes=[
                f"The {thing} was seen." for thing in sorted(sum(self.seen.values(), ())) if re.search(rf"\b{thing}\b", goal)
            ],
            unknown=[
                f"the room {s[1]} of the {s[0]}" for (kind, s), value in facts.items() if kind == "door" and value == "unknown"
            ],
        )

    def _beyond(self, direction: Literal["east", "west"] | str) -> str:
        return self.rooms.get(self.position + (1 if direction == "east" else -1), "unknown")
