"""Portals: who enters one comes out of its twin. The way out is behind them."""

from __future__ import annotations

from collections.abc import Iterable

from agentexp.envs.arc_agi3.games.logic import (
    BLUE,
    COAL,
    GREEN,
    MOVES,
    ORANGE,
    PALE,
    PURPLE,
    RED,
    Layout,
    Move,
    Outcome,
    Piece,
    Puzzle,
    State,
    layout,
)

COLOURS = {"p": PURPLE, "q": ORANGE, "r": RED}


class Portals(Puzzle):
    """State: cell of the player."""

    code, title, actions, counted = "pt01", "Portals", (1, 2, 3, 4), True
    baseline = (17, 39, 29)

    def make_levels(self) -> Iterable[Layout]:
        """Equal letters are twins."""
        yield layout(
            """
            ########
            #@.p##X#
            #...##.#
            ######.#
            #...p..#
            ########""",
            self.turned,
        )
        yield layout(
            """
            ###########
            #@..#q..#X#
            #.p.#...#.#
            #...#.p##.#
            #####.#.#.#
            #q..#.#.#.#
            #.#.###.#.#
            #.#...r.#r#
            ###########""",
            self.turned,
        )
        yield layout(
            """
            ############
            #@...#..r#X#
            #.##.#.#.#.#
            #p.#...#.#.#
            ##########.#
            #q..#..p#..#
            #.#.#.#.#.##
            #.#...#...q#
            ##########.#
            #r.........#
            ############""",
            self.turned,
        )

    def start(self, level: int) -> State:
        """At the start."""
        return self.levels[level].one("@")

    def apply(self, level: int, state: State, move: Move) -> Outcome:
        """A step; onto a portal it leads to the twin."""
        level_ = self.levels[level]
        dx, dy = MOVES[move.action]
        there = (state[0] + dx, state[1] + dy)
        char = level_.cells[there]
        if char == "#":
            return Outcome()
        if char in COLOURS:
            (twin,) = [cell for cell in level_.find(char) if cell != there]
            return Outcome([there, twin])
        return Outcome([there], "won" if char == "X" else "play")

    def scenery(self, level: int) -> Iterable[Piece]:
        """Walls, floor, portals, the way out."""
        for cell, char in self.levels[level].cells.items():
            yield Piece("wall", cell, COAL) if char == "#" else Piece("floor", cell, PALE)
            if char in COLOURS:
                yield Piece(f"portal {char}", cell, COLOURS[char], PALE)
            elif char == "X":
                yield Piece("exit", cell, GREEN, PALE)

    def pieces(self, level: int, state: State) -> Iterable[Piece]:
        """The player."""
        yield Piece("player", state, BLUE)
