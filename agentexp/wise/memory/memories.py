"""The memories of the methods: none (Steve-1), MrSteve's, and WISE's with features only; `labelled.py` has those with labels.

All take one frame in `every` ticks that carry a picture. A memory belongs to one episode; `fresh(world)` makes an empty one
with the same settings for another. `candidates` reads numbers that are kept up to date, so it may be called every tick.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from agentexp.errors import UserError
from agentexp.wise.core import Encoder, Frame, Opportunity, Pose, Subtask
from agentexp.wise.memory.retrieval import Bans, Candidate, rank
from agentexp.wise.memory.short_term import Allowed, ShortTermMemory
from agentexp.wise.memory.text import TextQuery, query_text
from agentexp.wise.parts import again


class NoMemory:
    """Remembers nothing (Steve-1)."""

    def fresh(self, world: object = None) -> NoMemory:
        """One for another episode."""
        return NoMemory()

    def observe(self, frame: Frame) -> None:
        """See `Memory.observe`."""

    def candidates(self, subtask: Subtask, frame: Frame) -> list[Opportunity]:
        """Nothing."""
        return []

    def forget(self, opportunity: Opportunity) -> None:
        """See `Memory.forget`."""

    async def pace(self, frame: Frame) -> None:
        """Nothing to wait for."""

    async def settle(self) -> None:
        """Nothing to wait for."""

    def close(self) -> None:
        """Nothing to stop."""

    def statistics(self) -> dict[str, Any]:
        """No counts."""
        return {}


class FeatureMemory:
    """WISE without its graph: eq. 4 on M_short, ranked by similarity alone.

    Args:
        encoder: pictures and texts in one space.
        short: M_short; None = with its default settings.
        text_query: "skills" searches with MrSteve's table of texts, "raw" with the task's own.
        thresholds: least similarity by target; for others the encoder's own threshold of the text, else `threshold`.
        threshold: where nothing else is known.
        k: event clusters looked at; None = 10 (the paper's), 30 for MrSteve.
        every: ticks between two frames that are remembered.
        ban_ticks: how long a place that was tried in vain is left alone, see `Bans`.

    Raises:
        UserError: a setting is out of range.
    """

    looked_at = 10

    def __init__(
        self,
        *,
        encoder: Encoder,
        short: ShortTermMemory | None = None,
        text_query: TextQuery = "skills",
        thresholds: dict[str, float] | None = None,
        threshold: float = 0.23,
        k: int | None = None,
        every: int = 1,
        ban_ticks: int = 600,
    ) -> None:
        k = self.looked_at if k is None else k
        if k < 1 or every < 1 or ban_ticks < 0:
            raise UserError("memory.k and memory.every must be at least 1, memory.ban_ticks not negative.")
        if text_query not in ("raw", "skills"):
            raise UserError(f"memory.text_query={text_query} is not possible; choose one of: raw, skills.")
        self.encoder, self.text_query, self.k, self.every = encoder, text_query, k, every
        self.thresholds, self.threshold, self.ban_ticks = thresholds or {}, threshold, ban_ticks
        self.short = short or self._store()
        self.bans = Bans(self.short.place_size, ban_ticks)
        self.tick = 0
        self._now: Candidate | None = None  # the frame remembered last
        self._embedding: NDArray[np.float32] = np.zeros(encoder.dimension, np.float32)
        self._texts: dict[str, tuple[NDArray[np.float32], float]] = {}

    def _store(self) -> ShortTermMemory:
        return ShortTermMemory()

    def fresh(self, world: object = None) -> Self:
        """An empty memory with these settings for an episode in `world`."""
        if (begin := getattr(self.encoder, "begin", None)) is not None:
            begin()  # an encoder that looks back over several pictures
        return again(self, **self._parts(world))

    def _parts(self, world: object) -> dict[str, Any]:
        """The settings that every episode has its own of."""
        return {"short": self.short.fresh()}

    # ------------------------------------------------------------------------------------------------------- protocol

    def observe(self, frame: Frame) -> None:
        """Remember the frame if it is its turn and it has a picture."""
        self.tick = frame.tick
        if frame.image is not None and frame.tick % self.every == 0:
            self._embedding = self.encoder.picture(frame.image)
            number = self.short.add(self._embedding, frame.pose, frame.tick)
            self._now = Candidate(number, frame.pose, frame.tick, 0.0, in_view=True)
            self._taken(number, frame)

    def candidates(self, subtask: Subtask, frame: Frame) -> list[Opportunity]:
        """See `Memory.candidates`."""
        return rank(self._visual(subtask, frame), subtask.target, frame.pose, 1.0, self.k)

    def forget(self, opportunity: Opportunity) -> None:
        """Leave that place alone for a while, for that target."""
        self.bans.add(opportunity.target, opportunity.x, opportunity.z, self.tick)

    async def pace(self, frame: Frame) -> None:
        """Wait for background work that is due by now in game time; for worlds that are faster than real time."""

    async def settle(self) -> None:
        """Nothing to wait for."""

    def close(self) -> None:
        """Stop background work without waiting, for an episode that ends in an error. Safe to call twice."""

    def statistics(self) -> dict[str, Any]:
        """See `Memory.statistics`."""
        return dict(self.short.statistics())

    # --------------------------------------------------------------------------------------------------------- inside

    def _taken(self, number: int, frame: Frame) -> None:
        """Called for each frame that was remembered."""

    def _text(self, subtask: Subtask) -> tuple[NDArray[np.float32], float]:
        """z_tau and theta_tau."""
        text = query_text(subtask, self.text_query)
        if text not in self._texts:
            own = getattr(self.encoder, "threshold", None)
            known = own(text) if own is not None else None
            self._texts[text] = self.encoder.text(text), self.threshold if known is None else float(known)
        vector, threshold = self._texts[text]
        return vector, self.thresholds.get(subtask.target, threshold)

    def _visual(self, subtask: Subtask, frame: Frame) -> Iterator[Candidate]:
        """C_short: the frame of this moment, and eq. 4."""
        vector, threshold = self._text(subtask)
        if (now := self._seen_now(subtask, frame)) is not None:
            yield now
        for hit in self.short.top(self.short.watch(vector), threshold, self.k, self._allowed(subtask)):
            record = self.short.record(hit.id)
            if record is not None and (now is None or hit.id != now.record):
                yield Candidate(hit.id, record.pose, record.tick, hit.similarity)

    def _seen_now(self, subtask: Subtask, frame: Frame) -> Candidate | None:
        """The frame remembered last, if it still shows what is in view and is similar enough to the task."""
        now = self._now
        if now is None or not same_view(now.pose, frame.pose) or frame.tick - now.tick > self.every:
            return None
        vector, threshold = self._text(subtask)
        similarity = float(self._embedding @ vector)
        if similarity < threshold or not self.bans.allows(subtask.target, now.pose, now.tick):
            return None
        return Candidate(now.record, now.pose, now.tick, similarity, in_view=True)

    def _allowed(self, subtask: Subtask) -> Allowed | None:
        if subtask.target not in self.bans.placed:
            return None
        return lambda places, ticks: self.bans.allowed(subtask.target, places, ticks)


class MrSteveMemory(FeatureMemory):
    """Place Event Memory: batches of 100 through DP-means, top 30 clusters, the nearest frame. Settings as `FeatureMemory`'s.

    `k` is 30 as published where it is not set; the thresholds published for MineCLIP are those of its encoder.
    """

    looked_at = 30

    def _store(self) -> ShortTermMemory:
        return ShortTermMemory(cluster="batch", evict="place")

    def candidates(self, subtask: Subtask, frame: Frame) -> list[Opportunity]:
        """What is in view, else the nearest frame above the threshold, alone."""
        found = self._seen_now(subtask, frame)
        if found is None:
            vector, threshold = self._text(subtask)
            text = self.short.watch(vector)
            hit = self.short.nearest(text, threshold, frame.pose.x, frame.pose.z, self.k, self._allowed(subtask))
            record = self.short.record(hit.id) if hit else None
            if hit is None or record is None:
                return []
            found = Candidate(hit.id, record.pose, record.tick, hit.similarity)
        return rank([found], subtask.target, frame.pose, 1.0, 1)


def same_view(a: Pose, b: Pose, blocks: float = 2.0, degrees: float = 20.0) -> bool:
    """Whether two poses show much the same."""
    return a.distance(b.x, b.z) < blocks and abs((a.yaw - b.yaw + 180) % 360 - 180) < degrees
