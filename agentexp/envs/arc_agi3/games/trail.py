"""Trail: who walks leaves a trail that cannot be crossed; the whole floor has to be covered."""

from __future__ import annotations

from collections.abc import Iterable

from agentexp.envs.arc_agi3.games.logic import (
    BLUE,
    COAL,
    MOVES,
    PALE,
    PURPLE,
    SKY,
    Layout,
    Move,
    Outcome,
    Piece,
    Puzzle,
    State,
    layout,
)


class Trail(Puzzle):
    """State: (cell of the player, cells covered)."""

    code, title, actions = "tr01", "Trail", (1, 2, 3, 4, 7)
    baseline = (21, 31, 41)

    def make_levels(self) -> Iterable[Layout]:
        """Larger rooms with pillars."""
        yield layout(
            """
            ######
            #@...#
            #.##.#
            #....#
            ######""",
            self.turned,
        )
        yield layout(
            """
            ######
            #....#
            #.@..#
            #.#..#
            #....#
            ######""",
            self.turned,
        )
        yield layout(
            """
            #######
            ###...#
            #@..###
            ##....#
            #.....#
            #.....#
            #######""",
            self.turned,
        )

    def start(self, level: int) -> State:
        """The first cell is covered."""
        here = self.levels[level].one("@")
        return here, frozenset({here})

    def apply(self, level: int, state: State, move: Move) -> Outcome:
        """A step onto floor that is not covered yet."""
        if move.action not in MOVES:
            return Outcome()
        cells, ((x, y), covered) = self.levels[level].cells, state
        dx, dy = MOVES[move.action]
        there = (x + dx, y + dy)
        if cells[there] == "#" or there in covered:
            return Outcome()
        covered = covered | {there}
        return Outcome([(there, covered)], "won" if len(covered) == len(self.levels[level].find("@.")) else "play")

    def scenery(self, level: int) -> Iterable[Piece]:
        """Walls and floor."""
        for cell, char in self.levels[level].cells.items():
            yield Piece("wall", cell, COAL) if char == "#" else Piece("floor", cell, PALE)

    def pieces(self, level: int, state: State) -> Iterable[Piece]:
        """The trail and the player."""
        here, covered = state
        for cell in sorted(covered - {here}):
            yield Piece("trail", cell, PURPLE, SKY)
        yield Piece("player", here, BLUE)
