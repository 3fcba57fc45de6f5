import asyncio
import json
from pathlib import Path

import pytest
from wise_helpers import AxisEncoder, frame, record, said

from agentexp.wise.knowledge import KnowledgeBase
from agentexp.wise.memory.export import save_memory
from agentexp.wise.memory.graph_files import load
from agentexp.wise.memory.grounding import ground
from agentexp.wise.memory.keyframes import KeyframeFilter
from agentexp.wise.memory.labelled import LabelMemory, SaegMemory
from agentexp.wise.memory.quality import quality
from agentexp.wise.vlm.simulated import Sighting, SimulatedVision
from agentexp.wise.vlm.worker import VisionWorker

KB = KnowledgeBase()


class World:
    """Shows a cow near x = 20 and a tree everywhere."""

    x = 0.0

    def sightings(self) -> list[Sighting]:
        return [Sighting("tree", 500)] + ([Sighting("cow", 200)] if abs(self.x - 20) < 5 else [])


def episode(kind: type[LabelMemory], keep: bool = True, **vision: float) -> LabelMemory:
    world = World()
    worker = VisionWorker(SimulatedVision(**{"false_names": 0.0, **vision}), batch=2, latency_ticks=240)  # type: ignore[arg-type]
    every = KeyframeFilter(cosine_threshold=1.01)
    memory = kind(encoder=AxisEncoder(), worker=worker, keyframes=every, keep_pictures=keep).fresh(world)
    for i in range(40):
        world.x = float(i)
        memory.observe(frame(i * 20, world.x, 0, "tree", *(["cow"] if abs(world.x - 20) < 5 else [])))
    asyncio.run(memory.settle())
    return memory


def test_a_whole_episode_with_a_simulated_model_is_saved(tmp_path: Path) -> None:
    memory = episode(SaegMemory)
    assert isinstance(memory, SaegMemory)
    (cow, *_) = memory.graph.affording("beef")
    assert abs(cow.pose.x - 20) < 5
    files = save_memory(memory, tmp_path / "out")
    assert all(file.is_file() for file in files)
    rows = [json.loads(line) for line in (tmp_path / "out" / "keyframes.jsonl").read_text().splitlines()]
    assert len(rows) == len(memory.records) == len(list((tmp_path / "out" / "keyframes").iterdir()))
    assert ["cow", "CAN_OBTAIN", "beef"] in [fact for row in rows for fact in row["affordances"]]
    assert load(tmp_path / "out" / "graph.json").affording("beef") == memory.graph.affording("beef")


def test_without_a_graph_and_pictures_there_are_labels_only(tmp_path: Path) -> None:
    memory = episode(LabelMemory, keep=False)
    assert save_memory(memory, tmp_path) == [tmp_path / "keyframes.jsonl"]


@pytest.mark.parametrize(("false_names", "low", "high"), [(0.0, 1.0, 1.0), (0.5, 0.2, 0.8)])
def test_quality_is_that_of_the_simulated_model(false_names: float, low: float, high: float) -> None:
    memory = episode(SaegMemory, false_names=false_names)
    vision = memory.worker.model
    assert isinstance(vision, SimulatedVision)
    found = quality(memory.answers, vision.truth, KB)
    assert found.keyframes == len(memory.answers) > 5
    assert found.entity_precision is not None and low <= found.entity_precision <= high
    assert found.relation_precision is not None and low <= found.relation_precision <= high


def test_quality_by_hand() -> None:
    answers = [
        ground(said(1, "cow", "pig", cow="beef", pig="porkchop"), record(1), KB),
        ground(said(2), record(2), KB),
        ground(said(3, "tree"), record(3), KB),
    ]
    found = quality(answers, {1: ["cow", "pond"], 2: []}, KB)
    assert (found.keyframes, found.entity_precision, found.entity_recall, found.relation_precision) == (2, 0.5, 0.5, 0.5)
    nothing = quality(answers, {2: []}, KB)
    assert nothing.entity_precision is nothing.entity_recall is nothing.relation_precision is None
    assert quality(answers, {1: [], 2: [], 3: []}, KB, sample=2).keyframes == 2


def test_closing_cancels_what_is_open() -> None:
    from wise_helpers import ScriptedVision

    async def run() -> None:
        model = ScriptedVision(delay=30)
        memory = SaegMemory(encoder=AxisEncoder(), worker=VisionWorker(model, batch=1))
        memory.observe(frame(0, 0, 0, "cow"))
        await asyncio.sleep(0.01)
        assert model.open == 1
        memory.close()
        memory.close()
        await asyncio.sleep(0.01)
        assert model.open == 0

    asyncio.run(run())
