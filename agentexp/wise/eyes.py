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
EIGHT = np.ones((3, 3))
DIGITS = np.array([1 << 2 * BITS, 1 << BITS, 1], np.float32)
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
            np.add.at(counts, (label.ravel(), _shade(image)[1:-1, 1:-1].ravel()), 1)
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
        self.names, self.least = names, least
        self._odds: NDArray[np.float32] = np.ascontiguousarray(odds.astype(np.float32).T)  # a row for each colour

    def save(self, path: Path) -> None:
        """Write an .npz file."""
        np.savez_compressed(path, names=np.array(self.names), odds=self._odds.T.astype(np.float16))

    def classify(self, image: NDArray[np.uint8]) -> NDArray[np.intp]:
        """The likeliest class of every pixel, indices into `names`, shape (height, width)."""
        return np.asarray(self._likely(image).argmax(axis=0))

    def _likely(self, image: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Log-odds of the classes at every pixel, shape (classes, height, width)."""
        # Planes by class: the sums and what is looked for in them then run along the memory.
        odds = np.ascontiguousarray(self._odds.take(_shade(image), axis=0).transpose(2, 0, 1))
        # The sum of the eight neighbours and twice the middle, in two passes.
        rows = odds[:, :-2] + odds[:, 1:-1]
        rows += odds[:, 2:]
        total = rows[..., :-2] + rows[..., 1:-1]
        total += rows[..., 2:]
        total += odds[:, 1:-1, 1:-1]
        return total

    def _mask(self, image: NDArray[np.uint8], k: int) -> NDArray[np.bool_]:
        """Where `classify` says k: the first of the likeliest."""
        total = self._likely(image)
        mask = np.ones(total.shape[1:], bool)
        if k > 0:
            mask &= total[k] > total[:k].max(axis=0)
        if k + 1 < len(total):
            mask &= total[k] >= total[k + 1 :].max(axis=0)
        return mask

    def find(self, image: NDArray[np.uint8], name: str, least: int = 0) -> list[Blob]:
        """All blobs of a class, the one that ends lowest in the picture (the nearest) first.

        Args:
            image: the picture.
            name: of the class.
            least: pixels of the smallest blob that is of interest, where that is more than the eyes' own `least`.

        Raises:
            UserError: a class that was not learnt.
        """
        if name not in self.names:
            raise UserError(f"The controller's eyes do not know {name!r}; they know {', '.join(self.names)}.")
        parts, count = ndimage.label(self._mask(image, self.names.index(name)), EIGHT)
        if not count:
            return []
        pixels = np.bincount(parts.ravel())
        middle = int(parts[parts.shape[0] // 2, parts.shape[1] // 2])
        boxes = ndimage.find_objects(parts)
        blobs = []
        for part in (np.flatnonzero(pixels[1:] >= max(least, self.least, 1)) + 1).tolist():
            box = boxes[part - 1]
            blobs.append(_blob(name, parts[box] == part, int(pixels[part]), box[0].start, box[1].start, middle == part))
        return sorted(blobs, key=lambda blob: (-blob.bottom, -blob.pixels))


def _blob(name: str, shape: NDArray[np.bool_], pixels: int, top: int, left: int, centre: bool) -> Blob:
    """One whose pixels are marked in the smallest box around it."""
    height, width = shape.shape
    columns = int(np.count_nonzero(shape, axis=0) @ np.arange(width))
    rows = int(np.count_nonzero(shape, axis=1) @ np.arange(height))
    return Blob(
        name,
        pixels,
        columns / pixels + left + 0.5,
        rows / pixels + top + 0.5,
        left,
        top,
        left + width,
        top + height,
        left + _foot(shape),
        centre,
    )


def _foot(shape: NDArray[np.bool_]) -> float:
    """Middle of the widest run of columns that reach the last two rows."""
    down = np.append(shape[-2:].any(axis=0), False)
    first = end = start = 0
    for column in np.flatnonzero(~down).tolist():
        if column - start > end - first:
            first, end = start, column
        start = column + 1
    return (first + end) / 2


def _shade(image: NDArray[np.uint8]) -> NDArray[np.intp]:
    """Number of each pixel's colour at `BITS` bits a channel, the outermost once more around: shape (height + 2, width + 2)."""
    height, width = image.shape[:2]
    coarse = (image >> (8 - BITS)).reshape(-1, 3).astype(np.float32) @ DIGITS
    shade = np.empty((height + 2, width + 2), np.intp)
    shade[1:-1, 1:-1] = coarse.reshape(height, width)
    shade[1:-1, 0], shade[1:-1, -1] = shade[1:-1, 1], shade[1:-1, -2]
    shade[0], shade[-1] = shade[1], shade[-2]
    return shade
