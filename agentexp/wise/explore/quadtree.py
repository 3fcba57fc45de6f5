"""The global tier: a quadtree of counters over the wanted cells, and eq. 11 answered by best-first search.

    U_G(N) = alpha * Depth(N) - beta * Dist(P, N)

Depth is the paper's "normalized depth or unexplored granularity": (level / D) times the wanted share of the node's cells.
Dist is the distance to the node's centre over the map's diagonal. Candidates are the leaves, where Depth is greatest.

Every newly seen cell lowers one counter per level. A query pops nodes in the order of an upper bound (all of the node's
wanted cells in one leaf, the nearest leaf centre the node may have), so that it opens few of the n leaves: O(log n)-like on
average, not in the worst case; `visited` has the counts.
"""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from agentexp.wise.seen import Cells, Mask


class Quadtree:
    """Counters of wanted cells.

    Args:
        size: side of the map in cells; need not be a power of two.
        depth: D, levels below the root; the paper has 5 for 128 and 6 for 384.
        alpha: weight of Depth.
        beta: weight of Dist.
    """

    def __init__(self, size: int, depth: int, alpha: float = 0.6, beta: float = 0.4) -> None:
        self.size, self.depth, self.alpha, self.beta = size, depth, alpha, beta
        self._leaf: NDArray[np.int64] = np.arange(size) * 2**depth // size
        spans = np.bincount(self._leaf, minlength=2**depth)
        self.edges: NDArray[np.int64] = np.concatenate(([0], np.cumsum(spans)))
        leaves = np.outer(spans, spans)
        self.cells = [_merge(leaves, depth - level) for level in range(depth + 1)]
        self.counts = [level.copy() for level in self.cells]
        self.visited: list[int] = []

    @property
    def leaves(self) -> int:
        """n, the number of candidate regions."""
        return int(4**self.depth)

    def remove(self, cells: Cells) -> None:
        """Count off cells, map indices of shape (k, 2), that are wanted no more."""
        if not len(cells):
            return
        i, j = self._leaf[cells[:, 0]], self._leaf[cells[:, 1]]
        for level in range(self.depth, -1, -1):
            np.subtract.at(self.counts[level], (i, j), 1)
            i, j = i >> 1, j >> 1

    def rectangle(self, level: int, i: int, j: int) -> tuple[int, int, int, int]:
        """Cells of a node as half-open ranges (x0, x1, z0, z1)."""
        step = 2 ** (self.depth - level)
        return (*self.edges[[i * step, (i + 1) * step]].tolist(), *self.edges[[j * step, (j + 1) * step]].tolist())

    def utility(self, x: float, z: float) -> NDArray[np.float64]:
        """Eq. 11 of every leaf from (x, z) in map coordinates; -inf where nothing is wanted. The slow way, for comparison."""
        centre = (self.edges[1:] + self.edges[:-1]) / 2
        far = np.hypot(*np.meshgrid(centre - x, centre - z, indexing="ij")) / (self.size * 2**0.5)
        depth = self.counts[-1] / self.cells[-1]
        return np.where(self.counts[-1] > 0, self.alpha * depth - self.beta * far, -np.inf)

    def best(self, x: float, z: float, skip: Mask | None = None, alpha: float | None = None) -> tuple[int, int] | None:
        """The leaf (i, j) of the greatest utility from (x, z) in map coordinates; None when nothing is wanted.

        `skip`, bool of shape (2**k, 2**k), leaves out the nodes of level k that it marks; `alpha` takes the
        place of the weight of Depth (0: the nearest leaf with anything wanted).
        """
        if not self.counts[0][0, 0]:
            return None
        alpha = self.alpha if alpha is None else alpha
        checked = -1 if skip is None else len(skip).bit_length() - 1
        far = self.beta / (self.size * 2**0.5)
        smallest = int(self.cells[-1].min())
        half = float(np.diff(self.edges).min()) / 2
        edges = self.edges.tolist()
        heap = [(0.0, 0, 0, 0)]
        popped = 0
        while heap:
            _, level, i, j = heappop(heap)
            popped += 1
            if level == self.depth:
                self.visited.append(popped)
                return i, j
            level += 1
            counts = self.counts[level]
            step = 2 ** (self.depth - level)
            for a in (2 * i, 2 * i + 1):
                for b in (2 * j, 2 * j + 1):
                    count = int(counts[a, b])
                    if not count or (level == checked and skip is not None and skip[a, b]):
                        continue
                    x0, x1, z0, z1 = edges[a * step], edges[(a + 1) * step], edges[b * step], edges[(b + 1) * step]
                    if level == self.depth:
                        share = count / ((x1 - x0) * (z1 - z0))
                        dx, dz = (x0 + x1) / 2 - x, (z0 + z1) / 2 - z
                    else:
                        share = min(1.0, count / smallest)
                        dx = max(x0 + half - x, 0.0, x - x1 + half)
                        dz = max(z0 + half - z, 0.0, z - z1 + half)
                    bound = alpha * share - far * (dx * dx + dz * dz) ** 0.5
                    heappush(heap, (-bound, level, a, b))
        self.visited.append(popped)
        return None


def _merge(leaves: NDArray[np.int64], times: int) -> NDArray[np.int64]:
    for _ in range(times):
        leaves = leaves.reshape(len(leaves) // 2, 2, -1, 2).sum(axis=(1, 3))
    return leaves
