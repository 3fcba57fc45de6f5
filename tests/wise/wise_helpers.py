"""Small parts for the tests of memory and vision: records, frames, an encoder with one axis per word, scripted models."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from agentexp.wise.core import Frame, Pose, Record

WORDS = ("cow", "tree", "water", "sheep", "sand")


def axis(i: int, dimension: int = 8) -> np.ndarray:
    return np.eye(dimension, dtype=np.float32)[i]


def picture(*shown: str, noise: int = 0, flat: bool = False) -> np.ndarray:
    """A picture that shows things: column i is bright where WORDS[i] is shown; the rest is structure, so entropy is high."""
    image = np.random.default_rng(noise).integers(0, 120, (16, 16, 3)).astype(np.uint8)
    if flat:
        image[:] = 60
    for word in shown:
        image[:, WORDS.index(word)] = 255
    return image


class AxisEncoder:
    """A picture's vector has an axis for each thing shown, and three of structure."""

    dimension = 8

    def picture(self, image: np.ndarray) -> np.ndarray:
        vector = np.zeros(8, np.float32)
        for i in range(len(WORDS)):
            vector[i] = float((image[:, i] == 255).all())
        vector[5:] = image[:3, 15, 0] / 255
        return vector / max(float(np.linalg.norm(vector)), 1e-9)

    def text(self, text: str) -> np.ndarray:
        for i, word in enumerate(WORDS):
            if word in text:
                return axis(i)
        return axis(7) * 0


def frame(tick: int, x: float = 0, z: float = 0, *shown: str, yaw: float = 0) -> Frame:
    return Frame(tick, Pose(x, 64, z, yaw), picture(*shown, noise=tick))


def record(number: int, x: float = 0, z: float = 0, tick: int | None = None, yaw: float = 0, shown: str = "cow") -> Record:
    image = picture(shown, noise=number)
    return Record(number, axis(WORDS.index(shown)), Pose(x, 64, z, yaw), number if tick is None else tick, image)


def said(tick: int, *entities: str, **affordances: str) -> dict[str, Any]:
    """An item of "frames"; affordances as source="target", CAN_OBTAIN each."""
    relations = [{"source": s, "relation": "CAN_OBTAIN", "target": t} for s, t in affordances.items()]
    return {"timestep": tick, "entities": list(entities), "affordances": relations, "co_occurrences": []}


class ScriptedVision:
    """Answers with what `script` makes of the keyframes, after `delay` seconds; an exception in it is raised."""

    def __init__(self, script: Any = None, delay: float = 0.0) -> None:
        self.script, self.delay = script, delay
        self.batches: list[int] = []
        self.open = 0

    async def label(self, keyframes: Sequence[Record]) -> Mapping[str, Any]:
        self.batches.append(len(keyframes))
        self.open += 1
        try:
            if self.delay:
                await asyncio.sleep(self.delay)
            answer = self.script(keyframes) if callable(self.script) else self.script
            if isinstance(answer, BaseException):
                raise answer
            return answer if answer is not None else {"frames": [said(r.tick, "cow", cow="beef") for r in keyframes]}
        finally:
            self.open -= 1
