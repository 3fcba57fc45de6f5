"""First-person pictures: what the rays hit is coloured, shaded and fogged; animals and dropped items stand in front of it.

Beside the colours there are two more buffers of the same pixels: what each shows (a material, or the number of a mob) and how
far it is. The simulated vision model and the scoring read those; the agent gets the colours only.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from agentexp.wise.worlds.sim.materials import COLOURS, DIRT, DROP, GRAIN, GRASS, LEAVES, MOBS, STONE, TALLGRASS, TRUNK, WATER
from agentexp.wise.worlds.sim.rays import Eye, Floats, Hits, Rays, screen
from agentexp.wise.worlds.sim.sprites import SPRITES, Sprite
from agentexp.wise.worlds.sim.terrain import Terrain

TILE = 64
NIGHT = np.array([14, 18, 38], np.float32)
HORIZON = np.array([188, 208, 240], np.float32)


class Figure(NamedTuple):
    """Something upright that is drawn over the terrain: a mob, or an item that lies about (number -1).

    Attributes:
        name: kind of mob; of an item, its name.
        number: of the mob.
        x, y, z: where it stands.
        heading: yaw in degrees.
        length, width, height: blocks.
        bald: a shorn sheep.
    """

    name: str
    number: int
    x: float
    y: float
    z: float
    heading: float
    length: float
    width: float
    height: float
    bald: bool = False


@dataclass(slots=True)
class View:
    """One rendered picture.

    Attributes:
        image: uint8 of shape (height, width, 3).
        shown: what each pixel shows, int32 of shape (height, width): a code of `materials`, or `MOBS` + a mob's number.
        depth: blocks along the view's direction, float32 of shape (height, width); inf in the sky.
        whole: pixels within the frame that each mob would cover if nothing were before it, by its code.
    """

    image: NDArray[np.uint8]
    shown: NDArray[np.int32]
    depth: Floats
    whole: dict[int, int] = field(default_factory=dict)


class Camera:
    """Renders one picture size.

    Args:
        width, height: pixels.
        angle: horizontal opening in degrees.
        distance: depth at which the fog is complete, blocks.
        noise: standard deviation of the pixels' noise, in grey levels.
    """

    def __init__(
        self, width: int = 64, height: int = 32, angle: float = 70.0, distance: float = 40.0, noise: float = 4.0
    ) -> None:
        self.rays, self.noise = Rays(width, height, angle, distance), noise
        rng = np.random.default_rng(0xCA)
        self._tile = rng.uniform(-1, 1, TILE * TILE).astype(np.float32)
        self._size = width * height * 3
        # Noise comes from one long table at a place that depends on the tick: equal whether or not other ticks were rendered.
        self._noise = rng.normal(0, noise, 2 * self._size + 4096).astype(np.float32) if noise > 0 else None

    def view(self, eye: Eye, terrain: Terrain, figures: Iterable[Figure], light: float, tick: int) -> View:
        """Render.

        Args:
            eye: the camera's place.
            terrain: the map.
            figures: mobs and items, in any order.
            light: of the day, in [0, 1].
            tick: chooses the noise.
        """
        hits = self.rays.cast(eye, terrain)
        sky = self._sky(hits.slope, light)
        shown = self._shown(hits, terrain)
        colour = self._light(hits, shown, light)
        fog = np.clip((hits.depth / self.rays.distance - 0.5) * 2, 0, 1)[..., None]
        colour += (sky - colour) * fog
        depth = hits.depth
        whole: dict[int, int] = {}
        for figure in figures:
            self._draw(figure, eye, hits.slope, light, sky, colour, shown, depth, whole)
        if self._noise is not None:
            start = (tick * 7919) % (self._size + 4096)
            colour += self._noise[start : start + self._size].reshape(colour.shape)
        image = np.clip(colour, 0, 255).astype(np.uint8)
        return View(np.ascontiguousarray(image.transpose(1, 0, 2)), shown.T, depth.T, whole)

    def _sky(self, slope: Floats, light: float) -> Floats:
        """Colour of the sky by row, shape (height, 3); what is far away fades into it."""
        high = np.clip(-slope * 1.6, 0, 1)[:, None]
        day = HORIZON + (COLOURS[0] - HORIZON) * high
        return np.asarray(NIGHT + (day - NIGHT) * np.float32(light))

    def _shown(self, hits: Hits, terrain: Terrain) -> NDArray[np.int32]:
        material = terrain.material.ravel()[hits.cell].astype(np.int32)
        foot = terrain.ground.ravel()[hits.cell]
        # Turf has a green rim.
        soil = hits.side & ((material == GRASS) | (material == TALLGRASS)) & (hits.height < foot - np.float32(0.2))
        # A side that is above the ground belongs to a trunk or a boulder; boulders are stone all over.
        raised = hits.height > foot + np.float32(1e-3)
        material[soil] = DIRT
        material[raised & (material != STONE) & (terrain.top.ravel()[hits.cell] > foot)] = TRUNK
        material[hits.leaf] = LEAVES
        material[~hits.found] = 0
        return material

    def _light(self, hits: Hits, shown: NDArray[np.int32], light: float) -> Floats:
        """Colours before fog, float32 of shape (width, height, 3)."""
        up = np.where(hits.side, hits.height, hits.z)
        along = np.where(hits.side, hits.x + hits.z, hits.x)
        u, v = (np.nan_to_num(c * 4).astype(np.int32) & (TILE - 1) for c in (up, along))
        # Two sizes of grain: one texel, and one block.
        grain = self._tile[u * TILE + v] + self._tile[(u >> 2) * TILE + (v >> 2)]
        face = np.where(hits.side, np.where(hits.west_east, np.float32(0.62), np.float32(0.8)), np.float32(1))
        shade = face * (1 + np.float32(0.5) * GRAIN[shown] * grain) * np.float32(light)
        colour: Floats = COLOURS[shown] * shade[..., None]
        wet = shown == WATER
        if wet.any():
            # Flat water mirrors the sky: the flatter the look, the more.
            mirror = (1 / (1 + 6 * np.abs(np.broadcast_to(hits.slope, wet.shape)[wet])))[:, None]
            colour[wet] += (HORIZON * np.float32(light) - colour[wet]) * mirror * np.float32(0.7)
        return colour

    def _draw(
        self,
        figure: Figure,
        eye: Eye,
        slope: Floats,
        light: float,
        sky: Floats,
        colour: Floats,
        shown: NDArray[np.int32],
        depth: Floats,
        whole: dict[int, int],
    ) -> None:
        rays = self.rays
        far, right = screen(eye, figure.x, figure.z)
        if not 0.3 < far < rays.distance:
            return
        turned = np.deg2rad(figure.heading - eye.yaw)
        width = abs(np.cos(turned)) * figure.width + abs(np.sin(turned)) * figure.length
        left = (right - width / 2) / far
        columns = slice(*np.searchsorted(rays.across, (left, (right + width / 2) / far)))
        top, bottom = (eye.height - figure.y - figure.height) / far, (eye.height - figure.y) / far
        rows = slice(*np.searchsorted(slope, (top, bottom)))
        if columns.start == columns.stop or rows.start == rows.stop:
            return
        paint, covers = self._sprite(figure, turned)
        i = ((rays.across[columns] - left) * (far / width) * paint.shape[1]).astype(np.intp)
        j = ((slope[rows] - top) / (bottom - top) * paint.shape[0]).astype(np.intp)
        at = np.minimum(j, paint.shape[0] - 1)[None, :], np.minimum(i, paint.shape[1] - 1)[:, None]
        seen = covers[at]
        code = MOBS + figure.number if figure.number >= 0 else DROP
        if figure.number >= 0:
            whole[code] = int(seen.sum())
        box = columns, rows
        seen = seen & (depth[box] > far)
        fog = np.float32(np.clip((far / rays.distance - 0.5) * 2, 0, 1))
        lit = paint[at] * np.float32(light)
        lit += (sky[rows] - lit) * fog
        colour[box][seen] = lit[seen]
        shown[box][seen] = code
        depth[box][seen] = far

    @staticmethod
    def _sprite(figure: Figure, turned: float) -> Sprite:
        if figure.number < 0:
            return COLOURS[DROP].reshape(1, 1, 3), np.ones((1, 1), bool)
        side, front = SPRITES[figure.name]
        if abs(np.sin(turned)) < 0.5:
            # From behind there is no face: the hide's own colour, in the front's shape.
            paint, covers = front
            if np.cos(turned) > 0:
                paint = np.broadcast_to(side[0][side[1].shape[0] // 2, -3], paint.shape)
        else:
            # Yaw grows clockwise: a mob turned by +90 degrees from the view looks to the right.
            paint, covers = side
            if np.sin(turned) > 0:
                paint, covers = paint[:, ::-1], covers[:, ::-1]
        if figure.bald:
            paint = paint * np.float32(0.75)
        return paint, covers
