"""The paper's "simulated" exploration world: flat ground, one block per step, no mobs (section 4.2, appendix A.4).

No pictures: a frame says which cells are in view, less what obstacles hide. What a step may do is a setting, because it decides
how fast any explorer can be: with free turning an agent may swing its sector over up to 61 new cells a step, with 30 degrees a
step straight walking uncovers 11.5 (twice the radius times the sine of half the angle).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from agentexp.errors import UserError
from agentexp.wise.core import EMPTY, Control, Frame, Pose
from agentexp.wise.seen import FieldOfView, Mask
from agentexp.wise.worlds.obstacles import Kind, observable, obstacles
from agentexp.wise.worlds.sight import Sight


class FlatWorld:
    """A `VoxelWorld` of one layer.

    Args:
        size: side of the square region in blocks.
        origin: its corner (x, z); (0, 0) by default.
        turn_per_step: most degrees of turn in one step; null lets the agent turn freely.
        view_angle: opening of the field of view, degrees.
        view_radius: its reach, blocks.
        obstacles: "none", "walls", "rooms", "trees" or "mixed"; drawn anew from each seed.
        density: share of the obstacles' default number.
        spawn: "centre"; "near_centre" (within an eighth of the side); "random" (anywhere free).
    """

    name = "flat"
    speed = 1.0  # blocks per step

    def __init__(
        self,
        size: int = 128,
        origin: list[int] | None = None,
        turn_per_step: float | None = 30.0,
        view_angle: float = 70.0,
        view_radius: float = 10.0,
        obstacles: Kind = "none",
        density: float = 1.0,
        spawn: Literal["centre", "near_centre", "random"] = "centre",
    ) -> None:
        if size < 16:
            raise UserError(f"world.size is {size}; choose a side of at least 16 blocks.")
        if turn_per_step is not None and turn_per_step <= 0:
            raise UserError(f"world.turn_per_step is {turn_per_step}; choose a number above 0, or null for free turning.")
        if spawn not in ("centre", "near_centre", "random"):
            raise UserError(f"world.spawn is {spawn!r}; choose centre, near_centre or random.")
        self.size = size
        corner = origin or [0, 0]
        self.origin = (int(corner[0]), int(corner[1]))
        self.turn_per_step = turn_per_step
        self.kind, self.density, self.spawn = obstacles, density, spawn
        self._view = FieldOfView(view_angle, view_radius)
        self._sight = Sight(view_radius)
        self._margin = int(np.ceil(view_radius)) + 2
        self._solid: Mask = np.zeros((1, 1), bool)
        self._observable: Mask = np.zeros((1, 1), bool)
        self._x = self._z = self._yaw = 0.0
        self._tick = 0

    def reset(self, seed: int) -> Frame:
        """Draw the obstacles, the spawn and the first yaw from the seed; `Frame.info["observable"]` counts what can be seen."""
        rng = np.random.default_rng([seed, self.size])
        solid = obstacles(self.kind, self.size, self.density, rng)
        middle = self.size / 2
        if self.spawn == "centre":
            x = z = int(middle)
        else:
            reach = self.size / 8 if self.spawn == "near_centre" else middle - 1
            x, z = (int(middle + rng.uniform(-reach, reach)) for _ in range(2))
        solid[max(x - 1, 0) : x + 2, max(z - 1, 0) : z + 2] = False
        self._observable = observable(solid, (x, z))
        # A border of solid cells spares every look-up a test of the bounds. It hides nothing: cells beyond it are no cells.
        self._solid = np.pad(solid, self._margin, constant_values=True)
        self._x, self._z = x + 0.5, z + 0.5
        self._yaw = float(rng.uniform(0, 360))
        self._tick = 0
        return self._frame(EMPTY)

    def act(self, control: Control) -> Frame:
        """Turn, then go `forward` blocks along the new yaw, sliding along what is in the way."""
        turn = control.turn
        if self.turn_per_step is not None:
            turn = float(np.clip(turn, -self.turn_per_step, self.turn_per_step))
        self._yaw = (self._yaw + turn) % 360
        self._tick += 1
        bumped = EMPTY
        step = float(np.clip(control.forward, -1, 1))
        if step:
            bumped = self._walk(step)
        return self._frame(bumped)

    def _walk(self, step: float) -> NDArray[np.int32]:
        heading = np.deg2rad(self._yaw)
        dx, dz = -np.sin(heading) * step, np.cos(heading) * step
        for sx, sz in ((dx, dz), (dx, 0.0), (0.0, dz)):
            if (sx or sz) and self._free(self._x + sx / 2, self._z + sz / 2) and self._free(self._x + sx, self._z + sz):
                self._x, self._z = self._x + sx, self._z + sz
                if (sx, sz) == (dx, dz):
                    return EMPTY
                break
        hit = np.array([[np.floor(self._x + dx), np.floor(self._z + dz)]], np.int32)
        return hit if not self._free(self._x + dx, self._z + dz) and self._inside(hit[0]) else EMPTY

    def _free(self, x: float, z: float) -> bool:
        return not self._solid[int(np.floor(x)) + self._margin, int(np.floor(z)) + self._margin]

    def _inside(self, cell: NDArray[np.int32]) -> bool:
        return bool((cell >= 0).all() and (cell < self.size).all())

    def _frame(self, bumped: NDArray[np.int32]) -> Frame:
        here = np.array([int(self._x), int(self._z)], np.int32)
        offsets = self._view.offsets(self._x, self._z, self._yaw)
        cells = offsets + here
        inside = ((cells >= 0) & (cells < self.size)).all(axis=1)
        blocked = EMPTY
        if self.kind == "none":
            cells = cells[inside]
        else:
            padded = here + self._margin
            cells = cells[inside & self._sight.clear(self._solid, int(padded[0]), int(padded[1]), offsets)]
            blocked = cells[self._solid[cells[:, 0] + self._margin, cells[:, 1] + self._margin]]
            if len(bumped):
                blocked = np.concatenate((blocked, bumped))
        corner = np.asarray(self.origin, np.int32)
        pose = Pose(self._x + corner[0], 64.0, self._z + corner[1], self._yaw, 0.0)
        return Frame(self._tick, pose, cells=cells + corner, blocked=blocked + corner)

    def picture(self) -> NDArray[np.uint8]:
        """This world has none.

        Raises:
            UserError: always.
        """
        raise UserError("The flat world has no pictures; choose world=sim or world=voxel for tasks that look.")

    def command(self, text: str, **values: Any) -> None:
        """Nothing can be spawned here.

        Raises:
            UserError: always.
        """
        raise UserError(f"The flat world knows no command {text!r}; choose world=sim for tasks with things in them.")

    def truth(self) -> Mapping[str, Any]:
        """Bool maps of shape (size, size): "passable" cells, and those "observable" from where one can get to."""
        inner = slice(self._margin, self._margin + self.size)
        return {"passable": ~self._solid[inner, inner], "observable": self._observable}

    def close(self) -> None:
        """Nothing to stop."""

    def versions(self) -> dict[str, str]:
        """Version of numpy, whose generator draws the maps."""
        return {"numpy": np.__version__}
