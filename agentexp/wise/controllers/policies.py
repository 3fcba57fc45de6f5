"""What the controller needs of a learned policy. `steve1.py` and `vpt_nav.py` load the real ones; tests use scripted ones."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Image = NDArray[np.uint8]
Floats = NDArray[np.float32]
SIZE = 128  # side of the picture that VPT sees


class Skill(Protocol):
    """Does what a text or a clip says (STEVE-1)."""

    def begin(self, goal: str | Image) -> None:
        """Take up a goal, with nothing remembered of the last one.

        Args:
            goal: a text, or a clip of shape (16, height, width, 3) that shows what is wanted (visual prompt).
        """
        ...

    def act(self, image: Image) -> tuple[int, int]:
        """One tick: (buttons, camera), see `actions`."""
        ...


class Walk(Protocol):
    """Goes to a place (VPT-Nav)."""

    def begin(self) -> None:
        """Start anew, with nothing remembered."""
        ...

    def act(self, image: Image, goal: Floats, compass: Floats) -> tuple[int, int]:
        """One tick: (buttons, camera).

        Args:
            image: the frame.
            goal: (x, z) to the place in blocks, shortened to 20.
            compass: cosine and sine of yaw, cosine and sine of pitch.
        """
        ...


def small(image: Image) -> Image:
    """The picture as VPT sees it, 128 x 128, squeezed and not cropped."""
    if image.shape[:2] == (SIZE, SIZE):
        return image
    from PIL import Image as Pictures

    return np.asarray(Pictures.fromarray(image).resize((SIZE, SIZE), Pictures.Resampling.BILINEAR), np.uint8)
