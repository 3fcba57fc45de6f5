"""What a pixel of the simulated world can show: codes, names and colours. Mobs have codes of their own, from `MOBS` upwards."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

SKY: Final = 0
GRASS: Final = 1
DIRT: Final = 2
SAND: Final = 3
STONE: Final = 4
WATER: Final = 5
TALLGRASS: Final = 6
TRUNK: Final = 7
LEAVES: Final = 8
DROP: Final = 9
MOBS: Final = 16

# The knowledge base's names. A tree is named by what it is good for, whatever part of it is seen.
NAMES: Final[dict[int, str]] = {
    GRASS: "grass",
    DIRT: "dirt",
    SAND: "sand",
    STONE: "stone",
    WATER: "water",
    TALLGRASS: "tallgrass",
    TRUNK: "log",
    LEAVES: "log",
}

COLOURS: Final[NDArray[np.float32]] = np.array(
    [
        (130, 170, 250),  # sky
        (104, 155, 62),
        (142, 94, 58),
        (219, 207, 163),
        (126, 126, 126),
        (47, 79, 190),
        (150, 172, 70),
        (92, 83, 66),  # bark
        (52, 98, 32),
        (200, 60, 60),  # anything that lies about
    ],
    np.float32,
)
# How strongly the texture of each shows.
GRAIN: Final[NDArray[np.float32]] = np.array([0, 0.3, 0.22, 0.15, 0.3, 0.12, 0.7, 0.22, 0.7, 0.2], np.float32)
