"""`SimWorld`: the simulated world of the tasks. Simulated: results in it are not results in Minecraft.

A height map with biomes, ponds, trees and animals, seen in first person. What the agent gets is a frame as in every other
world; `sightings` and `truth` are for the simulated vision model and for scoring. Movement, times and reach are Minecraft's as
far as they matter to a plan; water cannot be entered, nothing attacks, it does not rain.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from agentexp.errors import UserError
from agentexp.wise.core import EMPTY, Control, Frame, Pose
from agentexp.wise.seen import FieldOfView, Mask
from agentexp.wise.vlm.simulated import Sighting
from agentexp.wise.worlds.sim.body import EYES, Body
from agentexp.wise.worlds.sim.camera import Camera, View
from agentexp.wise.worlds.sim.hands import Hands, aim
from agentexp.wise.worlds.sim.materials import WATER
from agentexp.wise.worlds.sim.mobs import KINDS, Herd
from agentexp.wise.worlds.sim.rays import Eye
from agentexp.wise.worlds.sim.scene import feet, figures, sightings
from agentexp.wise.worlds.sim.sightlines import Sightlines
from agentexp.wise.worlds.sim.terrain import Recipe, Terrain

DAY, DUSK = 24_000, 12_000
TOOLS = {"bucket": 3, "diamond_sword": 1, "shears": 1, "stone_pickaxe": 1}
SPAWNS = ("centre", "near_centre", "random")
WATER_SEEN = 8  # blocks from the shore to which water can be seen


class SimWorld:
    """A `VoxelWorld` and a `Witness`.

    Args:
        size: side of the square region in blocks; it cannot be left.
        origin: its corner (x, z); (0, 0) by default.
        map_seed: of the map; null: the map is drawn from the episode's seed, too. The paper uses one fixed map.
        spawn: "centre"; "near_centre" (within an eighth of the side); "random". Always on free ground that hangs together.
        turn_per_step: most degrees of turn and look in a tick; null for any.
        view_angle: opening of the picture and of the field of view, degrees.
        view_radius: reach of the field of view whose cells count as seen, blocks.
        view_distance: how far pictures show anything, blocks.
        picture: width and height in pixels; [64, 32] by default. Models trained on photographs need about [320, 180].
        picture_every: ticks between two frames with a picture; 0: never, only on request.
        noise: standard deviation of the pixels' noise, grey levels.
        day_start: time of day at the reset in ticks; 0 is sunrise, night falls from 12,000 to 13,800.
        terrain: changes to the map's recipe by name: relief, ponds, trees, apart ...; see `Recipe`.
        sheep, pigs, cows: animals at the reset.
        stay_ticks: ticks after which an animal that `command` spawned leaves; null: it stays.
        tools: the inventory at the reset; a few buckets, sword, shears and pickaxe by default.

    Raises:
        UserError: a setting is out of range.
    """

    name = "sim"

    def __init__(
        self,
        size: int = 128,
        origin: list[int] | None = None,
        map_seed: int | None = None,
        spawn: Literal["centre", "near_centre", "random"] = "near_centre",
        turn_per_step: float | None = 9.0,
        view_angle: float = 70.0,
        view_radius: float = 10.0,
        view_distance: float = 40.0,
        picture: list[int] | None = None,
        picture_every: int = 1,
        noise: float = 4.0,
        day_start: int = 1000,
        terrain: dict[str, Any] | None = None,
        sheep: int = 6,
        pigs: int = 4,
        cows: int = 0,
        stay_ticks: int | None = None,
        tools: dict[str, int] | None = None,
    ) -> None:
        self.size = size
        corner = origin or [0, 0]
        self.origin = (int(corner[0]), int(corner[1]))
        self.turn_per_step = turn_per_step
        self.map_seed, self.spawn = map_seed, spawn
        width, height = picture or [64, 32]
        self.picture_every, self.day_start, self.stay_ticks = picture_every, day_start, stay_ticks
        self.recipe = _recipe(terrain or {})
        self.animals = {"sheep": sheep, "pig": pigs, "cow": cows}
        self.tools = dict(TOOLS if tools is None else tools)
        self._check(width, height, view_distance)
        self.camera = Camera(width, height, view_angle, view_distance, noise)
        self._fov = FieldOfView(view_angle, view_radius)
        self._sight = Sightlines(view_radius)
        self._pad = int(np.ceil(max(view_distance * 1.25, view_radius))) + 4
        self._view: View | None = None
        self._terrain: Terrain | None = None
        self._tick = 0

    def _check(self, width: int, height: int, view_distance: float) -> None:
        if self.size < 48:
            raise UserError(f"world.size is {self.size}; choose a side of at least 48 blocks.")
        if self.spawn not in SPAWNS:
            raise UserError(f"world.spawn is {self.spawn!r}; choose one of {', '.join(SPAWNS)}.")
        if self.turn_per_step is not None and self.turn_per_step <= 0:
            raise UserError(f"world.turn_per_step is {self.turn_per_step}; choose a number above 0, or null for free turning.")
        if width < 16 or height < 8 or view_distance < 8:
            raise UserError("world.picture must be at least [16, 8], world.view_distance at least 8 blocks.")
        if self.picture_every < 0 or min(self.animals.values()) < 0:
            raise UserError("world.picture_every and the numbers of animals must not be negative.")

    # --------------------------------------------------------------------------------------------------------- protocol

    def reset(self, seed: int) -> Frame:
        """See `VoxelWorld.reset`. The map is drawn from `map_seed`, all else from `seed`."""
        self._terrain = Terrain(self.size, self._pad, self.recipe, seed if self.map_seed is None else self.map_seed)
        self._rng = np.random.default_rng([seed, self.size, 0x51])
        self._tick = 0
        self._bodies()
        x, z = self._spawn()
        self._spawn_component = int(self._parts[x, z])
        self.body = Body(
            self._floor, self._pad, self.turn_per_step, self._rng, x + 0.5, z + 0.5, float(self._rng.uniform(0, 360))
        )
        self.herd, self.hands = Herd(), Hands(self.tools, self._rng)
        for name, count in self.animals.items():
            for cell in self._draw_cells(count, self._parts == self._spawn_component):
                self._add(name, *cell, None)
        return self._frame(None)

    def act(self, control: Control) -> Frame:
        """See `VoxelWorld.act`: the body moves, the animals move, then the hands do what they can."""
        self._tick += 1
        bumped = self.body.move(control)
        self.herd.step(self._passable, self._tick, self._rng)
        self._work(control)
        self.hands.gather(self.body.x, self.body.z, self._tick)
        return self._frame(bumped)

    def picture(self) -> NDArray[np.uint8]:
        """The picture now."""
        return self._look().image

    def render(self, width: int, height: int) -> NDArray[np.uint8]:
        """The same view with another number of pixels, uint8 of shape (height, width, 3)."""
        rays = self.camera.rays
        angle = float(2 * np.degrees(np.arctan(rays.width / 2 / rays.focal)))
        return self._render(Camera(width, height, angle, rays.distance, self.camera.noise)).image

    def command(self, text: str, **values: Any) -> None:
        """Spawn an animal.

        Args:
            text: "spawn".
            values: name ("cow", "sheep", "pig"); x and z in blocks, or else it is put on a random cell within `within`
                blocks (30 by default) of the agent; stay: ticks until it leaves, in place of the world's `stay_ticks`. It
                always gets a free cell that can be reached from the agent; for a given place, the nearest.

        Raises:
            UserError: another command, kind or value.
        """
        if text != "spawn":
            raise UserError(f"The simulated world knows no command {text!r}; choose spawn.")
        name = values.pop("name", None)
        stay = values.pop("stay", self.stay_ticks)
        x, z, within = values.pop("x", None), values.pop("z", None), float(values.pop("within", 30.0))
        if name not in KINDS or values or (x is None) != (z is None):
            raise UserError(
                f"spawn needs name (one of {', '.join(KINDS)}), and x and z, or within; got name={name!r}"
                f"{''.join(f', {key}' for key in values)}."
            )
        free = self._parts == self._parts[int(self.body.x), int(self.body.z)]
        if x is None:
            far = _distances(self.size, self.body.x, self.body.z)
            cells = self._draw_cells(1, free & (far <= within) & (far > 2))
        else:
            far = np.where(free, _distances(self.size, x - self.origin[0], z - self.origin[1]), np.inf)
            cells = [divmod(int(far.argmin()), self.size)]
        for cell in cells:
            self._add(name, *cell, stay)

    def sightings(self) -> list[Sighting]:
        """What the last frame shows, see `scene.sightings`."""
        return sightings(self._look(), self.herd)

    def truth(self) -> Mapping[str, Any]:
        """For scoring only.

        "passable" and "observable" bool, "height" float32 and "material" uint8, all of shape (size, size); "things": dicts with
        name, x and z (mobs, trees, items that lie about); "ponds" and "forests": (x, z, radius).
        """
        terrain, corner = self._ground(), self.origin
        things = [
            {"name": name, "x": float(x) + corner[0], "z": float(z) + corner[1], "number": int(number)}
            for name, x, z, number in zip(self.herd.names, self.herd.x, self.herd.z, self.herd.number, strict=True)
        ]
        things += [{"name": "log", "x": t.x + 0.5 + corner[0], "z": t.z + 0.5 + corner[1]} for t in terrain.trees.values()]
        things += [{"name": drop.name, "x": drop.x + corner[0], "z": drop.z + corner[1]} for drop in self.hands.drops]
        return {
            "passable": self._passable,
            "observable": self._observable(),
            "height": terrain.inner(terrain.ground),
            "material": terrain.inner(terrain.material),
            "things": things,
            "ponds": [(x + corner[0], z + corner[1], radius) for x, z, radius in terrain.ponds],
            "forests": [(x + corner[0], z + corner[1], radius) for x, z, radius in terrain.forests],
        }

    def stand(self, x: float, z: float, yaw: float, pitch: float = 0.0) -> View:
        """Put the body on the free cell nearest to (x, z) and look: for pictures, never within an episode."""
        corner = self.origin
        far = np.where(self._passable, _distances(self.size, x - corner[0], z - corner[1]), np.inf)
        i, j = divmod(int(far.argmin()), self.size)
        body = self.body
        body.x, body.z, body.yaw, body.pitch = i + 0.5, j + 0.5, yaw % 360, pitch
        body.y = float(self._floor[i + self._pad, j + self._pad])
        self._view = None
        return self._look()

    def view(self) -> View:
        """The buffers of the last frame (picture, what each pixel shows, depth), for tests and for fitting encoders."""
        return self._look()

    def close(self) -> None:
        """Nothing to stop."""

    def versions(self) -> dict[str, str]:
        """Version of numpy, whose generator draws everything."""
        return {"numpy": np.__version__}

    # ----------------------------------------------------------------------------------------------------------- inside

    def _ground(self) -> Terrain:
        if self._terrain is None:
            raise UserError("The simulated world has no map yet: call reset first.")
        return self._terrain

    def _bodies(self) -> None:
        """Where bodies can be, from the terrain: now and whenever a tree is gone."""
        terrain = self._ground()
        self._floor = np.where(terrain.solid, np.float32(np.inf), terrain.ground)
        inner = slice(self._pad, self._pad + self.size)
        self._passable: Mask = np.ascontiguousarray(~terrain.solid[inner, inner])
        self._parts: NDArray[np.int32] = ndimage.label(self._passable)[0]
        self._trees = len(terrain.trees)

    def _spawn(self) -> tuple[int, int]:
        parts = np.bincount(self._parts.ravel())
        parts[0] = 0
        free = self._parts == parts.argmax()
        middle = self.size / 2
        reach = {"centre": 0.0, "near_centre": self.size / 8, "random": middle - 2}[self.spawn]
        x, z = (middle + self._rng.uniform(-1, 1) * reach for _ in range(2))
        far = np.where(free, _distances(self.size, x, z), np.inf)
        i, j = divmod(int(far.argmin()), self.size)
        return i, j

    def _draw_cells(self, count: int, free: Mask) -> list[tuple[int, int]]:
        cells = np.argwhere(free)
        if not len(cells):
            raise UserError("There is no free cell to spawn an animal on; choose a larger `within`.")
        return [(int(i), int(j)) for i, j in cells[self._rng.integers(0, len(cells), count)]]

    def _add(self, name: str, i: int, j: int, stay: int | None) -> None:
        self.herd.add(name, i + 0.5, j + 0.5, float(self._rng.uniform(0, 360)), self._tick, stay)

    def _work(self, control: Control) -> None:
        terrain = self._ground()
        target = None
        if control.attack or control.use:
            target = aim(self._eye(), self.herd, feet(self.herd, terrain), terrain)
        self.hands.attack(target if control.attack else None, self.herd, terrain, self._eye(), self._tick)
        if control.use:
            self.hands.use(target, self.herd, self._tick)
        if len(terrain.trees) != self._trees:
            self._bodies()
            self.body.floor_map = self._floor

    def _eye(self) -> Eye:
        body = self.body
        return Eye(body.x, body.z, body.y + EYES, body.yaw, body.pitch)

    def _look(self) -> View:
        if self._view is None:
            self._view = self._render(self.camera)
        return self._view

    def _render(self, camera: Camera) -> View:
        terrain, eye = self._ground(), self._eye()
        shown = figures(self.herd, self.hands.drops, terrain, eye, camera.rays.distance)
        return camera.view(eye, terrain, shown, self.daylight(), self._tick)

    def daylight(self) -> float:
        """Brightness of the day, from 0.25 to 1; dusk from 12,000 to 13,800 ticks after sunrise as in Minecraft."""
        time = (self.day_start + self._tick) % DAY
        if time <= DUSK:
            return 1.0
        dark = np.interp(time, [DUSK, 13_800, 22_200, DAY], [0.0, 1.0, 1.0, 0.0])
        return float(1 - 0.75 * dark)

    def _observable(self) -> Mask:
        """Cells that can be seen from where one can get to: ground, what stands on it, and water near the shore."""
        free = self._parts == self._spawn_component
        far = ndimage.distance_transform_edt(~free)
        wet = self._ground().inner(self._ground().material) == WATER
        near = ndimage.binary_dilation(free, np.ones((3, 3), bool))
        return np.asarray(near & (free | ~self._passable) | (wet & (far <= WATER_SEEN)))

    def _frame(self, bumped: tuple[int, int] | None) -> Frame:
        self._view = None
        terrain, body = self._ground(), self.body
        i, j = int(body.x), int(body.z)
        offsets = self._fov.offsets(body.x, body.z, body.yaw)
        cells = offsets + np.array([i, j], np.int32)
        clear = self._sight.clear(terrain.ground, terrain.top, i + self._pad, j + self._pad, body.y + EYES, offsets)
        reach = self._sight.reach
        if min(i, j) < reach or max(i, j) >= self.size - reach:
            clear &= ((cells >= 0) & (cells < self.size)).all(axis=1)
        cells = cells[clear]
        blocked = cells[~self._passable[cells[:, 0], cells[:, 1]]]
        if bumped is not None and min(bumped) >= 0 and max(bumped) < self.size:
            blocked = np.concatenate((blocked, np.array([bumped], np.int32)))
        shows = self.picture_every and self._tick % self.picture_every == 0
        west, north = self.origin
        if west or north:
            cells += np.array(self.origin, np.int32)
            blocked += np.array(self.origin, np.int32)
        return Frame(
            self._tick,
            Pose(body.x + west, body.y, body.z + north, body.yaw, body.pitch),
            image=self._look().image if shows else None,
            cells=cells,
            blocked=blocked if len(blocked) else EMPTY,
            inventory={name: count for name, count in self.hands.inventory.items() if count},
        )


def _recipe(changes: dict[str, Any]) -> Recipe:
    known = Recipe.__dataclass_fields__
    for name, value in changes.items():
        if name not in known:
            raise UserError(f"world.terrain.{name} is not a setting; choose of {', '.join(known)}.")
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            raise UserError(f"world.terrain.{name} must be a number of at least 0, not {value!r}.")
    return Recipe(**changes)


def _distances(size: int, x: float, z: float) -> NDArray[np.float64]:
    """Of the cells' centres from a point, shape (size, size)."""
    side = np.arange(size) + 0.5
    return np.asarray(np.hypot(side[:, None] - x, side[None, :] - z))
