"""Pushing: boxes are pushed, never pulled, until each target carries one."""

from __future__ import annotations

from collections.abc import Iterable

from agentexp.envs.arc_agi3.games.logic import (
    BLUE,
    COAL,
    GREEN,
    MOVES,
    ORANGE,
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


class Push(Puzzle):
    """State: (cell of the player, cells of the boxes)."""

    code, title, actions = "px01", "Pushing", (1, 2, 3, 4, 7)
    baseline = (9, 15, 33, 47)

    def make_levels(self) -> Iterable[Layout]:
        """A box is "$", a target "*"."""
        yield layout(
            """
            ########
            #......#
            #@.$.*.#
            #......#
            ########""",
            self.turned,
        )
        yield layout(
            """
            ########
            #..*...#
            #.##$..#
            #.@.$*.#
            #......#
            ########""",
            self.turned,
        )
        yield layout(
            """
            ########
            #...##*#
            #$#.@..#
            #....$.#
            #......#
            #*#..#.#
            ########""",
            self.turned,
        )
        yield layout(
            """
            #########
            #.*.....#
            #.$#....#
            #.$....@#
            ###.$*###
            ###*....#
            #########""",
            self.turned,
        )

    def start(self, level: int) -> State:
        """As drawn."""
        return self.levels[level].one("@"), frozenset(self.levels[level].find("$"))

    def apply(self, level: int, state: State, move: Move) -> Outcome:
        """A step, or a push where a box stands and the cell behind it is free."""
        if move.action not in MOVES:
            return Outcome()
        level_, ((x, y), boxes) = self.levels[level], state
        dx, dy = MOVES[move.action]
        there, behind = (x + dx, y + dy), (x + 2 * dx, y + 2 * dy)
        if level_.cells[there] == "#":
            return Outcome()
        if there in boxes:
            if level_.cells[behind] == "#" or behind in boxes:
                return Outcome()
            boxes = boxes - {there} | {behind}
        won = boxes == frozenset(level_.find("*"))
        return Outcome([(there, boxes)], "won" if won else "play")

    def scenery(self, level: int) -> Iterable[Piece]:
        """Walls, floor, targets."""
        for cell, char in self.levels[level].cells.items():
            yield Piece("wall", cell, COAL) if char == "#" else Piece("floor", cell, PALE)
            if char == "*":
                yield Piece("target", cell, PALE, PINK)

    def pieces(self, level: int, state: State) -> Iterable[Piece]:
        """Boxes, of another colour on a target, and the player."""
        here, boxes = state
        targets = set(self.levels[level].find("*"))
        for cell in sorted(boxes):
            yield Piece("box on target", cell, GREEN) if cell in targets else Piece("box", cell, ORANGE)
        yield Piece("player", here, BLUE)
