"""Exploration Checkpoint Coverage (paper 001, section 3.2 and appendix E).

    ECC = covered checkpoints / M                                                                         (eq. 2)

The checkpoints of an instance come from the engine (`HasCheckpoints.checkpoints`), what a step proves from the world's matcher
(`CheckpointMatcher`). `Coverage` joins the two and keeps the step of each first hit, so that one run gives the whole curve
ECC@k. Everything is text comparison; no model judges.

The record holds one note, "checkpoints": a list of {"kind", "name", "step"}, step = 1-based number of the exploration step that
covered it, null if none did.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from agentexp.capabilities import Checkpoint, CheckpointMatcher, HasCheckpoints
from agentexp.core import Step, StepRecord
from agentexp.metrics.resample import Estimate, ratio
from agentexp.records import Record

if TYPE_CHECKING:
    from agentexp.rollout import Rollout

CURVE = (10, 20, 30, 50, 75, 100)
"""The k of the ECC@k curve (paper 001, figure 4a)."""

Relevance = Literal["task_closure", "all"]
NOTE = "checkpoints"


@dataclass(frozen=True, slots=True)
class Ecc:
    """The coverage of one exploration.

    Attributes:
        hits: checkpoint -> 1-based step that covered it first, None if none did. Every checkpoint is a key.
    """

    hits: Mapping[Checkpoint, int | None]

    @property
    def total(self) -> int:
        """M, the number of checkpoints."""
        return len(self.hits)

    @property
    def covered(self) -> int:
        """How many were covered."""
        return sum(step is not None for step in self.hits.values())

    @property
    def value(self) -> float | None:
        """ECC in [0, 1]; None for an instance without checkpoints."""
        return self.covered / self.total if self.hits else None

    def at(self, k: int) -> float | None:
        """ECC@k: the coverage after k steps. A session that ended earlier keeps what it had."""
        return sum(step is not None and step <= k for step in self.hits.values()) / self.total if self.hits else None

    def by_kind(self) -> dict[str, tuple[int, int]]:
        """(covered, all) of each kind that occurs."""
        counts: dict[str, tuple[int, int]] = {}
        for checkpoint, step in self.hits.items():
            covered, total = counts.get(checkpoint.kind, (0, 0))
            counts[checkpoint.kind] = covered + (step is not None), total + 1
        return counts


class Coverage:
    """Follows one exploration.

    Args:
        checkpoints: the instance's checkpoints; repeats count once. Evidence for anything else is ignored.
        matcher: a fresh matcher of the world.
    """

    def __init__(self, checkpoints: Iterable[Checkpoint], matcher: CheckpointMatcher) -> None:
        self._matcher = matcher
        self._hits: dict[Checkpoint, int | None] = dict.fromkeys(map(_checkpoint, checkpoints))

    def observe(self, t: int, action: str | None, step: Step) -> list[Checkpoint]:
        """Take in step t (1-based; the reset is t = 0 with action None) and return what it covers for the first time.

        A reply that sent no action (`action` None at t > 0) proves nothing. Nor does the reset: what it shows is given.
        """
        if action is None and t > 0:
            return []
        new = [c for c in sorted(self._matcher.observe(action, step)) if t > 0 and c in self._hits and self._hits[c] is None]
        for checkpoint in new:
            self._hits[checkpoint] = t
        return new

    def result(self) -> Ecc:
        """The coverage so far."""
        return Ecc(dict(self._hits))

    def note(self) -> list[dict[str, Any]]:
        """The value of the record's note "checkpoints"."""
        return [{"kind": c.kind, "name": c.name, "step": step} for c, step in self._hits.items()]


def score(checkpoints: Iterable[Checkpoint | str], covered: Iterable[Checkpoint | str]) -> float | None:
    """Eq. 2 on plain sets: the covered share of the checkpoints. What was covered besides does not count."""
    wanted = set(checkpoints)
    return len(wanted & set(covered)) / len(wanted) if wanted else None


def cover(
    checkpoints: Iterable[Checkpoint], matcher: CheckpointMatcher, start: str, steps: Iterable[StepRecord | Mapping[str, Any]]
) -> Coverage:
    """The coverage of a recorded exploration.

    Args:
        checkpoints: of the same instance.
        matcher: fresh.
        start: the observation at reset.
        steps: the exploration's steps, as `StepRecord` or as in `episodes.jsonl`.
    """
    coverage = Coverage(checkpoints, matcher)
    coverage.observe(0, None, Step(start))
    for t, record in enumerate(steps, start=1):
        row = record if isinstance(record, Mapping) else _row(record)
        step = Step(row["observation"], error=row["error"], info=row.get("info", {}))
        coverage.observe(t, row["action"], step)
    return coverage


def ecc_of_episode(
    record: Record, checkpoints: Iterable[Checkpoint] | None = None, matcher: CheckpointMatcher | None = None
) -> Ecc | None:
    """The coverage of a recorded episode; None where nothing was explored or nothing is known about checkpoints.

    Args:
        record: one line of `episodes.jsonl`.
        checkpoints: measure against these; None = those in the record's note.
        matcher: read the exploring steps again with this fresh matcher; None = take the first hits from the note.
    """
    notes = record.get("notes", {})
    noted = {_checkpoint((row["kind"], row["name"])): row["step"] for row in notes.get(NOTE, ())}
    wanted = [_checkpoint(c) for c in checkpoints] if checkpoints is not None else list(noted)
    if matcher is None:
        return Ecc({c: noted.get(c) for c in wanted}) if noted else None
    steps = [step for step in record["trajectory"] if step["phase"] == "exploring"]
    if not steps or not wanted:
        return None
    return cover(wanted, matcher, str(notes.get("exploration", {}).get("start", "")), steps).result()


@dataclass(frozen=True, slots=True)
class EccSummary:
    """ECC over instances.

    Attributes:
        ecc: mean with its interval over instances.
        curve: the same at each k.
        by_kind: mean over the instances that have checkpoints of the kind.
        checkpoints: mean M.
        without: explorations left out because their instance has no checkpoints.
    """

    ecc: Estimate
    curve: dict[int, Estimate]
    by_kind: dict[str, Estimate]
    checkpoints: float | None
    without: int


def summarise_ecc(explorations: Sequence[Ecc], ks: Sequence[int] = CURVE) -> EccSummary:
    """Means over explorations, one per instance."""
    measured = [ecc for ecc in explorations if ecc.total]
    ones = [1.0] * len(measured)
    kinds = sorted({kind for ecc in measured for kind in ecc.by_kind()})
    shares = {kind: [c / n for c, n in (e.by_kind().get(kind, (0, 0)) for e in measured) if n] for kind in kinds}
    return EccSummary(
        ecc=ratio([ecc.value or 0.0 for ecc in measured], ones),
        curve={k: ratio([ecc.at(k) or 0.0 for ecc in measured], ones) for k in ks},
        by_kind={kind: ratio(values, [1.0] * len(values)) for kind, values in shares.items()},
        checkpoints=sum(ecc.total for ecc in measured) / len(measured) if measured else None,
        without=len(explorations) - len(measured),
    )


async def instance_checkpoints(ro: Rollout, relevance: Relevance = "task_closure") -> list[Checkpoint]:
    """The instance's checkpoints from the engine. Call it right after a reset; empty where the world has none.

    An explorer does not get to see them, so the hidden task stays hidden.
    """
    points: list[Checkpoint] = await ro.world.call("checkpoints", relevance) if isinstance(ro.env, HasCheckpoints) else []
    return points


def note_coverage(ro: Rollout, checkpoints: Iterable[Checkpoint], start: str, steps: Iterable[StepRecord]) -> None:
    """Keep the note "checkpoints" of an exploration; nothing happens where the world has none.

    Args:
        checkpoints: from `instance_checkpoints`.
        start: the exploration's first observation.
        steps: its steps.
    """
    if isinstance(ro.env, HasCheckpoints):
        ro.note(NOTE, cover(checkpoints, ro.env.checkpoint_matcher(), start, steps).note())


def _checkpoint(value: Checkpoint | tuple[str, str]) -> Checkpoint:
    return Checkpoint(*value)


def _row(record: StepRecord) -> dict[str, Any]:
    return {"observation": record.observation, "error": record.error, "info": record.info, "action": record.action}
