"""Gravity: an action tilts the level and the ball rolls until something stops it. Plates on its way open and close gates.

The roll is shown cell by cell: several frames for one action. A pit ends the game.
"""

from __future__ import annotations

from collections.abc import Iterable

from agentexp.envs.arc_agi3.games.logic import (
    BLACK,
    COAL,
    GREEN,
    MAGENTA,
    MOVES,
    PALE,
    PURPLE,
    RED,
    SKY,
    Layout,
    Move,
    Outcome,
    Piece,
    Puzzle,
    State,
    layout,
)


class Gravity(Puzzle):
    """State: (cell of the ball, whether the gates are open)."""

    code, title, actions, counted = "gv01", "Gravity", (1, 2, 3, 4), True
    baseline = (7, 13, 15, 19)

    def make_levels(self) -> Iterable[Layout]:
        """A plate is "s", a gate "g", a pit "v", the aim "X"."""
        yield layout(
            """
            #########
            #@......#
            #.......#
            #...#...#
            #......X#
            #########""",
            self.turned,
        )
        yield layout(
            """
            ##########
            #....###.#
            #......X.#
            #...#....#
            #v.......#
            ##...#...#
            #@.###...#
            ##########""",
            self.turned,
        )
        yield layout(
            """
            ##########
            ##.##..X.#
            ##@.#g#..#
            #..#....s#
            #........#
            ##.......#
            #...#g...#
            ##########""",
            self.turned,
        )
        yield layout(
            """
            ###########
            #....#...##
            ##...#...##
            ##.Xs..#..#
            #....#ggs.#
            #.#.#..@v.#
            #..#.g....#
            #.#...##s.#
            ###########""",
            self.turned,
        )

    def start(self, level: int) -> State:
        """Gates closed."""
        return self.levels[level].one("@"), False

    def apply(self, level: int, state: State, move: Move) -> Outcome:
        """Roll until a wall or a closed gate, a pit or the aim."""
        cells, (here, opened) = self.levels[level].cells, state
        dx, dy = MOVES[move.action]
        frames: list[State] = []
        while True:
            there = (here[0] + dx, here[1] + dy)
            char = cells[there]
            if char == "#" or (char == "g" and not opened):
                return Outcome(frames)
            here, opened = there, opened ^ (char == "s")
            frames.append((here, opened))
            if char in "Xv":
                return Outcome(frames, "won" if char == "X" else "lost")

    def scenery(self, level: int) -> Iterable[Piece]:
        """Walls, floor, plates, pits, the aim."""
        marks = {"s": ("plate", PURPLE), "v": ("pit", BLACK), "X": ("aim", GREEN)}
        for cell, char in self.levels[level].cells.items():
            yield Piece("wall", cell, COAL) if char == "#" else Piece("floor", cell, PALE)
            if char in marks:
                yield Piece(marks[char][0], cell, PALE, marks[char][1])

    def pieces(self, level: int, state: State) -> Iterable[Piece]:
        """Gates and the ball."""
        here, opened = state
        for cell in self.levels[level].find("g"):
            yield Piece("gate open", cell, PALE, SKY) if opened else Piece("gate", cell, MAGENTA)
        yield Piece("ball", here, RED)
