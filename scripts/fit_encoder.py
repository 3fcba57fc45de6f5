"""Fit the encoder and the controller's eyes for the simulated world, and say how good they are.

    python scripts/fit_encoder.py                   # writes sim.npz, sim_grid.npz, sim_eyes.npz; prints the tables
    python scripts/fit_encoder.py --worlds 4 --out /tmp/weights

Pictures come from maps that no experiment uses (seeds from 900,000). The last quarter of the maps is held out: thresholds are
chosen there, and the tables are measured on further maps that neither fitting nor thresholds saw. Equal arguments make equal
files.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from agentexp.wise.encoders import ConceptEncoder, Fitted, fit
from agentexp.wise.eyes import Eyes
from agentexp.wise.worlds.sim.photos import FIRST_SEED, Photo, photos

CONCEPTS = ("log", "water", "cow", "sheep", "pig", "sand", "stone")
CLASSES = ("other", "grass", "tallgrass", "dirt", "sand", "stone", "water", "log", "leaves", "cow", "sheep", "pig")
LEAST = 20  # pixels of a 64 x 32 picture, one per cent of it, from which a thing counts as shown
RIDGE = {True: 300.0, False: 10.0}  # with and without the histogram, which has five times the features
TEST_SEED = FIRST_SEED + 50_000
WEIGHTS = Path(__file__).resolve().parents[1] / "agentexp" / "wise" / "weights"


def shown(photo: Photo) -> set[str]:
    """Names of what counts as shown."""
    return {name for name, pixels in photo.pixels.items() if pixels >= LEAST}


def scores(said: np.ndarray, true: np.ndarray) -> tuple[float, float, float]:
    """Precision, recall, F1."""
    hits = float((said & true).sum())
    precision, recall = hits / max(1, said.sum()), hits / max(1, true.sum())
    return precision, recall, 2 * precision * recall / max(1e-9, precision + recall)


def encoder_table(fitted: Fitted, test: list[Photo]) -> str:
    """Precision, recall and F1 by concept, and recall by distance, size and occlusion."""
    encoder = ConceptEncoder.of(fitted)
    score = np.stack([encoder.scores(photo.image) for photo in test])
    head = "| concept | threshold | pictures | precision | recall | F1 | recall < 8 | 8-16 | > 16 blocks | < 25 px | >= 25 px |"
    head += " visible < 2/3 | >= 2/3 |"
    lines = [head, "|" + "---|" * 13]
    for k, name in enumerate(fitted.concepts):
        said = score[:, k] >= fitted.thresholds[k]
        true = np.array([name in shown(photo) for photo in test])
        far = np.array([photo.nearest.get(name, np.inf) for photo in test])
        pixels = np.array([photo.pixels.get(name, 0) for photo in test])
        visible = np.array([photo.visible.get(name, 1.0) for photo in test])
        precision, recall, f1 = scores(said, true)
        cells = [name, f"{fitted.thresholds[k]:.2f}", str(int(true.sum()))]
        cells += [f"{value:.2f}" for value in (precision, recall, f1)]
        for part in (far < 8, (far >= 8) & (far < 16), far >= 16, pixels < 25, pixels >= 25, visible < 2 / 3, visible >= 2 / 3):
            count = int((true & part).sum())
            cells.append(f"{(said & true & part).sum() / count:.2f} ({count})" if count >= 10 else "-")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def eyes_table(eyes: Eyes, test: list[Photo]) -> str:
    """Precision and recall of pixels by class."""
    said = np.stack([eyes.classify(photo.image) for photo in test])
    true = np.stack([photo.labels(eyes.names) for photo in test])
    lines = ["| class | pixels | precision | recall |", "|---|---|---|---|"]
    for k, name in enumerate(eyes.names):
        precision, recall, _ = scores(said == k, true == k)
        lines.append(f"| {name} | {int((true == k).sum())} | {precision:.2f} | {recall:.2f} |")
    return "\n".join(lines)


def main() -> None:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worlds", type=int, default=16, help="maps to fit on; a quarter of them is held out for thresholds")
    parser.add_argument("--pictures", type=int, default=250, help="of each map")
    parser.add_argument("--out", type=Path, default=WEIGHTS)
    arguments = parser.parse_args()
    every: list[Photo] = []
    for number in range(arguments.worlds):
        every += photos(FIRST_SEED + number, arguments.pictures)
    images, names = [photo.image for photo in every], [shown(photo) for photo in every]
    encoders = {
        name: fit(images, names, CONCEPTS, ridge=RIDGE[histogram], histogram=histogram)
        for name, histogram in (("sim", True), ("sim_grid", False))
    }
    learn = every[: round(len(every) * 0.75)]
    eyes = Eyes.fitted([photo.image for photo in learn], [photo.labels(CLASSES) for photo in learn], CLASSES)
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name, fitted in encoders.items():
        fitted.save(arguments.out / f"{name}.npz")
    eyes.save(arguments.out / "sim_eyes.npz")
    test: list[Photo] = []
    for number in range(max(2, arguments.worlds // 4)):
        test += photos(TEST_SEED + number, arguments.pictures)
    for name, fitted in encoders.items():
        held_out = ", ".join(f"{name} {f1:.2f}" for name, f1 in zip(fitted.concepts, fitted.f1, strict=True))
        print(f"{name}.npz; F1 on the maps held out: {held_out}\n\n{encoder_table(fitted, test)}\n")
    print(eyes_table(eyes, test))


if __name__ == "__main__":
    main()
