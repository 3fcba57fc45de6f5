"""Key nodes: places of the explored ground that stand for their neighbourhood.

The first free cell seen in each square of a lattice becomes a node; it is visited once the agent was within `near` blocks.
They are the sites of the local tier's Voronoi diagram and what the last escape heuristic goes back to.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from agentexp.wise.seen import Cells, SeenMap


class KeyNodes:
    """One node per lattice square at most.

    Args:
        size: side of the map.
        spacing: side of a lattice square in blocks.
        near: distance in blocks at which a node counts as visited.
    """

    def __init__(self, size: int, spacing: int = 8, near: float = 4.0) -> None:
        self.spacing, self.near = spacing, near
        side = -(-size // spacing)
        self._x: NDArray[np.int32] = np.full((side, side), -1, np.int32)
        self._z: NDArray[np.int32] = np.full((side, side), -1, np.int32)
        self._visited = np.zeros((side, side), bool)
        self._place: tuple[float, float] | None = None

    def observe(self, seen: SeenMap, new: Cells, x: float, z: float) -> None:
        """Take in newly seen cells (map indices) and the agent's place (map coordinates)."""
        stood = self._place == (x, z)
        self._place = x, z
        if len(new):
            free = new[~seen.blocked[new[:, 0], new[:, 1]]]
            a, b = free[:, 0] // self.spacing, free[:, 1] // self.spacing
            fresh = np.flatnonzero(self._x[a, b] < 0)
            if len(fresh):
                stood = False
                _, first = np.unique(a[fresh] * self._x.shape[1] + b[fresh], return_index=True)
                fresh = fresh[first]
                self._x[a[fresh], b[fresh]], self._z[a[fresh], b[fresh]] = free[fresh, 0], free[fresh, 1]
        if stood:
            return  # nothing that was not visited in the last tick
        i, j = int(x) // self.spacing, int(z) // self.spacing
        around = np.s_[max(i - 1, 0) : i + 2, max(j - 1, 0) : j + 2]
        off = np.hypot(self._x[around] + 0.5 - x, self._z[around] + 0.5 - z)
        self._visited[around] |= (self._x[around] >= 0) & (off <= self.near)

    def sites(self) -> Cells:
        """All nodes, map indices of shape (n, 2)."""
        known = self._x >= 0
        return np.stack((self._x[known], self._z[known]), axis=1)

    def unvisited(self, seen: SeenMap, x: float, z: float) -> tuple[int, int] | None:
        """The nearest node that was never visited and is not blocked, from (x, z) in map coordinates."""
        known = (self._x >= 0) & ~self._visited
        known[known] &= ~seen.blocked[self._x[known], self._z[known]]
        if not known.any():
            return None
        nodes_x, nodes_z = self._x[known], self._z[known]
        k = int(np.argmin(np.hypot(nodes_x + 0.5 - x, nodes_z + 0.5 - z)))
        return int(nodes_x[k]), int(nodes_z[k])
