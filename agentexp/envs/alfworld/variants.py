"""The three ALFWorld variants of paper 001 (appendix F), each a deterministic function of (instance, variant, seed).

* relocation: the things of the goal's type (and its lamp) lie in other receptacles than in the original game.
* precondition: what was at hand needs a step first. Furniture with a door starts closed, or the goal's receptacles are occupied
  and take something only after one thing was taken out.
* distractors: more things like the wanted one, of similar types or of the same.

The task, the goal's test, the furniture and the numbers of all known things stay as they are. The expert must find a plan in
the changed house; a draw without one is drawn again. Facts only, no engine.
"""

from __future__ import annotations

import functools
import logging
import random
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal

from agentexp.core import stable_seed
from agentexp.envs.alfworld import wheel
from agentexp.envs.alfworld.goals import Goal
from agentexp.envs.alfworld.moves import DRAWS, elsewhere, lying, moved
from agentexp.envs.alfworld.oracle import Household, plan
from agentexp.envs.alfworld.problem import FactTuple, Problem
from agentexp.errors import UserError

log = logging.getLogger(__name__)

Variant = Literal["none", "relocation", "precondition", "distractors"]
DistractorKind = Literal["similar", "same", "both"]
VARIANTS: tuple[Variant, ...] = ("relocation", "precondition", "distractors")
DISTRACTORS: tuple[DistractorKind, ...] = ("similar", "same", "both")
VERSION = 1
"""Goes up when the same seed would give other houses."""

N_SIMILAR, N_SAME = 3, 2
DOORS = frozenset({"cabinet", "drawer", "fridge", "microwave", "safe"})
"""Receptacle types that have a door in the official games; of cabinets and drawers a fifth stands open for good there."""

_NEVER_COVERED = frozenset({"shelf", "countertop"})
_SURFACES = frozenset(
    {"armchair", "bed", "coffeetable", "countertop", "desk", "diningtable", "dresser", "ottoman", "shelf", "sidetable", "sofa"}
)
_ALIKE = (
    ("mug", "cup", "bowl", "glassbottle"),
    ("plate", "bowl", "pan"),
    ("pan", "pot", "kettle", "wateringcan"),
    ("winebottle", "glassbottle", "soapbottle", "spraybottle", "vase"),
    ("apple", "tomato", "potato", "lettuce", "egg", "bread"),
    ("fork", "spoon", "knife", "butterknife", "spatula", "ladle"),
    ("peppershaker", "saltshaker"),
    ("book", "newspaper", "laptop", "box"),
    ("laptop", "cellphone", "remotecontrol", "cd"),
    ("pen", "pencil", "remotecontrol"),
    ("keychain", "creditcard", "watch", "cellphone"),
    ("alarmclock", "watch"),
    ("statue", "vase", "candle"),
    ("box", "tissuebox"),
    ("soapbar", "dishsponge", "cloth"),
    ("cloth", "handtowel", "towel", "pillow"),
    ("toiletpaper", "toiletpaperroll", "papertowel", "tissuebox"),
)


@dataclass(frozen=True, slots=True)
class Change:
    """What a variant did to a game, in the names that an agent sees.

    Attributes:
        variant: its name.
        draws: how many times it was drawn; 1 = the first draw was solvable.
        moved: thing -> its new place.
        closed: places that now have a door, closed.
        occupied: places that take nothing until something was taken out.
        added: new thing -> its place.
        harder: the original game's best plan no longer works.
    """

    variant: Variant
    draws: int = 1
    moved: dict[str, str] = field(default_factory=dict)
    closed: tuple[str, ...] = ()
    occupied: tuple[str, ...] = ()
    added: dict[str, str] = field(default_factory=dict)
    harder: bool = False


@dataclass(frozen=True, slots=True)
class Varied:
    """A changed game: its house, the expert's plan in it (the proof that it can be solved), and what was changed."""

    problem: Problem
    plan: tuple[str, ...]
    change: Change


@dataclass(frozen=True, slots=True)
class _Draft:
    """A draw: facts and objects so far, and what was done, by identifier."""

    facts: list[FactTuple]
    objects: tuple[tuple[str, str], ...]
    moved: dict[str, str] = field(default_factory=dict)
    closed: tuple[str, ...] = ()
    occupied: tuple[str, ...] = ()
    added: dict[str, str] = field(default_factory=dict)


def vary(
    problem: Problem, goal: Goal, variant: Variant, seed: int, instance: str, distractors: DistractorKind = "similar"
) -> Varied:
    """Change a game.

    Args:
        problem: the original house.
        goal: what its task asks for.
        variant: which change.
        seed: another seed gives another change of the same kind.
        instance: name of the game; with variant and seed it determines the result.
        distractors: for variant distractors, which things are added: 3 of similar types, 2 of the same type, or both.

    Raises:
        UserError: the expert cannot solve the game itself, or what any of `DRAWS` draws leaves of it.
    """
    before = _solved(_Draft(list(problem.init), problem.objects), goal)
    if not before:
        raise UserError(f"env.variant={variant}: the game {instance} cannot be solved as it is, or is solved already.")
    for attempt in range(1, DRAWS + 1):
        rng = random.Random(stable_seed("alfworld variant", VERSION, variant, seed, instance, attempt))
        draft = _draw(problem, goal, variant, distractors, rng)
        after = _solved(draft, goal) if draft else ()
        if draft and after:
            return _varied(problem, variant, attempt, draft, before, after)
        log.info("%s of %s, seed %d: draw %d cannot be solved", variant, instance, seed, attempt)
    raise UserError(f"env.variant={variant}: no solvable change of {instance} in {DRAWS} draws. Try another env.variant_seed.")


def _draw(problem: Problem, goal: Goal, variant: Variant, distractors: DistractorKind, rng: random.Random) -> _Draft | None:
    if variant == "relocation":
        return _relocated(problem, goal, rng)
    if variant == "precondition":
        return _restricted(problem, goal, rng)
    if variant == "distractors":
        return _crowded(problem, goal, rng, distractors)
    return _Draft(list(problem.init), problem.objects)


def _varied(
    problem: Problem, variant: Variant, draws: int, draft: _Draft, before: tuple[str, ...], after: tuple[str, ...]
) -> Varied:
    changed = replace(problem, init=tuple(draft.facts), objects=draft.objects)
    names = changed.names
    taken = {command.split(" ", 1)[1].split(" from ")[0] for command in before if command.startswith(("take ", "use "))}
    to = {names[thing]: names[place] for thing, place in draft.moved.items()}
    change = Change(
        variant,
        draws,
        moved=to,
        closed=tuple(names[place] for place in draft.closed),
        occupied=tuple(names[place] for place in draft.occupied),
        added={names[thing]: names[place] for thing, place in draft.added.items()},
        # Doors and occupied places only take possibilities away: while the old plan works, it is still the expert's.
        harder=bool(taken & to.keys()) or (bool(draft.closed or draft.occupied) and before != after),
    )
    return Varied(changed, after, change)


def _solved(draft: _Draft, goal: Goal) -> tuple[str, ...]:
    """The expert's plan; empty where there is none or nothing is left to do."""
    try:
        return tuple(plan(draft.facts, Problem("", draft.objects, tuple(draft.facts), "").names, goal))
    except ValueError:
        return ()


# ------------------------------------------------------------------------------------------------------------ relocation


def _relocated(problem: Problem, goal: Goal, rng: random.Random) -> _Draft | None:
    """Every thing of the goal's type, and the lamp, goes to a random receptacle elsewhere, not of the goal's type.

    A few houses have no other receptacle that can contain the thing (a pillow where there is one bed): then any table, shelf or
    seat elsewhere will do. None if there is not even that; a lamp without another place stays.
    """
    home = Household(problem.init)
    to: dict[str, str] = {}
    for kind in filter(None, (goal.thing, goal.lamp)):
        for thing, places in lying(home, kind).items():
            others = elsewhere(home, thing, places, goal.place)
            if not others and kind == goal.thing:
                taken = {home.location[place] for place in places}
                free = [place for place, where in home.location.items() if where not in taken]
                others = [place for place in free if home.type_of[place] in _SURFACES - {goal.place}]
            if others:
                to[thing] = rng.choice(others)
            elif kind == goal.thing:
                return None
    return _Draft(moved(problem.init, home, to), problem.objects, moved=to)


# ---------------------------------------------------------------------------------------------------------- precondition


def _restricted(problem: Problem, goal: Goal, rng: random.Random) -> _Draft:
    """Doors, occupied places, or both, each a third of the draws; where only doors are possible, doors.

    Where the original plan still works after that (what it needs lies open), the other change is added as well, and if that is
    not possible or changes nothing either, whatever the wanted things lie in gets a cover. Shelves and countertops are covered
    only where nothing else in the house could change.
    """
    home = Household(problem.init)
    start = _Draft(list(problem.init), problem.objects)
    before = _solved(start, goal)
    wanted = {place for places in lying(home, goal.thing).values() for place in places}
    covers = [place for place in wanted if home.type_of[place] not in _NEVER_COVERED]
    doors = [place for place in home.location if home.type_of[place] in DOORS]

    room = _blockers(home, goal, rng)
    close, occupy = rng.choice([(True, False), (False, True), (True, True)]) if room is not None else (True, False)
    draft = start
    if close:
        draft = _closed(draft, home, doors)
    if room is not None and (occupy or _solved(draft, goal) == before):
        draft = _occupied(draft, home, goal, room)
    if _solved(draft, goal) == before:
        draft = _closed(draft, home, doors if not close else covers)
    if _solved(draft, goal) == before:
        draft = _closed(draft, home, covers)
    return draft if draft.closed or draft.occupied else _closed(draft, home, wanted)


def _closed(draft: _Draft, home: Household, places: Iterable[str]) -> _Draft:
    """These places have a door, and it is closed."""
    shut = set(places)
    new = sorted(place for place in shut if not home.holds("openable", place) and place not in draft.closed)
    facts = [fact for fact in draft.facts if not (fact[0] == "opened" and fact[1] in shut)]
    return replace(draft, facts=facts + [("openable", place) for place in new], closed=(*draft.closed, *new))


def _blockers(home: Household, goal: Goal, rng: random.Random) -> dict[str, str] | None:
    """What has to be put into which of the goal's receptacles so that each holds something to clear away, as place -> type.

    None where the goal has no receptacle, or nothing but the wanted type can lie in it.
    """
    needed: dict[str, str] = {}
    for place in home.places(goal.place):
        if any(home.holds("pickupable", x) and home.type_of.get(x) != goal.thing for x in home.contents[place]):
            continue
        kinds = [kind for kind in sorted(_may_hold(goal.place)) if kind != goal.thing and _places_for(home, kind, goal.place)]
        if not kinds:
            return None
        needed[place] = rng.choice(kinds)
    return needed if goal.place else None


def _occupied(draft: _Draft, home: Household, goal: Goal, blockers: dict[str, str]) -> _Draft:
    for place, kind in blockers.items():
        draft = _with(draft, home, kind, place)
    places = tuple(home.places(goal.place))
    return replace(draft, facts=draft.facts + [("full", place) for place in places], occupied=places)


# ----------------------------------------------------------------------------------------------------------- distractors


def _crowded(problem: Problem, goal: Goal, rng: random.Random, which: DistractorKind) -> _Draft | None:
    """More things like the wanted one; copies of it never in the goal's receptacles. None where none of them fits anywhere."""
    home = Household(problem.init)
    kinds: list[str] = []
    if which != "same":
        alike = {kind for group in _ALIKE if goal.thing in group for kind in group} - {goal.thing}
        pool = sorted(kind for kind in alike if _places_for(home, kind))
        if not pool:
            return None
        kinds += rng.sample(pool, N_SIMILAR) if len(pool) >= N_SIMILAR else rng.choices(pool, k=N_SIMILAR)
    if which != "similar":
        kinds += [goal.thing] * N_SAME
    draft = _Draft(list(problem.init), problem.objects)
    for kind in kinds:
        places = _places_for(home, kind, goal.place if kind == goal.thing else "")
        if not places:
            return None
        draft = _with(draft, home, kind, rng.choice(places))
    return draft


@functools.cache
def _may_hold(place: str) -> frozenset[str]:
    """Types of things that a type of receptacle can contain, in type words, whole things only."""
    table = {name.lower(): things for name, things in wheel.can_contain().items()}
    return frozenset(thing.lower() for thing in table.get(place, ()) if not thing.endswith("Sliced"))


def _places_for(home: Household, kind: str, never: str = "") -> list[str]:
    return [place for place in home.location if home.type_of[place] != never and kind in _may_hold(home.type_of[place])]


def _with(draft: _Draft, home: Household, kind: str, place: str) -> _Draft:
    """One more thing. Its identifier sorts before its like, so that it gets the highest number and the others keep theirs."""
    ident = f"{kind}_bar_{len(draft.added):02d}_variant"
    word = f"{kind}type"
    facts: list[FactTuple] = [
        ("objecttype", ident, word),
        ("inreceptacle", ident, place),
        ("objectatlocation", ident, home.location[place]),
        ("pickupable", ident),
    ]
    if kind in {thing.lower() for thing in wheel.movable_receptacles()}:
        facts.append(("isreceptacleobject", ident))
    facts += [(able.lower(), ident) for able, kinds in wheel.can_be().items() if kind in {thing.lower() for thing in kinds}]
    known = set(draft.facts)
    for holder in sorted({home.type_of[other] for other in home.location}):
        if kind in _may_hold(holder) and ("cancontain", f"{holder}type", word) not in known:
            facts.append(("cancontain", f"{holder}type", word))
    objects = draft.objects if (word, "otype") in draft.objects else (*draft.objects, (word, "otype"))
    return replace(draft, facts=draft.facts + facts, objects=(*objects, (ident, "object")), added={**draft.added, ident: place})
