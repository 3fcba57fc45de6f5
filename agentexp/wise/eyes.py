"""What the controller recognises in a picture, pixel by pixel: the eyes of the executor, the same for every method.

A learnt controller (STEVE-1) recognises a cow in front of it; a scripted one needs something in its place. Here it is a naive
Bayes classifier of colours, fitted on pictures of other worlds: the log-odds of a pixel's colour under each class, added up
with those of its eight neighbours at half weight. It sees the picture only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from agentexp.errors import UserError

BITS = 5  # of each colour that count
BLUR = 0.7  # in steps of a colour: unseen shades are like those near by


@dataclass(frozen=True, slots=True)
class Blob:
    """A connected part of a picture that shows one thing.

    Attributes:
        name: of the class.
        pixels: how many.
        column, row: its centre, in pixels.
        left, top, right, bottom: its edges; right and bottom are exclusive.
        centre: the middle of the picture belongs to it.
        foot: middle column of its widest part that reaches down to within a pixel of the lower edge: where it is nearest.
    """

    name: str
    pixels: int
    column: float
    row: float
    left: int
    top: int
    right: int
    bottom: int
    foot: float
    centre: bool


class Eyes:
    """See the module's text.

    Args:
        path: .npz file that `save` wrote; a bare name is looked for in the package's folder `weights` as well.
        least: pixels of the smallest blob.

    Raises:
        UserError: there is no such file.
    """

    def __init__(self, *, path: str = "sim_eyes.npz", least: int = 3) -> None:
        shipped = Path(__file__).parent / "weights" / path
        file = Path(path).expanduser()
        file = file if file.is_file() else shipped
        if not file.is_file():
            known = ", ".join(sorted(one.name for one in shipped.parent.glob("*.npz"))) or "none"
            raise UserError(f"There is no file eyes.path={path}; those that come with agentexp: {known}.")
        try:
            with np.load(file, allow_pickle=False) as arrays:
                names, odds = arrays["names"], arrays["odds"]
        except (OSError, ValueError, KeyError) as error:
            raise UserError(f"eyes.path={path} holds no fitted eyes ({type(error).__name__}: {error}).") from error
        self._set(tuple(str(name) for name in names), odds, least)

    @classmethod
    def fitted(
        cls, images: Sequence[NDArray[np.uint8]], labels: Sequence[NDArray[np.int_]], names: Sequence[str], least: int = 3
    ) -> Eyes:
        """Count colours.

        Args:
            images: pictures.
            labels: for each, the class of every pixel as an index into `names`, int of shape (height, width).
            names: of the classes.
            least: see the class.
        """
        counts = np.zeros((len(names), 1 << 3 * BITS))
        for image, label in zip(images, labels, strict=True):
            np.add.at(counts, (label.ravel(), _shade(image).ravel()), 1)
        side = 1 << BITS
        smooth = ndimage.gaussian_filter(counts.reshape(-1, side, side, side), (0, BLUR, BLUR, BLUR), mode="nearest")
        smooth = smooth.reshape(len(names), -1)
        # Between "as often as in the pictures" and "all equally likely": rare things are what the executor looks for.
        share = (smooth + 1e-3) / (smooth.sum(axis=1, keepdims=True) + 1e-3 * smooth.shape[1])
        prior = (counts.sum(axis=1) / counts.sum()) ** 0.7
        odds = np.log(share) + np.log(prior / prior.sum() + 1e-9)[:, None]
        eyes = cls.__new__(cls)
        eyes._set(tuple(names), np.round(odds - odds.max(axis=0), 2).clip(-12, 0).astype(np.float16), least)
        return eyes

    def _set(self, names: tuple[str, ...], odds: NDArray[np.floating], least: int) -> None:
        self.names, self.least, self._odds = names, least, np.ascontiguousarray(odds.astype(np.float32))

    def save(self, path: Path) -> None:
        """Write an .npz file."""
        np.savez_compressed(path, names=np.array(self.names), odds=self._odds.astype(np.float16))

    def classify(self, image: NDArray[np.uint8]) -> NDArray[np.intp]:
        """The likeliest class of every pixel, indices into `names`, shape (height, width)."""
        odds = np.pad(self._odds.T[_shade(image)], ((1, 1), (1, 1), (0, 0)), mode="edge")
        # The sum of the eight neighbours and twice the middle, in two passes.
        rows = odds[:-2] + odds[1:-1] + odds[2:]
        total = rows[:, :-2] + rows[:, 1:-1] + rows[:, 2:] + odds[1:-1, 1:-1]
        return np.asarray(total.argmax(axis=2))

    def find(self, image: NDArray[np.uint8], name: str) -> list[Blob]:
        """All blobs of a class, the one that ends lowest in the picture (the nearest) first.

        Raises:
            UserError: a class that was not learnt.
        """
        if name not in self.names:
            raise UserError(f"The controller's eyes do not know {name!r}; they know {', '.join(self.names)}.")
        mask = self.classify(image) == self.names.index(name)
        parts, _ = ndimage.label(mask, np.ones((3, 3)))
        blobs = []
        for part, box in enumerate(ndimage.find_objects(parts), 1):
            rows, columns = np.nonzero(parts[box] == part)
            if len(rows) < self.least:
                continue
            top, left = box[0].start, box[1].start
            blobs.append(
                Blob(
                    name,
                    len(rows),
                    float(columns.mean()) + left + 0.5,
                    float(rows.mean()) + top + 0.5,
                    left,
                    top,
                    box[1].stop,
                    box[0].stop,
                    left + _foot(parts[box] == part),
                    bool(parts[parts.shape[0] // 2, parts.shape[1] // 2] == part),
                )
            )
        return sorted(blobs, key=lambda blob: (-blob.bottom, -blob.pixels))


def _foot(shape: NDArray[np.bool_]) -> float:
    """Middle of the widest run of columns that reach the last two rows."""
    down = np.flatnonzero(shape[-2:].any(axis=0))
    runs = np.split(down, np.flatnonzero(np.diff(down) > 1) + 1)
    widest = max(runs, key=len)
    return float(widest[0] + widest[-1] + 1) / 2


def _shade(image: NDArray[np.uint8]) -> NDArray[np.intp]:
    """Number of each pixel's colour at `BITS` bits a channel."""
    coarse = (image >> (8 - BITS)).astype(np.intp)
    return np.asarray((coarse[..., 0] << 2 * BITS) | (coarse[..., 1] << BITS) | coarse[..., 2])
