"""Angles: mineflayer's into those of `core` (which are Minecraft's own), and back.

mineflayer counts yaw in radians, counter-clockwise seen from above, 0 looking to -z; pitch in radians, positive looking up.
`core` counts yaw in degrees, clockwise, 0 looking to +z; pitch in degrees, positive looking down.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import degrees, radians

from agentexp.wise.core import Pose


def pose_of(position: Sequence[float], yaw: float, pitch: float) -> Pose:
    """The pose of a body whose feet are at `position` (x, y, z) and that looks along mineflayer's `yaw` and `pitch`."""
    x, y, z = position
    return Pose(float(x), float(y), float(z), (180.0 - degrees(yaw)) % 360.0, -degrees(pitch))


def turned(yaw: float, pitch: float) -> tuple[float, float]:
    """mineflayer's (yaw, pitch) of `core`'s, yaw in [-pi, pi)."""
    return radians((180.0 - yaw + 180.0) % 360.0 - 180.0), -radians(pitch)
