"""A small encoder in MineCLIP's role, for worlds that are not Minecraft's pictures; `mineclip.py` has the real one.

A picture becomes colour statistics of a 4 x 4 grid (and, if so fitted, a histogram of coarse colours), these become scores
for a few concepts by ridge regression (fitted on frames of other worlds than those of an experiment), and scores and statistics
together make one unit vector:

    e = [ s_1 / sqrt(K), ..., s_K / sqrt(K), 0, sqrt(1 - |s|^2 / K) * v ]

with scores s in [0, 1] and v the unit vector of the leading principal components. A text that names concept k is the axis k, so
its cosine with a picture is s_k / sqrt(K); a text that names none ("obtain beef") is the axis that is 0 in every picture. Two
pictures are alike where both parts are. Viewpoint, size and occlusion change the statistics, so they hurt by themselves.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agentexp.errors import UserError
from agentexp.wise.knowledge.names import singular

Array = NDArray[np.float32]
DIGITS: Array = np.array([64, 8, 1], np.float32)  # from three bits of each colour to a number below 512

# The words of texts by the concept that a picture can show. Nothing here says what a thing is good for.
WORDS: Mapping[str, tuple[str, ...]] = {
    "log": ("tree", "log", "wood", "trunk", "forest"),
    "water": ("water", "pond", "lake", "river", "sea"),
    "cow": ("cow", "cattle", "calf"),
    "sheep": ("sheep", "lamb"),
    "pig": ("pig",),
    "chicken": ("chicken", "hen"),
    "sand": ("sand", "desert", "beach"),
    "stone": ("stone", "rock", "mountain", "cobblestone"),
    "dirt": ("dirt", "earth"),
    "grass": ("grass", "plain", "meadow"),
}


@dataclass(frozen=True, slots=True)
class Fitted:
    """What `fit` found.

    Attributes:
        concepts: names, K of them.
        mean, deviation: of the statistics, shape (F,).
        weights: shape (F + 1, K); the last row is the constant.
        axes: half-whitened principal components, shape (F, m).
        thresholds: score from which a concept counts as shown, shape (K,): the best F1 on frames held out.
        f1: that F1, shape (K,); NaN for a concept that the frames held out do not show.
    """

    concepts: tuple[str, ...]
    mean: Array
    deviation: Array
    weights: Array
    axes: Array
    thresholds: Array
    f1: Array

    def save(self, path: Path) -> None:
        """Write an .npz file."""
        arrays = asdict(self)
        arrays["concepts"] = np.array(self.concepts)
        np.savez_compressed(path, **arrays)

    @classmethod
    def load(cls, path: Path) -> Fitted:
        """Read what `save` wrote. Raises `UserError` for anything else."""
        try:
            with np.load(path, allow_pickle=False) as file:
                arrays = {name: file[name] for name in cls.__dataclass_fields__}
        except (OSError, ValueError, KeyError) as error:
            raise UserError(f"encoder.path={path} holds no fitted encoder ({type(error).__name__}: {error}).") from error
        return cls(**{**arrays, "concepts": tuple(str(name) for name in arrays["concepts"])})


class ConceptEncoder:
    """See the module's text.

    Args:
        path: .npz file that `Fitted.save` wrote; a bare name is looked for in the package's folder `weights` as well.

    Raises:
        UserError: there is no such file.
    """

    def __init__(self, *, path: str) -> None:
        shipped = Path(__file__).parent / "weights" / path
        file = Path(path).expanduser()
        if not file.is_file() and not shipped.is_file():
            known = ", ".join(sorted(one.name for one in shipped.parent.glob("*.npz"))) or "none"
            raise UserError(f"There is no file encoder.path={path}; those that come with agentexp: {known}.")
        self._set(Fitted.load(file if file.is_file() else shipped))

    @classmethod
    def of(cls, fitted: Fitted) -> ConceptEncoder:
        """An encoder without a file."""
        encoder = cls.__new__(cls)
        encoder._set(fitted)
        return encoder

    def _set(self, fitted: Fitted) -> None:
        self.fitted = fitted
        self._count = len(fitted.concepts)
        self.dimension = self._count + 1 + fitted.axes.shape[1]

    def scores(self, image: NDArray[np.uint8]) -> Array:
        """How much each concept seems to be shown, float32 of shape (K,), in [0, 1]."""
        fitted = self.fitted
        z = (features(image, len(fitted.mean)) - fitted.mean) / fitted.deviation
        scores: Array = z @ fitted.weights[:-1] + fitted.weights[-1]
        return scores.clip(0, 1)

    def picture(self, image: NDArray[np.uint8]) -> Array:
        """See `Encoder.picture`."""
        fitted, k = self.fitted, self._count
        z = (features(image, len(fitted.mean)) - fitted.mean) / fitted.deviation
        vector: Array = np.zeros(self.dimension, np.float32)
        vector[:k] = (z @ fitted.weights[:-1] + fitted.weights[-1]).clip(0, 1) / np.sqrt(k)
        seen = z @ fitted.axes
        rest = np.sqrt(max(0.0, 1 - float(vector @ vector)))
        length = float(np.sqrt(seen @ seen))
        if length > 0:
            vector[k + 1 :] = seen * (rest / length)
        else:
            vector[k + 1] = rest  # the mean picture itself
        return vector

    def text(self, text: str) -> Array:
        """See `Encoder.text`."""
        vector: Array = np.zeros(self.dimension, np.float32)
        named = self.named(text)
        for k in named or [self._count]:
            vector[k] = 1 / np.sqrt(len(named) or 1)
        return vector

    def threshold(self, text: str) -> float:
        """Least cosine with a text at which a picture counts as similar; above 1 for a text that names no concept."""
        named = self.named(text)
        if not named:
            return 2.0
        return float(np.mean([self.fitted.thresholds[k] for k in named])) / float(np.sqrt(self._count))

    def named(self, text: str) -> list[int]:
        """Numbers of the concepts that a text names."""
        words = set(re.findall(r"[a-z]+", text.lower()))
        words |= {form for word in words for form in singular(word)}
        return [k for k, name in enumerate(self.fitted.concepts) if words & {name, *WORDS.get(name, ())}]


def statistics(image: NDArray[np.uint8], cells: int = 4) -> Array:
    """Mean, deviation, least and greatest value of each colour in each cell of a grid.

    Args:
        image: uint8 of shape (height, width, 3), at least as many pixels as cells on each side; large ones are thinned out to
            about 128 x 64, so a call costs well under a millisecond.
        cells: cells on each side.

    Returns:
        float32 of shape (cells * cells * 12,), in [0, 1].
    """
    return _moments(_cells(image, cells))


def words(image: NDArray[np.uint8], cells: int = 4) -> Array:
    """How much of a picture each of 512 coarse colours fills: over all cells of a grid on average, and in the fullest cell.

    Args:
        image: as for `statistics`, thinned out in the same way.
        cells: cells on each side.

    Returns:
        Square roots of the shares, float32 of shape (1024,), in [0, 1].
    """
    return _shares(_cells(image, cells))


def features(image: NDArray[np.uint8], count: int) -> Array:
    """The statistics alone, or with the histogram behind them, by how many there are to be."""
    grid = _cells(image, 4)
    moments = _moments(grid)
    return moments if count == len(moments) else np.concatenate((moments, _shares(grid)))


def _cells(image: NDArray[np.uint8], cells: int) -> NDArray[np.uint8]:
    """The pixels by their place in their cell, shape (pixels of a cell, cells * cells, 3): sums go over the first axis."""
    thin = image[:: max(1, image.shape[0] // 64), :: max(1, image.shape[1] // 128)]
    height, width = thin.shape[0] // cells, thin.shape[1] // cells
    blocks = thin[: height * cells, : width * cells].reshape(cells, height, cells, width, 3)
    return blocks.transpose(1, 3, 0, 2, 4).reshape(height * width, cells * cells, 3)


def _moments(grid: NDArray[np.uint8]) -> Array:
    """Mean, deviation, least and greatest value by cell and colour, flat."""
    count, cells, _ = grid.shape
    values: Array = grid.reshape(count, -1).astype(np.float32)
    values /= np.float32(255)
    found = np.empty((cells, 4, 3), np.float32)
    mean = np.add.reduce(values, axis=0)
    mean /= count
    values -= mean
    values *= values
    variance = np.add.reduce(values, axis=0)
    variance /= count
    found[:, 0], found[:, 1] = mean.reshape(cells, 3), np.sqrt(variance).reshape(cells, 3)
    found[:, 2], found[:, 3] = grid.min(axis=0), grid.max(axis=0)
    found[:, 2:] /= np.float32(255)
    return found.ravel()


def _shares(grid: NDArray[np.uint8]) -> Array:
    """Square roots of the shares of 512 coarse colours: mean and greatest over the cells."""
    count, cells, _ = grid.shape
    word = np.arange(cells, dtype=np.intp) * 512 + (
        ((grid >> 5).reshape(-1, 3).astype(np.float32) @ DIGITS).astype(np.intp).reshape(count, cells)
    )
    counts = np.bincount(word.ravel(), minlength=cells * 512).reshape(cells, 512)
    share = counts.astype(np.float32)
    share /= np.float32(count)
    np.sqrt(share, out=share)
    return np.concatenate((np.add.reduce(share, axis=0) / cells, share.max(axis=0)))


def fit(
    images: Sequence[NDArray[np.uint8]],
    shown: Sequence[Collection[str]],
    concepts: Sequence[str],
    *,
    ridge: float = 10.0,
    components: int = 24,
    held_out: float = 0.25,
    histogram: bool = False,
) -> Fitted:
    """Fit an encoder.

    Args:
        images: frames, in the order in which they were seen; those of one world together.
        shown: for each, the concepts that it shows.
        concepts: which to learn.
        ridge: weight of the squared coefficients, in units of frames.
        components: principal components for the likeness of pictures.
        held_out: share of the frames, the last ones, that thresholds are chosen on. Whole worlds, if the order allows it.
        histogram: learn from the histogram of coarse colours, too: better, and less bound to where in the picture things are.

    Raises:
        UserError: too few frames, or a concept that the frames to learn from show always or never.
    """
    count = len(images) - round(len(images) * held_out)
    if len(images) != len(shown) or count < 2 * components or not 0 < held_out < 1:
        raise UserError("Fitting an encoder needs one set of shown concepts per frame and many more frames than components.")
    phi = np.stack([np.concatenate((statistics(image), words(image))) if histogram else statistics(image) for image in images])
    present = np.array([[name in names for name in concepts] for names in shown], np.float32)
    for k, name in enumerate(concepts):
        if present[:count, k].min() == present[:count, k].max():
            raise UserError(f"The frames to learn from show {name} always or never: nothing can be learnt about it.")
    mean, deviation = phi[:count].mean(axis=0), phi[:count].std(axis=0)
    deviation = np.where(deviation > 1e-6, deviation, np.float32(1))
    z = (phi - mean) / deviation
    base = present[:count].mean(axis=0)
    gram = z[:count].T @ z[:count] + ridge * np.eye(z.shape[1], dtype=np.float32)
    weights = np.vstack((np.linalg.solve(gram, z[:count].T @ (present[:count] - base)), base))
    # Pictures are compared by the grid alone: where things are in them matters, a rare colour does not.
    grid = len(statistics(images[0]))
    _, spread, axes = np.linalg.svd(z[:count, :grid], full_matrices=False)
    kept = min(components, int((spread > 1e-3 * spread[0]).sum()))
    # Half-whitened: untouched, one component outweighs all; fully whitened, noise is as loud as what is seen.
    whitened = np.zeros((z.shape[1], kept), np.float32)
    whitened[:grid] = axes[:kept].T / np.sqrt(spread[:kept])
    scores = (z[count:] @ weights[:-1] + weights[-1]).clip(0, 1)
    chosen = [best_threshold(scores[:, k], present[count:, k] > 0) for k in range(len(concepts))]
    thresholds, f1 = (np.array(column, np.float32) for column in zip(*chosen, strict=True))
    return Fitted(
        tuple(concepts),
        mean.astype(np.float32),
        deviation.astype(np.float32),
        weights.astype(np.float32),
        whitened.astype(np.float32),
        thresholds,
        f1,
    )


def best_threshold(scores: Array, present: NDArray[np.bool_]) -> tuple[float, float]:
    """The score from which "shown" gives the best F1, and that F1; (0.5, NaN) where nothing is shown.

    Args:
        scores: shape (n,).
        present: shape (n,).
    """
    if not present.any():
        return 0.5, float("nan")
    order = np.argsort(-scores, kind="stable")
    hits = np.cumsum(present[order])
    f1 = 2 * hits / (np.arange(1, len(scores) + 1) + present.sum())
    # Frames of equal score stand or fall together.
    last = np.append(scores[order][1:] < scores[order][:-1], True)
    best = int(np.where(last, f1, -1).argmax())
    return float(scores[order][best]), float(f1[best])
