"""Shapes in a frame (connected cells of one colour) and what an action did to them. Pure Python, a millisecond a frame."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from agentexp.envs.arc_agi3.frames import HEX, SIDE, Grid, rows_of

LARGE = 300  # cells; what is larger is ground, not a thing
BORDER = 2  # outermost rows and columns, where games draw their counters
_MOST_PARTS = 4  # kinds of change that a signature names


class Shape(NamedTuple):
    """Connected cells of one colour (4 neighbours).

    Attributes:
        colour: 0 to 15.
        x, y: left and top.
        right, bottom: inclusive.
        size: number of cells.
        form: runs relative to the upper left corner: equal for equal outlines.
        at: a cell near its middle.
    """

    colour: int
    x: int
    y: int
    right: int
    bottom: int
    size: int
    form: tuple[tuple[int, int, int], ...]
    at: tuple[int, int]

    @property
    def kind(self) -> str:
        """Colour and extent: "8 4x4"."""
        return f"{HEX[self.colour]} {self.right - self.x + 1}x{self.bottom - self.y + 1}"

    @property
    def box(self) -> str:
        """Where it is: "x8-11 y20-23"."""
        return f"x{self.x}-{self.right} y{self.y}-{self.bottom}"


@lru_cache(maxsize=128)
def shapes(grid: Grid) -> tuple[Shape, ...]:
    """All shapes, from the top left, row by row."""
    runs: list[tuple[int, int, int, int]] = []  # y, first, last, colour
    parent: list[int] = []
    above: list[int] = []
    for y, row in enumerate(rows_of(grid)):
        mine: list[int] = []
        start = 0
        for x in range(1, SIDE + 1):
            if x < SIDE and row[x] == row[start]:
                continue
            mine.append(len(runs))
            parent.append(len(runs))
            runs.append((y, start, x - 1, row[start]))
            start = x
        _join(runs, parent, above, mine)
        above = mine
    groups: dict[int, list[tuple[int, int, int, int]]] = {}
    for i, run in enumerate(runs):
        groups.setdefault(_root(parent, i), []).append(run)
    return tuple(sorted((_shape(group) for group in groups.values()), key=lambda s: (s.y, s.x, s.colour)))


def _join(runs: Sequence[tuple[int, int, int, int]], parent: list[int], above: Sequence[int], mine: Sequence[int]) -> None:
    i = j = 0
    while i < len(above) and j < len(mine):
        up, down = runs[above[i]], runs[mine[j]]
        if up[3] == down[3] and up[1] <= down[2] and down[1] <= up[2]:
            a, b = _root(parent, above[i]), _root(parent, mine[j])
            parent[max(a, b)] = min(a, b)
        if up[2] < down[2]:
            i += 1
        else:
            j += 1


def _root(parent: list[int], i: int) -> int:
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


def _shape(runs: Sequence[tuple[int, int, int, int]]) -> Shape:
    x, y = min(run[1] for run in runs), runs[0][0]
    middle = runs[len(runs) // 2]
    return Shape(
        runs[0][3],
        x,
        y,
        max(run[2] for run in runs),
        max(run[0] for run in runs),
        sum(run[2] - run[1] + 1 for run in runs),
        tuple((run[0] - y, run[1] - x, run[2] - x) for run in runs),
        ((middle[1] + middle[2]) // 2, middle[0]),
    )


@lru_cache(maxsize=128)
def things(grid: Grid) -> tuple[Shape, ...]:
    """The shapes that are no ground and do not lie in the border rows and columns."""
    return tuple(s for s in shapes(grid) if s.size <= LARGE and not on_border(s.x, s.y, s.right, s.bottom))


def on_border(x: int, y: int, right: int, bottom: int) -> bool:
    """Whether a box lies within the outermost rows or columns of one side."""
    far = SIDE - BORDER
    return right < BORDER or bottom < BORDER or x >= far or y >= far


class Change(NamedTuple):
    """What one action did.

    Attributes:
        moved: (shape before, dx, dy) of shapes that moved without changing.
        gone: shapes that are no longer there.
        new: shapes that were not there before.
        recoloured: (colour before, colour after) pairs of cells where none of the above explains the change.
        counter: cells of the border changed.
        cells: cells away from the border that changed.
    """

    moved: tuple[tuple[Shape, int, int], ...] = ()
    gone: tuple[Shape, ...] = ()
    new: tuple[Shape, ...] = ()
    recoloured: tuple[tuple[int, int], ...] = ()
    counter: bool = False
    cells: int = 0

    @property
    def signature(self) -> str:
        """The change in words, without positions: "9 4x4 moves up 4; 8 4x4 disappears". Empty where nothing changed."""
        parts = [f"{shape.kind} moves {direction(dx, dy)}" for shape, dx, dy in self.moved]
        parts += [f"{shape.kind} disappears" for shape in self.gone]
        parts += [f"{shape.kind} appears" for shape in self.new]
        parts += [f"{HEX[a]} becomes {HEX[b]}" for a, b in self.recoloured]
        return "; ".join(list(dict.fromkeys(parts))[:_MOST_PARTS])


def direction(dx: int, dy: int) -> str:
    """A displacement in words: "up 4", "right 3 down 1"."""
    words = [f"{'right' if dx > 0 else 'left'} {abs(dx)}"] if dx else []
    return " ".join(words + ([f"{'down' if dy > 0 else 'up'} {abs(dy)}"] if dy else []))


def change(old: Grid, new: Grid) -> Change:
    """Compare two frames. Shapes that only moved are found first; the ground that they uncover is no change of its own."""
    if old == new:
        return Change()
    cells = [i for i, (a, b) in enumerate(zip(old, new, strict=True)) if a != b]
    inner = {i for i in cells if not on_border(i % SIDE, i // SIDE, i % SIDE, i // SIDE)}
    if not inner:
        return Change(counter=True)
    before, after = _touched(things(old), inner), _touched(things(new), inner)
    moved: list[tuple[Shape, int, int]] = []
    ground: set[int] = set()
    explained: set[int] = set()
    for shape in list(before):
        twins = [s for s in after if (s.colour, s.form) == (shape.colour, shape.form) and (s.x, s.y) != (shape.x, shape.y)]
        if shape in after or not twins:
            continue
        twin = min(twins, key=lambda s: abs(s.x - shape.x) + abs(s.y - shape.y))
        moved.append((shape, twin.x - shape.x, twin.y - shape.y))
        before.remove(shape)
        after.remove(twin)
        left = set(_cells(shape)) - set(_cells(twin))
        ground |= {new[i] for i in left}
        explained |= left | set(_cells(twin))
    gone = [s for s in before if s not in after and s.colour not in ground]
    come = [s for s in after if s not in before and s.colour not in ground]
    # A shape that takes another's place exactly has changed colour.
    swaps = {(a.colour, b.colour) for a in gone for b in come if (a.x, a.y, a.form) == (b.x, b.y, b.form)}
    places = {(s.x, s.y, s.form) for s in gone} & {(s.x, s.y, s.form) for s in come}
    gone = [s for s in gone if (s.x, s.y, s.form) not in places]
    come = [s for s in come if (s.x, s.y, s.form) not in places]
    if not moved and not gone and not come and not swaps:
        swaps = {(old[i], new[i]) for i in inner - explained}
    return Change(tuple(moved), tuple(gone), tuple(come), tuple(sorted(swaps)), len(inner) < len(cells), len(inner))


def _touched(found: Iterable[Shape], cells: set[int]) -> list[Shape]:
    left, right = min(i % SIDE for i in cells), max(i % SIDE for i in cells)
    top, bottom = min(cells) // SIDE, max(cells) // SIDE
    near = (s for s in found if s.x <= right and left <= s.right and s.y <= bottom and top <= s.bottom)
    return [shape for shape in near if any(i in cells for i in _cells(shape))]


def _cells(shape: Shape) -> Iterable[int]:
    for dy, first, last in shape.form:
        start = (shape.y + dy) * SIDE + shape.x
        yield from range(start + first, start + last + 1)


def shape_at(found: Iterable[Shape], x: int, y: int) -> Shape | None:
    """The shape that covers a cell."""
    cell = y * SIDE + x
    return next((s for s in found if s.x <= x <= s.right and s.y <= y <= s.bottom and cell in _cells(s)), None)
