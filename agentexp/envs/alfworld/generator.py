"""Households of our own, solvable by construction: the world runs without any download.

A house is a floor plan of the alfworld wheel (its furniture and the things that belong there) filled after the counts of
`priors`, in the same PDDL as the official games, so that the same engine plays it with the same words. Deterministic: a game is
its (generator version, seed, split, index), in every process.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from agentexp.core import stable_seed
from agentexp.envs.alfworld import priors, wheel
from agentexp.envs.alfworld.goals import KINDS
from agentexp.envs.alfworld.problem import FactTuple, Problem

VERSION = 1
"""Goes up when the same seed would give other games."""

# Plans are reserved by their number within a wing, so that every kind of room has unseen houses. 10, 19, 8 and 24 are the
# official unseen plans of kitchens, living rooms, bedrooms and bathrooms.
RESERVED = {"test": frozenset({8, 10, 19, 24}), "dev": frozenset({3, 14, 27})}
SPLITS = ("train", "dev", "test")

_WINGS = {
    "pick_and_place_simple": (0, 2, 3, 4),
    "look_at_obj_in_light": (2, 3),
    "pick_clean_then_place_in_recep": (0, 4),
    "pick_heat_then_place_in_recep": (0,),
    "pick_cool_then_place_in_recep": (0,),
    "pick_two_obj_and_place": (0, 2, 3, 4),
}
_APPLIANCE = {
    "pick_clean_then_place_in_recep": ("SinkBasin", "Cleanable"),
    "pick_heat_then_place_in_recep": ("Microwave", "Heatable"),
    "pick_cool_then_place_in_recep": ("Fridge", "Coolable"),
}
# Furniture that the plans list without naming instances: (type, wings, fewest, most).
_UNNAMED: tuple[tuple[str, tuple[int, ...], int, int], ...] = (
    ("StoveBurner", (0,), 4, 4),
    ("Toaster", (0,), 1, 1),
    ("CoffeeMachine", (0,), 1, 1),
    ("GarbageCan", (0, 2, 3, 4), 1, 1),
    ("ToiletPaperHanger", (4,), 1, 1),
    ("TowelHolder", (4,), 1, 2),
    ("HandTowelHolder", (4,), 1, 2),
    ("Toilet", (4,), 1, 1),
    ("LaundryHamper", (3,), 1, 1),
)
# Cupboards and drawers without a door that opens: (type, wings, fewest, most).
_DOORLESS: tuple[tuple[str, tuple[int, ...], int, int], ...] = (("Cabinet", (0,), 1, 5), ("Drawer", (0, 3), 0, 2))
_OPENABLE = frozenset({"Fridge", "Cabinet", "Microwave", "Drawer", "Safe"})
_CONSTANT_PLACES = ("SinkBasin", "Microwave", "Fridge")  # named by the domain itself, as are the next ones
_CONSTANT_THINGS = ("Knife", "ButterKnife", "Sink")
_FIXED = frozenset({"DeskLamp", "FloorLamp", "HousePlant", "Television"})  # seen on furniture, cannot be taken


@dataclass(frozen=True, slots=True)
class Spec:
    """One generated game, before it is built. Types in the capitals of the floor plans."""

    split: str
    seed: int
    index: int
    kind: str
    thing: str
    place: str
    lamp: str
    plan: int
    task: str

    @property
    def id(self) -> str:
        """Name in the official form TASK/TRIAL."""
        other = self.lamp or self.place
        return f"{self.kind}-{self.thing}-None-{other}-{self.plan}/trial_G{self.seed}_{self.index:05d}"


@dataclass(frozen=True, slots=True)
class _Furniture:
    ident: str
    kind: str
    pose: tuple[int, int, int, int]
    openable: bool


_Placed = dict[str, tuple[str, _Furniture]]  # identifier -> (type, where it lies)


def plans(split: str) -> tuple[int, ...]:
    """Floor plans of a split; those of different splits are disjoint."""
    if split in RESERVED:
        return tuple(plan for plan in wheel.PLANS if plan % 100 in RESERVED[split])
    taken = {number for numbers in RESERVED.values() for number in numbers}
    return tuple(plan for plan in wheel.PLANS if plan % 100 not in taken)


def draw(split: str, seed: int, index: int) -> Spec:
    """Choose task and floor plan of one game. Task types take turns, so that every prefix of a split is balanced."""
    rng = random.Random(stable_seed("alfworld", VERSION, seed, split, index))
    kind = KINDS[index % len(KINDS)]
    candidates = [plan for plan in plans(split) if plan // 100 in _WINGS[kind] and _goals(kind, plan)]
    plan = rng.choice(candidates)
    pairs, weights = zip(*_goals(kind, plan), strict=True)
    thing, other = rng.choices(pairs, weights)[0]
    light = kind == "look_at_obj_in_light"
    place, lamp = ("", other) if light else (other, "")
    text = rng.choice(wheel.goal_texts(kind)).format(obj=thing.lower(), recep=place.lower(), toggle=lamp.lower())
    return Spec(split, seed, index, kind, thing, place, lamp, plan, text)


def build(spec: Spec) -> Problem:
    """Furnish and fill the house of one game."""
    rng = random.Random(stable_seed("alfworld house", VERSION, spec.seed, spec.split, spec.index))
    furniture = _furniture(spec.plan)
    placed: _Placed = {}
    for thing in _things(spec, rng):
        target = thing == spec.thing and spec.kind in ("pick_and_place_simple", "pick_two_obj_and_place")
        where = _place(thing, furniture, rng, never=spec.place if target else "")
        if where is not None:
            placed[_new_ident(thing, where, rng, placed)] = (thing, where)
    return _problem(spec, furniture, placed, rng)


@cache
def _goals(kind: str, plan: int) -> tuple[tuple[tuple[str, str], int], ...]:
    """Goals that make sense in a plan, with their weights in the official games."""
    layout = wheel.layout(plan)
    spelled = {thing.lower(): thing for thing in layout.things}
    there = {piece.kind for piece in _furniture(plan)}
    appliance, ability = _APPLIANCE.get(kind, ("", ""))
    if appliance and appliance not in there:
        return ()
    found = []
    for pair, weight in priors.load()["goals"][kind].items():
        thing, other = pair.split("-")
        if thing not in spelled or other not in spelled | {place.lower(): place for place in there}:
            continue
        name = spelled[thing]
        sources = {place for place in there if name in wheel.can_contain().get(place, ())}
        if kind == "look_at_obj_in_light":
            if other == "desklamp" and sources and any("DeskLamp" in _holds(place) for place in there):
                found.append(((name, "DeskLamp"), weight))
            continue
        place = next((place for place in there if place.lower() == other), "")
        if appliance and name not in wheel.can_be()[ability]:
            continue
        if place in sources and (appliance or len(sources) > 1):
            found.append(((name, place), weight))
    return tuple(found)


@cache
def _holds(place: str) -> frozenset[str]:
    """Things that may lie in a type of place: what it can contain, and fixed things that stand there in official houses."""
    fixed = {thing for thing in _FIXED if place.lower() in priors.load()["placement"].get(thing.lower(), {})}
    return wheel.can_contain().get(place, frozenset()) | fixed


@cache
def _furniture(plan: int) -> tuple[_Furniture, ...]:
    """All furniture of a plan, the same in each of its games."""
    rng = random.Random(stable_seed("alfworld furniture", VERSION, plan))
    layout = wheel.layout(plan)
    wing = plan // 100
    pieces: list[_Furniture] = []
    for name, (x, z, turn, tilt) in layout.furniture:
        kind = name.split("|")[-1 if name.endswith("Basin") else 0]
        pieces.append(_Furniture(_mangle(name), kind, (round(4 * x), round(4 * z), turn // 90, tilt), kind in _OPENABLE))
    named = {piece.kind for piece in pieces}
    corner = [piece.pose for piece in pieces]
    for kind, wings, fewest, most in _UNNAMED:
        if wing in wings and kind not in named and kind in layout.things:
            pieces += _unnamed(kind, rng.randint(fewest, most), corner, rng)
    for kind, wings, fewest, most in _DOORLESS:
        if wing in wings and kind in layout.things:
            pieces += _unnamed(kind, rng.randint(fewest, most), corner, rng)
    return tuple(sorted(pieces, key=lambda piece: piece.ident))


def _unnamed(kind: str, number: int, poses: Sequence[tuple[int, int, int, int]], rng: random.Random) -> Iterator[_Furniture]:
    """Pieces near known furniture. Every second stove burner is used from where the one before is, as in the real kitchens."""
    x, z, turn, _ = rng.choice(poses)
    for i in range(number):
        if kind != "StoveBurner" or i % 2 == 0:
            x, z, turn, _ = rng.choice(poses)
        yield _Furniture(_ident(kind, x, z, rng), kind, (x, z, turn, 45 if i // 2 % 2 == 0 else 60), False)


def _things(spec: Spec, rng: random.Random) -> list[str]:
    """Which things there are, one entry per instance, in a fixed order."""
    counts = priors.load()
    number = counts["number"][str(spec.plan // 100)]
    found: list[str] = []
    for thing in wheel.layout(spec.plan).things:
        histogram = number.get(thing.lower())
        if thing == spec.thing:
            fewest = 2 if spec.kind == "pick_two_obj_and_place" else 1
            weights = counts["targets"][spec.kind]
            found += [thing] * rng.choices(range(fewest, len(weights) + 1), weights[fewest - 1 :])[0]
        elif thing == spec.lamp:
            found.append(thing)
        elif histogram is not None:
            found += [thing] * rng.choices(range(len(histogram)), histogram)[0]
    return found


def _place(thing: str, furniture: Sequence[_Furniture], rng: random.Random, never: str) -> _Furniture | None:
    """Choose a piece of furniture: first its type after the official counts, then any piece of that type."""
    there = sorted({piece.kind for piece in furniture if piece.kind != never and thing in _holds(piece.kind)})
    if not there:
        return None
    counts = priors.load()["placement"].get(thing.lower(), {})
    weights = [counts.get(kind.lower(), 0) + 0.01 for kind in there]
    kind = rng.choices(there, weights)[0]
    return rng.choice([piece for piece in furniture if piece.kind == kind])


def _problem(spec: Spec, furniture: Sequence[_Furniture], placed: _Placed, rng: random.Random) -> Problem:
    places = {piece.kind for piece in furniture}
    things = {thing for thing, _ in placed.values()}
    locations = {_location(piece.pose) for piece in furniture}
    start = _start(furniture, locations, rng)
    able = wheel.can_be()
    init: list[FactTuple] = [("atlocation", "agent1", start)]
    for piece in furniture:
        init.append(("receptacletype", piece.ident, f"{piece.kind}type".lower()))
        init.append(("receptacleatlocation", piece.ident, _location(piece.pose)))
        if piece.openable:
            init.append(("openable", piece.ident))
    for place in sorted(places):
        inside = sorted(wheel.can_contain().get(place, frozenset()) & things)
        init += [("cancontain", f"{place}type".lower(), f"{thing}type".lower()) for thing in inside]
    for ident, (thing, piece) in sorted(placed.items()):
        init.append(("objecttype", ident, f"{thing}type".lower()))
        init.append(("inreceptacle", ident, piece.ident))
        init.append(("objectatlocation", ident, _location(piece.pose)))
        if thing not in _FIXED:
            init.append(("pickupable", ident))
        if thing in wheel.movable_receptacles():
            init.append(("isreceptacleobject", ident))
        init += [(ability.lower(), ident) for ability, kinds in able.items() if thing in kinds]
    objects = [("agent1", "agent")]
    objects += [(f"{thing}type".lower(), "otype") for thing in sorted(things | set(_CONSTANT_THINGS))]
    objects += [(f"{place}type".lower(), "rtype") for place in sorted(places | set(_CONSTANT_PLACES))]
    objects += [(ident, "object") for ident in sorted(placed)]
    objects += [(piece.ident, "receptacle") for piece in furniture]
    objects += [(location, "location") for location in sorted(locations | {start})]
    goal = wheel.goal_pddl(spec.kind, spec.thing, spec.place, spec.lamp).strip()
    goal = goal[: goal.rindex(")")].rstrip()  # the library's text closes the problem as well
    return Problem(f"plan_{spec.id.rsplit('/', 1)[-1]}", tuple(objects), tuple(init), goal)


def _start(furniture: Sequence[_Furniture], taken: set[str], rng: random.Random) -> str:
    """A location in the middle of the room: none of the furniture's."""
    x = sum(piece.pose[0] for piece in furniture) // len(furniture)
    z = sum(piece.pose[1] for piece in furniture) // len(furniture)
    while True:
        location = _location((x + rng.randint(-3, 3), z + rng.randint(-3, 3), rng.randint(0, 3), 30))
        if location not in taken:
            return location


def _new_ident(thing: str, where: _Furniture, rng: random.Random, taken: _Placed) -> str:
    while True:
        ident = _ident(thing, where.pose[0], where.pose[1], rng)
        if ident not in taken:
            return ident


def _ident(kind: str, x: int, z: int, rng: random.Random) -> str:
    """An identifier in the official form, with coordinates near a pose: Apple|+00.82|+00.91|-01.36, mangled."""
    spot = (x / 4 + rng.uniform(-1, 1), rng.uniform(0, 2), z / 4 + rng.uniform(-1, 1))
    return _mangle("|".join([kind, *(f"{value:+06.2f}" for value in spot)]))


def _mangle(name: str) -> str:
    for sign, word in (("|", "_bar_"), ("-", "_minus_"), ("+", "_plus_"), (".", "_dot_"), (",", "_comma_")):
        name = name.replace(sign, word)
    return name.lower()


def _location(pose: tuple[int, int, int, int]) -> str:
    return _mangle("loc|{}|{}|{}|{}".format(*pose))
