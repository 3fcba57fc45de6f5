"""Colour match: a click on the palette picks a colour, a click on a slot paints it, and ACTION5 submits.

The slots have to show the pattern above them. A third wrong submission ends the game.
"""

from __future__ import annotations

from collections.abc import Iterable

from agentexp.envs.arc_agi3.games.logic import (
    ACT,
    BLUE,
    CLICK,
    DARK,
    GREEN,
    ORANGE,
    PURPLE,
    RED,
    WHITE,
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

COLOURS = {"r": RED, "b": BLUE, "y": YELLOW, "g": GREEN, "o": ORANGE, "p": PURPLE}
WRONG = 3


class Paint(Puzzle):
    """State: (colour picked or "", colours of the slots, wrong submissions).

    In the text of a level small letters are the pattern, "_" the slots in the same order, capitals the palette.
    """

    code, title, actions = "cm01", "Colour match", (5, 6)
    baseline = (13, 19, 23, 29)

    def make_levels(self) -> Iterable[Layout]:
        """Longer patterns; from the third level on in two rows."""
        yield layout("|r b\n|\n|_ _\n|\n|\n|R B", self.turned)
        yield layout("|r b y b\n|\n|_ _ _ _\n|\n|\n|B Y R", self.turned)
        yield layout("|g r b\n|r r g\n|\n|_ _ _\n|_ _ _\n|\n|\n|R G B", self.turned)
        yield layout("|o p y r\n|p o p y\n|\n|_ _ _ _\n|_ _ _ _\n|\n|\n|P Y O R", self.turned)

    def start(self, level: int) -> State:
        """Nothing picked, nothing painted."""
        return "", "_" * len(self._slots(level)), 0

    def apply(self, level: int, state: State, move: Move) -> Outcome:
        """Pick, paint or submit."""
        picked, painted, wrong = state
        if move.action == ACT:
            if painted == self._pattern(level):
                return Outcome([state], "won")
            return Outcome([(picked, painted, wrong + 1)], "lost" if wrong + 1 == WRONG else "play")
        char = self.levels[level].cells.get(move.cell or (-1, -1), "")
        if move.action == CLICK and char.isupper() and char.lower() != picked:
            return Outcome([(char.lower(), painted, wrong)])
        if move.action == CLICK and char == "_" and picked:
            i = self._slots(level).index(move.cell or (-1, -1))
            if painted[i] != picked:
                return Outcome([(picked, painted[:i] + picked + painted[i + 1 :], wrong)])
        return Outcome()

    def targets(self, level: int) -> list[Cell]:
        """Palette and slots."""
        return [cell for cell, char in self.levels[level].cells.items() if char == "_" or char.isupper()]

    def solve(self, level: int, state: State) -> list[Move] | None:
        """Colour by colour, the picked one first: no search, the number of actions is the smallest possible."""
        picked, painted, _ = state
        pattern, slots, level_ = self._pattern(level), self._slots(level), self.levels[level]
        plan: list[Move] = []
        wanted = [colour for i, colour in enumerate(pattern) if painted[i] != colour]
        for colour in sorted(dict.fromkeys(wanted), key=lambda c: c != picked):
            if colour != picked:
                plan.append(Move(CLICK, level_.one(colour.upper())))
            plan += [Move(CLICK, slots[i]) for i, c in enumerate(pattern) if c == colour and painted[i] != c]
        return [*plan, Move(ACT)]

    def _slots(self, level: int) -> list[Cell]:
        return self.levels[level].find("_")

    def _pattern(self, level: int) -> str:
        cells = self.levels[level].cells
        return "".join(cells[cell] for cell in self.levels[level].find("rbygop"))

    def scenery(self, level: int) -> Iterable[Piece]:
        """The pattern and the palette."""
        for cell, char in self.levels[level].cells.items():
            if char != "_":
                yield Piece(f"{'palette' if char.isupper() else 'pattern'} {char.lower()}", cell, COLOURS[char.lower()])

    def pieces(self, level: int, state: State) -> Iterable[Piece]:
        """Slots, a mark in the colour of the palette that is picked, and one for each wrong submission."""
        picked, painted, wrong = state
        for cell, colour in zip(self._slots(level), painted, strict=True):
            yield Piece("slot", cell, DARK) if colour == "_" else Piece(f"slot {colour}", cell, COLOURS[colour], DARK)
        if picked:
            yield Piece("picked", self.levels[level].one(picked.upper()), WHITE, COLOURS[picked])
        bottom = len(self.levels[level].rows)
        for i in range(wrong):
            yield Piece("wrong", (i, bottom), RED, WHITE)
