"""Checkpoints of a game from the object tree at reset (paper 001, appendix E).

    "all"            locations: the rooms; objects: everything in them, doors included; affordances: take what is portable,
                     open, unlock and switch what can be, talk to people, and what the expert does with things.
    "task_closure"   locations: the rooms; objects and affordances: what the expert's way to the good end touches, and what
                     holds those things at the start.

An affordance is named by its verb and the thing it is about ("put ... on altar" is "put altar").
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agentexp.capabilities import Checkpoint
from agentexp.envs.jericho.commands import NO_AFFORDANCE, Command, read
from agentexp.envs.jericho.scene import Scene
from agentexp.errors import UserError


def checkpoints(scene: Scene, plan: Sequence[str], relevance: str = "task_closure") -> list[Checkpoint]:
    """The checkpoints of a game.

    Args:
        scene: the world at reset.
        plan: the expert's actions from there.
        relevance: "task_closure" or "all".

    Raises:
        UserError: another relevance.
    """
    if relevance not in ("task_closure", "all"):
        raise UserError(f"relevance={relevance} is unknown: choose task_closure or all.")
    rooms = scene.reachable(scene.here)
    names = {scene.name(thing): thing for thing in (*scene.things, *scene.doors)}
    acts = [command for command in map(read, plan) if command.verb not in NO_AFFORDANCE]
    touched = {name for command in acts for name in (command.thing, command.other) if name in names}
    touched |= {scene.name(holder) for name in touched for holder in _holders(scene, names[name])}
    found = {Checkpoint("location", scene.name(room)) for room in rooms}
    found |= {Checkpoint("object", name) for name in touched}
    found |= {Checkpoint("affordance", f"{command.verb} {command.thing}") for command in acts if command.thing in names}
    if relevance == "all":
        there = [thing for thing in scene.things if scene.room_of(thing) in rooms]
        there += [door for door in scene.doors if set(scene.memory.values(door, "found_in")) & set(rooms)]
        found |= {Checkpoint("object", scene.name(thing)) for thing in there}
        found |= {Checkpoint("affordance", f"{a.verb} {a.thing}") for thing in there for a in _accepts(scene, thing)}
    return sorted(found)


def _holders(scene: Scene, thing: int) -> Iterator[int]:
    holder = scene.holder(thing)
    while holder and holder not in scene.rooms and holder != scene.player:
        if holder in scene.things:
            yield holder
        holder = scene.holder(holder)


def _accepts(scene: Scene, thing: int) -> Iterator[Command]:
    """What can be done with a thing by its attributes; what its own rules may forbid is left out."""
    has, name = scene.has, scene.name(thing)
    ruled = scene.has_rules(thing)
    if has(thing, "animate"):
        yield Command("talk to", name)
    elif not (has(thing, "static") or has(thing, "scenery") or ruled):
        yield Command("take", name)
    if has(thing, "openable") and not has(thing, "open") and not ruled:
        yield Command("open", name)
    if has(thing, "locked"):
        yield Command("unlock", name)
    if has(thing, "switchable") and not ruled:
        yield Command("switch off" if has(thing, "on") else "switch on", name)
