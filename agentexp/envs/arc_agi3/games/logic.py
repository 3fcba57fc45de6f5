"""What a game of ours is, without its engine: levels as text, states as tuples, one rule, and a solver.

A game's rules are pure functions over hashable states, so that its oracle is a search that never touches the engine, and that
the parent process can list games without importing one. `board.py` puts them on arcengine.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeAlias

State: TypeAlias = Any
"""Hashable; what it holds is the game's business."""
Cell: TypeAlias = tuple[int, int]
Status = Literal["play", "won", "lost"]
Turn = Literal["", "m", "f"]

CELL = 4  # pixels of a cell's side
SIDE = 64
HEIGHT = 60  # the rows below are the counter's
UP, DOWN, LEFT, RIGHT, ACT, CLICK, UNDO = range(1, 8)
MOVES: Mapping[int, Cell] = {UP: (0, -1), DOWN: (0, 1), LEFT: (-1, 0), RIGHT: (1, 0)}
MOST_STATES = 300_000

# The engine's palette: 0 white ... 5 black, then colours.
WHITE, PALE, GREY, DARK, COAL, BLACK, MAGENTA, PINK, RED, BLUE, SKY, YELLOW, ORANGE, MAROON, GREEN, PURPLE = range(16)


class Move(NamedTuple):
    """One action; `cell` is where it clicks (only with `CLICK`, and None outside of the level)."""

    action: int
    cell: Cell | None = None


class Outcome(NamedTuple):
    """What a move leads to. `states` are the frames that are shown, the last one stays; empty: nothing happened."""

    states: Sequence[State] = ()
    status: Status = "play"


class Piece(NamedTuple):
    """Something that is drawn.

    Attributes:
        name: of its kind ("key a").
        cell: column and row.
        colour: 0 to 15.
        ring: colour of the inside where it is another; None for a plain square.
    """

    name: str
    cell: Cell
    colour: int
    ring: int | None = None


@dataclass(frozen=True)
class Layout:
    """A level as text: one character per cell.

    Attributes:
        rows: lines of equal length.
        extra: anything else that the level needs.
    """

    rows: tuple[str, ...]
    extra: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def cells(self) -> dict[Cell, str]:
        """Character of each cell, blanks left out."""
        return {(x, y): char for y, row in enumerate(self.rows) for x, char in enumerate(row) if char != " "}

    @cached_property
    def origin(self) -> Cell:
        """Pixel of the upper left corner: levels are centred above the counter."""
        width, height = max(map(len, self.rows)), len(self.rows)
        return (SIDE - CELL * width) // 2, (HEIGHT - CELL * height) // 2

    def find(self, chars: str) -> list[Cell]:
        """Cells that hold any of these characters, row by row."""
        return [cell for cell, char in self.cells.items() if char in chars]

    def one(self, char: str) -> Cell:
        """The only cell with this character."""
        (cell,) = self.find(char)
        return cell

    def pixel(self, cell: Cell) -> Cell:
        """Upper left pixel of a cell."""
        return self.origin[0] + CELL * cell[0], self.origin[1] + CELL * cell[1]

    def cell_at(self, x: int, y: int) -> Cell | None:
        """The cell under a pixel; None outside of the level."""
        cell = (x - self.origin[0]) // CELL, (y - self.origin[1]) // CELL
        return cell if cell in self.cells else None


def layout(text: str, turned: Turn = "", **extra: Any) -> Layout:
    """A level from indented lines, as it stands or turned."""
    lines = [line.strip("|") for line in (raw.strip() for raw in text.strip().splitlines()) if line]
    width = max(map(len, lines))
    rows = [line.ljust(width) for line in lines]
    if turned == "m":
        rows = [row[::-1] for row in rows]
    return Layout(tuple(rows[::-1] if turned == "f" else rows), extra)


class Puzzle(ABC):
    """A game: subclasses give the levels and the rule.

    Attributes:
        code: first part of the game's id ("kd01").
        title: for people.
        actions: numbers of the actions that it knows.
        counted: a bar below the level shows how many actions are left; at zero the game is over.
        baseline: our stand-in for `baseline_actions`: 2 n + 3 for a shortest solution of n actions, by level.

    Args:
        turned: another instance of the same game: "m" left and right exchanged, "f" up and down.
    """

    code = ""
    title = ""
    actions: tuple[int, ...] = ()
    counted = False
    baseline: tuple[int, ...] = ()

    def __init__(self, turned: Turn = "") -> None:
        self.turned: Turn = turned
        self.levels: tuple[Layout, ...] = tuple(self.make_levels())
        self._solved: dict[int, list[Move]] = {}

    # ------------------------------------------------------------------------------------------------------- the rules

    @abstractmethod
    def make_levels(self) -> Iterable[Layout]:
        """The levels."""

    @abstractmethod
    def start(self, level: int) -> State:
        """State at the beginning of a level."""

    @abstractmethod
    def apply(self, level: int, state: State, move: Move) -> Outcome:
        """The rule."""

    @abstractmethod
    def scenery(self, level: int) -> Iterable[Piece]:
        """What never changes."""

    @abstractmethod
    def pieces(self, level: int, state: State) -> Iterable[Piece]:
        """What may change, drawn over the scenery."""

    def moves(self, level: int, state: State) -> Iterator[Move]:
        """Moves worth trying in a search: by default the simple actions, and a click on each piece."""
        for action in self.actions:
            if action in MOVES or action == ACT:
                yield Move(action)
            elif action == CLICK:
                yield from (Move(CLICK, cell) for cell in self.targets(level))

    def targets(self, level: int) -> list[Cell]:
        """Cells on which a click can do something."""
        return []

    def limit(self, level: int) -> int | None:
        """Actions that the counter allows on a level; None without a counter."""
        return 2 * self.baseline[level] + 6 if self.counted else None

    # ------------------------------------------------------------------------------------------------------- the solver

    def solve(self, level: int, state: State) -> list[Move] | None:
        """A shortest solution from a state of a level; None if there is none."""
        return search(self, level, state)

    def solution(self, level: int) -> list[Move]:
        """A shortest solution from the level's beginning. Raises `ValueError` for a level without one."""
        if level not in self._solved:
            found = self.solve(level, self.start(level))
            if found is None:
                raise ValueError(f"Level {level + 1} of {self.code} has no solution.")
            self._solved[level] = found
        return list(self._solved[level])


def search(puzzle: Puzzle, level: int, state: State, most: int = MOST_STATES) -> list[Move] | None:
    """Breadth-first search for a win. Gives up (None) after `most` states."""
    came: dict[Hashable, tuple[State, Move] | None] = {state: None}
    queue = deque([state])
    while queue and len(came) < most:
        here = queue.popleft()
        for move in puzzle.moves(level, here):
            states, status = puzzle.apply(level, here, move)
            if status == "won":
                return [*_path(came, here), move]
            if status == "play" and states and states[-1] not in came:
                came[states[-1]] = (here, move)
                queue.append(states[-1])
    return None


def _path(came: Mapping[Hashable, tuple[State, Move] | None], state: State) -> list[Move]:
    path: list[Move] = []
    while (link := came[state]) is not None:
        state, move = link
        path.append(move)
    return path[::-1]
