"""An explorer that is caught in a loop, for any world: the lower control of ECC (paper 001, sections 3.2 and 4)."""

from __future__ import annotations

import random

from agentexp.core import View
from agentexp.models.scripted_random import random_action

FEW, PATIENCE = 3, 10


class Repetitive:
    """Goes back and forth over the same few actions. Implements `Policy`.

    It acts as `random` does until the world has accepted `FEW` different actions, or for `PATIENCE` steps; from then on it
    sends these few again and again, in turn. If nothing was accepted by then, it repeats the last refused action. It never
    looks at an answer beyond whether it was a refusal.

    Up to the loop it is `random`, so that the two differ in one thing: whether anything new is tried. A policy that repeats
    in a world's own way (walking between two rooms, say) would be a different agent in each world.

    Args:
        rng: of the first actions.
    """

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._kept: list[str] = []

    def act(self, view: View) -> str:
        """See `Policy`."""
        done = len(view.history)
        if view.history and len(self._kept) < FEW and done <= PATIENCE:
            action, step = view.history[-1]
            if action and not step.error and action not in self._kept:
                self._kept.append(action)
        if len(self._kept) < FEW and done < PATIENCE:
            return random_action(view, self._rng)
        return self._kept[done % len(self._kept)] if self._kept else view.history[-1][0]
