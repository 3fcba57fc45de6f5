"""The ground as the body's client knows it, and which of its cells are in view.

For every column of blocks the client has received: the height of the ground, the height up to which it hides what is behind it
(a trunk's top), and what stands or flows there. Made for worlds walked on the surface: leaves hide nothing, caves are unknown.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agentexp.wise.core import Pose
from agentexp.wise.seen import Cells, FieldOfView, Mask
from agentexp.wise.worlds.sight import line

EYE = 1.62
SIDE = 16
OPEN, WATER, LAVA, SOLID = range(4)
UNKNOWN = -(1 << 14)
STEP_UP, DROP = 1, 3
# A cell counts as seen when a point half a block above its ground is.
ABOVE = 0.5


class Surface:
    """Columns of a square region and a margin about it.

    Args:
        size: side of the region in blocks.
        origin: its corner.
        view: the field of view.

    Attributes:
        ground, top: heights, int16 of shape (size + 2 * margin,) * 2, indexed [x, z]; UNKNOWN where not received.
        kind: OPEN, WATER, LAVA or SOLID, uint8 of the same shape.
    """

    def __init__(self, size: int, origin: tuple[int, int], view: FieldOfView) -> None:
        self.size, self.view = size, view
        self.margin = ceil(view.radius) + 2
        self.corner = (origin[0] - self.margin, origin[1] - self.margin)
        shape = (size + 2 * self.margin,) * 2
        self.ground = np.full(shape, UNKNOWN, np.int16)
        self.top = np.full(shape, UNKNOWN, np.int16)
        self.kind = np.zeros(shape, np.uint8)
        self._barred: Mask | None = None
        self._lines, self._shares = _tables(ceil(view.radius) + 1)

    def load(self, column: Mapping[str, Any]) -> None:
        """Take in one chunk: corner "x" and "z" in blocks, "ground" and "top" (int16) and "kind" (uint8) as base64, [x, z]."""
        ground, top = (np.frombuffer(base64.b64decode(column[key]), "<i2").reshape(SIDE, SIDE) for key in ("ground", "top"))
        kind = np.frombuffer(base64.b64decode(column["kind"]), np.uint8).reshape(SIDE, SIDE)
        i, j = int(column["x"]) - self.corner[0], int(column["z"]) - self.corner[1]
        rows, columns = (slice(max(0, k), min(len(self.ground), k + SIDE)) for k in (i, j))
        if rows.start >= rows.stop or columns.start >= columns.stop:
            return
        inner = (slice(rows.start - i, rows.stop - i), slice(columns.start - j, columns.stop - j))
        self.ground[rows, columns], self.top[rows, columns], self.kind[rows, columns] = ground[inner], top[inner], kind[inner]
        self._barred = None

    def barred(self) -> Mask:
        """Cells that nobody can walk into: water, lava, something solid, or too steep from all four sides."""
        if self._barred is None:
            self._barred = barred(self.ground, self.kind)
        return self._barred

    def in_view(self, pose: Pose) -> tuple[Cells, Cells]:
        """World cells of the region in view, and those of them that are barred; int32 of shape (n, 2) each."""
        i, j = pose.cell[0] - self.corner[0], pose.cell[1] - self.corner[1]
        inside = self.margin <= min(i, j) and max(i, j) < self.margin + self.size
        offsets = self.view.offsets(pose.x, pose.z, pose.yaw)
        if not inside:  # beyond the border, where the tables would leave the arrays
            return np.empty((0, 2), np.int32), np.empty((0, 2), np.int32)
        at = offsets + np.array((i, j), np.int32)
        reach = len(self._lines) // 2
        lines = self._lines[offsets[:, 0] + reach, offsets[:, 1] + reach]
        shares = self._shares[offsets[:, 0] + reach, offsets[:, 1] + reach]
        ground = self.ground[at[:, 0], at[:, 1]]
        eye = pose.y + EYE
        heights = eye + (ground + ABOVE - eye)[:, None] * shares
        hidden = (self.top[lines[..., 0] + i, lines[..., 1] + j] > heights).any(axis=1)
        last = self.margin + self.size
        seen = at[~hidden & (ground != UNKNOWN) & ((at >= self.margin) & (at < last)).all(axis=1)]
        blocked = seen[self.barred()[seen[:, 0], seen[:, 1]]]
        corner = np.array(self.corner, np.int32)
        return seen + corner, blocked + corner

    def passable(self) -> Mask:
        """Known cells of the region that are not barred; bool of shape (size, size)."""
        inner = slice(self.margin, self.margin + self.size)
        return np.asarray(~self.barred()[inner, inner] & (self.ground[inner, inner] != UNKNOWN))

    def observable(self, start: tuple[int, int]) -> Mask:
        """Cells of the region that can be seen from somewhere one can walk to; bool of shape (size, size).

        Args:
            start: world cell where the body starts.
        """
        inner = slice(self.margin, self.margin + self.size)
        border = np.ones_like(self.barred())
        border[inner, inner] = self.barred()[inner, inner]
        free = reachable(self.ground, border, (start[0] - self.corner[0], start[1] - self.corner[1]))
        seen: Mask = free.copy()
        i, j = np.nonzero(free)
        eye = self.ground[i, j] + EYE
        reach, radius = len(self._lines) // 2, self.view.radius
        for dx, dz in np.ndindex(2 * reach + 1, 2 * reach + 1):
            if np.hypot(dx - reach, dz - reach) > radius:
                continue
            ti, tj = i + dx - reach, j + dz - reach
            ground = self.ground[ti, tj]
            clear = ground != UNKNOWN
            for (cx, cz), share in zip(self._lines[dx, dz], self._shares[dx, dz], strict=True):
                if share:
                    clear &= self.top[i + cx, j + cz] <= eye + (ground + ABOVE - eye) * share
            seen[ti[clear], tj[clear]] = True
        return seen[inner, inner]


def barred(ground: NDArray[np.int16], kind: NDArray[np.uint8]) -> Mask:
    """See `Surface.barred`. Unknown neighbours count as good ones."""
    free = kind == OPEN
    wide, open_ = np.pad(ground.astype(np.int32), 1, constant_values=UNKNOWN), np.pad(free, 1, constant_values=True)
    enter = np.zeros_like(free)
    for dx, dz in ((0, 1), (2, 1), (1, 0), (1, 2)):
        beside = wide[dx : dx + len(ground), dz : dz + ground.shape[1]]
        rise = ground - beside
        enter |= (beside == UNKNOWN) | (
            (rise <= STEP_UP) & (rise >= -DROP) & open_[dx : dx + len(ground), dz : dz + ground.shape[1]]
        )
    return np.asarray(~(free & enter))


def reachable(ground: NDArray[np.int16], closed: Mask, start: tuple[int, int]) -> Mask:
    """Cells that can be walked to over four neighbours: up by one block, down by three at most."""
    free = np.zeros_like(closed)
    free[start] = True
    heights = ground.astype(np.int32)
    steps = []
    for axis, sign in ((0, 1), (0, -1), (1, 1), (1, -1)):
        rise = heights - np.roll(heights, sign, axis)
        steps.append((axis, sign, (rise <= STEP_UP) & (rise >= -DROP) & ~closed))
    front = free
    while front.any():
        new = np.zeros_like(free)
        for axis, sign, allowed in steps:
            new |= np.roll(front, sign, axis) & allowed
        front = new & ~free
        free = free | front
    return free


def _tables(reach: int) -> tuple[NDArray[np.int16], NDArray[np.float32]]:
    """Cells between (0, 0) and every offset, and how far along the way each is; filled up with the own cell at share 0."""
    side = 2 * reach + 1
    lines = np.zeros((side, side, reach, 2), np.int16)
    shares = np.zeros((side, side, reach), np.float32)
    for x in range(-reach, reach + 1):
        for z in range(-reach, reach + 1):
            cells = line(x, z)
            if cells:
                lines[x + reach, z + reach, : len(cells)] = cells
                shares[x + reach, z + reach, : len(cells)] = np.arange(1, len(cells) + 1) / (len(cells) + 1)
    return lines, shares
