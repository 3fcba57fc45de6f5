"""Where the rays of a picture end: a march of every column over the map, exact at the borders of cells.

The picture plane stands upright whatever the pitch (a camera with a shifted lens): the pixels of one column share one vertical
plane, so one march over the map serves all of them. A pixel's slope is the fall of its ray per block of depth, so that a point
at height h and depth t is seen at slope (eye - h) / t. The middle row looks exactly along the pitch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agentexp.wise.worlds.sim.terrain import Terrain

Floats = NDArray[np.float32]
FAR_SLOPE = 1e3
NEAREST = 1e-3


@dataclass(frozen=True, slots=True)
class Eye:
    """Where the camera is: position, height in blocks, yaw and pitch in degrees."""

    x: float
    z: float
    height: float
    yaw: float
    pitch: float

    @property
    def forward(self) -> tuple[float, float]:
        """Unit vector (x, z) of the yaw."""
        heading = np.deg2rad(self.yaw)
        return -float(np.sin(heading)), float(np.cos(heading))


@dataclass(frozen=True, slots=True)
class Hits:
    """Per pixel, arrays of shape (width, height); the sky is `~found`.

    Attributes:
        found: something is hit within the view.
        cell: flat index into the padded maps.
        depth: distance along the view's direction; inf where nothing is hit.
        x, z, height: the point that is hit.
        side: a side face is hit, not a top.
        west_east: that face looks west or east.
        leaf: leaves are hit.
        slope: of each row, shape (height,).
    """

    found: NDArray[np.bool_]
    cell: NDArray[np.intp]
    depth: Floats
    x: Floats
    z: Floats
    height: Floats
    side: NDArray[np.bool_]
    west_east: NDArray[np.bool_]
    leaf: NDArray[np.bool_]
    slope: Floats


class Rays:
    """The rays of one picture size.

    Args:
        width, height: pixels.
        angle: horizontal opening in degrees.
        distance: depth to which one sees, blocks.
    """

    def __init__(self, width: int, height: int, angle: float, distance: float) -> None:
        self.width, self.height, self.distance = width, height, float(distance)
        self.focal = width / 2 / float(np.tan(np.deg2rad(angle / 2)))
        self.across: Floats = ((np.arange(width) + 0.5 - width / 2) / self.focal).astype(np.float32)
        self.down: Floats = ((np.arange(height) + 0.5 - height / 2) / self.focal).astype(np.float32)
        longest = float(np.hypot(1, self.across[-1]))
        self._borders = np.arange(int(np.ceil(distance * longest)) + 1, dtype=np.float32)
        # No ray crosses more borders than this within its depth.
        self._most = int(np.ceil(distance * longest * 2**0.5)) + 2

    def cast(self, eye: Eye, terrain: Terrain) -> Hits:
        """March all columns."""
        ahead = np.array(eye.forward, np.float32)
        right = np.array([-ahead[1], ahead[0]], np.float32)
        directions = ahead[:, None] + right[:, None] * self.across  # (2, width)
        near, far, cells = self._march(eye, directions, terrain)
        slope = self.down + np.float32(np.tan(np.deg2rad(eye.pitch)))
        steps = near.shape[1]
        hit = self._first_top(eye.height - terrain.top.ravel()[cells], near, far, slope)
        leaf = self._first_leaf(eye.height, terrain, near, far, cells, slope)
        through_leaf = leaf < hit
        step = np.minimum(hit, leaf)
        found = step < steps
        step[~found] = steps - 1
        column = np.arange(self.width)[:, None]
        cell, front, back = cells[column, step], near[column, step], far[column, step]
        with np.errstate(divide="ignore", invalid="ignore"):
            flat = (eye.height - terrain.top.ravel()[cell]) / slope
            under = (eye.height - terrain.leaf_low.ravel()[cell]) / slope
        side = slope * front >= eye.height - terrain.top.ravel()[cell]
        depth = np.where(side, front, flat)
        # The lower side of leaves is seen where it is met inside the cell, else their front.
        depth = np.where(through_leaf, np.where((under > front) & (under < back), under, front), depth)
        along = directions[:, :, None] * depth
        return Hits(
            found,
            cell,
            np.where(found, depth, np.float32(np.inf)),
            along[0] + np.float32(eye.x),
            along[1] + np.float32(eye.z),
            np.float32(eye.height) - slope * depth,
            side & ~through_leaf,
            self._crossed_x(eye, directions, front),
            through_leaf & found,
            slope,
        )

    def _march(self, eye: Eye, directions: Floats, terrain: Terrain) -> tuple[Floats, Floats, NDArray[np.intp]]:
        """Depths at which each column enters and leaves its cells, and the cells: three arrays of shape (width, steps)."""
        crossings = []
        for position, direction in zip((eye.x, eye.z), directions, strict=True):
            inside = np.float32(position % 1)
            first = np.where(direction > 0, 1 - inside, inside)
            length = np.maximum(np.abs(direction), np.float32(1e-6))
            crossings.append((first[:, None] + self._borders) / length[:, None])
        borders = np.concatenate(crossings, axis=1)
        borders.sort(axis=1)
        borders = np.minimum(borders[:, : self._most], self.distance)
        near = np.concatenate((np.full((self.width, 1), NEAREST, np.float32), borders[:, :-1]), axis=1)
        middle = (near + borders) * np.float32(0.5)
        pad, side = terrain.pad, len(terrain.top)
        x = np.floor(directions[0][:, None] * middle + np.float32(eye.x + pad)).astype(np.intp)
        z = np.floor(directions[1][:, None] * middle + np.float32(eye.z + pad)).astype(np.intp)
        return near, borders, x * side + z

    def _first_top(self, drop: Floats, near: Floats, far: Floats, slope: Floats) -> NDArray[np.intp]:
        """First step at which each pixel is at or below the top of the ground; the number of steps where none is."""
        # A top below the eye is seen up to its far edge, one above hides all that is under its near edge.
        highest = drop / np.where(drop > 0, far, near)
        highest[near >= self.distance] = FAR_SLOPE
        np.clip(highest, -FAR_SLOPE, FAR_SLOPE, out=highest)
        # What is below the highest top so far is hidden, so along a column the first hit is found by bisection; all columns at
        # once, each in its own range of one sorted array.
        horizon = np.minimum.accumulate(highest, axis=1)
        offset = np.arange(self.width, dtype=np.float64)[:, None] * (4 * FAR_SLOPE)
        sought = np.searchsorted((offset - horizon).ravel(), (offset - slope).ravel(), side="left")
        return np.asarray(sought.reshape(self.width, self.height) - np.arange(self.width)[:, None] * drop.shape[1])

    def _first_leaf(
        self, eye: float, terrain: Terrain, near: Floats, far: Floats, cells: NDArray[np.intp], slope: Floats
    ) -> NDArray[np.intp]:
        """First step at which each pixel is within the leaves above a cell; the number of steps where none is."""
        steps = cells.shape[1]
        first = np.full((self.width, self.height), steps, np.intp)
        high = terrain.leaf_high.ravel()[cells]
        column, step = np.nonzero((high > 0) & (near < self.distance))
        if not len(column):
            return first
        above = eye - high[column, step]
        below = eye - terrain.leaf_low.ravel()[cells[column, step]]
        front, back = near[column, step], far[column, step]
        top = above / np.where(above > 0, back, front)
        bottom = below / np.where(below > 0, front, back)
        inside = (slope >= top[:, None]) & (slope < bottom[:, None])
        where = np.where(inside, step[:, None], steps)
        starts = np.flatnonzero(np.diff(column, prepend=-1))
        first[column[starts]] = np.minimum.reduceat(where, starts, axis=0)
        return first

    def _crossed_x(self, eye: Eye, directions: Floats, depth: Floats) -> NDArray[np.bool_]:
        """Whether the border at `depth` is one between a western and an eastern cell."""
        off = []
        for position, direction in zip((eye.x, eye.z), directions, strict=True):
            at = direction[:, None] * depth + np.float32(position)
            off.append(np.abs(at - np.round(at)))
        return np.asarray(off[0] < off[1])


def screen(eye: Eye, x: Any, z: Any) -> tuple[Any, Any]:
    """(depth, position to the right) of points, in blocks, relative to the eye."""
    ahead = eye.forward
    dx, dz = x - eye.x, z - eye.z
    return dx * ahead[0] + dz * ahead[1], -dx * ahead[1] + dz * ahead[0]
