"""VPT's action space (Baker et al. 2022), which STEVE-1 and VPT-Nav share, and its translation to and from `Control`.

An action is a pair of numbers. The first, of 8,641, says which keys are down: one of each group below, the last group saying
whether the camera moves; 8,640 opens the inventory. The second, of 121, is the camera: 11 steps of pitch times 11 of yaw,
mu-law spaced up to 10 degrees.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from agentexp.wise.core import Control

NOTHING = ""
GROUPS: tuple[tuple[str, ...], ...] = (
    (NOTHING, *(f"hotbar.{slot}" for slot in range(1, 10))),
    (NOTHING, "forward", "back"),
    (NOTHING, "left", "right"),
    (NOTHING, "sprint", "sneak"),
    (NOTHING, "use"),
    (NOTHING, "drop"),
    (NOTHING, "attack"),
    (NOTHING, "jump"),
    (NOTHING, "camera"),
)
COMBINATIONS = tuple(product(*GROUPS))
INVENTORY = len(COMBINATIONS)  # 8,640
BINS, MOST, MU = 11, 10.0, 10.0
STILL = BINS * BINS // 2  # 60

_INDEX = {combination: number for number, combination in enumerate(COMBINATIONS)}
# A goal-conditioned policy is to act on the world, not on its inventory; which item is in hand is the task's business (MrSteve
# takes these keys away as well).
_DROPPED = {"drop", "camera"}


def degrees(step: int) -> float:
    """Angle of one of the 11 camera steps; step 5 is 0, steps 0 and 10 are -10 and 10 degrees."""
    share = step / (BINS // 2) - 1
    return float(np.sign(share) * ((1 + MU) ** abs(share) - 1) / MU * MOST)


def step_of(angle: float) -> int:
    """The camera step nearest to an angle on the mu-law scale."""
    share = float(np.clip(angle / MOST, -1, 1))
    scaled = np.sign(share) * np.log1p(MU * abs(share)) / np.log1p(MU)
    return int(np.round((scaled + 1) * (BINS // 2)))


def decode(buttons: int, camera: int, *, hotbar: bool = False) -> Control:
    """A policy's action as a control.

    Args:
        buttons: in [0, 8640].
        camera: in [0, 120]; counts only if `buttons` says that the camera moves.
        hotbar: let the policy change what is in hand.

    Raises:
        ValueError: a number is out of range.
    """
    if not 0 <= buttons <= INVENTORY or not 0 <= camera < BINS * BINS:
        raise ValueError(f"There is no action (buttons, camera) = ({buttons}, {camera}) in VPT's space.")
    if buttons == INVENTORY:
        return Control()
    pressed = {key for key in COMBINATIONS[buttons] if key}
    pitch, yaw = (degrees(step) for step in divmod(camera, BINS)) if "camera" in pressed else (0.0, 0.0)
    named = {"forward", "back", "jump", "attack", "use"}
    others = [key for key in COMBINATIONS[buttons] if key and key not in named | _DROPPED]
    return Control(
        forward=float("forward" in pressed) - float("back" in pressed),
        turn=yaw,
        look=pitch,
        jump="jump" in pressed,
        attack="attack" in pressed,
        use="use" in pressed,
        keys=tuple(key for key in others if hotbar or not key.startswith("hotbar")),
    )


def encode(control: Control) -> tuple[int, int]:
    """The nearest action (buttons, camera) to a control, to record or imitate what a scripted controller does.

    At half speed or more a key is down. Of two keys of one group, the first in the group's order counts.
    """
    held = set(control.keys)
    held |= {key for key in ("jump", "attack", "use") if getattr(control, key)}
    if abs(control.forward) >= 0.5:
        held.add("forward" if control.forward > 0 else "back")
    pitch, yaw = step_of(control.look), step_of(control.turn)
    if (pitch, yaw) != divmod(STILL, BINS):
        held.add("camera")
    chosen = tuple(next((key for key in group[1:] if key in held), NOTHING) for group in GROUPS)
    return _INDEX[chosen], pitch * BINS + yaw if "camera" in held else STILL
