"""Belts: rows of colours that a click on the arrow at either end moves on by one; the marked column has to be all green."""

from __future__ import annotations

from collections.abc import Iterable

from agentexp.envs.arc_agi3.games.logic import (
    CLICK,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    WHITE,
    Cell,
    Layout,
    Move,
    Outcome,
    Piece,
    Puzzle,
    State,
    layout,
)

COLOURS = {"g": GREEN, "o": ORANGE, "p": PURPLE}


class Belts(Puzzle):
    """State: how far each belt has moved. In a level "<" and ">" are arrows, letters the belt, "v" the mark above it.

    `coupled` in a level's extra: a belt that moves along with the one above it, by its number.
    """

    code, title, actions = "bt01", "Belts", (6,)
    baseline = (5, 9, 9)

    def make_levels(self) -> Iterable[Layout]:
        """The last level couples two belts."""
        yield layout("|   v\n|<ogopp>", self.turned)
        yield layout("|   v\n|<pogpo>\n|\n|<gopop>\n|\n|<oopgp>", self.turned)
        yield layout("|   v\n|<gopoo>\n|\n|<popog>\n|\n|<opgop>", self.turned, coupled=1)

    def start(self, level: int) -> State:
        """As drawn."""
        return (0,) * len(self._belts(level))

    def _belts(self, level: int) -> list[list[Cell]]:
        cells = self.levels[level].cells
        rows = sorted({y for (_, y), char in cells.items() if char in COLOURS}, reverse=self.turned == "f")
        return [sorted(cell for cell, char in cells.items() if cell[1] == y and char in COLOURS) for y in rows]

    def _shown(self, level: int, state: State) -> dict[Cell, str]:
        cells, shown = self.levels[level].cells, dict[Cell, str]()
        for belt, moved in zip(self._belts(level), state, strict=True):
            for i, cell in enumerate(belt):
                shown[cell] = cells[belt[(i - moved) % len(belt)]]
        return shown

    def apply(self, level: int, state: State, move: Move) -> Outcome:
        """An arrow moves its belt, and a coupled one with it."""
        level_, cell = self.levels[level], move.cell
        char = level_.cells.get(cell or (-1, -1), "")
        if move.action != CLICK or cell is None or char not in ("<", ">"):
            return Outcome()
        belts = self._belts(level)
        number = next(i for i, belt in enumerate(belts) if belt[0][1] == cell[1])
        by = 1 if cell[0] > belts[number][0][0] else -1
        also = level_.extra.get("coupled")
        turned = {number, number + 1} if number + 1 == also else {number}
        after = tuple((m + by) % len(belts[i]) if i in turned else m for i, m in enumerate(state))
        column, shown = level_.one("v")[0], self._shown(level, after)
        return Outcome([after], "won" if all(shown[(column, belt[0][1])] == "g" for belt in belts) else "play")

    def targets(self, level: int) -> list[Cell]:
        """The arrows."""
        return self.levels[level].find("<>")

    def scenery(self, level: int) -> Iterable[Piece]:
        """Arrows and the mark."""
        for cell, char in self.levels[level].cells.items():
            if char == "v":
                yield Piece("mark", cell, WHITE, GREEN)
            elif char in "<>":
                yield Piece("arrow", cell, SKY, GREY)

    def pieces(self, level: int, state: State) -> Iterable[Piece]:
        """The belts."""
        for cell, char in self._shown(level, state).items():
            yield Piece(f"belt {char}", cell, COLOURS[char])
