"""The local tier: eq. 13 over what is left behind.

    U_L(U) = alpha * Area(U) - beta * Dist(P, U)

Residual regions are connected groups of wanted cells of at least `min_area` cells that lie in the present region or are
enclosed by seen ground (a tier that may go anywhere thrashes), cut by the Voronoi cells V_j = {p : |p - s_j| <= |p - s_k|} of
the key nodes. Area is over the largest area an enclosed group may have, Dist over twice the window's reach.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage
from scipy.spatial import cKDTree

from agentexp.wise.core import Pose
from agentexp.wise.explore.frontier import Reach
from agentexp.wise.explore.regions import enclosed
from agentexp.wise.seen import Cells, SeenMap


@dataclass(frozen=True, slots=True)
class Residue:
    """U_i: one residual region.

    Attributes:
        cells: map indices of shape (k, 2).
        utility: eq. 13.
        enclosed: its group touches no open unseen ground.
    """

    cells: Cells
    utility: float
    enclosed: bool


class Voronoi:
    """Eq. 13.

    Args:
        area, distance: alpha and beta of eq. 13; the paper says only that they are normalised.
        min_area: cells below which a group is left to the other tiers (60 in the paper).
        max_area: cells above which an enclosed group is a region of its own, and the global tier's business.
        window: half the side of the square about the agent in which it looks.
        reach: of the agent's view.
    """

    def __init__(
        self,
        area: float = 0.5,
        distance: float = 0.5,
        min_area: int = 60,
        max_area: int = 512,
        window: int = 32,
        reach: Reach | None = None,
    ) -> None:
        self.area, self.distance = area, distance
        self.min_area, self.max_area, self.window = min_area, max_area, window
        self.reach = reach or Reach()

    def residues(self, seen: SeenMap, sites: Cells, region: tuple[int, int, int, int] | None, pose: Pose) -> list[Residue]:
        """The residual regions near the agent, the greatest utility first.

        Args:
            seen: the map.
            sites: key nodes, map indices of shape (n, 2).
            region: the present region, half-open (x0, x1, z0, z1).
            pose: of the agent, world coordinates.
        """
        size = seen.size
        i, j = seen.cell(pose.x, pose.z)
        x0, x1 = max(i - self.window, 0), min(i + self.window, size)
        z0, z1 = max(j - self.window, 0), min(j + self.window, size)
        labels, count = ndimage.label(seen.wanted[x0:x1, z0:z1])
        if not count or not len(sites):
            return []
        areas = np.bincount(labels.ravel(), minlength=count + 1)
        whole = enclosed(labels, count, (x0, x1, z0, z1), size) & (areas <= self.max_area)
        at = np.argwhere(labels > 0)
        label = labels[at[:, 0], at[:, 1]]
        at = at + np.array([x0, z0])
        keep = whole[label]
        if region is not None:
            keep |= (at[:, 0] >= region[0]) & (at[:, 0] < region[1]) & (at[:, 1] >= region[2]) & (at[:, 1] < region[3])
        keep &= areas[label] >= self.min_area
        if not keep.any():
            return []
        cells, label = at[keep].astype(np.int32), label[keep]
        _, site = cKDTree(sites).query(cells)
        pieces, piece = np.unique(label * len(sites) + site, return_inverse=True)
        steps = self.reach.steps(pose, cells[:, 0] + seen.origin[0] + 0.5, cells[:, 1] + seen.origin[1] + 0.5)
        found = []
        for k in range(len(pieces)):
            mine = piece == k
            near = float(steps[mine].min()) / (2 * self.window)
            utility = self.area * min(1.0, int(mine.sum()) / self.max_area) - self.distance * near
            found.append(Residue(cells[mine], utility, bool(whole[label[mine][0]])))
        return sorted(found, key=lambda residue: -residue.utility)

    def nearest(self, seen: SeenMap, cells: NDArray[np.int32], pose: Pose) -> tuple[int, int] | None:
        """The wanted cell among these that comes into view first; None when none is wanted any more."""
        cells = cells[seen.wanted[cells[:, 0], cells[:, 1]]]
        if not len(cells):
            return None
        steps = self.reach.steps(pose, cells[:, 0] + seen.origin[0] + 0.5, cells[:, 1] + seen.origin[1] + 0.5)
        k = int(np.argmin(steps))
        return int(cells[k, 0]), int(cells[k, 1])
