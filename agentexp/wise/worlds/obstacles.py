"""Maps with obstacles, drawn from a seed, and what of them can be seen at all."""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy import ndimage

from agentexp.errors import UserError
from agentexp.wise.seen import Mask

Kind = Literal["none", "walls", "rooms", "trees", "mixed"]
KINDS: tuple[Kind, ...] = ("none", "walls", "rooms", "trees", "mixed")
# Per cell of the map: about 26 walls, 26 rooms and 490 trees on 128 x 128.
WALLS, ROOMS, TREES = 1.6e-3, 1.6e-3, 3e-2


def obstacles(kind: Kind, size: int, density: float, rng: np.random.Generator) -> Mask:
    """Solid cells, bool of shape (size, size).

    walls: straight, one block thick, 10 to 30 long. rooms: rings of 8 to 14 a side with one door of 2, so that the inside
    cannot be seen from without. trees: single trunks, or four in a square. mixed: half as many of each.

    Raises:
        UserError: for an unknown kind.
    """
    if kind not in KINDS:
        raise UserError(f"world.obstacles is {kind!r}; choose one of {', '.join(KINDS)}.")
    solid = np.zeros((size, size), bool)
    share = density * (0.5 if kind == "mixed" else 1.0) * size * size
    if kind in ("walls", "mixed"):
        for _ in range(int(WALLS * share)):
            x, z, length = rng.integers(0, size), rng.integers(0, size), rng.integers(10, 31)
            if rng.random() < 0.5:
                solid[x : x + length, z] = True
            else:
                solid[x, z : z + length] = True
    if kind in ("rooms", "mixed"):
        for _ in range(int(ROOMS * share)):
            _room(solid, rng)
    if kind in ("trees", "mixed"):
        for _ in range(int(TREES * share)):
            x, z, thick = rng.integers(0, size), rng.integers(0, size), 1 + int(rng.random() < 0.3)
            solid[x : x + thick, z : z + thick] = True
    return solid


def _room(solid: Mask, rng: np.random.Generator) -> None:
    size = len(solid)
    wide, deep = (int(n) for n in rng.integers(8, 15, 2))
    x, z = int(rng.integers(0, size - wide)), int(rng.integers(0, size - deep))
    solid[x : x + wide, [z, z + deep - 1]] = True
    solid[[x, x + wide - 1], z : z + deep] = True
    solid[x + 1 : x + wide - 1, z + 1 : z + deep - 1] = False
    along = int(rng.integers(1, min(wide, deep) - 3))
    side = int(rng.integers(4))
    if side < 2:
        solid[x + along : x + along + 2, z if side == 0 else z + deep - 1] = False
    else:
        solid[x if side == 2 else x + wide - 1, z + along : z + along + 2] = False


def observable(solid: Mask, spawn: tuple[int, int]) -> Mask:
    """Free cells that can be walked to from the spawn (4-neighbours), and the solid cells that touch them (8-neighbours).

    This is the denominator of coverage: the inside of a thick wall, or of a room without a door, counts for no method.
    """
    areas, _ = ndimage.label(~solid)
    free = areas == areas[spawn]
    near: Mask = ndimage.binary_dilation(free, np.ones((3, 3), bool))
    return np.asarray(free | (near & solid))
