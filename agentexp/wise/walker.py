"""Walking on uneven ground: the navigator's way, with a jump where the body does not get on and a step aside where that fails.

MrSteve's VPT-Nav does the same ("forced jump when the mean movement is below 1e-3"). Works from poses alone.
"""

from __future__ import annotations

from dataclasses import replace

from agentexp.wise.core import Control, Frame, Pose
from agentexp.wise.navigate import Navigator

STILL = 0.03  # blocks per tick below which a walking body counts as held up
JUMPS = 12  # ticks of jumping on the spot before it steps aside
ASIDE = 12  # ticks of a step aside
ARRIVED = 0.25


class Walker:
    """One tick of walking at a time.

    Args:
        turn_per_step: most degrees of turn in a tick, as in the world; null for free turning.
        gaze: pitch while walking, degrees.
        speed: blocks per tick at full speed, as in the world.
        half_width: of the body.
    """

    def __init__(
        self, turn_per_step: float | None = 9.0, gaze: float = 8.0, speed: float = 0.215, half_width: float = 0.31
    ) -> None:
        self.navigator = Navigator(turn_per_step, half_width=half_width)
        self.turn_per_step, self.gaze, self.speed = turn_per_step, gaze, speed
        self.reset(1, (0, 0))

    def reset(self, size: int, origin: tuple[int, int]) -> None:
        """Begin an episode."""
        self.navigator.reset(size, origin)
        self._last: Pose | None = None
        self._held = self._aside = self._times = 0

    def step(self, frame: Frame, x: float, z: float) -> Control:
        """Towards (x, z); stands when it is there."""
        pose = frame.pose
        look = min(max(self.gaze - pose.pitch, -9.0), 9.0)
        control = self.navigator.towards(frame, x, z)
        if pose.distance(x, z) < ARRIVED:
            return self.keep(frame, Control(look=look))
        forward = min(1.0, control.forward / self.speed) if control.forward > 0 else control.forward
        return self.keep(frame, Control(forward, control.turn, look))

    def keep(self, frame: Frame, control: Control, jumps: bool = True) -> Control:
        """The control to send: with a jump or a step aside where the body is held up.

        Args:
            frame: now.
            control: what is wanted.
            jumps: False where it is meant to stand against something.
        """
        held = self._last is not None and frame.pose.distance(self._last.x, self._last.z) < STILL
        self._held = self._held + 1 if held and jumps else 0
        if self._held > JUMPS:
            self._held, self._aside, self._times = 0, ASIDE, self._times + 1
        if self._aside:
            self._aside -= 1
            turn = (self.turn_per_step or 60.0) * (1 if self._times % 2 else -1)
            # First away, then along.
            control = Control(forward=1.0, turn=turn if self._aside >= ASIDE // 2 else 0.0, look=control.look, jump=True)
        elif self._held:
            control = replace(control, jump=True)
        self._last = frame.pose if control.forward > 0.3 else None
        return control
