"""Which cells of the field of view are not hidden by the terrain: the body's own sense of space, as in the flat world."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from agentexp.wise.seen import Cells, Mask
from agentexp.wise.worlds.sight import line
from agentexp.wise.worlds.sim.terrain import Heights

# A cell counts as seen when a point so high above its ground is: half of a step of one block may hide the ground itself.
GLIMPSE = 0.5


class Sightlines:
    """Lines from the observer's cell to every cell around, tabled once.

    Args:
        radius: reach in blocks.
    """

    def __init__(self, radius: float) -> None:
        self.reach = int(np.ceil(radius)) + 1
        side = self._side = 2 * self.reach + 1
        # Filled up with the observer's own cell at share 0, which hides nothing.
        self._cells: NDArray[np.int16] = np.zeros((side, side, self.reach, 2), np.int16)
        self._share: NDArray[np.float32] = np.zeros((side, side, self.reach), np.float32)
        for x in range(-self.reach, self.reach + 1):
            for z in range(-self.reach, self.reach + 1):
                way = line(x, z)
                if way:
                    self._cells[x + self.reach, z + self.reach, : len(way)] = way
                    self._share[x + self.reach, z + self.reach, : len(way)] = np.arange(1, len(way) + 1) / (len(way) + 1)
        self._share.shape = (side * side, self.reach)
        self._flat: NDArray[np.intp] = np.zeros(0, np.intp)  # the cells as places in maps of one side laid out in a row
        self._row = 0

    def clear(self, ground: Heights, top: Heights, x: int, z: int, eye: float, offsets: Cells) -> Mask:
        """Whether each cell at `offsets` (n, 2) from (x, z), an index into the padded maps, is in sight; bool of shape (n,).

        Args:
            ground: height of the ground, without trunks and boulders.
            top: with them.
            x, z: the observer's cell.
            eye: height of its eyes.
            offsets: shape (n, 2).
        """
        if self._row != ground.shape[1]:
            self._row = ground.shape[1]
            self._flat = (self._cells[..., 0].astype(np.intp) * self._row + self._cells[..., 1]).reshape(-1, self.reach)
        here = x * self._row + z
        at = np.multiply(offsets[:, 0], self._side, dtype=np.intp)
        at += offsets[:, 1] + (self.reach * self._side + self.reach)
        there = np.multiply(offsets[:, 0], self._row, dtype=np.intp)
        there += offsets[:, 1] + here
        lines = self._flat.take(at, axis=0)
        lines += here
        tops = top.ravel()
        foot = ground.ravel().take(there)
        aim = foot + np.float32(GLIMPSE) + (tops.take(there) > foot)
        aim -= np.float32(eye)
        height = self._share.take(at, axis=0)
        height *= aim[:, None]
        height += np.float32(eye)
        return np.asarray((tops.take(lines) <= height).all(axis=1))
