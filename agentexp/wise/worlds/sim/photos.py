"""Pictures of worlds with what they show, to fit and to test perception on; no episode is ever played on those worlds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agentexp.wise.vlm.simulated import Sighting
from agentexp.wise.worlds.sim.camera import View
from agentexp.wise.worlds.sim.materials import LEAVES, MOBS, NAMES
from agentexp.wise.worlds.sim.world import SimWorld

# Seeds of maps for fitting begin here; experiments use small seeds.
FIRST_SEED = 900_000
STEEP = 0.15  # share of pictures that look down, as when something is picked up


@dataclass(frozen=True, slots=True)
class Photo:
    """One picture.

    Attributes:
        image: uint8 of shape (height, width, 3).
        view: with what each pixel shows, see `labels`.
        mobs: names by their codes in it.
        pixels: of each thing by name.
        nearest: depth of its nearest pixel, blocks.
        visible: share of it that is not hidden, of mobs the greatest; 1 for the rest.
        sightings: as of the world.
    """

    image: NDArray[np.uint8]
    view: View
    mobs: dict[int, str]
    pixels: dict[str, int]
    nearest: dict[str, float]
    visible: dict[str, float]
    sightings: list[Sighting]

    def labels(self, names: tuple[str, ...]) -> NDArray[np.intp]:
        """Index into `names` of every pixel's name; 0 for a name that is not among them."""
        table = {**NAMES, **self.mobs, LEAVES: "leaves"}
        found = np.zeros(self.view.shown.shape, np.intp)
        for code in np.unique(self.view.shown).tolist():
            if table.get(code) in names:
                found[self.view.shown == code] = names.index(table[code])
        return found


def take(world: SimWorld) -> Photo:
    """A picture of what the world shows now."""
    view = world.view()
    mobs = {MOBS + int(number): name for number, name in zip(world.herd.number, world.herd.names, strict=True)}
    nearest: dict[str, float] = {}
    for code in np.unique(view.shown).tolist():
        name = mobs.get(code) or NAMES.get(code)
        if name:
            nearest[name] = min(nearest.get(name, np.inf), float(view.depth[view.shown == code].min()))
    seen = world.sightings()
    pixels: dict[str, int] = {}
    visible: dict[str, float] = {}
    for sighting in seen:
        pixels[sighting.name] = pixels.get(sighting.name, 0) + sighting.pixels
        visible[sighting.name] = max(visible.get(sighting.name, 0.0), sighting.visible)
    return Photo(view.image, view, mobs, pixels, nearest, visible, seen)


def photos(seed: int, count: int, near: float = 0.5, **settings: Any) -> Iterator[Photo]:
    """Pictures of one world from places drawn at random.

    Args:
        seed: of map, animals and places.
        count: how many.
        near: share of them taken within 25 blocks of an animal, a pond, a tree, sand or rock, and looking about that way.
        settings: of `SimWorld`; by default there are more animals than in episodes, so that pictures of them are not rare.
    """
    world = SimWorld(**{"cows": 8, "sheep": 8, "pigs": 6, "picture_every": 0, "map_seed": seed, **settings})
    rng = np.random.default_rng([seed, count])
    for number in range(count):
        if number % 50 == 0:
            world.reset(seed * 1000 + number)  # the same map with the animals elsewhere
            world.day_start = int(rng.integers(0, 12_500))
            things = _things(world)
        if rng.random() < near:
            kinds = sorted(things)
            places = things[kinds[rng.integers(len(kinds))]]
            x, z = places[rng.integers(len(places))]
            far, angle = rng.uniform(1.5, 25), rng.uniform(0, 2 * np.pi)
            at = x + far * np.cos(angle), z + far * np.sin(angle)
            yaw = float(np.degrees(np.arctan2(at[0] - x, z - at[1])) + rng.uniform(-40, 40))
        else:
            at = tuple(rng.uniform(0, world.size, 2))
            yaw = float(rng.uniform(0, 360))
        pitch = float(rng.uniform(15, 50) if rng.random() < STEEP else rng.normal(8, 5))
        world.stand(float(at[0]), float(at[1]), yaw, pitch)
        yield take(world)


def _things(world: SimWorld) -> dict[str, list[tuple[float, float]]]:
    """Places by kind of thing."""
    truth = world.truth()
    things: dict[str, list[tuple[float, float]]] = {}
    for thing in truth["things"]:
        things.setdefault(thing["name"], []).append((thing["x"], thing["z"]))
    names = {code: name for code, name in NAMES.items() if name in ("water", "sand", "stone")}
    for code, name in names.items():
        cells = np.argwhere(truth["material"] == code)
        if len(cells):
            things[name] = [(float(x) + 0.5, float(z) + 0.5) for x, z in cells[:: max(1, len(cells) // 50)]]
    return things
