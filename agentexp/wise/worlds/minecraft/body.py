"""A body with keys in a world that shows no map: controls become key presses, and a pose becomes cells seen and bumped into.

Minecraft's own conventions of yaw and pitch are those of `agentexp.wise.core` (yaw 0 looks south, 90 west, pitch positive looks
down), so only the range of yaw is brought to [0, 360).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agentexp.errors import EngineError, UserError
from agentexp.wise.core import EMPTY, Control, Pose
from agentexp.wise.knowledge.names import generic
from agentexp.wise.seen import FieldOfView

Action = dict[str, Any]

# The keys of MineRL's and MineStudio's action spaces that a control may hold; one control knows five of them by name.
KEYS = (
    *("attack", "back", "forward", "jump", "left", "right", "sneak", "sprint", "use"),
    *(f"hotbar.{slot}" for slot in range(1, 10)),
)
SLOTS = 9

_STILL = 0.03  # blocks per tick; walking is 0.216, the first tick of it 0.1
_REACH = 0.8  # from the middle of the body to just beyond what it touches, blocks
_NOTHING = ("none", "air")


def pose_of(x: float, y: float, z: float, yaw: float, pitch: float) -> Pose:
    """A pose from Minecraft's numbers, which count yaw on beyond a full turn.

    Raises:
        EngineError: a number is missing (nan).
    """
    numbers = [float(value) for value in (x, y, z, yaw, pitch)]
    if not np.isfinite(numbers).all():
        raise EngineError(f"Minecraft gave no position (x, y, z, yaw, pitch = {numbers}).")
    return Pose(numbers[0], numbers[1], numbers[2], numbers[3] % 360, numbers[4])


def carried(items: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Counts by the knowledge base's names: oak_log, birch_log and log2 are all "log"; empty slots are left out."""
    counts: dict[str, int] = {}
    for name, count in items:
        bare = name.removeprefix("minecraft:")
        if bare not in _NOTHING and int(count) > 0:
            known = generic(bare)
            counts[known] = counts.get(known, 0) + int(count)
    return counts


class Keys:
    """Controls as what is pressed in one tick.

    A key is down or up, so a share of full speed becomes a share of the ticks. The mouse turns by any angle in one tick; the
    limits are ours, so that no method turns faster than a player's hand.

    Args:
        turn_per_step: most degrees of yaw and of pitch in one tick.
        auto_jump: jump when walking does not move the body, as the game's own option of that name does.
    """

    def __init__(self, turn_per_step: float, auto_jump: bool = True) -> None:
        if not 0 < turn_per_step <= 180:
            raise UserError(f"world.turn_per_step is {turn_per_step}; choose degrees above 0 and up to 180.")
        self.turn_per_step, self.auto_jump = turn_per_step, auto_jump
        self._owed = 0.0

    def reset(self) -> None:
        """Begin an episode."""
        self._owed = 0.0

    def press(self, control: Control, stuck: int = 0) -> Action:
        """Keys (0 or 1) and "camera", the change of (pitch, yaw) in degrees.

        Args:
            control: what the agent wants.
            stuck: ticks that the body has walked without moving.

        Raises:
            UserError: a key that Minecraft does not have.
        """
        unknown = [key for key in control.keys if key not in KEYS]
        if unknown:
            raise UserError(f"Minecraft has no key {unknown[0]!r}; a control may hold: {', '.join(KEYS)}.")
        action: Action = dict.fromkeys(KEYS, 0)
        action.update(dict.fromkeys(control.keys, 1))
        speed = float(np.clip(control.forward, -1, 1))
        self._owed = self._owed + abs(speed) if speed else 0.0
        # The first tick of a walk counts from a half, so that half speed is every other tick from the start.
        if self._owed >= 0.5:
            self._owed -= 1.0
            action["forward" if speed > 0 else "back"] = 1
        for key in ("jump", "attack", "use"):
            action[key] |= int(getattr(control, key))
        if self.auto_jump and stuck >= 2 and action["forward"]:
            action["jump"] = 1
        limit = self.turn_per_step
        action["camera"] = np.clip(np.array([control.look, control.turn], np.float32), -limit, limit)
        return action


class Region:
    """The square that is explored and scored, and what of it is in view.

    No height map reaches the agent, so the cells in view are those of the flat sector: ground behind a hill counts as seen.

    Args:
        size: side in blocks.
        origin: corner (x, z); None: such that the spawn is the centre, anew for each episode.
        view_angle: opening of the field of view, degrees.
        view_radius: its reach, blocks.
    """

    def __init__(self, size: int, origin: list[int] | None, view_angle: float, view_radius: float) -> None:
        if size < 16:
            raise UserError(f"world.size is {size}; choose a side of at least 16 blocks.")
        if origin is not None and len(origin) != 2:
            raise UserError(f"world.origin is {origin}; it needs two numbers, the smallest x and z, or null.")
        if not 0 < view_angle <= 360 or view_radius <= 0:
            raise UserError("world.view_angle must be above 0 and up to 360 degrees, world.view_radius above 0 blocks.")
        self.size, self._fixed = size, origin
        self.origin = (int(origin[0]), int(origin[1])) if origin else (0, 0)
        self._view = FieldOfView(view_angle, view_radius)

    def centre(self, spawn: Pose) -> None:
        """Begin an episode."""
        if self._fixed is None:
            x, z = spawn.cell
            self.origin = (x - self.size // 2, z - self.size // 2)

    def inside(self, cells: NDArray[np.int32]) -> NDArray[np.int32]:
        """Those of the cells (n, 2) that belong to the region."""
        at = cells - np.asarray(self.origin, np.int32)
        kept: NDArray[np.int32] = cells[((at >= 0) & (at < self.size)).all(axis=1)]
        return kept

    def cells(self, pose: Pose) -> NDArray[np.int32]:
        """Cells in view, int32 of shape (n, 2)."""
        return self.inside(self._view.offsets(pose.x, pose.z, pose.yaw) + np.array(pose.cell, np.int32))


class Bumps:
    """Cells that stop the body: it walked towards them for a while and did not come forward, jumping or not.

    A mob in the way looks the same, and so does the shore to a swimmer; the cell then stays blocked for the episode.

    Args:
        patience: ticks of walking without coming forward; a jump takes 12.

    Attributes:
        stuck: ticks that this has lasted.
    """

    def __init__(self, patience: int = 15) -> None:
        self.patience = patience
        self.stuck = 0

    def reset(self) -> None:
        """Begin an episode."""
        self.stuck = 0

    def after(self, before: Pose, now: Pose, walked: bool) -> NDArray[np.int32]:
        """The cell that is in the way, int32 of shape (1, 2), or none (0, 2).

        Args:
            before: pose before the tick.
            now: pose after it.
            walked: whether "forward" was pressed in it.
        """
        heading = np.deg2rad(now.yaw)
        ahead = np.array([-np.sin(heading), np.cos(heading)])
        came = float((np.array([now.x, now.z]) - (before.x, before.z)) @ ahead)
        turned = abs((now.yaw - before.yaw + 180) % 360 - 180)
        # A tick without the key (half speed) neither counts nor ends it.
        if came >= _STILL or turned > 30:
            self.stuck = 0
        elif walked:
            self.stuck += 1
        if self.stuck < self.patience or not walked:
            return EMPTY
        at = np.floor(np.array([now.x, now.z]) + _REACH * ahead).astype(np.int32)
        if (at == now.cell).all():
            axis = int(np.abs(ahead).argmax())
            at[axis] += int(np.sign(ahead[axis]))
        cell: NDArray[np.int32] = at[None]
        return cell
