"""Places as the robot could tell them: steps ahead of and to the right of where it started, looking as it did then.

Texts name no rooms and give no coordinates, so a reader could not tell two red doors apart. The world therefore notes in
`Step.info` where the robot is (its odometry) and the extent of the room around it; prompts do not show this.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple, TypeAlias

from agentexp.envs.babyai.scene import VECTORS, Cell, Scene

Spot: TypeAlias = tuple[int, int]  # steps ahead of the start, steps to its right; negative: behind, to the left

_SPOT = re.compile(r"(?:(\d+) (ahead|behind))? ?(?:(\d+) (left|right))?")


class Pose(NamedTuple):
    """Where the robot is and how it looks: quarter turns to the right since the start (0 to 3)."""

    spot: Spot
    turn: int


class Room(NamedTuple):
    """A room and the spots inside its walls: from `low` to `high`, both included."""

    name: str
    low: Spot
    high: Spot

    def holds(self, spot: Spot) -> bool:
        """Whether a spot is inside."""
        return self.low[0] <= spot[0] <= self.high[0] and self.low[1] <= spot[1] <= self.high[1]

    def shows(self, spot: Spot) -> bool:
        """Whether a spot is inside or in one of the four walls, where doors are; corners show nothing."""
        rows, columns = self.low[0] <= spot[0] <= self.high[0], self.low[1] <= spot[1] <= self.high[1]
        near = self.low[0] - 1 <= spot[0] <= self.high[0] + 1 and self.low[1] - 1 <= spot[1] <= self.high[1] + 1
        return near and (rows or columns)


class Frame:
    """The frame of one instance, on the engine's side.

    Args:
        start: the scene at reset.
        room_size: width of a room with both its walls, as in minigrid.
    """

    def __init__(self, start: Scene, room_size: int) -> None:
        self._cell, self._facing, self._pitch = start.cell, start.facing, room_size - 1

    def spot(self, cell: Cell) -> Spot:
        """A cell in the frame."""
        return self._turned(cell[0] - self._cell[0], cell[1] - self._cell[1])

    def room(self, cell: Cell) -> Room | None:
        """The room around a cell; None for walls and doorways."""
        p = self._pitch
        if not (cell[0] % p and cell[1] % p):
            return None
        column, row = cell[0] // p, cell[1] // p
        corners = [self.spot((column * p + 1, row * p + 1)), self.spot((column * p + p - 1, row * p + p - 1))]
        low = min(c[0] for c in corners), min(c[1] for c in corners)
        high = max(c[0] for c in corners), max(c[1] for c in corners)
        offset = self._turned(column - self._cell[0] // p, row - self._cell[1] // p)
        return Room(f"room {spot_text(offset)}" if any(offset) else "start room", low, high)

    def info(self, scene: Scene) -> dict[str, Any]:
        """What a step notes: {"pose": [ahead, right, turn], "room": [name, low ahead, low right, high ahead, high right]}."""
        room = self.room(scene.cell)
        found: dict[str, Any] = {"pose": [*self.spot(scene.cell), (scene.facing - self._facing) % 4]}
        if room is not None:
            found["room"] = [room.name, *room.low, *room.high]
        return found

    def _turned(self, dx: int, dy: int) -> Spot:
        fx, fy = VECTORS[self._facing]
        return dx * fx + dy * fy, dy * fx - dx * fy


def read_info(info: Any) -> tuple[Pose | None, Room | None]:
    """Pose and room of a step; None where it notes none (an answer that was not the world's, a doorway)."""
    pose, room = info.get("pose"), info.get("room")
    return (
        Pose((int(pose[0]), int(pose[1])), int(pose[2])) if pose else None,
        Room(str(room[0]), (int(room[1]), int(room[2])), (int(room[3]), int(room[4]))) if room else None,
    )


def beside(pose: Pose, ahead: int, right: int = 0) -> Spot:
    """The spot so many steps ahead and to the right of a pose."""
    forward, side = ((1, 0), (0, 1), (-1, 0), (0, -1))[pose.turn], ((0, 1), (-1, 0), (0, -1), (1, 0))[pose.turn]
    return pose.spot[0] + forward[0] * ahead + side[0] * right, pose.spot[1] + forward[1] * ahead + side[1] * right


def spot_text(spot: Spot) -> str:
    """A spot in words: "3 ahead 2 left", "start"."""
    ahead, right = spot
    words = [f"{abs(ahead)} {'ahead' if ahead > 0 else 'behind'}"] if ahead else []
    words += [f"{abs(right)} {'right' if right > 0 else 'left'}"] if right else []
    return " ".join(words) or "start"


def read_spot(text: str) -> Spot | None:
    """The spot that `spot_text` wrote; None for other texts."""
    text = text.strip()
    if text == "start":
        return 0, 0
    match = _SPOT.fullmatch(text)
    if not text or match is None:
        return None
    ahead, right = int(match[1] or 0), int(match[3] or 0)
    return (-ahead if match[2] == "behind" else ahead), (-right if match[4] == "left" else right)
