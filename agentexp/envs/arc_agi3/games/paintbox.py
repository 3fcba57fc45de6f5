"""A state of a game as a frame, without the engine and without the counter: what `board.py` shows, to the cell."""

from __future__ import annotations

from agentexp.envs.arc_agi3.games.logic import BLACK, CELL, SIDE, Puzzle, State


def paint(puzzle: Puzzle, level: int, state: State) -> bytes:
    """The frame's 64 x 64 colours, row by row; the last rows, where a counter stands, stay empty."""
    layout = puzzle.levels[level]
    image = bytearray([BLACK]) * (SIDE * SIDE)
    for piece in (*puzzle.scenery(level), *puzzle.pieces(level, state)):
        x, y = layout.pixel(piece.cell)
        full = bytes([piece.colour]) * CELL
        inner = full if piece.ring is None else bytes([piece.colour, piece.ring, piece.ring, piece.colour])
        for row in range(CELL):
            at = (y + row) * SIDE + x
            image[at : at + CELL] = inner if 0 < row < CELL - 1 else full
    return bytes(image)
