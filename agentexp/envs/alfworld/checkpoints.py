"""Checkpoints of an ALFWorld game from its facts (paper 001, appendix E), and the proof of them in its texts.

A text game of ALFWorld is one room, so the paper's rooms cannot be the locations: a location is a receptacle one can walk to.

    "all"            locations: receptacles with a location; objects: things in them; affordances: take each thing that can be
                     picked up, use each thing that can be switched, open and close each receptacle with a door, put into
                     each receptacle that takes some thing of this game. Mean M of the 274 official games: 133.6.
    "task_closure"   what the hidden goal can need. Kept are receptacles whose type takes the goal's object type or the lamp,
                     and the goal receptacles and the needed appliance. Locations: these; objects: the goal's, lamps and what
                     can be picked up in kept receptacles; affordances: open and close each kept one that has a door, take by
                     type of thing, put by type of receptacle, use each switch, clean, heat and cool by type of appliance.
                     Mean M of the same games: 67.1.

Names are the game's ("drawer 1"); an affordance is a verb and what it is done to ("open drawer 1", "take mug 1", "take mug").
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from agentexp.capabilities import Checkpoint
from agentexp.core import Step
from agentexp.envs.alfworld import texts
from agentexp.envs.alfworld.goals import Goal
from agentexp.envs.alfworld.oracle import Household
from agentexp.envs.alfworld.problem import FactTuple
from agentexp.errors import UserError

_DONE_BY = {"cleanable": ("clean", "sinkbasin"), "heatable": ("heat", "microwave"), "coolable": ("cool", "fridge")}


def checkpoints(
    facts: Iterable[FactTuple], names: Mapping[str, str], goal: Goal | None, relevance: str = "task_closure"
) -> list[Checkpoint]:
    """The checkpoints of a game.

    Args:
        facts: what holds at reset (a problem's initial facts, or the engine's).
        names: shown names by identifier.
        goal: the hidden goal; only "task_closure" needs it.
        relevance: "task_closure" or "all".

    Raises:
        UserError: another relevance, or a goal that cannot be read.
    """
    home = Household(facts)
    if relevance == "all":
        return sorted(set(_all(home, names)))
    if relevance != "task_closure":
        raise UserError(f"relevance={relevance} is unknown: choose task_closure or all.")
    if goal is None:
        raise UserError("The goal of this game cannot be read, so its closure is unknown: choose relevance=all.")
    return sorted(set(_closure(home, names, goal)))


def _all(home: Household, names: Mapping[str, str]) -> Iterator[Checkpoint]:
    things = {thing for contents in home.contents.values() for thing in contents}
    for place in home.location:
        yield Checkpoint("location", names[place])
        if home.holds("openable", place):
            yield from _door(names[place])
        if any(home.fits(thing, place) for thing in things if home.holds("pickupable", thing)):
            yield Checkpoint("affordance", f"put {names[place]}")
    for thing in things:
        yield Checkpoint("object", names[thing])
        if home.holds("pickupable", thing):
            yield Checkpoint("affordance", f"take {names[thing]}")
        if home.holds("toggleable", thing):
            yield Checkpoint("affordance", f"use {names[thing]}")


def _closure(home: Household, names: Mapping[str, str], goal: Goal) -> Iterator[Checkpoint]:
    wanted = {goal.thing, goal.lamp} - {""}
    takes = {place for place, thing in home.all("cancontain") if thing.removesuffix("type") in wanted}
    kept = [p for p in home.location if f"{home.type_of[p]}type" in takes or home.type_of[p] in (goal.place, goal.appliance)]
    inside = {thing for place in kept for thing in home.contents[place]}
    everywhere = {thing for contents in home.contents.values() for thing in contents}
    movable = {thing for thing in inside if home.holds("pickupable", thing)}
    targets = {thing for thing in everywhere if home.type_of.get(thing) in wanted}
    for place in kept:
        yield Checkpoint("location", names[place])
        if home.holds("openable", place):
            yield from _door(names[place])
        if any(home.fits(thing, place) for thing in movable):
            yield Checkpoint("affordance", f"put {home.type_of[place]}")
    for thing in movable | targets:
        yield Checkpoint("object", names[thing])
        if home.holds("pickupable", thing):
            yield Checkpoint("affordance", f"take {texts.kind(names[thing])}")
    for thing in inside | targets:
        if home.holds("toggleable", thing):
            yield Checkpoint("affordance", f"use {names[thing]}")
    for able, (verb, appliance) in _DONE_BY.items():
        if any(home.type_of[place] == appliance for place in kept) and any(home.holds(able, thing) for thing in movable):
            yield Checkpoint("affordance", f"{verb} {appliance}")


def _door(name: str) -> Iterator[Checkpoint]:
    yield Checkpoint("affordance", f"open {name}")
    yield Checkpoint("affordance", f"close {name}")


class HouseMatcher:
    """Implements `CheckpointMatcher`. Stateless: the engine's answer says whether an action was carried out.

    location    "go to X" is answered by an arrival (the old logic arrives "at loc 8", so X is read from the action)
    object      its name stands in the contents of a receptacle that the answer shows
    affordance  the action is answered by anything but "Nothing happens."
    """

    def observe(self, action: str | None, step: Step) -> set[Checkpoint]:
        """See `CheckpointMatcher`."""
        command = texts.command(action or "")
        if command is None or step.error or step.observation.strip() == texts.NOTHING:
            return set()
        found = {Checkpoint("object", thing) for sight in texts.sights(step.observation) for thing in sight.contents or ()}
        verb, thing, place = command.verb, command.thing, command.place
        if verb == "go to":
            if step.observation.startswith("You arrive at "):
                found.add(Checkpoint("location", place))
        elif verb in ("open", "close"):
            found.add(Checkpoint("affordance", f"{verb} {place}"))
        elif verb in ("take", "use"):
            found |= _both(verb, thing)
        elif verb in ("move", "put"):
            found |= _both("put", place)
        elif verb in ("clean", "heat", "cool"):
            found |= _both(verb, place)
        return found


def _both(verb: str, name: str) -> set[Checkpoint]:
    """The affordance on this one thing and on its type: which of the two counts depends on the checkpoint set."""
    return {Checkpoint("affordance", f"{verb} {name}"), Checkpoint("affordance", f"{verb} {texts.kind(name)}")}
