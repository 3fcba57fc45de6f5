"""What stands where in the object tree at reset, by the names that the texts print: ground truth for questions and maps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from agentexp.envs.scienceworld.checkpoints import HIDDEN, rooms
from agentexp.envs.scienceworld.names import canonical

CHANGING = {"water", "ice", "steam", "air", "ground"}  # by themselves, or not told apart in the texts


@dataclass(frozen=True, slots=True)
class Item:
    """One thing in a room.

    Attributes:
        name: as printed, in its canonical form.
        room: the room, however deep the thing stands in it.
        holder: what it stands in or on directly; the room's name, or another thing's.
        contents: canonical names of what is in or on it.
        alive: a living thing; it may move and grow.
        substance: a pure substance; it may change its state.
        opens: it has a door or lid.
        opened: it stands open.
        switches: it can be activated and works.
        running: it is activated.
    """

    name: str
    room: str
    holder: str
    contents: frozenset[str]
    alive: bool = False
    substance: bool = False
    opens: bool = False
    opened: bool = False
    switches: bool = False
    running: bool = False


@dataclass(frozen=True, slots=True)
class Stock:
    """Rooms and everything visible in them."""

    rooms: tuple[str, ...]
    items: tuple[Item, ...]

    def named(self, name: str) -> list[Item]:
        """All things of a (canonical) name."""
        return [item for item in self.items if item.name == name]

    def inside(self, room: str) -> set[str]:
        """Canonical names of everything in a room."""
        return {item.name for item in self.items if item.room == room}


def stock(tree: dict[str, Any]) -> Stock:
    """Read the object tree. What the agent carries is left out."""
    places = rooms(tree)
    found = [item for room in places for item in _below(room, room["name"], room["name"])]
    return Stock(tuple(sorted(room["name"] for room in places)), tuple(found))


def _below(node: dict[str, Any], room: str, holder: str) -> Iterator[Item]:
    for child in node["contents"].values():
        if child["name"] == "agent":
            continue
        if HIDDEN.match(child["name"]):
            yield from _below(child, room, holder)
            continue
        item = _item(child, room, holder)
        yield item
        yield from _below(child, room, item.name)


def _item(node: dict[str, Any], room: str, holder: str) -> Item:
    life, device, container = (node[part] or {} for part in ("propLife", "propDevice", "propContainer"))
    name = _name(node)
    material = str((node["propMaterial"] or {}).get("substanceName", ""))
    inside = [child for child in node["contents"].values() if not HIDDEN.match(child["name"])]
    return Item(
        name,
        room,
        holder,
        frozenset(map(_name, inside)),
        alive=bool(life),
        substance=material.replace(" ", "") == str(node["name"]).replace(" ", "") or "unknown substance" in name,
        opens=container.get("isClosable") in (True, "true"),
        opened=container.get("isOpen") in (True, "true"),
        switches=device.get("isActivable") in (True, "true") and device.get("isBroken") not in (True, "true"),
        running=device.get("isActivated") in (True, "true"),
    )


def _name(node: dict[str, Any]) -> str:
    life = node["propLife"] or {}
    plant = " plant" if node["type"] == "plant" else ""
    return canonical(str(life["lifeformType"]) + plant if life else str(node["name"]))
