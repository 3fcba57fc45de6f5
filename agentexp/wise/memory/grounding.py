"""From what a vision model says to what goes into the graph: the filters of the paper's appendix A.9.

(1) names are brought to the vocabulary; (2) those that are not in the database are dropped; (4) an affordance stays if its
source is on the same keyframe and the game knows it. (3), the merging of instances nearby, is the graph's.

Models answer with variants of the schema (entities as objects, co-occurrences as pairs or as lists), so readings are lenient
about form and strict about content.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from agentexp.wise.core import Record
from agentexp.wise.knowledge import KnowledgeBase, Known


@dataclass(slots=True)
class Grounded:
    """One keyframe's answer after the filters.

    Attributes:
        record: the keyframe.
        entities: names of the base, each once, as listed.
        labels: what the model called each of them.
        affordances: facts about them.
        pairs: names seen together.
        dropped: how many names and relations the filters took away: "unknown", "unobserved", "invalid".
    """

    record: Record
    entities: list[str] = field(default_factory=list)
    labels: dict[str, str] = field(default_factory=dict)
    affordances: list[Known] = field(default_factory=list)
    pairs: list[tuple[str, str]] = field(default_factory=list)
    dropped: dict[str, int] = field(default_factory=lambda: {"unknown": 0, "unobserved": 0, "invalid": 0})


def ground(answer: Mapping[str, Any], record: Record, knowledge: KnowledgeBase) -> Grounded:
    """Filter the answer about one keyframe (one item of "frames")."""
    found = Grounded(record)
    for said in _names(answer.get("entities")):
        name = knowledge.source(said)
        if name is None:
            found.dropped["unknown"] += 1
        elif name not in found.labels:
            found.entities.append(name)
            found.labels[name] = said
    for relation in _dicts(answer.get("affordances")):
        fact = _affordance(relation, found, knowledge)
        if fact is not None and fact not in found.affordances:
            found.affordances.append(fact)
    # Entities of one keyframe occur together whether or not the model says so.
    found.pairs = [(a, b) if a < b else (b, a) for a, b in combinations(found.entities, 2)]
    return found


def _affordance(said: Mapping[str, Any], found: Grounded, knowledge: KnowledgeBase) -> Known | None:
    source, target = knowledge.source(str(said.get("source", ""))), knowledge.outcome(str(said.get("target", "")))
    relation = str(said.get("relation", "")).strip().upper().replace(" ", "_")
    if source is None or target is None:
        found.dropped["unknown"] += 1
        return None
    if source not in found.labels:
        found.dropped["unobserved"] += 1
        return None
    fact = knowledge.fact(source, relation, target)
    if fact is None:
        found.dropped["invalid"] += 1
    return fact


def by_keyframe(answer: Mapping[str, Any], keyframes: Sequence[Record]) -> list[tuple[Record, Mapping[str, Any]]]:
    """Each keyframe with its item of "frames": by timestep, or by position where the model did not repeat the timesteps."""
    frames = _dicts(answer.get("frames"))
    by_tick = {frame.get("timestep"): frame for frame in frames}
    if any(record.tick in by_tick for record in keyframes):
        return [(record, by_tick[record.tick]) for record in keyframes if record.tick in by_tick]
    return list(zip(keyframes, frames, strict=False)) if len(frames) == len(keyframes) else []


def _names(listed: object) -> list[str]:
    if not isinstance(listed, list):
        return []
    names = [item.get("name") or item.get("entity") or item.get("type") if isinstance(item, dict) else item for item in listed]
    return [name for name in names if isinstance(name, str) and name.strip()]


def _dicts(listed: object) -> list[Mapping[str, Any]]:
    return [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []
