"""First-person pictures: what the rays hit is coloured, shaded and fogged; animals and dropped items stand in front of it.

Beside the colours there are two more buffers of the same pixels: what each shows (a material, or the number of a mob) and how
far it is. The simulated vision model and the scoring read those; the agent gets the colours only.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from agentexp.wise.worlds.sim.materials import COLOURS, DIRT, DROP, GRAIN, GRASS, LEAVES, MOBS, STONE, TALLGRASS, TRUNK, WATER
from agentexp.wise.worlds.sim.rays import Eye, Floats, Hits, Rays, Whole, screen
from agentexp.wise.worlds.sim.sprites import SPRITES, Sprite
from agentexp.wise.worlds.sim.terrain import Terrain

TILE = 64
# Colours are in planes, (3, ...): an operation on three whole pictures is faster than one on pixels of three numbers.
NIGHT = np.array([[14], [18], [38]], np.float32)
HORIZON = np.array([[188], [208], [240]], np.float32)
PAINTS: Floats = np.ascontiguousarray(COLOURS.T)
FACES = np.float32(0.62), np.float32(0.8)  # how bright a side is that looks west or east, and another one; tops have 1
HALF_GRAIN: Floats = np.float32(0.5) * GRAIN


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


@dataclass(slots=True)
class _Canvas:
    """What figures are drawn on: planes of the picture, its buffers, and the rays' directions by column and row."""

    colour: Floats
    shown: NDArray[np.int32]
    depth: Floats
    sky: Floats
    ahead: tuple[float, float]
    across: list[float]
    slope: Floats
    slopes: list[float]
    whole: dict[int, int]


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
        tile = rng.uniform(-1, 1, TILE * TILE).astype(np.float32)
        # Two sizes of grain: one texel, and one block.
        u, v = np.divmod(np.arange(TILE * TILE), TILE)
        self._grain = tile + tile[(u >> 2) * TILE + (v >> 2)]
        self._across: list[float] = self.rays.across.tolist()
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
        sky = self._sky(hits.slope[:, 0], light)[:, :, None]
        shown = self._shown(hits, terrain)
        colour = self._light(hits, shown, light)
        fog = hits.depth / self.rays.distance
        fog -= np.float32(0.5)
        fog *= np.float32(2)
        np.maximum(fog, np.float32(0), out=fog)
        np.minimum(fog, np.float32(1), out=fog)
        fading = sky - colour
        fading *= fog
        colour += fading
        slopes: list[float] = hits.slope.ravel().tolist()
        canvas = _Canvas(colour, shown, hits.depth, sky, eye.forward, self._across, hits.slope, slopes, {})
        for figure in figures:
            self._draw(figure, eye, light, canvas)
        if self._noise is not None:
            start = (tick * 7919) % (self._size + 4096)
            noise = self._noise[start : start + self._size]
            colour += noise.reshape(self.rays.width, self.rays.height, 3).transpose(2, 1, 0)
        np.maximum(colour, np.float32(0), out=colour)
        np.minimum(colour, np.float32(255), out=colour)
        image = np.empty((self.rays.height, self.rays.width, 3), np.uint8)
        for plane in range(3):
            image[..., plane] = colour[plane]
        return View(image, shown, hits.depth, canvas.whole)

    def _sky(self, slope: Floats, light: float) -> Floats:
        """Colour of the sky by row, shape (3, height); what is far away fades into it."""
        high = np.minimum(np.maximum(-slope * 1.6, np.float32(0)), np.float32(1))
        day = HORIZON + (PAINTS[:, :1] - HORIZON) * high
        return np.asarray(NIGHT + (day - NIGHT) * np.float32(light))

    def _shown(self, hits: Hits, terrain: Terrain) -> NDArray[np.int32]:
        material = terrain.material.ravel().take(hits.cell).astype(np.int32)
        foot = terrain.ground.ravel().take(hits.cell)
        # Turf has a green rim.
        soil = (material == GRASS) | (material == TALLGRASS)
        soil &= hits.side
        soil &= hits.height < foot - np.float32(0.2)
        # A side that is above the ground belongs to a trunk or a boulder; boulders are stone all over.
        trunk = hits.height > foot + np.float32(1e-3)
        trunk &= material != STONE
        trunk &= hits.top > foot
        np.copyto(material, DIRT, where=soil)
        np.copyto(material, TRUNK, where=trunk)
        np.copyto(material, LEAVES, where=hits.leaf)
        np.copyto(material, 0, where=~hits.found)
        return material

    def _light(self, hits: Hits, shown: NDArray[np.int32], light: float) -> Floats:
        """Colours before fog, float32 of shape (3, height, width)."""
        point = np.empty((2, *shown.shape), np.float32)
        point[0] = np.where(hits.side, hits.height, hits.z)
        point[1] = np.where(hits.side, hits.x + hits.z, hits.x)
        point *= np.float32(4)
        with np.errstate(invalid="ignore"):  # rays along the horizon end nowhere
            u, v = point.astype(np.int32) & (TILE - 1)
        u *= TILE
        u += v
        code: Whole = shown.astype(np.intp)
        shade = HALF_GRAIN.take(code)
        shade *= self._grain.take(u)
        shade += np.float32(1)
        shade *= np.where(hits.side, np.where(hits.west_east, *FACES), np.float32(1))
        shade *= np.float32(light)
        colour: Floats = PAINTS.take(code, axis=1)
        colour *= shade
        water = shown == WATER
        if water.any():
            # Flat water mirrors the sky: the flatter the look, the more.
            wet = np.flatnonzero(water)
            mirror = 1 / (1 + 6 * np.abs(np.broadcast_to(hits.slope, shown.shape).take(wet)))
            pool = colour.reshape(3, -1)[:, wet]
            pool += (HORIZON * np.float32(light) - pool) * mirror * np.float32(0.7)
            colour.reshape(3, -1)[:, wet] = pool
        return colour

    def _draw(self, figure: Figure, eye: Eye, light: float, canvas: _Canvas) -> None:
        far, right = screen(eye, canvas.ahead, figure.x, figure.z)
        across = canvas.across
        # Its width is not known yet, but at most so much; most figures are behind or beside the picture.
        reach = (figure.width + figure.length) / 2
        if not 0.3 < far < self.rays.distance or (right - reach) / far > across[-1] or (right + reach) / far < across[0]:
            return
        turned = np.deg2rad(figure.heading - eye.yaw)
        width = abs(np.cos(turned)) * figure.width + abs(np.sin(turned)) * figure.length
        left = (right - width / 2) / far
        columns = slice(bisect_left(across, left), bisect_left(across, (right + width / 2) / far))
        top, bottom = (eye.height - figure.y - figure.height) / far, (eye.height - figure.y) / far
        rows = slice(bisect_left(canvas.slopes, top), bisect_left(canvas.slopes, bottom))
        if columns.start == columns.stop or rows.start == rows.stop:
            return
        paint, covers = self._sprite(figure, turned)
        i = ((self.rays.across[columns] - left) * (far / width) * covers.shape[1]).astype(np.intp)
        j = ((canvas.slope[rows, 0] - top) / (bottom - top) * covers.shape[0]).astype(np.intp)
        at = np.minimum(j, covers.shape[0] - 1)[:, None], np.minimum(i, covers.shape[1] - 1)
        seen = covers[at]
        code = MOBS + figure.number if figure.number >= 0 else DROP
        if figure.number >= 0:
            canvas.whole[code] = int(np.count_nonzero(seen))
        box = rows, columns
        seen = seen & (canvas.depth[box] > far)
        fog = np.float32(min(max((far / self.rays.distance - 0.5) * 2, 0.0), 1.0))
        lit = paint[:, *at] * np.float32(light)
        lit += (canvas.sky[:, rows] - lit) * fog
        np.copyto(canvas.colour[:, rows, columns], lit, where=seen)
        np.copyto(canvas.shown[box], code, where=seen)
        np.copyto(canvas.depth[box], far, where=seen)

    @staticmethod
    def _sprite(figure: Figure, turned: float) -> Sprite:
        if figure.number < 0:
            return PAINTS[:, DROP].reshape(3, 1, 1), np.ones((1, 1), bool)
        side, front = SPRITES[figure.name]
        if abs(np.sin(turned)) < 0.5:
            # From behind there is no face: the hide's own colour, in the front's shape.
            paint, covers = front
            if np.cos(turned) > 0:
                hide = side[0][:, side[1].shape[0] // 2, -3]
                paint = np.broadcast_to(hide[:, None, None], paint.shape)
        else:
            # Yaw grows clockwise: a mob turned by +90 degrees from the view looks to the right.
            paint, covers = side
            if np.sin(turned) > 0:
                paint, covers = paint[..., ::-1], covers[:, ::-1]
        if figure.bald:
            paint = paint * np.float32(0.75)
        return paint, covers
