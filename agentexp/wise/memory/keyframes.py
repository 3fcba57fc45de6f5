"""Which frames a vision model gets to see (paper 004, 3.1.2): representatives of event clusters and frames rich in detail, less
near-duplicates.

The thresholds are the paper's (entropy 0.15, cosine 0.85, sliding window 60 s). What they are applied to is not said there:
here entropy is that of the grey values over the most that 256 of them can have, and a frame is a near-duplicate when its cosine
with a keyframe of the window that was taken nearby exceeds the threshold. Without "nearby" the second of two cows in like
meadows would never be labelled.
"""

from __future__ import annotations

from collections import deque
from math import inf

import numpy as np
from numpy.typing import NDArray

from agentexp.errors import UserError
from agentexp.wise.core import Pose
from agentexp.wise.memory.dpmeans import Vectors
from agentexp.wise.parts import again


def entropy(image: NDArray[np.uint8]) -> float:
    """Shannon entropy of the grey values over 8 bits, in [0, 1]: 0 for one flat colour.

    Args:
        image: uint8 of shape (height, width, 3).
    """
    grey = image.astype(np.float32) @ np.array([0.299, 0.587, 0.114], np.float32)
    share = np.bincount(grey.astype(np.uint8).ravel(), minlength=256) / grey.size
    share = share[share > 0]
    return float(-(share * np.log2(share)).sum() / 8)


class KeyframeFilter:
    """Decides frame by frame.

    Args:
        entropy_threshold: frames below it are not worth a look ("theta_ent").
        cosine_threshold: two frames more alike than this are one ("theta_c").
        window: ticks for which a keyframe makes others near-duplicates.
        radius: blocks within which it does; None = anywhere.
        every: ticks between two frames that are considered for their entropy; a frame that founds an event cluster is
            considered at once.

    Raises:
        UserError: a setting is out of range.
    """

    def __init__(
        self,
        entropy_threshold: float = 0.15,
        cosine_threshold: float = 0.85,
        window: int = 1200,
        radius: float | None = 12.0,
        every: int = 20,
    ) -> None:
        if every < 1 or window < 0 or (radius is not None and radius < 0):
            raise UserError("memory.keyframes.every must be at least 1, .window and .radius not negative.")
        self.entropy_threshold, self.cosine_threshold = entropy_threshold, cosine_threshold
        self.window, self.radius, self.every = window, inf if radius is None else radius, every
        self.counts = {"representative": 0, "entropy": 0, "duplicate": 0, "flat": 0}
        self._last = -every
        self._recent: deque[tuple[int, Pose, Vectors]] = deque()

    def fresh(self) -> KeyframeFilter:
        """One for another episode."""
        return again(self)

    def wants(self, image: NDArray[np.uint8], embedding: Vectors, pose: Pose, tick: int, represents: bool = False) -> bool:
        """Whether this frame becomes a keyframe.

        Args:
            image: the picture.
            embedding: its unit vector.
            pose: where it was taken.
            tick: when.
            represents: it is the first frame of an event cluster and so stands for it.
        """
        if not represents and tick - self._last < self.every:
            return False
        self._last = tick
        if not represents and entropy(image) < self.entropy_threshold:
            self.counts["flat"] += 1
            return False
        while self._recent and tick - self._recent[0][0] > self.window:
            self._recent.popleft()
        if any(
            pose.distance(there.x, there.z) <= self.radius and float(known @ embedding) > self.cosine_threshold
            for _, there, known in self._recent
        ):
            self.counts["duplicate"] += 1
            return False
        self._recent.append((tick, pose, embedding))
        self.counts["representative" if represents else "entropy"] += 1
        return True
