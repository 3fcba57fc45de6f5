"""Regions: the nodes of one level of the quadtree, in which order they are seen, and when one is done.

Eq. 11 says which region is next. Two things it leaves open decide how long the last percent takes:

* Regions about equally far are equal to it, and taking any of them strews islands that cost a walk back each. Of those at hand
  the one with the least unseen ground around it goes first.
* A region need not be finished. Its last cells are left when they are connected to unseen ground outside (they are seen in
  passing when that ground is) and when there are fewer than `crumb` of them. When nothing else is left a finishing pass takes
  the crumbs, nearest first.
"""

from __future__ import annotations

import numpy as np
from scipy import ndimage

from agentexp.wise.core import Pose
from agentexp.wise.explore.frontier import Reach, Rectangle
from agentexp.wise.explore.quadtree import Quadtree
from agentexp.wise.seen import Mask, SeenMap

EIGHT = np.ones((3, 3), bool)


def enclosed(labels: np.ndarray[tuple[int, ...], np.dtype[np.int32]], count: int, window: Rectangle, size: int) -> Mask:
    """Which of the `count` groups labelled in a window end inside it or at the edge of the map; bool of shape (count + 1,).

    Label 0, the background, is not one.
    """
    whole = np.ones(count + 1, bool)
    whole[0] = False
    x0, x1, z0, z1 = window
    for inner, edge in ((x0 > 0, labels[0]), (x1 < size, labels[-1]), (z0 > 0, labels[:, 0]), (z1 < size, labels[:, -1])):
        if inner:
            whole[edge] = False
    return whole


def remainder(seen: SeenMap, region: Rectangle, overlap: int, done_cells: int, crumb: int = 1) -> tuple[Rectangle, Mask] | None:
    """What of a region is still to be seen before it is left: a window and the cells in it; None when it is done.

    While more than `done_cells` of the region are unseen these are all its unseen cells. After that only the groups of at
    least `crumb` cells that are cut off from the unseen ground outside. Cut-off groups up to `overlap` cells beyond the
    region always belong to it, since nothing will lead the agent back to them.
    """
    x0, x1, z0, z1 = region
    a, b, c, d = max(x0 - overlap, 0), min(x1 + overlap, seen.size), max(z0 - overlap, 0), min(z1 + overlap, seen.size)
    wanted = seen.wanted[a:b, c:d]
    labels, count = ndimage.label(wanted, EIGHT)
    if not count:
        return None
    cut_off = enclosed(labels, count, (a, b, c, d), seen.size)
    if crumb > 1:
        cut_off &= np.bincount(labels.ravel(), minlength=count + 1) >= crumb
    left: Mask = cut_off[labels]
    inside = np.s_[x0 - a : x1 - a, z0 - c : z1 - c]
    if wanted[inside].sum() > done_cells:
        left[inside] = wanted[inside]
    return ((a, b, c, d), left) if left.any() else None


class Regions:
    """The order of the regions.

    Args:
        seen: the map.
        tree: its quadtree.
        side: greatest side of a region in blocks; regions are the nodes of the first level that keeps to it.
        around: how many regions away from the agent's own are "at hand".
        tidy: weight of the steps to a region, per side, against the unseen shares of its four neighbours.
        done_cells, overlap, crumb: when a region is done, see `remainder`.
        reach: of the agent's view.
    """

    def __init__(
        self,
        seen: SeenMap,
        tree: Quadtree,
        side: int,
        around: int,
        tidy: float,
        done_cells: int,
        overlap: int,
        crumb: int,
        reach: Reach,
    ) -> None:
        self.seen, self.tree, self.reach = seen, tree, reach
        self.around, self.tidy = around, tidy
        self.done_cells, self.overlap, self.crumb = done_cells, overlap, crumb
        self.level = next((level for level in range(tree.depth) if seen.size / 2**level <= side), tree.depth)
        self.finishing = False
        self._left: Mask = np.zeros((2**self.level, 2**self.level), bool)
        self._present: tuple[int, int] | None = None

    def left(self) -> tuple[Rectangle, Mask] | None:
        """What is still to be seen in the present region; None when it is done or there is none."""
        if self._present is None:
            return None
        region = self.tree.rectangle(self.level, *self._present)
        if self.finishing:
            return remainder(self.seen, region, self.overlap, 0)
        return remainder(self.seen, region, self.overlap, self.done_cells, self.crumb)

    def leave(self) -> None:
        """Done with the present region; it is not chosen again before the finishing pass."""
        if self._present is not None:
            self._left[self._present] = True
            self._present = None

    def next(self, pose: Pose) -> tuple[Rectangle, Mask] | None:
        """Go on to the next region with anything to see, and return what that is; None when nothing is wanted anywhere."""
        x, z = pose.x - self.seen.origin[0], pose.z - self.seen.origin[1]
        up = self.tree.depth - self.level
        while self.seen.left:
            if self.finishing:
                # Depth says nothing about crumbs: the nearest one goes first.
                leaf = self.tree.best(x, z, alpha=0.0)
            else:
                leaf = self.tree.best(x, z, skip=self._left)
            if leaf is None:
                self.finishing = True
                continue
            node = leaf[0] >> up, leaf[1] >> up
            self._present = node if self.finishing else self._tidiest(node, pose, x, z)
            found = self.left()
            if found is not None:
                return found
            self.leave()
        return None

    def _tidiest(self, best: tuple[int, int], pose: Pose, x: float, z: float) -> tuple[int, int]:
        counts, cells = self.tree.counts[self.level], self.tree.cells[self.level]
        last = len(counts) - 1
        side = self.seen.size / len(counts)
        here = min(int(x / side), last), min(int(z / side), last)
        i, j = here if max(abs(best[0] - here[0]), abs(best[1] - here[1])) <= self.around else best
        near = np.s_[max(i - self.around, 0) : i + self.around + 1, max(j - self.around, 0) : j + self.around + 1]
        share = np.pad(counts / cells, 1)
        beside = share[:-2, 1:-1] + share[2:, 1:-1] + share[1:-1, :-2] + share[1:-1, 2:]
        u, v = np.nonzero((counts[near] > 0) & ~self._left[near])
        u, v = u + near[0].start, v + near[1].start
        steps = self.reach.steps(pose, self.seen.origin[0] + (u + 0.5) * side, self.seen.origin[1] + (v + 0.5) * side)
        k = int(np.argmin(beside[u, v] + self.tidy * steps / side))
        return int(u[k]), int(v[k])
