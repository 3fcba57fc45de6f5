"""Patrols: things walk to and fro, one step for each of the player's; whoever meets one has lost."""

from __future__ import annotations

from collections.abc import Iterable

from agentexp.envs.arc_agi3.games.logic import (
    BLUE,
    COAL,
    GREEN,
    MAROON,
    MOVES,
    PALE,
    PINK,
    Layout,
    Move,
    Outcome,
    Piece,
    Puzzle,
    State,
    layout,
)


class Hazard(Puzzle):
    """State: (cell of the player, (cell, direction) of each patrol)."""

    code, title, actions = "hz01", "Patrols", (1, 2, 3, 4)
    baseline = (29, 41, 57)

    def make_levels(self) -> Iterable[Layout]:
        """Of the patrols "h" walks along its row, "w" along its column; "X" is the way out."""
        yield layout(
            """
            ########
            #@.....#
            #h.....#
            ######.#
            #X.....#
            ########""",
            self.turned,
        )
        yield layout(
            """
            ##########
            #@..#..w.#
            #.#....#.#
            #.#.##.#.#
            #h.......#
            #####.##.#
            #X..h....#
            ##########""",
            self.turned,
        )
        yield layout(
            """
            ###########
            #@.......h#
            #.###.###.#
            #.w.#.#...#
            #.#.#.#.#.#
            #.#...#.#.#
            #.###h....#
            #h......#.#
            #.#####.#X#
            ###########""",
            self.turned,
        )

    def start(self, level: int) -> State:
        """Patrols set out to the right and down, or as the level is turned."""
        level_ = self.levels[level]
        walkers = [(cell, MOVES[3 if self.turned == "m" else 4]) for cell in level_.find("h")] + [
            (cell, MOVES[1 if self.turned == "f" else 2]) for cell in level_.find("w")
        ]
        return level_.one("@"), tuple(walkers)

    def apply(self, level: int, state: State, move: Move) -> Outcome:
        """A step of the player and then one of every patrol; a blocked player's step costs nothing but moves nobody."""
        cells, ((x, y), walkers) = self.levels[level].cells, state
        dx, dy = MOVES[move.action]
        there = (x + dx, y + dy)
        if cells[there] == "#":
            return Outcome()
        if cells[there] == "X":
            return Outcome([(there, walkers)], "won")
        moved = tuple(_walk(cells, *walker) for walker in walkers)
        crossed = any(old[0] == there and new[0] == (x, y) for old, new in zip(walkers, moved, strict=True))
        met = crossed or any(cell == there for cell, _ in moved)
        return Outcome([(there, moved)], "lost" if met else "play")

    def scenery(self, level: int) -> Iterable[Piece]:
        """Walls, floor, the way out."""
        for cell, char in self.levels[level].cells.items():
            yield Piece("wall", cell, COAL) if char == "#" else Piece("floor", cell, PALE)
            if char == "X":
                yield Piece("exit", cell, GREEN, PALE)

    def pieces(self, level: int, state: State) -> Iterable[Piece]:
        """The player and the patrols."""
        here, walkers = state
        yield Piece("player", here, BLUE)
        for cell, _ in walkers:
            yield Piece("patrol", cell, MAROON, PINK)


def _walk(cells: dict[tuple[int, int], str], cell: tuple[int, int], step: tuple[int, int]) -> tuple[tuple[int, int], ...]:
    """One step; before a wall it turns round and stays for this turn if it is shut in."""
    for dx, dy in (step, (-step[0], -step[1])):
        there = (cell[0] + dx, cell[1] + dy)
        if cells[there] not in "#X":
            return there, (dx, dy)
    return cell, step
