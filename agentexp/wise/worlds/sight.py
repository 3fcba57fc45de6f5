"""Lines of sight between cells, tabled once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from agentexp.wise.seen import Cells, Mask


def line(x: int, z: int) -> list[tuple[int, int]]:
    """Cells strictly between (0, 0) and (x, z): one per unit of the longer axis, the nearest to the straight line."""
    steps = max(abs(x), abs(z))
    return [(round(x * k / steps), round(z * k / steps)) for k in range(1, steps)]


class Sight:
    """Which cells around an observer are not hidden behind solid ones. A solid cell is itself seen.

    Args:
        radius: reach in blocks.
    """

    def __init__(self, radius: float) -> None:
        self.reach = int(np.ceil(radius)) + 1
        side = 2 * self.reach + 1
        # Shorter lines are filled up with (0, 0): the observer's own cell is free.
        self._lines: NDArray[np.int16] = np.zeros((side, side, self.reach, 2), np.int16)
        for x in range(-self.reach, self.reach + 1):
            for z in range(-self.reach, self.reach + 1):
                cells = line(x, z)
                if cells:
                    self._lines[x + self.reach, z + self.reach, : len(cells)] = cells

    def clear(self, solid: Mask, x: int, z: int, offsets: Cells) -> Mask:
        """Whether each cell at `offsets` (n, 2) from (x, z) is in sight; bool of shape (n,).

        `solid` must reach at least the radius beyond (x, z) on every side.
        """
        lines = self._lines[offsets[:, 0] + self.reach, offsets[:, 1] + self.reach]
        hidden = solid[lines[..., 0] + x, lines[..., 1] + z].any(axis=1)
        return np.asarray(~hidden)
