"""Keys and doors: a door lets pass whoever has found the key of its colour; the way out is the aim; moves are counted."""

from __future__ import annotations

from collections.abc import Iterable

from agentexp.envs.arc_agi3.games.logic import (
    BLUE,
    COAL,
    GREEN,
    MAROON,
    MOVES,
    ORANGE,
    PALE,
    RED,
    YELLOW,
    Layout,
    Move,
    Outcome,
    Piece,
    Puzzle,
    State,
    layout,
)

COLOURS = {"a": RED, "b": YELLOW, "c": ORANGE}


class Keys(Puzzle):
    """State: (cell of the player, keys found so far)."""

    code, title, actions, counted = "kd01", "Keys and doors", (1, 2, 3, 4), True
    baseline = (23, 61, 91, 97)

    def make_levels(self) -> Iterable[Layout]:
        """Four mazes with more and more doors."""
        yield layout(
            """
            #########
            #@..#..X#
            #...A...#
            #.a.#...#
            #########""",
            self.turned,
        )
        yield layout(
            """
            #############
            #@....#....a#
            #.###.#.###.#
            #.#b#.#.#...#
            #.#.#...#.###
            #.#.###.#...#
            #.A...#.###.#
            ###.#.#...#.#
            #X.B#.......#
            #############""",
            self.turned,
        )
        yield layout(
            """
            ###########
            #a..#.....#
            #...#.###.#
            #.@.A.#b#.#
            #...#.#.#.#
            #####.#...#
            #X..B.#...#
            ###########""",
            self.turned,
        )
        yield layout(
            """
            ##############
            #a....#...C.X#
            #.###.#.######
            #.#@#.#......#
            #.#.#.####.#.#
            #.#......A.#.#
            #.####.###.#b#
            #....#.#...###
            ####.#.B.#..c#
            #....#.#.#...#
            ##############""",
            self.turned,
        )

    def start(self, level: int) -> State:
        """At the start, without keys."""
        return self.levels[level].one("@"), ""

    def apply(self, level: int, state: State, move: Move) -> Outcome:
        """One step; walls and locked doors stop it."""
        cells, ((x, y), found) = self.levels[level].cells, state
        dx, dy = MOVES[move.action]
        there = (x + dx, y + dy)
        char = cells[there]
        if char == "#" or (char.isupper() and char != "X" and char.lower() not in found):
            return Outcome()
        if char in COLOURS and char not in found:
            found = "".join(sorted((*found, char)))
        return Outcome([(there, found)], "won" if char == "X" else "play")

    def scenery(self, level: int) -> Iterable[Piece]:
        """Walls, floor, the way out."""
        for cell, char in self.levels[level].cells.items():
            yield Piece("wall", cell, COAL) if char == "#" else Piece("floor", cell, PALE)
            if char == "X":
                yield Piece("exit", cell, GREEN, PALE)

    def pieces(self, level: int, state: State) -> Iterable[Piece]:
        """Keys not found, doors not open, the player."""
        here, found = state
        for cell, char in self.levels[level].cells.items():
            if char in COLOURS and char not in found:
                yield Piece(f"key {char}", cell, PALE, COLOURS[char])
            elif char.lower() in COLOURS and char.isupper() and char.lower() not in found:
                yield Piece(f"door {char.lower()}", cell, COLOURS[char.lower()], MAROON)
        yield Piece("player", here, BLUE)
