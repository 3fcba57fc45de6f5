"""DP-means (Kulis and Jordan 2012; Dinari and Freifeld 2022) and the merging of centres that MrSteve puts after it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
Labels = NDArray[np.int64]


def dp_means(points: Vectors, penalty: float = 1.0, seeds: int = 5, rounds: int = 20) -> tuple[Vectors, Labels]:
    """Cluster without knowing how many clusters there are: a point further than `penalty` from all centres founds one.

    Centres are created one at a time at the point that is furthest off (the 2022 paper's delayed creation), so the order of the
    points hardly matters: first until no point is too far, then once per round as the means move.

    Args:
        points: shape (n, d), n at least 1.
        penalty: squared distance that is worth a cluster of its own; 1 for unit vectors is a cosine of 0.5.
        seeds: clusters to begin with at least, spread out by the furthest-first rule.
        rounds: most rounds.

    Returns:
        Centres of shape (k, d), each the mean of its points and none empty, and the points' labels of shape (n,).
    """
    centres = points[_spread(points, seeds, penalty)]
    labels: Labels = np.zeros(len(points), np.int64)
    for turn in range(rounds):
        distances = _squared(points, centres)
        new = distances.argmin(axis=1)
        nearest = distances[np.arange(len(points)), new]
        furthest = int(nearest.argmax())
        if nearest[furthest] > penalty:
            new[furthest] = len(centres)
        elif turn and np.array_equal(new, labels):
            break
        centres, labels = means(points, new)
    return centres, labels


def means(points: Vectors, labels: Labels) -> tuple[Vectors, Labels]:
    """Mean of each label's points, and labels renumbered so that every one from 0 is used."""
    _, dense = np.unique(labels, return_inverse=True)
    sums = np.zeros((int(dense.max()) + 1, points.shape[1]), np.float64)
    np.add.at(sums, dense, points)
    return (sums / np.bincount(dense)[:, None]).astype(np.float32), dense.astype(np.int64)


def merge_labels(centres: Vectors, threshold: float) -> Labels:
    """Group centres whose cosine exceeds `threshold`, also through third ones: a label per centre, numbered from 0.

    Grouping twice is grouping once where the centres stay as they are; moved centres may come close to others.
    """
    close = unit(centres) @ unit(centres).T > threshold
    labels: Labels = np.full(len(centres), -1, np.int64)
    count = 0
    for i in range(len(centres)):
        if labels[i] >= 0:
            continue
        group = close[i].copy()
        while True:
            grown = close[group].any(axis=0) | group
            if np.array_equal(grown, group):
                break
            group = grown
        group[i] = True
        labels[group] = count
        count += 1
    return labels


def unit(vectors: Vectors) -> Vectors:
    """Vectors of length one in the same directions; zero stays zero."""
    if vectors.ndim == 1:  # one in every tick; the general way takes five times as long
        length = np.sqrt(np.add.reduce(vectors * vectors))
        return (vectors / length if length > 0 else vectors).astype(np.float32)
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)


def _spread(points: Vectors, seeds: int, penalty: float) -> list[int]:
    chosen = [0]
    far = _squared(points, points[:1])[:, 0]
    while len(chosen) < len(points):
        furthest = int(far.argmax())
        if far[furthest] <= (0 if len(chosen) < seeds else penalty):
            break
        chosen.append(furthest)
        far = np.minimum(far, _squared(points, points[furthest : furthest + 1])[:, 0])
    return chosen


def _squared(a: Vectors, b: Vectors) -> Vectors:
    distances: Vectors = (a * a).sum(axis=1)[:, None] + (b * b).sum(axis=1)[None, :] - 2 * (a @ b.T)
    return distances.clip(0)
