"""The grid as plain data: what lies where, what the robot sees of it, and what each of its moves does.

The rules are minigrid's (moves, field of view), so that plans can be made without touching the engine; tests compare the two.
Directions count clockwise: 0 east, 1 south, 2 west, 3 north. x grows to the east, y to the south.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

LEFT, RIGHT, FORWARD, PICKUP, DROP, TOGGLE = range(6)  # minigrid's numbers
VECTORS = ((1, 0), (0, 1), (-1, 0), (0, -1))
VIEW = 7  # cells ahead, the robot's own included, and cells across
OPEN, CLOSED, LOCKED = "open", "closed", "locked"

Cell: TypeAlias = tuple[int, int]


class Thing(NamedTuple):
    """A door, key, ball or box. `number` tells it from others that look alike; `state` is a door's."""

    number: int
    kind: str
    colour: str
    state: str = ""

    @property
    def name(self) -> str:
        """As it is called in texts: "red ball", "blue locked door"."""
        return " ".join(filter(None, (self.colour, self.state, self.kind)))


class Sight(NamedTuple):
    """A thing in view, or a wall (`thing` None): where it is, how many steps ahead and to the right (negative: to the left)."""

    thing: Thing | None
    cell: Cell
    ahead: int
    right: int

    @property
    def distance(self) -> int:
        """Steps without turns."""
        return self.ahead + abs(self.right)


@dataclass(frozen=True, slots=True)
class Scene:
    """One state of the grid.

    Attributes:
        width: cells from west to east; outside of the grid there is wall.
        height: cells from north to south.
        walls: cells with a wall.
        things: what stands on the grid.
        cell: where the robot is.
        facing: its direction.
        carrying: what it holds.
    """

    width: int
    height: int
    walls: frozenset[Cell]
    things: Mapping[Cell, Thing]
    cell: Cell
    facing: int
    carrying: Thing | None = None

    @property
    def front(self) -> Cell:
        """The cell ahead."""
        return ahead(self.cell, self.facing)

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for equal states of one instance."""
        return self.cell, self.facing, self.carrying, frozenset(self.things.items())

    def is_wall(self, cell: Cell) -> bool:
        """Whether there is a wall; everything outside of the grid is one."""
        return cell in self.walls or not (0 <= cell[0] < self.width and 0 <= cell[1] < self.height)

    def is_free(self, cell: Cell) -> bool:
        """Neither wall nor thing: something can be put down there."""
        return cell not in self.things and not self.is_wall(cell)

    def can_enter(self, cell: Cell) -> bool:
        """Whether the robot can step there now."""
        thing = self.things.get(cell)
        return not self.is_wall(cell) and (thing is None or thing.state == OPEN)

    def after(self, move: int) -> Scene:
        """The state after one move; this very object if the move changes nothing."""
        if move in (LEFT, RIGHT):
            return replace(self, facing=(self.facing + (1 if move == RIGHT else -1)) % 4)
        front, thing = self.front, self.things.get(self.front)
        if move == FORWARD:
            return replace(self, cell=front) if self.can_enter(front) else self
        if move == PICKUP and thing is not None and thing.kind != "door" and self.carrying is None:
            return replace(self, carrying=thing, things={c: t for c, t in self.things.items() if c != front})
        if move == DROP and self.carrying is not None and self.is_free(front):
            return replace(self, carrying=None, things={**self.things, front: self.carrying})
        if move == TOGGLE and thing is not None and thing.kind == "door":
            if thing.state == LOCKED and not opens(self.carrying, thing):
                return self
            state = CLOSED if thing.state == OPEN else OPEN
            return replace(self, things={**self.things, front: thing._replace(state=state)})
        if move == TOGGLE and thing is not None and thing.kind == "box":  # opened and gone; no box of our levels holds anything
            return replace(self, things={c: t for c, t in self.things.items() if c != front})
        return self

    def position(self, number: int) -> Cell | None:
        """Where a thing stands; None while it is carried."""
        return next((cell for cell, thing in self.things.items() if thing.number == number), None)


def ahead(cell: Cell, facing: int, steps: int = 1, right: int = 0) -> Cell:
    """The cell so many steps ahead and to the right."""
    (x, y), (fx, fy) = cell, VECTORS[facing]
    return x + fx * steps - fy * right, y + fy * steps + fx * right


def opens(carried: Thing | None, door: Thing) -> bool:
    """Whether what is carried is the key to a door."""
    return carried is not None and carried.kind == "key" and carried.colour == door.colour


def in_view(scene: Scene) -> list[Sight]:
    """All things and walls in view, the farthest row first, each row from left to right; not the robot's own cell.

    Light spreads from the robot row by row, sideways and ahead, and stops at walls and shut doors (minigrid's `process_vis`).
    """
    half = VIEW // 2
    lit = [[False] * VIEW for _ in range(VIEW)]  # [steps ahead][from left to right]
    lit[0][half] = True
    dark: dict[Cell, bool] = {}
    for row in range(VIEW):
        for columns, side in ((range(VIEW - 1), 1), (range(VIEW - 1, 0, -1), -1)):
            for column in columns:
                if not lit[row][column]:
                    continue
                cell = ahead(scene.cell, scene.facing, row, column - half)
                if cell not in dark:
                    dark[cell] = _stops_light(scene, cell)
                if dark[cell]:
                    continue
                lit[row][column + side] = True
                if row + 1 < VIEW:
                    lit[row + 1][column + side] = lit[row + 1][column] = True
    seen = []
    for row in range(VIEW - 1, -1, -1):
        for column in range(VIEW):
            cell = ahead(scene.cell, scene.facing, row, column - half)
            if lit[row][column] and cell != scene.cell and not scene.is_free(cell):
                seen.append(Sight(scene.things.get(cell), cell, row, column - half))
    return seen


def _stops_light(scene: Scene, cell: Cell) -> bool:
    thing = scene.things.get(cell)
    return scene.is_wall(cell) or (thing is not None and thing.kind == "door" and thing.state != OPEN)
