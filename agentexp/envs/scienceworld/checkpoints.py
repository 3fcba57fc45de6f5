"""Checkpoints of a ScienceWorld instance from the engine's object tree (paper 001, appendix E).

    "all"            locations: the rooms; objects: every kind of thing in them; affordances: open, activate, use, move, pour,
                     mix, connect, each with every kind of thing that accepts it.
    "task_closure"   locations: the rooms; objects: what the task names, living things where the task is about them, instruments
                     (things that can be used or activated), containers, substances, electrical parts where the task needs a
                     circuit, but no furniture; affordances: open whatever opens, the other verbs with the kept things,
                     and the changes the task asks for (a substance melted, boiled, frozen or made, a plant grown, a device
                     running): "become liquid lead", "run electric motor".

Kinds, not single things: "flower pot 3" is a flower pot, an "adult bee" a bee. `names.py` brings both the tree's and the
printed names into that form. The tree is the same in every load of an instance, so the set is, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from agentexp.capabilities import Checkpoint
from agentexp.envs.scienceworld.catalog import TaskInfo
from agentexp.envs.scienceworld.names import canonical
from agentexp.errors import UserError

HIDDEN = re.compile(r"^(agent|inventory|air|anode|cathode|terminal \d+|drain)$")
FURNITURE = re.compile(
    r"^(bathtub|bed|book shelf|chair|closet|couch|counter|(large |paint )?cupboard|desk|drawer|fountain|ground|mattress|sink"
    r"|table|toilet)$"
)
VESSEL = re.compile(r"\b(bowl|cup|jar|jug|pot)$")
LIFE_TASKS = ("4-", "5-", "7-", "8-", "10-")
STATES = {"boil": ("liquid", "gaseous"), "melt": ("liquid",), "change-the-state-of-matter-of": ("liquid", "gaseous")}
WATER = {"boil": ("steam",), "freeze": ("ice",), "change-the-state-of-matter-of": ("ice", "steam")}


@dataclass(frozen=True, slots=True)
class Kind:
    """What the tree says about a kind of thing (merged over its members)."""

    name: str
    opens: bool = False
    holds: bool = False
    activates: bool = False
    usable: bool = False
    movable: bool = False
    alive: bool = False
    substance: bool = False
    liquid: bool = False
    electrical: bool = False

    def __or__(self, other: Kind) -> Kind:
        flags = (f for f in Kind.__slots__ if f != "name")
        return Kind(self.name, **{flag: getattr(self, flag) or getattr(other, flag) for flag in flags})


def rooms(tree: dict[str, Any]) -> list[dict[str, Any]]:
    """The rooms of a tree: containers directly below the universe that are made of nothing."""
    return [
        node for node in tree["contents"].values() if _flag(node, "propContainer", "isContainer") and not node["propMaterial"]
    ]


def kinds(tree: dict[str, Any]) -> dict[str, Kind]:
    """All kinds of visible things in the rooms, by canonical name."""
    found: dict[str, Kind] = {}
    for room in rooms(tree):
        for kind in _below(room):
            found[kind.name] = found[kind.name] | kind if kind.name in found else kind
    return found


def checkpoints(tree: dict[str, Any], task: TaskInfo, goal: str, relevance: str = "task_closure") -> list[Checkpoint]:
    """The checkpoints of an instance.

    Args:
        tree: the object tree at reset.
        task: which of the 30 tasks.
        goal: the task description.
        relevance: "task_closure" or "all".

    Raises:
        UserError: another relevance.
    """
    if relevance not in ("task_closure", "all"):
        raise UserError(f"relevance={relevance} is unknown: choose task_closure or all.")
    everything = kinds(tree)
    kept = everything if relevance == "all" else {k.name: k for k in everything.values() if _relevant(k, task, goal)}
    found = {Checkpoint("location", room["name"]) for room in rooms(tree)}
    found |= {Checkpoint("object", name) for name in kept}
    found |= {Checkpoint("affordance", f"open {kind.name}") for kind in everything.values() if kind.opens}
    found |= {Checkpoint("affordance", f"{verb} {kind.name}") for kind in kept.values() for verb in _verbs(kind)}
    if relevance == "task_closure":
        found |= {Checkpoint("affordance", change) for change in _changes(everything, task, goal)}
    return sorted(found)


def _below(node: dict[str, Any]) -> Iterator[Kind]:
    for child in node["contents"].values():
        if not HIDDEN.match(child["name"]):
            yield _kind(child)
        yield from _below(child)


def _kind(node: dict[str, Any]) -> Kind:
    life = node["propLife"] or {}
    name = str(life["lifeformType"]) + (" plant" if node["type"] == "plant" else "") if life else str(node["name"])
    material = str((node["propMaterial"] or {}).get("substanceName", ""))
    return Kind(
        canonical(name),
        opens=_flag(node, "propContainer", "isClosable"),
        holds=_flag(node, "propContainer", "isContainer") and not life,
        activates=_flag(node, "propDevice", "isActivable"),
        usable=_flag(node, "propDevice", "isUsable"),
        movable=_flag(node, "propMoveable", "isMovable"),
        alive=bool(life),
        substance=material.replace(" ", "") == name.replace(" ", "") or "unknown substance" in name,
        liquid=(node["propMaterial"] or {}).get("stateOfMatter") == "liquid",
        electrical=name.endswith(" wire") or any(child["name"] in ("anode", "cathode") for child in node["contents"].values()),
    )


def _relevant(kind: Kind, task: TaskInfo, goal: str) -> bool:
    if FURNITURE.match(kind.name) and not kind.activates:
        return False
    if kind.electrical and not task.electrical:
        return False
    named = re.search(rf"\b{re.escape(kind.name)}\b", goal.lower()) is not None
    living = kind.alive and task.number.startswith(LIFE_TASKS)
    return named or living or kind.holds or kind.substance or kind.electrical or kind.activates or kind.usable


def _verbs(kind: Kind) -> Iterator[str]:
    if kind.activates:
        yield "activate"
    if kind.usable and kind.name != "axe":  # the engine calls it usable, but accepts no use of it
        yield "use"
    if kind.movable and not kind.liquid and not FURNITURE.match(kind.name):
        yield "move"
    if kind.holds and kind.movable and VESSEL.search(kind.name):
        yield from ("mix",) if kind.name == "flower pot" else ("mix", "pour")
    if kind.electrical:
        yield "connect"


def _changes(everything: dict[str, Kind], task: TaskInfo, goal: str) -> Iterator[str]:
    """What the task asks to bring about, as the texts will name it. Forms that exist from the start are no change."""
    text, forms = goal.lower(), list[str]()
    if task.number in ("1-1", "1-2", "1-3", "1-4"):
        for kind in everything.values():
            if kind.substance and re.search(rf"\b{re.escape(kind.name)}\b", text):
                base = kind.name.removeprefix("liquid ").removeprefix("solid ")
                water = kind.name in ("water", "ice")
                forms += WATER.get(task.name, ()) if water else (f"{state} {base}" for state in STATES.get(task.name, ()))
    elif task.number in ("5-1", "5-2"):
        forms += [
            f"{kind.name.removesuffix(' plant')} tree" for kind in everything.values() if kind.alive and _plant(kind, text)
        ]
    elif task.number.startswith("6-"):
        forms += re.findall(r"create (?:the substance )?'?([a-z][a-z -]*?)'?\.", text)
    elif match := re.search(r"turn on the ([a-z ]+?)(?: by |\.)", text):
        yield f"run {match[1]}"
    yield from (f"become {form}" for form in forms if form not in everything)


def _plant(kind: Kind, text: str) -> bool:
    return kind.name.endswith(" plant") and re.search(rf"\b{re.escape(kind.name.removesuffix(' plant'))}\b", text) is not None


def _flag(node: dict[str, Any], part: str, name: str) -> bool:
    return (node[part] or {}).get(name) in (True, "true")
