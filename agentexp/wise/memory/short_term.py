"""M_short: frames in place clusters (where from, which way), and in event clusters by what they look like (paper 004, 3.1.1).

Two ways of clustering share everything else:

* "online": every frame joins the nearest event cluster of its place or founds one; each `update_every` frames, centres of a
  place that have come close are merged. Every frame can be found at once.
* "batch": MrSteve's published memory. A place's frames form one cluster, known by its first frame, until `update_every` of them
  have come; from then on each batch goes through DP-means, its centres are merged among themselves (`merge_new`) and into the
  old ones (`merge_old`), and a cluster is known by the frame nearest to its centre. Frames of a batch that is not full yet
  cannot be found.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agentexp.errors import UserError
from agentexp.wise.core import Pose, Record
from agentexp.wise.memory.dpmeans import Vectors, dp_means, means, merge_labels, unit
from agentexp.wise.memory.store import Frames, Indices, Rows
from agentexp.wise.parts import again

Allowed = Callable[[NDArray[np.float64], NDArray[np.int64]], NDArray[np.bool_]]
"""From places of shape (n, 2), (x, z), and ticks of shape (n,) to which of them may be offered."""


class Hit(NamedTuple):
    """A remembered frame that a query found: its record id, its similarity to the text, its event cluster."""

    id: int
    similarity: float
    cluster: int


@dataclass(slots=True)
class _Place:
    clusters: list[int] = field(default_factory=list)
    clustered: bool = False  # "batch": has been through DP-means
    waiting: list[int] = field(default_factory=list)  # "batch": rows of the batch that is not full yet
    fresh: int = 0  # "online": frames since the last merging
    size: int = 0  # frames in its clusters


class ShortTermMemory:
    """The store of frames.

    Args:
        capacity: most frames kept; None = no limit.
        place_size: side of a place cluster in blocks, centred on the first frame's position.
        place_yaw: its range of yaw in degrees.
        update_every: frames of one place between two (re-)clusterings.
        seeds: clusters that DP-means begins with ("batch"); MrSteve has one per 20 frames.
        penalty: squared distance that founds a cluster in DP-means ("batch").
        merge_new: cosine above which two centres of a place become one.
        merge_old: cosine above which a frame ("online") or a new centre ("batch") goes to an existing cluster.
        cluster: "online" or "batch", see above.
        evict: what goes first is the oldest frame of the largest event cluster: of all ("event", WISE), or of those in the
            largest place ("place", MrSteve).

    Attributes:
        founded: the frame added last is the first one of an event cluster.
        evicted: frames forgotten so far.

    Raises:
        UserError: a setting is out of range.
    """

    def __init__(
        self,
        *,
        capacity: int | None = 10_000,
        place_size: float = 6.0,
        place_yaw: float = 60.0,
        update_every: int = 100,
        seeds: int = 5,
        penalty: float = 1.0,
        merge_new: float = 0.74,
        merge_old: float = 0.735,
        cluster: Literal["online", "batch"] = "online",
        evict: Literal["event", "place"] = "event",
    ) -> None:
        if update_every < 1 or seeds < 1 or (capacity is not None and capacity < 1):
            raise UserError("memory.short.update_every, .seeds and .capacity must be at least 1 (.capacity may be null).")
        if place_size <= 0 or not 0 < place_yaw <= 360:
            raise UserError("memory.short.place_size must be above 0, memory.short.place_yaw above 0 and at most 360.")
        self.capacity, self.place_size, self.place_yaw = capacity, place_size, place_yaw
        self.update_every, self.seeds, self.penalty = update_every, seeds, penalty
        self.merge_new, self.merge_old, self.cluster, self.evict = merge_new, merge_old, cluster, evict
        self._sums: dict[int, NDArray[np.float64]] = {}
        self._members: dict[int, deque[int]] = {}
        self._arrays: dict[int, Indices] = {}
        self._counts: NDArray[np.int64] = np.zeros(256, np.int64)
        self._home: dict[int, tuple[int, int, int]] = {}
        self._places: dict[tuple[int, int, int], _Place] = {}
        self._texts: dict[bytes, int] = {}
        self._first: Pose | None = None
        self._next = self.evicted = 0
        self.founded = False
        self._start(0)

    def _start(self, dimension: int) -> None:
        self._frames, self._known = Frames(dimension), Rows(dimension)

    def fresh(self) -> ShortTermMemory:
        """An empty memory with the same settings."""
        return again(self)

    # ------------------------------------------------------------------------------------------------------ taking in

    def __len__(self) -> int:
        return len(self._frames.row)

    def add(self, embedding: Vectors, pose: Pose, tick: int, picture: NDArray[np.uint8] | None = None) -> int:
        """Remember one frame and return its record id; may forget another one."""
        if self._first is None:
            self._first = pose
            if len(embedding) != self._frames.vectors.shape[1]:
                self._start(len(embedding))
        self.founded = False
        number, self._next = self._next, self._next + 1
        row = self._frames.add(number, embedding, pose, tick, picture)
        key = self.place(pose)
        place = self._places.setdefault(key, _Place())
        if self.cluster == "online":
            self._add_online(row, key, place)
        else:
            self._add_batch(row, key, place)
        if self.capacity is not None and len(self) > self.capacity:
            self._evict()
        return number

    def place(self, pose: Pose) -> tuple[int, int, int]:
        """Key of the place cluster that a pose belongs to."""
        first, half = self._first or pose, self.place_size / 2
        return (
            int((pose.x - first.x + half) // self.place_size),
            int((pose.z - first.z + half) // self.place_size),
            int((pose.yaw + self.place_yaw / 2) % 360 // self.place_yaw),
        )

    def _add_online(self, row: int, key: tuple[int, int, int], place: _Place) -> None:
        vector = self._frames.vectors[row]
        if place.clusters:
            similar = self._known.vectors[place.clusters] @ vector
            best = int(similar.argmax())
            if similar[best] >= self.merge_old:
                self._join_one(row, place.clusters[best])
            else:
                self._found([row], key, place)
        else:
            self._found([row], key, place)
        place.fresh += 1
        if place.fresh >= self.update_every:
            place.fresh = 0
            while self._merge_place(place):  # merged centres have moved and may be close to others now
                pass

    def _add_batch(self, row: int, key: tuple[int, int, int], place: _Place) -> None:
        if not place.clustered:
            if place.clusters:
                self._join([row], place.clusters[0])
            else:
                self._found([row], key, place)
            if len(self._members[place.clusters[0]]) <= self.update_every:
                return
            rows = list(self._members[place.clusters[0]])
            self._dissolve(place.clusters[0])
            place.clustered = True
        else:
            place.waiting.append(row)
            if len(place.waiting) < self.update_every:
                return
            rows, place.waiting = place.waiting, []
        self._batch(rows, key, place)

    def _batch(self, rows: list[int], key: tuple[int, int, int], place: _Place) -> None:
        points = self._frames.vectors[rows]
        centres, labels = dp_means(points, self.penalty, self.seeds)
        labels = merge_labels(centres, self.merge_new)[labels]
        centres, labels = means(points, labels)
        old = list(place.clusters)
        centre_of_old = unit(np.array([self._sums[c] for c in old], np.float32)) if old else points[:0]
        for label, centre in enumerate(unit(centres)):
            members = [row for row, its in zip(rows, labels, strict=True) if its == label]
            similar = centre_of_old @ centre
            if old and similar.max() > self.merge_old:
                self._join(members, old[int(similar.argmax())])
            else:
                self._found(members, key, place, known_by=int((self._frames.vectors[members] @ centre).argmax()))

    def _merge_place(self, place: _Place) -> bool:
        clusters = list(place.clusters)
        labels = merge_labels(self._known.vectors[clusters], self.merge_new)
        for label in np.flatnonzero(np.bincount(labels) > 1):
            together = [clusters[i] for i in np.flatnonzero(labels == label)]
            rows = sorted((row for c in together for row in self._members[c]), key=lambda row: int(self._frames.ids[row]))
            keep = together[0]
            for other in together[1:]:
                self._sums[keep] = self._sums[keep] + self._sums[other]
                self._dissolve(other)
            self._members[keep] = deque(rows)
            self._frames.events[rows] = keep
            self._changed(keep)
            self._known.set(keep, unit(self._sums[keep].astype(np.float32)))
        return bool(labels.max() + 1 < len(labels))

    # -------------------------------------------------------------------------------------------------- event clusters

    def _found(self, rows: list[int], key: tuple[int, int, int], place: _Place, known_by: int = 0) -> None:
        self.founded = len(rows) == 1
        vectors = self._frames.vectors[rows]
        total = vectors.sum(axis=0, dtype=np.float64)
        by_frame = self.cluster == "batch"
        cluster = self._known.put(vectors[known_by] if by_frame else unit(total.astype(np.float32)))
        if cluster >= len(self._counts):
            self._counts = np.concatenate((self._counts, np.zeros_like(self._counts)))
        self._sums[cluster], self._members[cluster], self._home[cluster] = total, deque(rows), key
        self._frames.events[rows] = cluster
        place.clusters.append(cluster)
        self._changed(cluster)

    def _join_one(self, row: int, cluster: int) -> None:
        """A frame joins, and the centre moves."""
        self._members[cluster].append(row)
        self._frames.events[row] = cluster
        self._changed(cluster)
        total = self._sums[cluster]
        total += self._frames.vectors[row]
        self._known.set(cluster, unit(total.astype(np.float32)))

    def _join(self, rows: list[int], cluster: int) -> None:
        """Frames join, and the centre stays."""
        self._members[cluster].extend(rows)
        self._frames.events[rows] = cluster
        self._changed(cluster)

    def _dissolve(self, cluster: int) -> None:
        """Remove a cluster, not its frames."""
        place = self._places[self._home.pop(cluster)]
        place.clusters.remove(cluster)
        place.size -= int(self._counts[cluster])
        self._known.drop(cluster)
        del self._sums[cluster], self._members[cluster]
        self._arrays.pop(cluster, None)
        self._counts[cluster] = 0

    def _changed(self, cluster: int) -> None:
        count = len(self._members[cluster])
        self._places[self._home[cluster]].size += count - int(self._counts[cluster])
        self._counts[cluster] = count
        self._arrays.pop(cluster, None)

    def _evict(self) -> None:
        counts = self._counts
        if self.evict == "place" and self._home:
            largest = max(self._places.values(), key=lambda place: place.size)
            cluster = max(largest.clusters, key=lambda c: int(counts[c]), default=-1)
        else:
            cluster = int(counts.argmax()) if self._home else -1
        if cluster < 0:
            return  # everything is waiting for its batch
        row = self._members[cluster].popleft()
        if self.cluster == "online":
            self._sums[cluster] -= self._frames.vectors[row]
        self._frames.forget(row)
        if self._members[cluster]:
            self._changed(cluster)
            if self.cluster == "online":
                self._known.set(cluster, unit(self._sums[cluster].astype(np.float32)))
        else:
            self._dissolve(cluster)
        self.evicted += 1

    # -------------------------------------------------------------------------------------------------------- queries

    def watch(self, text: Vectors) -> int:
        """Number of a text embedding for the queries; similarities to it are kept from now on."""
        key = text.tobytes()
        if not self._texts and not len(self):
            self._start(len(text))
        if key not in self._texts:
            self._texts[key] = len(self._texts)
            self._frames.watch(text)
            self._known.watch(text)
        return self._texts[key]

    def top(self, text: int, threshold: float, k: int = 10, allowed: Allowed | None = None) -> list[Hit]:
        """Eq. 4: the k event clusters most similar to a text among those at or above `threshold`, each by its best frame."""
        hits: list[Hit] = []
        similar = self._known.similar(text)
        above = np.flatnonzero(similar >= threshold)
        for cluster in above[np.argsort(-similar[above], kind="stable")]:
            rows = self._rows(int(cluster), allowed)
            if len(rows):
                scores = self._frames.similar(text)[rows]
                best = int(scores.argmax())
                hits.append(Hit(int(self._frames.ids[rows[best]]), float(scores[best]), int(cluster)))
            if len(hits) == k:
                break
        return hits

    def nearest(
        self, text: int, threshold: float, x: float, z: float, k: int = 30, allowed: Allowed | None = None
    ) -> Hit | None:
        """MrSteve's rule: among the frames at or above `threshold` in the k most similar event clusters, the nearest one."""
        similar = self._known.similar(text)
        count = min(k, len(self._home))
        if not count:
            return None
        clusters = np.argpartition(-similar, count - 1)[:count]
        rows = np.concatenate([self._rows(int(cluster), allowed) for cluster in clusters])
        rows = rows[self._frames.similar(text)[rows] >= threshold]
        if not len(rows):
            return None
        row = rows[int(np.hypot(self._frames.poses[rows, 0] - x, self._frames.poses[rows, 2] - z).argmin())]
        return Hit(int(self._frames.ids[row]), float(self._frames.similar(text)[row]), int(self._frames.events[row]))

    def _rows(self, cluster: int, allowed: Allowed | None) -> Indices:
        rows = self._arrays.get(cluster)
        if rows is None:
            rows = self._arrays[cluster] = np.fromiter(self._members[cluster], np.int64, len(self._members[cluster]))
        if allowed is None:
            return rows
        return rows[allowed(self._frames.poses[rows][:, (0, 2)], self._frames.ticks[rows])]

    def record(self, number: int) -> Record | None:
        """A remembered frame; None once it is forgotten."""
        return self._frames.record(number)

    def events(self) -> dict[int, list[int]]:
        """Record ids by event cluster, oldest first."""
        return {cluster: [int(self._frames.ids[row]) for row in rows] for cluster, rows in self._members.items()}

    def representative(self, cluster: int) -> int:
        """Record id of the frame nearest to a cluster's centre."""
        rows = self._rows(cluster, None)
        return int(self._frames.ids[rows[int((self._frames.vectors[rows] @ self._known.vectors[cluster]).argmax())]])

    def statistics(self) -> dict[str, int]:
        """Counts of frames, places, event clusters and forgotten frames."""
        return {"frames": len(self), "places": len(self._places), "events": len(self._home), "evicted": self.evicted}
