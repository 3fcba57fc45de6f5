"""Answers kept by the hash of the frame, so that a run can be repeated, or tried out, without a key.

The file is JSON Lines: {"frame": hash of the picture, "label": item of "frames" without its timestep}. Whoever has pictures and
such a file gets the same graph; the pictures themselves are not in it.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agentexp.errors import ModelError, UserError
from agentexp.scrub import clean_line
from agentexp.wise.core import Record, VisionModel
from agentexp.wise.memory.grounding import by_keyframe


def fingerprint(picture: NDArray[np.uint8]) -> str:
    """Hash of a picture: its shape and pixels."""
    digest = hashlib.blake2b(repr(picture.shape).encode(), digest_size=16)
    digest.update(np.ascontiguousarray(picture).tobytes())
    return digest.hexdigest()


class ReplayVision:
    """Answers from a file, and from `model` where the file has none.

    Args:
        path: of the JSON Lines file; with a model it is made and grows.
        model: asked for frames that are not in the file; None = such frames are an error of the request.

    Raises:
        UserError: there is no such file and no model, or it cannot be read.
    """

    def __init__(self, *, path: str, model: VisionModel | None = None) -> None:
        self.path, self.model = Path(path).expanduser(), model
        self._kept: dict[str, dict[str, Any]] = {}
        self.replayed = self.asked = 0
        if self.path.is_file():
            self._read()
        elif model is None:
            raise UserError(f"There are no answers at vision.path={path}; name a file, or set vision.model to record one.")

    def bind(self, world: object = None) -> ReplayVision:
        """The same for one episode in `world`, with counts of its own; answers recorded by one are known to all."""
        bound = copy.copy(self)
        bound.replayed = bound.asked = 0
        if bind := getattr(self.model, "bind", None):
            bound.model = bind(world)
        return bound

    async def start(self) -> None:
        """Check that the model answers, where there is one. Raises `UserError` when it does not."""
        if start := getattr(self.model, "start", None):
            await start()

    async def close(self) -> None:
        """Close the model's connections."""
        if close := getattr(self.model, "close", None):
            await close()

    def _read(self) -> None:
        for number, line in enumerate(self.path.read_text(encoding="utf-8").splitlines(), 1):
            try:
                row = json.loads(line)
                self._kept[row["frame"]] = row["label"]
            except (ValueError, KeyError, TypeError) as error:
                raise UserError(f"Line {number} of vision.path={self.path} is no recorded answer ({error}).") from error

    async def label(self, keyframes: Sequence[Record]) -> Mapping[str, Any]:
        """See `VisionModel.label`.

        Raises:
            ModelError: a frame is not in the file and there is no model, or the model failed.
        """
        hashes = {record.id: fingerprint(_picture(record)) for record in keyframes}
        unknown = [record for record in keyframes if hashes[record.id] not in self._kept]
        if unknown and self.model is None:
            raise ModelError(f"{len(unknown)} of {len(keyframes)} frames are not in {self.path.name}.")
        if unknown and self.model is not None:
            self.asked += len(unknown)
            self._keep(by_keyframe(await self.model.label(unknown), unknown), hashes)
        self.replayed += len(keyframes) - len(unknown)
        known = [(record, self._kept[hashes[record.id]]) for record in keyframes if hashes[record.id] in self._kept]
        return {"frames": [{"timestep": record.tick, **label} for record, label in known]}

    def _keep(self, answers: list[tuple[Record, Mapping[str, Any]]], hashes: Mapping[int, str]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            for record, answer in answers:
                label = {key: value for key, value in answer.items() if key != "timestep"}
                self._kept[hashes[record.id]] = label
                line = json.dumps({"frame": hashes[record.id], "label": label}).encode()
                file.write(clean_line(line).decode() + "\n")

    def note(self, record: Record) -> None:
        """Pass on to a model that wants it."""
        if note := getattr(self.model, "note", None):
            note(record)

    def statistics(self) -> dict[str, Any]:
        """What was replayed and asked, and what the model counted."""
        spent: dict[str, Any] = getattr(self.model, "statistics", dict)()
        return {**spent, "frames_replayed": self.replayed, "frames_asked": self.asked}


def _picture(record: Record) -> NDArray[np.uint8]:
    if record.picture is None:
        raise ModelError("A keyframe has no picture.")
    return record.picture
