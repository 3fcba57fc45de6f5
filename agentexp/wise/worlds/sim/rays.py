"""Where the rays of a picture end: a march of every column over the map, exact at the borders of cells.

The picture plane stands upright whatever the pitch (a camera with a shifted lens): the pixels of one column share one vertical
plane, so one march over the map serves all of them. A pixel's slope is the fall of its ray per block of depth, so that a point
at height h and depth t is seen at slope (eye - h) / t. The middle row looks exactly along the pitch.

An episode renders every tick, so this is written for few passes over small arrays: steps come first and columns last, so that
every operation runs along the memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agentexp.wise.worlds.sim.terrain import Terrain

Floats = NDArray[np.float32]
Whole = NDArray[np.intp]
Mask = NDArray[np.bool_]
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
    """Per pixel, arrays of shape (height, width); the sky is `~found`.

    Attributes:
        found: something is hit within the view.
        cell: flat index into the padded maps.
        depth: distance along the view's direction; inf where nothing is hit.
        x, z, height: the point that is hit.
        top: height of that cell.
        side: a side face is hit, not a top.
        west_east: that face looks west or east.
        leaf: leaves are hit.
        slope: of each row, shape (height, 1).
    """

    found: Mask
    cell: Whole
    depth: Floats
    x: Floats
    z: Floats
    height: Floats
    top: Floats
    side: Mask
    west_east: Mask
    leaf: Mask
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
        self._column = np.arange(width)
        self._numbers = np.repeat(np.arange(self._most), width)

    def cast(self, eye: Eye, terrain: Terrain) -> Hits:
        """March all columns."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self._cast(eye, terrain)

    def _cast(self, eye: Eye, terrain: Terrain) -> Hits:
        ahead = np.array(eye.forward, np.float32)
        right = np.array([-ahead[1], ahead[0]], np.float32)
        directions: Floats = (ahead[:, None] + right[:, None] * self.across)[:, None]  # (2, 1, width)
        place = np.array([[[eye.x]], [[eye.z]]], np.float32)
        edges, cells = self._march(eye, directions, terrain)
        near, far = edges[:-1], edges[1:]
        slope = self.down + np.float32(np.tan(np.deg2rad(eye.pitch)))
        drop: Floats = eye.height - terrain.top.ravel().take(cells)
        step = self._first_top(drop, near, far, slope)
        leaf = self._first_leaf(eye.height, terrain, near, far, cells, slope)
        through_leaf = np.zeros(step.shape, bool) if leaf is None else leaf < step
        if leaf is not None:
            step = np.minimum(step, leaf)
        found = step < self._most
        at = np.minimum(step, self._most - 1)
        at *= self.width
        at += self._column
        cell, front, under_eye = cells.take(at), near.take(at), drop.take(at)
        slope = slope[:, None]
        side = slope * front >= under_eye
        depth = np.where(side, front, under_eye / slope)
        if leaf is not None:
            # The lower side of leaves is seen where it is met inside the cell, else their front.
            under = (eye.height - terrain.leaf_low.ravel().take(cell)) / slope
            inside = (under > front) & (under < far.take(at))
            depth = np.where(through_leaf, np.where(inside, under, front), depth)
            side &= ~through_leaf
            through_leaf &= found
        # The border that is crossed there is the one at which a coordinate is whole.
        crossed = directions * front
        crossed += place
        crossed -= np.rint(crossed)
        np.abs(crossed, out=crossed)
        along = directions * depth
        along += place
        height = np.float32(eye.height) - slope * depth
        np.copyto(depth, np.float32(np.inf), where=~found)
        top = terrain.top.ravel().take(cell)
        west_east = crossed[0] < crossed[1]
        return Hits(found, cell, depth, along[0], along[1], height, top, side, west_east, through_leaf, slope)

    def _march(self, eye: Eye, directions: Floats, terrain: Terrain) -> tuple[Floats, Whole]:
        """Depths of the borders that each column crosses, shape (steps + 1, width), and the cells between, (steps, width)."""
        inside = np.array([[eye.x % 1], [eye.z % 1]], np.float32)
        ways = directions[:, 0]
        first = np.where(ways > 0, 1 - inside, inside)
        length = np.maximum(np.abs(ways), np.float32(1e-6))
        crossings = first.T[..., None] + self._borders  # (width, 2, borders)
        crossings /= length.T[..., None]
        borders = crossings.reshape(self.width, -1)
        borders.sort(axis=1)
        edges = np.empty((self._most + 1, self.width), np.float32)
        edges[0] = NEAREST
        np.minimum(borders[:, : self._most].T, self.distance, out=edges[1:])
        middle = edges[:-1] + edges[1:]
        middle *= np.float32(0.5)
        # The maps are padded, so indices are positive and cutting off is rounding down.
        at = directions * middle
        at += np.array([[[eye.x + terrain.pad]], [[eye.z + terrain.pad]]], np.float32)
        x, z = at.astype(np.int32)
        x *= len(terrain.top)
        x += z
        return edges, x.astype(np.intp)

    def _first_top(self, drop: Floats, near: Floats, far: Floats, slope: Floats) -> Whole:
        """First step at which each pixel is at or below the top of the ground; the number of steps where none is."""
        # A top below the eye is seen up to its far edge, one above hides all that is under its near edge: the lesser of both.
        highest = drop / far
        np.minimum(highest, drop / near, out=highest)
        # The first row that is at or below it, by arithmetic up to a quarter of a row, then exactly.
        row = highest - (slope[0] - self.down[0])
        row *= np.float32(self.focal)
        row += np.float32(self.height / 2 - 0.75)
        np.ceil(row, out=row)
        np.maximum(row, np.float32(0), out=row)
        np.minimum(row, np.float32(self.height), out=row)
        first = row.astype(np.intp)
        rows = np.full(self.height + 1, np.inf, np.float32)  # after the last row nothing is higher
        rows[:-1] = slope
        first += rows.take(first) < highest
        np.copyto(first, self.height, where=near >= self.distance)
        first *= self.width
        first += self._column
        # A step holds for all rows below, too, and of several the first one counts.
        steps = np.full((self.height + 1, self.width), self._most, np.intp)
        np.minimum.at(steps.ravel(), first.ravel(), self._numbers)
        return np.minimum.accumulate(steps[:-1], axis=0)

    def _first_leaf(self, eye: float, terrain: Terrain, near: Floats, far: Floats, cells: Whole, slope: Floats) -> Whole | None:
        """First step at which each pixel is within the leaves above a cell, else the number of steps; None: no leaves."""
        high = terrain.leaf_high.ravel().take(cells)
        if not high.max() > 0:
            return None
        first = np.full((self.width, self.height), self._most, np.intp)
        column, step = np.nonzero(((high > 0) & (near < self.distance)).T)
        if not len(column):
            return None
        at = step * self.width + column
        above = eye - high.take(at)
        below = eye - terrain.leaf_low.ravel().take(cells.take(at))
        front, back = near.take(at), far.take(at)
        top = above / np.where(above > 0, back, front)
        bottom = below / np.where(below > 0, front, back)
        inside = (slope >= top[:, None]) & (slope < bottom[:, None])
        where = np.where(inside, step[:, None], self._most)
        starts = np.flatnonzero(np.diff(column, prepend=-1))
        first[column[starts]] = np.minimum.reduceat(where, starts, axis=0)
        return first.T


def screen(eye: Eye, ahead: tuple[float, float], x: Any, z: Any) -> tuple[Any, Any]:
    """(depth, position to the right) of points, in blocks, relative to the eye, whose `forward` is `ahead`."""
    dx, dz = x - eye.x, z - eye.z
    return dx * ahead[0] + dz * ahead[1], -dx * ahead[1] + dz * ahead[0]
