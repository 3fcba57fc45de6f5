"""WISE's multi-scale progressive exploration (section 3.3, appendix A.1): three tiers and the escape heuristics.

A decision asks the regional tier for the frontier of the present region; once that is done, the local tier (every 40 steps at
most) for ground left behind near by; then the global tier for the next region. Without the regional tier the global tier's
leaf is itself the goal. Every goal is an unseen cell, and is done when it has been seen.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from agentexp.errors import UserError
from agentexp.wise.core import Frame, Goal, Pose
from agentexp.wise.explore.clock import Decisions
from agentexp.wise.explore.escape import Escape
from agentexp.wise.explore.frontier import Frontier, Reach, Rectangle
from agentexp.wise.explore.keynodes import KeyNodes
from agentexp.wise.explore.quadtree import Quadtree
from agentexp.wise.explore.regions import Regions
from agentexp.wise.explore.voronoi import Residue, Voronoi
from agentexp.wise.seen import Cells, Mask, SeenMap

Tiers = Literal["global", "global+regional", "all"]
PAUSE = 5
TIERS: tuple[Tiers, ...] = ("global", "global+regional", "all")


class WiseExplorer:
    """An `Explorer`.

    Args:
        tiers: which tiers take part.
        depth: levels of the quadtree; null for the paper's (5 up to 128 blocks, 6 above).
        alpha_g, beta_g: weights of eq. 11.
        region: greatest side of a region in blocks.
        around, tidy, done_cells, overlap, crumb: order of the regions, and when one is done; see `Regions`.
        cover, novel, distance: weights of eq. 12.
        area, local_distance: weights of eq. 13.
        local_every: steps between two updates of the local tier.
        min_area, max_area: cells of the smallest and largest group that the local tier goes for.
        local_window: how far from the agent it looks, in blocks.
        patience: a goal is given up after the time of walking so many times its distance and 40 blocks.
        view_angle, view_radius, turn_per_step: of the agent, as in the world.
        speed: blocks that it walks in one tick.
    """

    def __init__(
        self,
        tiers: Tiers = "all",
        depth: int | None = None,
        alpha_g: float = 0.6,
        beta_g: float = 0.4,
        region: int = 12,
        around: int = 3,
        tidy: float = 3.0,
        done_cells: int = 6,
        overlap: int = 2,
        crumb: int = 4,
        cover: float = 0.05,
        novel: float = 0.05,
        distance: float = 0.9,
        area: float = 0.5,
        local_distance: float = 0.5,
        local_every: int = 40,
        min_area: int = 60,
        max_area: int = 512,
        local_window: int = 32,
        patience: float = 3.0,
        view_angle: float = 70.0,
        view_radius: float = 10.0,
        turn_per_step: float | None = 30.0,
        speed: float = 1.0,
    ) -> None:
        if tiers not in TIERS:
            raise UserError(f"explorer.tiers is {tiers!r}; choose one of {', '.join(TIERS)}.")
        self.tiers, self.depth = tiers, depth
        self.alpha_g, self.beta_g = alpha_g, beta_g
        self.local_every, self.patience = local_every, patience
        self._reach = Reach(view_radius, view_angle, turn_per_step, speed)
        self._order = (region, around, tidy, done_cells, overlap, crumb)
        self._frontier = Frontier(cover, novel, distance, self._reach)
        self._voronoi = Voronoi(area, local_distance, min_area, max_area, local_window, self._reach)
        self.reset(128, (0, 0), 0)

    def reset(self, size: int, origin: tuple[int, int], seed: int) -> None:
        """Begin an episode. Nothing here is random: the seed is not used."""
        self.seen = SeenMap(size, origin)
        depth = self.depth if self.depth is not None else 5 if size <= 128 else 6
        self.tree = Quadtree(size, depth, self.alpha_g, self.beta_g)
        self.regions = Regions(self.seen, self.tree, *self._order, reach=self._reach)
        self.nodes = KeyNodes(size)
        self.escape = Escape()
        self._margin = self._frontier.half + max(1, self._order[4])
        self._visits: NDArray[np.int32] = np.zeros((size + 2 * self._margin, size + 2 * self._margin), np.int32)
        self._clock = Decisions()
        self._goal: tuple[int, int] | None = None
        self._tier = ""
        self._until = self._asked = 0
        self._residue: Residue | None = None
        self._next_local = self._next_flood = 0
        self._blocked = self._flooded = 0

    # ------------------------------------------------------------------------------------------------------- observing

    def observe(self, frame: Frame) -> None:
        """Take in one frame: paint, count, watch for stagnation."""
        if len(frame.blocked):
            self.seen.block(frame.blocked)
            self._blocked += len(frame.blocked)
        new = self.seen.paint(frame.cells)
        i, j = self.seen.cell(frame.pose.x, frame.pose.z)
        if self.seen.wanted[i, j] and frame.pose.cell == (i + self.seen.origin[0], j + self.seen.origin[1]):
            # A world may never show the ground under one's feet.
            new = np.concatenate((new, self.seen.paint(np.array([frame.pose.cell], np.int32))))
        self.tree.remove(new)
        x, z = self._at(frame.pose)
        self._visits[i + self._margin, j + self._margin] += 1
        self.nodes.observe(self.seen, new, x, z)
        self.escape.observe(frame.pose, frame.tick)

    def _at(self, pose: Pose) -> tuple[float, float]:
        return pose.x - self.seen.origin[0], pose.z - self.seen.origin[1]

    # -------------------------------------------------------------------------------------------------------- deciding

    def goal(self, frame: Frame) -> Goal | None:
        """The present goal, or a new one when it has been seen, reached or given up, or nobody asked for a while."""
        if frame.tick - self._asked > PAUSE:
            self._goal = self._residue = None
            self.escape.restart()
        self._asked = frame.tick
        if self._goal is not None:
            gone = self._tier != "escape" and not self.seen.wanted[self._goal]
            there = self._tier == "escape" and frame.pose.distance(*self.seen.centre(*self._goal)) < 2
            if gone or there:
                self._goal = None
            elif frame.tick >= self._until or self.escape.stagnant:
                self._fail(frame)
        if self._goal is None:
            with self._clock.timed():
                self._decide(frame)
        if self._goal is None:
            return None
        return Goal(*self.seen.centre(*self._goal), self._tier)

    def _decide(self, frame: Frame) -> None:
        self._give_up_unreachable(frame)
        if self.tiers == "global":
            self._set(self._leaf(frame.pose), "global", frame)
            return
        cell, tier = self._residual(frame.pose), "local"
        if cell is None:
            cell, tier = self._regional(self.regions.left(), frame.pose), "regional"
        if cell is None:
            self.regions.leave()
            cell, tier = self._local(frame), "local"
        if cell is None:
            cell, tier = self._regional(self.regions.next(frame.pose), frame.pose), "global"
        self._set(cell, tier, frame)

    def _set(self, cell: tuple[int, int] | None, tier: str, frame: Frame) -> None:
        self._goal, self._tier = cell, tier
        if cell is not None:
            self._clock.tiers[tier] += 1
            blocks = self.patience * frame.pose.distance(*self.seen.centre(*cell)) + 40
            self._until = frame.tick + int(blocks / self._reach.speed)

    def _leaf(self, pose: Pose) -> tuple[int, int] | None:
        leaf = self.tree.best(*self._at(pose))
        if leaf is None:
            return None
        return self._frontier.best(self.seen, self._visits, self.tree.rectangle(self.tree.depth, *leaf), pose)

    def _regional(self, left: tuple[Rectangle, Mask] | None, pose: Pose) -> tuple[int, int] | None:
        return None if left is None else self._frontier.best(self.seen, self._visits, left[0], pose, left[1])

    def _local(self, frame: Frame) -> tuple[int, int] | None:
        if self.tiers != "all" or frame.tick < self._next_local:
            return None
        self._next_local = frame.tick + self.local_every
        found = self._voronoi.residues(self.seen, self.nodes.sites(), None, frame.pose)
        self._residue = found[0] if found else None
        return self._residual(frame.pose)

    def _residual(self, pose: Pose) -> tuple[int, int] | None:
        if self._residue is None:
            return None
        cell = self._voronoi.nearest(self.seen, self._residue.cells, pose)
        if cell is None:
            self._residue = None
        return cell

    # -------------------------------------------------------------------------------------------------------- giving up

    def _give_up(self, cells: Cells) -> None:
        self.tree.remove(self.seen.give_up(cells))

    def _give_up_unreachable(self, frame: Frame) -> None:
        """Cells behind known obstacles on all sides are wanted no more. Looked for only when new obstacles were met."""
        if self._blocked == self._flooded or frame.tick < self._next_flood:
            return
        self._flooded, self._next_flood = self._blocked, frame.tick + self.local_every
        areas, _ = ndimage.label(~self.seen.blocked)
        here = areas[self.seen.cell(frame.pose.x, frame.pose.z)]
        if here:
            self._give_up(np.argwhere(self.seen.wanted & (areas != here)).astype(np.int32))

    def _fail(self, frame: Frame) -> None:
        assert self._goal is not None
        i, j = self._goal
        stage = self.escape.failed(*self.seen.centre(i, j))
        self._goal = None
        self._residue = None
        if stage == "replan":
            self._give_up(np.array([[i, j]], np.int32))
            return
        near = np.argwhere(self.seen.wanted[max(i - 3, 0) : i + 4, max(j - 3, 0) : j + 4]).astype(np.int32)
        self._give_up(near + np.array([max(i - 3, 0), max(j - 3, 0)], np.int32))
        self.regions.leave()
        if stage == "rollback":
            self._set(self.nodes.unvisited(self.seen, *self._at(frame.pose)), "escape", frame)

    def statistics(self) -> dict[str, Any]:
        """Decisions by tier and their time, escapes by stage, nodes popped by the quadtree's queries against n."""
        visited = np.array(self.tree.visited or [0])
        return {
            **self._clock.report(),
            "escapes": dict(self.escape.counts),
            "given_up": int(self.seen.given_up.sum()),
            "quadtree": {
                "n": self.tree.leaves,
                "queries": len(self.tree.visited),
                "visited_mean": float(visited.mean()),
                "visited_p99": float(np.percentile(visited, 99)),
                "visited_max": int(visited.max()),
            },
        }
