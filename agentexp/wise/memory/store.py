"""Arrays behind the short-term memory: rows that grow and are used again, and their likeness to the texts that are asked for.

A text's similarity to every row is kept up to date row by row, so a query reads numbers instead of multiplying matrices.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from agentexp.wise.core import Pose, Record
from agentexp.wise.memory.dpmeans import Vectors

Indices = NDArray[np.int64]


class Rows:
    """Vectors in rows, with free rows reused.

    Attributes:
        vectors: float32 of shape (room, d); rows that are not in use are zero.
        used: bool of shape (room,).
    """

    def __init__(self, dimension: int, room: int = 256) -> None:
        self.vectors: Vectors = np.zeros((room, dimension), np.float32)
        self.used: NDArray[np.bool_] = np.zeros(room, bool)
        self._free: list[int] = list(range(room - 1, -1, -1))
        self._texts: Vectors = np.zeros((0, dimension), np.float32)
        self._similar: NDArray[np.float32] = np.full((0, room), -2.0, np.float32)

    def __len__(self) -> int:
        return len(self.used) - len(self._free)

    def put(self, vector: Vectors) -> int:
        """A new row."""
        if not self._free:
            self._grow()
        row = self._free.pop()
        self.used[row] = True
        self.set(row, vector)
        return row

    def set(self, row: int, vector: Vectors) -> None:
        """Change a row in use."""
        self.vectors[row] = vector
        if len(self._texts):
            self._similar[:, row] = self._texts @ vector

    def drop(self, row: int) -> None:
        """Free a row."""
        self.used[row] = False
        self.vectors[row] = 0
        self._similar[:, row] = -2.0
        self._free.append(row)

    def watch(self, text: Vectors) -> None:
        """Keep similarities to one more text."""
        similar = np.where(self.used, self.vectors @ text, np.float32(-2.0)).astype(np.float32)
        self._texts = np.vstack((self._texts, text[None]))
        self._similar = np.vstack((self._similar, similar[None]))

    def similar(self, text: int) -> NDArray[np.float32]:
        """Cosine of each row with the text watched as number `text`; -2 for rows not in use. Do not write into it."""
        row: NDArray[np.float32] = self._similar[text]
        return row

    def _grow(self) -> None:
        room = len(self.used)
        self.vectors = np.vstack((self.vectors, np.zeros_like(self.vectors)))
        self.used = np.concatenate((self.used, np.zeros(room, bool)))
        self._similar = np.hstack((self._similar, np.full((len(self._texts), room), -2.0, np.float32)))
        self._free = list(range(2 * room - 1, room - 1, -1))


class Frames(Rows):
    """Rows of remembered frames: their embeddings, poses, ticks, ids, event clusters, and pictures where they are kept.

    Attributes:
        poses: shape (room, 5), in the order of `Pose`.
        ticks, ids, events: int64 of shape (room,); an event of -1 is none yet.
        row: row by record id.
    """

    def __init__(self, dimension: int, room: int = 1024) -> None:
        super().__init__(dimension, room)
        self.poses = np.zeros((room, 5))
        self.ticks: Indices = np.zeros(room, np.int64)
        self.ids: Indices = np.zeros(room, np.int64)
        self.events: Indices = np.full(room, -1, np.int64)
        self.row: dict[int, int] = {}
        self._pictures: dict[int, NDArray[np.uint8]] = {}

    def add(self, number: int, vector: Vectors, pose: Pose, tick: int, picture: NDArray[np.uint8] | None) -> int:
        """Remember a frame under an id; return its row."""
        row = self.put(vector)
        self.poses[row], self.ticks[row], self.ids[row], self.events[row] = pose, tick, number, -1
        self.row[number] = row
        if picture is not None:
            self._pictures[number] = picture
        return row

    def forget(self, row: int) -> None:
        """Drop a frame."""
        number = int(self.ids[row])
        del self.row[number]
        self._pictures.pop(number, None)
        self.events[row] = -1
        self.drop(row)

    def record(self, number: int) -> Record | None:
        """The frame with an id; None where it is not there."""
        row = self.row.get(number)
        if row is None:
            return None
        pose = Pose(*(float(value) for value in self.poses[row]))
        return Record(number, self.vectors[row].copy(), pose, int(self.ticks[row]), self._pictures.get(number))

    def _grow(self) -> None:
        room = len(self.used)
        super()._grow()
        self.poses = np.vstack((self.poses, np.zeros((room, 5))))
        self.ticks = np.concatenate((self.ticks, np.zeros(room, np.int64)))
        self.ids = np.concatenate((self.ids, np.zeros(room, np.int64)))
        self.events = np.concatenate((self.events, np.full(room, -1, np.int64)))
