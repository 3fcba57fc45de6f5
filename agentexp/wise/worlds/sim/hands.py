"""What attacking and using do: whatever the middle of the picture is on, within reach.

The fitting tool is taken from the inventory by itself. Times are Minecraft's: three seconds for a log by hand, less than one
for sand and earth. Digging leaves no hole and a tree keeps its height until its last log is cut; what falls off lies on the
ground until the agent walks over it, except that a filled bucket and what is sheared are in hand at once.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from agentexp.wise.worlds.sim.materials import DIRT, GRASS, SAND, STONE, TALLGRASS, TRUNK, WATER
from agentexp.wise.worlds.sim.mobs import KINDS, Herd
from agentexp.wise.worlds.sim.rays import Eye
from agentexp.wise.worlds.sim.terrain import Terrain

REACH = 4.5
PICK_UP = 1.5
SWORD, FIST = 7.0, 1.0
BETWEEN_BLOWS = 12  # ticks until a blow has its full force again; weaker ones are left out
BETWEEN_USES = 4
SEED_CHANCE = 0.125
LIFETIME = 6000  # of what lies about
# Ticks of attacking, and what comes off.
DIG = {TRUNK: (60, "log"), SAND: (15, "sand"), GRASS: (18, "dirt"), DIRT: (18, "dirt"), STONE: (12, "cobblestone")}
PICKAXE = "stone_pickaxe"


@dataclass(frozen=True, slots=True)
class Drop:
    """An item on the ground."""

    name: str
    x: float
    z: float
    tick: int


@dataclass(frozen=True, slots=True)
class Aim:
    """What the middle of the picture is on: a mob (its row in the herd) or a material, and where."""

    mob: int = -1
    material: int = 0
    x: float = 0.0
    z: float = 0.0


class Hands:
    """Inventory, tools, things on the ground.

    Args:
        tools: what the agent begins with.
        rng: the world's.
    """

    def __init__(self, tools: dict[str, int], rng: np.random.Generator) -> None:
        self.inventory: Counter[str] = Counter(tools)
        self.drops: list[Drop] = []
        self._rng = rng
        self._at: tuple[int, int, int] | None = None  # what is being dug, and where
        self._work = 0
        self._blow = self._used = 0

    def attack(self, aim: Aim | None, herd: Herd, terrain: Terrain, eye: Eye, tick: int) -> None:
        """One tick with the attack key down; aim None: the key is up, or nothing is in reach."""
        if aim is None or aim.mob >= 0:
            self._at, self._work = None, 0
        if aim is None:
            return
        if aim.mob >= 0:
            if tick >= self._blow:
                self._blow = tick + BETWEEN_BLOWS
                self._strike(aim.mob, herd, eye, tick)
            return
        at = (aim.material, int(np.floor(aim.x)), int(np.floor(aim.z)))
        if at != self._at:
            self._at, self._work = at, 0
        self._work += 1
        self._dig(at, terrain, eye, tick)

    def use(self, aim: Aim | None, herd: Herd, tick: int) -> None:
        """One tick with the use key down."""
        if aim is None or tick < self._used:
            return
        if aim.mob >= 0:
            kind = KINDS[herd.names[aim.mob]]
            if not kind.tool or not self.inventory[kind.tool] or (kind.tool == "shears" and herd.shorn[aim.mob]):
                return
            if kind.tool == "shears":
                herd.shorn[aim.mob] = True
                self.inventory[kind.product] += int(self._rng.integers(1, 4))
            else:
                self._fill(kind.product)
        elif aim.material == WATER and self.inventory["bucket"]:
            self._fill("water_bucket")
        else:
            return
        self._used = tick + BETWEEN_USES

    def gather(self, x: float, z: float, tick: int) -> None:
        """Pick up what lies at one's feet; what has lain too long is gone."""
        if self.drops:
            near = [drop for drop in self.drops if np.hypot(drop.x - x, drop.z - z) <= PICK_UP]
            self.inventory.update(drop.name for drop in near)
            self.drops = [drop for drop in self.drops if drop not in near and tick - drop.tick < LIFETIME]

    def _fill(self, product: str) -> None:
        self.inventory["bucket"] -= 1
        self.inventory[product] += 1

    def _strike(self, mob: int, herd: Herd, eye: Eye, tick: int) -> None:
        damage = SWORD if self.inventory["diamond_sword"] else FIST
        if not herd.hurt(mob, damage, eye.x, eye.z, tick, self._rng):
            return
        x, z = float(herd.x[mob]), float(herd.z[mob])
        for item, least, most in KINDS[herd.names[mob]].drops:
            if item == "wool" and herd.shorn[mob]:
                continue
            self.drops += [Drop(item, x, z, tick)] * int(self._rng.integers(least, most + 1))
        herd.remove(mob)

    def _dig(self, at: tuple[int, int, int], terrain: Terrain, eye: Eye, tick: int) -> None:
        material, x, z = at
        if material == TALLGRASS:
            terrain.mow(x, z)
            self._at = None
            if self._rng.random() < SEED_CHANCE:
                self.drops.append(Drop("wheat_seeds", x + 0.5, z + 0.5, tick))
            return
        if material not in DIG or (material == STONE and not self.inventory[PICKAXE]):
            return
        ticks, item = DIG[material]
        if self._work < ticks:
            return
        self._at, self._work = None, 0
        fallen = np.array([x + 0.5, z + 0.5])
        if material in (TRUNK, STONE):
            # It falls down on the side from which it was cut.
            away = np.array([eye.x, eye.z]) - fallen
            fallen += away / max(1.0, float(np.abs(away).max()))
        self.drops.append(Drop(item, float(fallen[0]), float(fallen[1]), tick))
        if material == TRUNK:
            terrain.cut(terrain.trees[x, z])


def aim(eye: Eye, herd: Herd, heights: np.ndarray, terrain: Terrain) -> Aim | None:
    """What the middle of the picture is on within reach; leaves do not stop it.

    Args:
        eye: the camera.
        herd: the mobs.
        heights: where each mob's feet are.
        terrain: the map.
    """
    ahead, pitch = eye.forward, np.deg2rad(eye.pitch)
    way = np.array([ahead[0] * np.cos(pitch), -np.sin(pitch), ahead[1] * np.cos(pitch)])
    far = np.arange(0.0, REACH, 0.05)
    x, y, z = eye.x + way[0] * far, eye.height + way[1] * far, eye.z + way[2] * far
    i, j = np.floor(x).astype(int) + terrain.pad, np.floor(z).astype(int) + terrain.pad
    inside = np.flatnonzero(y < terrain.top[i, j])
    reach = far[inside[0]] if len(inside) else REACH
    best, hit = -1, reach
    for row in np.flatnonzero(np.hypot(herd.x - eye.x, herd.z - eye.z) < REACH + 1):
        kind = KINDS[herd.names[row]]
        half = (kind.length + kind.width) / 4
        low = np.array([herd.x[row] - half, heights[row], herd.z[row] - half])
        high = low + np.array([2 * half, kind.height, 2 * half])
        distance = _enter(np.array([eye.x, eye.height, eye.z]), way, low, high)
        if distance < hit:
            best, hit = int(row), distance
    if best >= 0:
        return Aim(mob=best, x=float(herd.x[best]), z=float(herd.z[best]))
    if not len(inside):
        return None
    at = i[inside[0]], j[inside[0]]
    material = int(terrain.material[at])
    if terrain.top[at] > terrain.ground[at] and material != STONE:
        material = TRUNK
    return Aim(material=material, x=float(x[inside[0]]), z=float(z[inside[0]]))


def _enter(start: np.ndarray, way: np.ndarray, low: np.ndarray, high: np.ndarray) -> float:
    """Distance at which a ray enters a box; inf where it misses."""
    with np.errstate(divide="ignore"):
        one, other = (low - start) / way, (high - start) / way
    enter, leave = float(np.minimum(one, other).max()), float(np.maximum(one, other).min())
    return max(enter, 0.0) if enter <= leave and leave > 0 else float("inf")
