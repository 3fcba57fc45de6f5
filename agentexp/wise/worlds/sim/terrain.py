"""The ground: heights from noise, patches of sand and stone, ponds, forests, boulders.

Every map is padded on all sides, so that the view goes on beyond the region; nothing but the view does. Neighbouring cells
differ by at most one block in height, boulders and trees aside: whatever can be walked to can be left again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from agentexp.errors import UserError
from agentexp.wise.seen import Mask
from agentexp.wise.worlds.sim.materials import GRASS, SAND, STONE, TALLGRASS, WATER

Heights = NDArray[np.float32]
BASE = 64
BOULDER = 3
PATIENCE = 400


@dataclass(frozen=True, slots=True)
class Recipe:
    """What a map has; counts are for the whole region.

    Attributes:
        relief: blocks that the hills rise and fall.
        ponds, pond_radius: how many, and their mean radius in blocks.
        forests, trees, forest_radius: how many, trees in each, radius in blocks.
        deserts, quarries: patches of sand, hills of stone.
        patch_radius: of both.
        boulders: single rocks that nobody can climb, outside the quarries.
        tallgrass: share of the meadow where tall grass grows.
        apart: least distance in blocks between a pond and a forest, edge to edge.
    """

    relief: float = 5.0
    ponds: int = 2
    pond_radius: float = 5.5
    forests: int = 1
    trees: int = 60
    forest_radius: float = 14.0
    deserts: int = 1
    quarries: int = 1
    patch_radius: float = 12.0
    boulders: int = 25
    tallgrass: float = 0.05
    apart: float = 0.0


@dataclass(frozen=True, slots=True)
class Tree:
    """An oak. `x`, `z`: cell of the region; `height`: of the trunk; `logs`: left to be cut."""

    x: int
    z: int
    height: int
    logs: int


class Terrain:
    """Maps of shape (size + 2 * pad, size + 2 * pad), indexed [x + pad, z + pad] by cells of the region.

    Attributes:
        size, pad: side of the region; cells around it.
        ground: height of the surface that one stands on, in blocks.
        top: the same with trunks and boulders on it.
        material: codes of the surface.
        leaf_low, leaf_high: where leaves begin and end above a cell; both 0 where there are none.
        solid: cells that no body can be in: water, trunks, boulders, and everything outside of the region.
        trees: by cell.
        ponds, forests: (x, z, radius) of each.
    """

    def __init__(self, size: int, pad: int, recipe: Recipe, seed: int) -> None:
        rng = np.random.default_rng([seed, size, 0x3D])
        self.size, self.pad = size, pad
        side = size + 2 * pad
        sites = _sites(size, recipe, rng)
        self.ponds, self.forests = sites["pond"], sites["forest"]
        height = BASE + recipe.relief * _fractal(side, rng)
        self.material: NDArray[np.uint8] = np.full((side, side), GRASS, np.uint8)
        self.material[rng.random((side, side)) < recipe.tallgrass] = TALLGRASS
        ragged = _fractal(side, rng, (9, 4))
        for x, z, radius in sites["desert"]:
            self.material[self._disc(x, z, radius, ragged)] = SAND
        for x, z, radius in sites["quarry"]:
            far = self._far(x, z)
            height += 7 * np.exp(-((far / (0.6 * radius)) ** 2))
            self.material[self._disc(x, z, radius, ragged)] = STONE
        level = np.floor(height)
        for x, z, radius in self.ponds:
            water = self._disc(x, z, radius, ragged)
            level[water] = level[ndimage.binary_dilation(water, iterations=2)].min()
            self.material[water] = WATER
        self.ground: Heights = _gentle(level).astype(np.float32)
        self.top: Heights = self.ground.copy()
        wet = self.material == WATER
        self._rock: Mask = np.zeros_like(wet)
        self._set_boulders(recipe, sites["quarry"], rng, ndimage.binary_dilation(wet, iterations=2))
        self.trees: dict[tuple[int, int], Tree] = {}
        for site in self.forests:
            self._plant(site, recipe.trees, rng, wet | self._rock)
        self.leaf_low: Heights = np.zeros_like(self.ground)
        self.leaf_high: Heights = np.zeros_like(self.ground)
        self.solid: Mask = np.ones_like(wet)
        self._settle()

    def cut(self, tree: Tree) -> None:
        """Take one log off a tree; with the last one it is gone."""
        cell = tree.x, tree.z
        if tree.logs > 1:
            self.trees[cell] = Tree(tree.x, tree.z, tree.height, tree.logs - 1)
        else:
            del self.trees[cell]
            self._settle()

    def mow(self, x: int, z: int) -> None:
        """Take the tall grass off a cell."""
        self.material[x + self.pad, z + self.pad] = GRASS

    def inner(self, padded: NDArray[np.generic]) -> NDArray[np.generic]:
        """The region's part of a padded map."""
        return padded[self.pad : self.pad + self.size, self.pad : self.pad + self.size]

    # --------------------------------------------------------------------------------------------------------- making

    def _far(self, x: float, z: float) -> NDArray[np.float64]:
        side = np.arange(len(self.material)) - self.pad + 0.5
        return np.asarray(np.hypot(side[:, None] - x, side[None, :] - z))

    def _disc(self, x: float, z: float, radius: float, ragged: NDArray[np.float64]) -> Mask:
        return np.asarray(self._far(x, z) < radius * (1 + 0.25 * ragged))

    def _set_boulders(self, recipe: Recipe, quarries: list[Site], rng: np.random.Generator, keep_off: Mask) -> None:
        spots = [tuple(rng.integers(2, self.size - 2, 2)) for _ in range(recipe.boulders)]
        for x, z, radius in quarries:
            spots += [tuple((np.array([x, z]) + rng.normal(0, radius / 2, 2)).astype(int)) for _ in range(8)]
        for x, z in spots:
            wide, deep = rng.integers(1, 3, 2) + self.pad
            self._rock[x + self.pad : x + wide, z + self.pad : z + deep] = True
        self._rock &= ~keep_off
        self.top[self._rock] += BOULDER
        self.material[self._rock] = STONE

    def _plant(self, site: Site, count: int, rng: np.random.Generator, taken: Mask) -> None:
        x, z, radius = site
        for _ in range(count * 10):
            if count == 0:
                return
            far, angle = radius * np.sqrt(rng.random()), rng.uniform(0, 2 * np.pi)
            i, j = int(x + far * np.cos(angle)), int(z + far * np.sin(angle))
            height = int(rng.integers(4, 7))
            free = 1 <= i < self.size - 1 and 1 <= j < self.size - 1 and not taken[i + self.pad, j + self.pad]
            # Two cells between trunks: a body passes everywhere.
            if free and not any((i + a, j + b) in self.trees for a in (-2, -1, 0, 1, 2) for b in (-2, -1, 0, 1, 2)):
                self.trees[i, j] = Tree(i, j, height, height)
                count -= 1

    def _settle(self) -> None:
        """Heights, leaves and solid cells for the trees that stand."""
        pad = self.pad
        self.top[:] = self.ground + BOULDER * self._rock
        self.leaf_low[:] = self.leaf_high[:] = 0
        inside = np.zeros_like(self.solid)
        inside[pad : pad + self.size, pad : pad + self.size] = True
        self.solid[:] = ~inside | (self.material == WATER) | self._rock
        for tree in self.trees.values():
            i, j = tree.x + pad, tree.z + pad
            foot = float(self.ground[i, j])
            # Leaves begin above the head of whoever stands under them, uphill, too.
            low = max(foot + tree.height - 2, float(self.ground[i - 2 : i + 3, j - 2 : j + 3].max()) + 2.5)
            self.top[i, j] = low + 2
            self.solid[i, j] = True
            for reach, high in ((2, low + 2), (1, low + 3)):
                box = slice(i - reach, i + reach + 1), slice(j - reach, j + reach + 1)
                old = self.leaf_low[box]
                self.leaf_low[box] = np.where(old > 0, np.maximum(old, low), low)
                self.leaf_high[box] = np.maximum(self.leaf_high[box], high)


Site = tuple[float, float, float]


def _sites(size: int, recipe: Recipe, rng: np.random.Generator) -> dict[str, list[Site]]:
    """Places of ponds, forests, deserts and quarries, which do not overlap.

    Raises:
        UserError: the region has no room for them.
    """
    wanted = [
        *[("pond", recipe.pond_radius)] * recipe.ponds,
        *[("forest", recipe.forest_radius)] * recipe.forests,
        *[("desert", recipe.patch_radius)] * recipe.deserts,
        *[("quarry", recipe.patch_radius)] * recipe.quarries,
    ]
    for _ in range(PATIENCE):
        sites: dict[str, list[Site]] = {"pond": [], "forest": [], "desert": [], "quarry": []}
        for kind, mean in wanted:
            site = _site(kind, mean, size, recipe.apart, sites, rng)
            if site is None:
                break
            sites[kind].append(site)
        else:
            return sites
    raise UserError(
        f"A map of side {size} has no room for what it should have; choose a smaller world.apart (now {recipe.apart}), "
        "smaller radii, fewer ponds, forests, deserts and quarries, or a larger map."
    )


def _site(
    kind: str, mean: float, size: int, apart: float, sites: dict[str, list[Site]], rng: np.random.Generator
) -> Site | None:
    for _ in range(60):
        radius = float(mean * rng.uniform(0.8, 1.2))
        edge = 1.3 * radius + 2
        if 2 * edge >= size:
            return None
        x, z = (float(value) for value in rng.uniform(edge, size - edge, 2))
        if all(
            np.hypot(x - a, z - b) - 1.25 * (radius + r) >= (apart if {kind, other} == {"pond", "forest"} else 3.0)
            for other, taken in sites.items()
            for a, b, r in taken
        ):
            return x, z, radius
    return None


def _fractal(side: int, rng: np.random.Generator, periods: tuple[int, ...] = (48, 24, 12)) -> NDArray[np.float64]:
    """Smooth noise of shape (side, side), about in [-1, 1]; each period has half the weight of the one before."""
    total = np.zeros((side, side))
    weight, norm = 1.0, 0.0
    for period in periods:
        lattice = rng.uniform(-1, 1, (side // period + 4, side // period + 4))
        fine = ndimage.zoom(lattice, period, order=3, mode="nearest", grid_mode=True)
        x, z = rng.integers(0, period, 2) + period
        total += weight * fine[x : x + side, z : z + side]
        weight, norm = weight / 2, norm + weight
    return total / (0.6 * norm)


def _gentle(level: NDArray[np.float64]) -> NDArray[np.float64]:
    """The greatest map below `level` in which the eight neighbours of a cell differ from it by at most one block."""
    while True:
        lower = np.minimum(level, ndimage.minimum_filter(level, 3, mode="nearest") + 1)
        if (lower == level).all():
            return level
        level = lower
