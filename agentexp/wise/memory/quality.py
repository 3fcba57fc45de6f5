"""How right the graph's material is (paper 004, table 6): precision of entities and of entity-relation-outcome tuples."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from agentexp.wise.knowledge import KnowledgeBase
from agentexp.wise.memory.grounding import Grounded


@dataclass(frozen=True, slots=True)
class Quality:
    """Counts over the keyframes looked at; precisions are None where nothing was predicted.

    Attributes:
        keyframes: looked at.
        entities: predicted.
        right_entities: those that the annotation has.
        shown: annotated entities.
        relations: predicted tuples.
        right_relations: those whose source is annotated and which the game knows.
    """

    keyframes: int
    entities: int
    right_entities: int
    shown: int
    relations: int
    right_relations: int

    @property
    def entity_precision(self) -> float | None:
        """Share of predicted entities that are there."""
        return self.right_entities / self.entities if self.entities else None

    @property
    def entity_recall(self) -> float | None:
        """Share of annotated entities that were predicted (not in the paper)."""
        return self.right_entities / self.shown if self.shown else None

    @property
    def relation_precision(self) -> float | None:
        """Share of predicted tuples that agree with the annotation and the knowledge base."""
        return self.right_relations / self.relations if self.relations else None


def quality(
    answers: Sequence[Grounded],
    truth: Mapping[int, Collection[str]],
    knowledge: KnowledgeBase,
    sample: int | None = 50,
    seed: int = 0,
) -> Quality:
    """Compare answers with annotations.

    Args:
        answers: of a memory (`LabelMemory.answers`).
        truth: names of what is on a keyframe, by its tick; keyframes without an entry are left out.
        knowledge: brings the annotations' names to those of the answers.
        sample: how many keyframes to draw at most; None = all.
        seed: of the draw.
    """
    known = [answer for answer in answers if answer.record.tick in truth]
    if sample is not None and len(known) > sample:
        chosen = np.random.default_rng(seed).choice(len(known), sample, replace=False)
        known = [known[i] for i in sorted(chosen)]
    entities = right_entities = shown = relations = right_relations = 0
    for answer in known:
        there = {knowledge.source(name) or name for name in truth[answer.record.tick]}
        entities += len(answer.entities)
        right_entities += len(there.intersection(answer.entities))
        shown += len(there)
        relations += len(answer.affordances)
        right_relations += sum(fact.source in there and knowledge.valid(*fact[:3]) for fact in answer.affordances)
    return Quality(len(known), entities, right_entities, shown, relations, right_relations)
