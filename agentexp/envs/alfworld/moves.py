"""Things that change place: what the relocation variant and the change in mid-episode have in common. Facts only."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Mapping

from agentexp.envs.alfworld import priors
from agentexp.envs.alfworld.goals import Goal
from agentexp.envs.alfworld.oracle import Household, delivered, plan
from agentexp.envs.alfworld.problem import FactTuple

DRAWS = 20
"""Attempts to draw a change that leaves the game solvable."""

_WHERE = frozenset({"inreceptacle", "objectatlocation", "inreceptacleobject"})


def lying(home: Household, kind: str) -> dict[str, list[str]]:
    """Things of a type that lie in reachable furniture, with where; two places where a shelf hangs over a desk."""
    found: dict[str, list[str]] = {}
    for place, things in home.contents.items():
        for thing in things:
            if home.type_of.get(thing) == kind:
                found.setdefault(thing, []).append(place)
    return dict(sorted(found.items()))


def elsewhere(home: Household, thing: str, places: Iterable[str], never_kind: str, never_at: Collection[str] = ()) -> list[str]:
    """Furniture that can take a thing, away from the locations of `places` (where it lies now) and from `never_at`.

    Lamps have no `canContain` facts; they go where lamps stand in official houses.
    """
    usual = () if home.holds("pickupable", thing) else priors.load()["placement"].get(home.type_of.get(thing, ""), ())
    taken = {home.location[place] for place in places} | set(never_at)
    return [
        place
        for place, where in home.location.items()
        if where not in taken
        and home.type_of[place] != never_kind
        and (home.fits(thing, place) or home.type_of[place] in usual)
    ]


def moved(facts: Iterable[FactTuple], home: Household, to: Mapping[str, str]) -> list[FactTuple]:
    """The facts with each thing in `to` at its new place, and nowhere else."""
    kept = [fact for fact in facts if not (fact[0] in _WHERE and fact[1] in to)]
    for thing, place in sorted(to.items()):
        kept += [("inreceptacle", thing, place), ("objectatlocation", thing, home.location[place])]
    return kept


def relocation(facts: Collection[FactTuple], names: Mapping[str, str], goal: Goal, seed: int) -> dict[str, str] | None:
    """Where the goal's things go in mid-episode (MAP, appendix C.4), as thing -> place; None if not now.

    Every thing of the goal's type goes to a random other receptacle that can contain its type, not of the goal's type of
    receptacle, not where the agent is. "Not now": one of them is carried or already counts for the goal (of two to deliver,
    too), or has nowhere else to go. A change after which the expert would be stuck is drawn again.

    Args:
        facts: what holds now.
        names: shown names by identifier.
        goal: what the agent is to reach.
        seed: of the draw.
    """
    home = Household(facts)
    things = lying(home, goal.thing)
    carried = home.held and home.type_of.get(home.held) == goal.thing
    if not things or carried or any(delivered(home, goal, place) for place in home.places(goal.place)):
        return None
    choices = {thing: elsewhere(home, thing, places, goal.place, [home.here]) for thing, places in things.items()}
    if not all(choices.values()):
        return None
    rng = random.Random(seed)
    for _ in range(DRAWS):
        to = {thing: rng.choice(places) for thing, places in choices.items()}
        try:
            plan(moved(facts, home, to), names, goal)
        except ValueError:
            continue
        return to
    return None
