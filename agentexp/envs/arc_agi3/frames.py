"""Frames of the games as bytes, and as text: 64 x 64 cells of 16 colours, written 0-9 and a-f.

The text is a run-length code, lossless and about five times shorter than the grid: one line for equal rows, each run as the
colour and, from two cells on, "*" and its length.

    0-7: 5*64
    8-11: 5*12 4*4 5*48
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

SIDE = 64
HEX = "0123456789abcdef"
_LINE = re.compile(r"^(\d{1,2})(?:-(\d{1,2}))?: ([0-9a-f](?:\*\d{1,2})?(?: [0-9a-f](?:\*\d{1,2})?)*)$", re.MULTILINE)

Grid = bytes
"""4096 colours, row by row."""


@dataclass(frozen=True, slots=True)
class Frame:
    """What a game answers to one action.

    Attributes:
        grids: the frames of its animation, oldest first; the last one stays. Empty where the game gave none.
        state: NOT_FINISHED, WIN or GAME_OVER.
        completed: levels completed in this play.
        levels: levels of the game.
        available: numbers of the actions that the game knows.
        full_reset: this RESET began a new play at level 1.
    """

    grids: tuple[Grid, ...]
    state: str
    completed: int
    levels: int
    available: tuple[int, ...]
    full_reset: bool = False


def rows_of(grid: Grid) -> list[bytes]:
    """The 64 rows."""
    return [grid[i : i + SIDE] for i in range(0, SIDE * SIDE, SIDE)]


def encode(grid: Grid, only: frozenset[int] | None = None) -> str:
    """The run-length code.

    Args:
        grid: the frame.
        only: rows to write; None: all.
    """
    lines: list[str] = []
    rows, first = rows_of(grid), 0
    for y in range(1, SIDE + 1):
        wanted = only is None or first in only
        if y < SIDE and rows[y] == rows[first] and wanted == (only is None or y in only):
            continue
        if wanted:
            lines.append(f"{first}-{y - 1}: {_runs(rows[first])}" if y - 1 > first else f"{first}: {_runs(rows[first])}")
        first = y
    return "\n".join(lines)


def _runs(row: bytes) -> str:
    parts, start = [], 0
    for x in range(1, SIDE + 1):
        if x == SIDE or row[x] != row[start]:
            parts.append(HEX[row[start]] + (f"*{x - start}" if x - start > 1 else ""))
            start = x
    return " ".join(parts)


def decode(text: str, before: Grid | None = None) -> Grid | None:
    """The frame of a text that holds the code, other lines are skipped.

    Args:
        text: an observation.
        before: the frame before, for rows that the text leaves out.

    Returns:
        None where a row is missing or has not 64 cells.
    """
    rows: list[bytes | None] = list(rows_of(before)) if before is not None else [None] * SIDE
    found = False
    for match in _LINE.finditer(text):
        row = bytearray()
        for part in match[3].split(" "):
            row += bytes([HEX.index(part[0])]) * int(part[2:] or 1)
        first, last = int(match[1]), int(match[2] or match[1])
        if len(row) != SIDE or last >= SIDE:
            return None
        rows[first : last + 1] = [bytes(row)] * (last + 1 - first)
        found = True
    if not found or None in rows:
        return None
    return b"".join(row for row in rows if row is not None)


def changed_rows(old: Grid, new: Grid) -> frozenset[int]:
    """Rows in which two frames differ."""
    return frozenset(y for y, (a, b) in enumerate(zip(rows_of(old), rows_of(new), strict=True)) if a != b)


def difference(old: Grid, new: Grid) -> str:
    """One line about what changed: "12 cells changed in x8-11 y20-22: 9->0 x8, 0->9 x4"; empty where nothing did."""
    cells = [i for i, (a, b) in enumerate(zip(old, new, strict=True)) if a != b]
    if not cells:
        return ""
    xs, ys = [i % SIDE for i in cells], [i // SIDE for i in cells]
    kinds = Counter(f"{HEX[old[i]]}->{HEX[new[i]]}" for i in cells)
    what = ", ".join(f"{kind} x{n}" for kind, n in sorted(kinds.items(), key=lambda item: (-item[1], item[0])))
    return f"{len(cells)} cells changed in x{min(xs)}-{max(xs)} y{min(ys)}-{max(ys)}: {what}"
