"""What an explorer knows of the ground: cells seen, cells blocked, cells given up; and the field of view.

The field of view is a sector of 70 degrees and radius 10 about the yaw (MrSteve's `fov_angle`, `fov_radius`; a smaller one
makes the paper's coverage impossible). Its cells are tabled per degree of yaw and quarter of a block, so painting is one
gather.
"""

from __future__ import annotations

from math import floor

import numpy as np
from numpy.typing import NDArray

Cells = NDArray[np.int32]
Mask = NDArray[np.bool_]


def sector(yaw: float, offset: tuple[float, float] = (0.5, 0.5), angle: float = 70.0, radius: float = 10.0) -> Cells:
    """Cells whose centre lies in the sector, relative to the observer's cell, which is always one of them.

    Args:
        yaw: where it looks, degrees (0 is +z, 90 is -x).
        offset: place of the observer inside its cell, each in [0, 1).
        angle: full opening angle, degrees.
        radius: blocks.

    Returns:
        int32 of shape (n, 2), n about `pi * radius**2 * angle / 360`.
    """
    reach = int(np.ceil(radius)) + 1
    side = np.arange(-reach, reach + 1, dtype=np.int32)
    x, z = np.meshgrid(side, side, indexing="ij")
    dx, dz = x + 0.5 - offset[0], z + 0.5 - offset[1]
    heading = np.deg2rad(yaw)
    ahead = dz * np.cos(heading) - dx * np.sin(heading)
    far = np.hypot(dx, dz)
    inside = (far <= radius) & (ahead >= far * np.cos(np.deg2rad(angle / 2)) - 1e-9)
    inside[reach, reach] = True
    return np.stack((x[inside], z[inside]), axis=1)


class FieldOfView:
    """The sector's cells from tables, filled when first asked for: yaw by the degree, position by the quarter of a block.

    Args:
        angle: full opening angle, degrees.
        radius: blocks.
    """

    def __init__(self, angle: float = 70.0, radius: float = 10.0) -> None:
        self.angle, self.radius = float(angle), float(radius)
        self._tables: dict[tuple[int, int, int], Cells] = {}

    def offsets(self, x: float, z: float, yaw: float) -> Cells:
        """Cells in view relative to the observer's own; int32 of shape (n, 2). Do not write into it."""
        key = (round(yaw) % 360, int(x % 1 * 4), int(z % 1 * 4))
        table = self._tables.get(key)
        if table is None:
            table = sector(key[0], ((key[1] + 0.5) / 4, (key[2] + 0.5) / 4), self.angle, self.radius)
            table.setflags(write=False)
            self._tables[key] = table
        return table


class SeenMap:
    """Three boolean maps of one region, indexed [x, z] from its corner.

    Attributes:
        seen: cells that were in view.
        blocked: cells found impassable.
        given_up: unseen cells that cannot be had (unreachable, or tried too often).
        wanted: what is left: neither seen nor given up.
        left: how many cells are wanted.
    """

    def __init__(self, size: int, origin: tuple[int, int] = (0, 0)) -> None:
        self.size, self.origin = size, origin
        self.seen: Mask = np.zeros((size, size), bool)
        self.blocked: Mask = np.zeros((size, size), bool)
        self.given_up: Mask = np.zeros((size, size), bool)
        self.wanted: Mask = np.ones((size, size), bool)
        self.left = size * size

    def local(self, cells: Cells) -> Cells:
        """World cells as indices of this map; those outside are dropped."""
        at = cells - np.asarray(self.origin, np.int32) if any(self.origin) else cells
        inside = at.astype(np.uint32) < self.size  # what is negative becomes very large
        return at if inside.all() else at[inside.all(axis=1)]

    def cell(self, x: float, z: float) -> tuple[int, int]:
        """Map index of a position, moved to the edge where it lies outside."""
        i, j = floor(x) - self.origin[0], floor(z) - self.origin[1]
        return min(max(i, 0), self.size - 1), min(max(j, 0), self.size - 1)

    def centre(self, i: int, j: int) -> tuple[float, float]:
        """World position of the centre of a cell."""
        return self.origin[0] + i + 0.5, self.origin[1] + j + 0.5

    def paint(self, cells: Cells) -> Cells:
        """Mark world cells as seen. Returns the map indices that were wanted until now, without repetition."""
        flat = self._flat(self.local(cells))
        self.seen.ravel()[flat] = True
        return self._settle(flat)

    def block(self, cells: Cells) -> None:
        """Mark world cells as impassable."""
        self.blocked.ravel()[self._flat(self.local(cells))] = True

    def give_up(self, at: Cells) -> Cells:
        """Want these map indices no more. Returns those that were wanted until now."""
        new = self._settle(self._flat(at))
        self.given_up[new[:, 0], new[:, 1]] = True
        return new

    def _flat(self, at: Cells) -> NDArray[np.intp]:
        """Map indices as places in the maps laid out in a row: one number a cell makes reading and writing twice as fast."""
        flat = np.multiply(at[:, 0], self.size, dtype=np.intp)
        flat += at[:, 1]
        return flat

    def _settle(self, flat: NDArray[np.intp]) -> Cells:
        wanted = self.wanted.ravel()
        new = flat[wanted.take(flat)]
        if len(new) > 1:
            new.sort()
            new = new[np.append(True, new[1:] != new[:-1])]
        wanted[new] = False
        self.left -= len(new)
        cells = np.empty((len(new), 2), np.int32)
        if len(new):
            cells[:, 0], cells[:, 1] = np.divmod(new, self.size)
        return cells
