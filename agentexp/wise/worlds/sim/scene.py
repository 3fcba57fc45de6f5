"""Between the world's state and its pictures: what is drawn, and what a drawn picture shows."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from agentexp.wise.vlm.simulated import Sighting
from agentexp.wise.worlds.sim.camera import Figure, View
from agentexp.wise.worlds.sim.hands import Drop
from agentexp.wise.worlds.sim.materials import MOBS, NAMES
from agentexp.wise.worlds.sim.mobs import KINDS, Herd
from agentexp.wise.worlds.sim.rays import Eye, screen
from agentexp.wise.worlds.sim.terrain import Terrain


def feet(herd: Herd, terrain: Terrain) -> NDArray[np.float32]:
    """Height of the ground under each mob."""
    cells = (np.floor(at).astype(np.intp) + terrain.pad for at in (herd.x, herd.z))
    heights: NDArray[np.float32] = terrain.ground[tuple(cells)]
    return heights


def figures(herd: Herd, drops: Iterable[Drop], terrain: Terrain, eye: Eye, distance: float) -> list[Figure]:
    """Mobs in front of an eye to a depth, and everything that lies about."""
    found = []
    far, _ = screen(eye, eye.forward, herd.x, herd.z)
    rows = np.flatnonzero((far > 0) & (far < distance)).tolist()
    heights = feet(herd, terrain) if rows else herd.x
    for row in rows:
        kind = KINDS[herd.names[row]]
        found.append(
            Figure(
                herd.names[row],
                int(herd.number[row]),
                float(herd.x[row]),
                float(heights[row]),
                float(herd.z[row]),
                float(herd.heading[row]),
                kind.length,
                kind.width,
                kind.height,
                bool(herd.shorn[row]),
            )
        )
    for drop in drops:
        below = float(terrain.ground[int(np.floor(drop.x)) + terrain.pad, int(np.floor(drop.z)) + terrain.pad])
        found.append(Figure(drop.name, -1, drop.x, below, drop.z, 0.0, 0.3, 0.3, 0.3))
    return found


def sightings(view: View, herd: Herd) -> list[Sighting]:
    """What a picture shows: one entry for each mob, one for each kind of ground and for all trees together.

    The share that is visible is known for mobs; what hides ground, water or trees shows in their pixels. Items that lie about
    are too small to be named.
    """
    codes, counts = np.unique(view.shown, return_counts=True)
    names = dict(zip(herd.number.tolist(), herd.names, strict=True))
    mobs: list[Sighting] = []
    rest: dict[str, int] = {}
    for code, count in zip(codes.tolist(), counts.tolist(), strict=True):
        if code >= MOBS:
            mobs.append(Sighting(names[code - MOBS], count, count / view.whole[code]))
        elif code in NAMES:
            rest[NAMES[code]] = rest.get(NAMES[code], 0) + count
    return [*mobs, *(Sighting(name, count) for name, count in rest.items())]
