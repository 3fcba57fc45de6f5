"""WISE's memories with a vision model: labels only (the ablation "VLM Entity Retrieval without SAEG"), and with the graph.

Keyframes go to the worker in the tick they are taken; answers come back when they are ready and change the memory between two
ticks, never within one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from agentexp.errors import UserError
from agentexp.wise.core import Encoder, Frame, Opportunity, Record, Subtask
from agentexp.wise.knowledge import KnowledgeBase
from agentexp.wise.memory.graph import CO_OCCURS, AffordanceGraph
from agentexp.wise.memory.grounding import Grounded, by_keyframe, ground
from agentexp.wise.memory.keyframes import KeyframeFilter
from agentexp.wise.memory.memories import FeatureMemory, same_view
from agentexp.wise.memory.retrieval import Candidate, rank
from agentexp.wise.memory.short_term import ShortTermMemory
from agentexp.wise.memory.text import EncoderSimilarity, Similarity, TextQuery, query_text, word_similarity
from agentexp.wise.vlm.worker import Answer, VisionWorker


class LabelMemory(FeatureMemory):
    """Labels with places, found by the likeness of their names to the task's text; no edges, no traversal.

    The likeness stands for AffordanceMatch in eq. 6, but no opportunity claims an affordance: the scheduler sees 0.

    Args:
        encoder: see `FeatureMemory`, as `short`, `text_query`, `thresholds`, `threshold`, `every` and `ban_ticks`.
        worker: asks the vision model.
        keyframes: chooses what it gets; None = with its default settings.
        knowledge: names and facts; None = those of 1.11.2.
        short: M_short.
        text_query: also for the likeness of names: "near cow" or "obtain beef".
        thresholds: by target.
        threshold: of pictures.
        k: candidates, and event clusters looked at.
        weight: lambda_ret of eq. 6.
        every: ticks.
        ban_ticks: ticks.
        likeness: of names: "words" compares spelling, "encoder" the encoder's texts.
        likeness_threshold: least likeness of a label to be a candidate.
        keep_pictures: keep the keyframes' pictures after they were answered, to save them.

    Attributes:
        records: keyframes by record id.
        labels: (name, what the model said, keyframe).
        answers: what the filters left of each keyframe's answer, in the order in which they came.

    Raises:
        UserError: a setting is out of range.
    """

    def __init__(
        self,
        *,
        encoder: Encoder,
        worker: VisionWorker,
        keyframes: KeyframeFilter | None = None,
        knowledge: KnowledgeBase | None = None,
        short: ShortTermMemory | None = None,
        text_query: TextQuery = "skills",
        thresholds: dict[str, float] | None = None,
        threshold: float = 0.23,
        k: int = 10,
        weight: float = 0.5,
        every: int = 1,
        ban_ticks: int = 600,
        likeness: Literal["words", "encoder"] = "words",
        likeness_threshold: float = 0.6,
        keep_pictures: bool = False,
    ) -> None:
        super().__init__(
            encoder=encoder,
            short=short,
            text_query=text_query,
            thresholds=thresholds,
            threshold=threshold,
            k=k,
            every=every,
            ban_ticks=ban_ticks,
        )
        if not 0 <= weight <= 1 or not 0 <= likeness_threshold <= 1:
            raise UserError("memory.weight and memory.likeness_threshold must be between 0 and 1.")
        if likeness not in ("words", "encoder"):
            raise UserError(f"memory.likeness={likeness} is not possible; choose one of: words, encoder.")
        self.worker, self.keyframes = worker, keyframes or KeyframeFilter()
        self.knowledge, self.weight, self.keep_pictures = knowledge or KnowledgeBase(), weight, keep_pictures
        self.likeness, self.likeness_threshold = likeness, likeness_threshold
        self._alike: Similarity = EncoderSimilarity(encoder) if likeness == "encoder" else word_similarity
        self._known: dict[tuple[str, str, str], float] = {}
        self.records: dict[int, Record] = {}
        self.labels: list[tuple[str, str, Record]] = []
        self._shown: dict[tuple[str, str], list[Record]] = {}
        self.answers: list[Grounded] = []

    def _parts(self, world: object) -> dict[str, Any]:
        return {**super()._parts(world), "worker": self.worker.fresh(world), "keyframes": self.keyframes.fresh()}

    # ------------------------------------------------------------------------------------------------------- protocol

    def observe(self, frame: Frame) -> None:
        """Take in the answers that are there, remember the frame, and hand it to the worker if it is a keyframe."""
        self._take_in(self.worker.poll(frame.tick))
        super().observe(frame)

    def candidates(self, subtask: Subtask, frame: Frame) -> list[Opportunity]:
        """See `Memory.candidates`: both pathways merged and ranked by eq. 6."""
        both = [*self._visual(subtask, frame), *self._semantic(subtask, frame)]
        return rank(both, subtask.target, frame.pose, self.weight, self.k)

    async def pace(self, frame: Frame) -> None:
        """Wait for answers that are due by now in game time."""
        await self.worker.pace(frame.tick)

    async def settle(self) -> None:
        """Send the last keyframes and take in all answers."""
        self._take_in(await self.worker.settle(self.tick))
        if not self.keep_pictures:
            for record in self.records.values():  # those of requests that failed
                record.picture = None

    def close(self) -> None:
        """Cancel open requests."""
        self.worker.close()

    def statistics(self) -> dict[str, Any]:
        """See `Memory.statistics`; failures of the vision model are counted under "failures"."""
        selected = {f"keyframes_{why}": count for why, count in self.keyframes.counts.items()}
        return {**super().statistics(), **selected, **self.worker.statistics(), "labels": len(self.labels)}

    # --------------------------------------------------------------------------------------------------------- inside

    def _taken(self, number: int, frame: Frame) -> None:
        image, embedding = frame.image, self._embedding
        if image is not None and self.keyframes.wants(image, embedding, frame.pose, frame.tick, self.short.founded):
            record = Record(number, embedding, frame.pose, frame.tick, image)
            self.records[number] = record
            self.worker.submit(record, frame.tick)

    def _take_in(self, answers: list[Answer]) -> None:
        for answer in answers:
            for record, content in by_keyframe(answer.content, answer.keyframes):
                self._learn(ground(content, record, self.knowledge))
            if not self.keep_pictures:
                for record in answer.keyframes:
                    record.picture = None

    def _learn(self, found: Grounded) -> None:
        self.answers.append(found)
        self.labels += [(name, found.labels[name], found.record) for name in found.entities]
        for name in found.entities:  # the same by name: a query looks at few of them
            self._shown.setdefault((name, found.labels[name]), []).append(found.record)

    def _semantic(self, subtask: Subtask, frame: Frame) -> Iterator[Candidate]:
        text = query_text(subtask, self.text_query)
        vector, _ = self._text(subtask)
        for (name, said), records in self._shown.items():
            key = (text, name, said)
            if key not in self._known:
                self._known[key] = max(self._alike(text, name), self._alike(text, said))
            if self._known[key] < self.likeness_threshold:
                continue
            for record in records:
                if self.bans.allows(subtask.target, record.pose, record.tick):
                    similarity = float(record.embedding @ vector)
                    yield Candidate(record.id, record.pose, record.tick, similarity, 0.0, name, likeness=self._known[key])


class SaegMemory(LabelMemory):
    """The full memory of WISE: M_short and the Semantic Affordance Event Graph.

    Args:
        encoder: see `LabelMemory`, as all others but the last.
        worker: asks the vision model.
        keyframes: chooses what it gets.
        knowledge: names and facts.
        short: M_short.
        text_query: see `FeatureMemory`.
        thresholds: by target.
        threshold: of pictures.
        k: candidates.
        weight: lambda_ret of eq. 6.
        every: ticks.
        ban_ticks: ticks.
        keep_pictures: of keyframes.
        merge_radius: see `AffordanceGraph`.
        landmarks: follow co-occurrence edges as well: where nothing affords the task, offer things of kinds that were seen
            together with what would. The paper says that these edges "help retrieve nearby resources or landmarks" and gives
            no rule.

    Attributes:
        graph: M_SAEG in its latest version.
    """

    def __init__(
        self,
        *,
        encoder: Encoder,
        worker: VisionWorker,
        keyframes: KeyframeFilter | None = None,
        knowledge: KnowledgeBase | None = None,
        short: ShortTermMemory | None = None,
        text_query: TextQuery = "skills",
        thresholds: dict[str, float] | None = None,
        threshold: float = 0.23,
        k: int = 10,
        weight: float = 0.5,
        every: int = 1,
        ban_ticks: int = 600,
        keep_pictures: bool = False,
        merge_radius: float = 6.0,
        landmarks: bool = False,
    ) -> None:
        super().__init__(
            encoder=encoder,
            worker=worker,
            keyframes=keyframes,
            knowledge=knowledge,
            short=short,
            text_query=text_query,
            thresholds=thresholds,
            threshold=threshold,
            k=k,
            weight=weight,
            every=every,
            ban_ticks=ban_ticks,
            keep_pictures=keep_pictures,
        )
        self.graph = AffordanceGraph(self.knowledge, merge_radius)
        self.merge_radius, self.landmarks = merge_radius, landmarks

    def forget(self, opportunity: Opportunity) -> None:
        """Leave the place alone for a while; the instances there that were to give the target leave the graph."""
        super().forget(opportunity)
        for one in self.graph.affording(opportunity.target):
            if one.pose.distance(opportunity.x, opportunity.z) < self.merge_radius:
                self.graph.remove(one.node)

    def statistics(self) -> dict[str, Any]:
        """See `Memory.statistics`."""
        return {**super().statistics(), **self.graph.statistics()}

    def _learn(self, found: Grounded) -> None:
        super()._learn(found)
        self.graph.insert(found)

    def _visual(self, subtask: Subtask, frame: Frame) -> Iterator[Candidate]:
        """C_short with AffordanceMatch: a frame matches if the graph links something seen in its place cluster to the task."""
        linked = {self.short.place(one.pose): one for one in self.graph.affording(subtask.target) if one.relation}
        for seen in super()._visual(subtask, frame):
            one = linked.get(self.short.place(seen.pose))
            yield seen if one is None else seen.linked(one.name, one.relation)

    def _semantic(self, subtask: Subtask, frame: Frame) -> Iterator[Candidate]:
        """C_SAEG: from the resource along incoming affordance edges to the instances; without any, along co-occurrences."""
        found = False
        for one in self._affording(subtask, frame):
            found = True
            yield one
        if self.landmarks and not found:
            yield from self._beside(subtask)

    def _beside(self, subtask: Subtask) -> Iterator[Candidate]:
        """By CO_OCCURS_WITH. No affordance: eq. 6 has only their likeness to the task to go by."""
        vector, _ = self._text(subtask)
        for one, _ in self.graph.landmarks(subtask.target)[: self.k]:
            record = self.records.get(one.record)
            if record is not None and self.bans.allows(subtask.target, one.pose, one.tick):
                similarity = float(record.embedding @ vector)
                yield Candidate(one.record, one.pose, one.tick, similarity, entity=one.name, relation=CO_OCCURS)

    def _affording(self, subtask: Subtask, frame: Frame) -> Iterator[Candidate]:
        vector, _ = self._text(subtask)
        for one in self.graph.affording(subtask.target):
            record = self.records.get(one.record)
            if record is None or not self.bans.allows(subtask.target, one.pose, one.tick):
                continue
            similarity = float(record.embedding @ vector)
            # Seen from here, this way, not long ago: it is what is in view.
            here = same_view(one.pose, frame.pose, self.merge_radius, 35.0)
            in_view = here and frame.tick - one.tick <= self.keyframes.window
            plain = Candidate(one.record, one.pose, one.tick, similarity, entity=one.name, in_view=in_view)
            yield plain.linked(one.name, one.relation) if one.relation else plain
