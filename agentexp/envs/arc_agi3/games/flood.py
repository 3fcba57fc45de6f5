"""Flood: a click on the palette colours the region around the upper left corner; the whole field has to have one colour."""

from __future__ import annotations

from collections.abc import Iterable

from agentexp.envs.arc_agi3.games.logic import (
    BLUE,
    CLICK,
    GREEN,
    MOVES,
    RED,
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

COLOURS = {"r": RED, "g": GREEN, "b": BLUE, "y": YELLOW}


class Flood(Puzzle):
    """State: the field's colours, row by row. Small letters are the field, capitals the palette."""

    code, title, actions, counted = "fl01", "Flood", (6,), True
    baseline = (7, 15, 15)

    def make_levels(self) -> Iterable[Layout]:
        """Larger fields, then a fourth colour."""
        yield layout("|rgr\n|rgg\n|ggr\n|\n|R G", self.turned)
        yield layout("|rgbr\n|gbrg\n|brgb\n|rbgr\n|\n|R G B", self.turned)
        yield layout("|rgby\n|gybr\n|brgy\n|yrbg\n|\n|R G B Y", self.turned)

    def _field(self, level: int) -> list[Cell]:
        return self.levels[level].find("rgby")

    def start(self, level: int) -> State:
        """As drawn."""
        return "".join(self.levels[level].cells[cell] for cell in self._field(level))

    def apply(self, level: int, state: State, move: Move) -> Outcome:
        """Colour the region of the corner."""
        char = self.levels[level].cells.get(move.cell or (-1, -1), "")
        colour = char.lower()
        if move.action != CLICK or not char.isupper():
            return Outcome()
        field = self._field(level)
        colours = dict(zip(field, state, strict=True))
        corner = self._corner(field)
        if colour == colours[corner]:
            return Outcome()
        region, edge = {corner}, [corner]
        for x, y in edge:  # grows while it is walked
            for dx, dy in MOVES.values():
                near = (x + dx, y + dy)
                if colours.get(near) == colours[corner] and near not in region:
                    region.add(near)
                    edge.append(near)
        after = "".join(colour if cell in region else colours[cell] for cell in field)
        return Outcome([after], "won" if len(set(after)) == 1 else "play")

    def _corner(self, field: list[Cell]) -> Cell:
        """The upper left corner, or where it is in the turned level."""
        pick_x, pick_y = max if self.turned == "m" else min, max if self.turned == "f" else min
        return pick_x(x for x, _ in field), pick_y(y for _, y in field)

    def targets(self, level: int) -> list[Cell]:
        """The palette."""
        return [cell for cell, char in self.levels[level].cells.items() if char.isupper()]

    def scenery(self, level: int) -> Iterable[Piece]:
        """The palette."""
        for cell in self.targets(level):
            char = self.levels[level].cells[cell].lower()
            yield Piece(f"palette {char}", cell, COLOURS[char])

    def pieces(self, level: int, state: State) -> Iterable[Piece]:
        """The field."""
        for cell, char in zip(self._field(level), state, strict=True):
            yield Piece(f"field {char}", cell, COLOURS[char])
