"""Two-level retrieval (paper 004, 3.1.3): candidates by what they look like and by what they afford, ranked by eq. 6.

    Score(x, tau) = lambda * sim(e_x, z_tau) + (1 - lambda) * AffordanceMatch(x, tau)

The form is reconstructed from the paper's definitions of the symbols; similarities below 0 count as 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from agentexp.wise.core import Opportunity, Pose


@dataclass(frozen=True, slots=True)
class Candidate:
    """x of eq. 6 before it is scored.

    Attributes:
        record: id of the frame.
        pose: from where it was seen.
        tick: when.
        similarity: of frame and text, cosine.
        affordance: AffordanceMatch, 1 or 0.
        entity: name of the thing, where it is known.
        relation: the edge that links it.
        in_view: it is seen right now.
        likeness: what stands for AffordanceMatch where there are labels but no graph.
    """

    record: int
    pose: Pose
    tick: int
    similarity: float
    affordance: float = 0.0
    entity: str = ""
    relation: str = ""
    in_view: bool = False
    likeness: float = 0.0

    def linked(self, entity: str, relation: str) -> Candidate:
        """The same with AffordanceMatch 1."""
        return replace(self, affordance=1.0, entity=entity, relation=relation)


def score(similarity: float, affordance: float, weight: float) -> float:
    """Eq. 6; `weight` is lambda_ret."""
    return weight * min(1.0, max(0.0, similarity)) + (1 - weight) * affordance


def rank(candidates: Iterable[Candidate], target: str, here: Pose, weight: float, k: int) -> list[Opportunity]:
    """Merge by frame, score, and order: best first, and of equals the nearest.

    Args:
        candidates: of both pathways; of one frame's, the one that scores highest stays.
        target: of the subtask.
        here: where the agent is.
        weight: lambda_ret.
        k: how many to return at most.
    """
    best: dict[tuple[int, str], tuple[float, Candidate]] = {}
    for one in candidates:
        value = score(one.similarity, max(one.affordance, one.likeness), weight)
        key = (one.record, one.entity)
        if key not in best or value > best[key][0]:
            best[key] = (value, one)
    # A frame that the graph knows is offered once, as what the graph says it shows.
    linked = {record for record, entity in best if entity}
    kept = [(value, one) for (record, entity), (value, one) in best.items() if entity or record not in linked]
    kept.sort(key=lambda pair: (-pair[0], here.distance(pair[1].pose.x, pair[1].pose.z), pair[1].record))
    return [_offer(value, one, target) for value, one in kept[:k]]


def _offer(value: float, one: Candidate, target: str) -> Opportunity:
    return Opportunity(
        x=one.pose.x,
        z=one.pose.z,
        tick=one.tick,
        score=value,
        affordance=one.affordance,
        similarity=one.similarity,
        entity=one.entity,
        relation=one.relation,
        in_view=one.in_view,
        pose=one.pose,
        target=target,
    )


@dataclass(slots=True)
class Bans:
    """Places that were tried in vain: what was seen there before, and for `ticks` more, is not offered for that target.

    Attributes:
        radius: blocks about the place.
        ticks: how long new sightings there are not believed either, or an agent would turn on the spot before something that
            only looks like its target.
    """

    radius: float = 6.0
    ticks: int = 600
    placed: dict[str, list[tuple[float, float, int]]] = field(default_factory=dict)

    def add(self, target: str, x: float, z: float, tick: int) -> None:
        """Ban a place at `tick`."""
        self.placed.setdefault(target, []).append((x, z, tick + self.ticks))

    def allowed(self, target: str, places: NDArray[np.float64], ticks: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which sightings may be offered.

        Args:
            target: of the subtask.
            places: shape (n, 2), (x, z).
            ticks: when they were seen, shape (n,).
        """
        fine = np.ones(len(ticks), bool)
        for x, z, until in self.placed.get(target, ()):
            fine &= (ticks > until) | (np.hypot(places[:, 0] - x, places[:, 1] - z) >= self.radius)
        return fine

    def allows(self, target: str, pose: Pose, tick: int) -> bool:
        """Whether one sighting may be offered."""
        return all(tick > until or pose.distance(x, z) >= self.radius for x, z, until in self.placed.get(target, ()))
