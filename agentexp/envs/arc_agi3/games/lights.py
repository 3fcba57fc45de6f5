"""Lights: a click switches a lamp and the lamps beside it; all have to be on."""

from __future__ import annotations

from collections.abc import Iterable

from agentexp.envs.arc_agi3.games.logic import (
    CLICK,
    DARK,
    MOVES,
    SKY,
    YELLOW,
    Cell,
    Layout,
    Move,
    Outcome,
    Piece,
    Puzzle,
    State,
    layout,
)


class Lights(Puzzle):
    """State: cells of the lamps that are on. In the text of a level "o" is on and "." off."""

    code, title, actions = "lt01", "Lights", (6, 7)
    baseline = (5, 13, 15, 15)

    def make_levels(self) -> Iterable[Layout]:
        """Lamps stand apart by one cell, so "beside" is two cells away."""
        yield layout(
            """
            |. . .
            |
            |o . o""",
            self.turned,
        )
        yield layout(
            """
            |. . .
            |
            |. . .
            |
            |o . o""",
            self.turned,
        )
        yield layout(
            """
            |o . o .
            |
            |. o . .
            |
            |o . o .""",
            self.turned,
        )
        yield layout(
            """
            |. . . .
            |
            |. o o .
            |
            |. . . .""",
            self.turned,
        )

    def start(self, level: int) -> State:
        """As drawn."""
        return frozenset(self.levels[level].find("o"))

    def apply(self, level: int, state: State, move: Move) -> Outcome:
        """Switch the lamp and its neighbours."""
        cells, cell = self.levels[level].cells, move.cell
        if move.action != CLICK or cell is None or cell not in cells:
            return Outcome()
        near = {cell, *((cell[0] + 2 * dx, cell[1] + 2 * dy) for dx, dy in MOVES.values())}
        after = state ^ frozenset(near & cells.keys())
        return Outcome([after], "won" if len(after) == len(cells) else "play")

    def targets(self, level: int) -> list[Cell]:
        """The lamps."""
        return list(self.levels[level].cells)

    def scenery(self, level: int) -> Iterable[Piece]:
        """Nothing."""
        return ()

    def pieces(self, level: int, state: State) -> Iterable[Piece]:
        """The lamps."""
        for cell in self.levels[level].cells:
            yield Piece("lamp on", cell, YELLOW) if cell in state else Piece("lamp off", cell, DARK, SKY)
