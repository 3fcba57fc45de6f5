"""CPU time of WISE's control step with 10,000 stored frames: memory, candidates, scheduler, explorer, way to the goal.

    python scripts/bench_wise.py [--out bench_wise.json] [--frames 10000] [--steps 1000]

A whole step of `WiseAgent.decide` as in an episode: three pending subtasks, a graph of about 100 instances, a map of
128 x 128 that is partly explored. The world, the rendering and the vision model are not in it. The memory is filled
with frames on a walk through the map; their pictures are drawn, so that encoder, clusters and keyframes do their work.
Times are of this thread (CPU), since the machine may be busy; the tick of Minecraft is 50 ms. Two floors, measured in
the same run: encoding one picture, and one product of all stored vectors with the three texts, the least that a memory
without an index would have to do.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agentexp.wise.agent import WiseAgent
from agentexp.wise.core import Control, Frame, Pose, Record, Subtask
from agentexp.wise.encoders import ConceptEncoder, fit
from agentexp.wise.explore.clock import spread
from agentexp.wise.explore.wise import WiseExplorer
from agentexp.wise.knowledge import KnowledgeBase
from agentexp.wise.memory.grounding import ground
from agentexp.wise.memory.labelled import SaegMemory
from agentexp.wise.navigate import Navigator
from agentexp.wise.scheduler import OpportunisticScheduler
from agentexp.wise.seen import FieldOfView
from agentexp.wise.tasks import Progress, abc_sparse
from agentexp.wise.vlm.worker import VisionWorker

SIZE = 128
THINGS = ("cow", "log", "water", "sheep", "sand")
COLOURS = {"cow": (70, 45, 30), "log": (90, 70, 40), "water": (40, 70, 200), "sheep": (230, 230, 230), "sand": (220, 210, 160)}


def draw(rng: np.random.Generator, shown: list[str]) -> NDArray[np.uint8]:
    """A landscape of 64 x 32 with patches of colour for what it shows."""
    image = np.empty((32, 64, 3), np.uint8)
    image[:16], image[16:] = (130, 170, 240), (90, 150, 60)
    for name in shown:
        x, y, side = int(rng.integers(0, 50)), int(rng.integers(10, 24)), int(rng.integers(3, 10))
        image[y : y + side, x : x + side] = COLOURS[name]
    return (image + rng.integers(-12, 13, image.shape)).clip(0, 255).astype(np.uint8)


def encoder(rng: np.random.Generator) -> ConceptEncoder:
    """One fitted on such landscapes."""
    shown = [[name for name in THINGS if rng.random() < 0.3] for _ in range(600)]
    return ConceptEncoder.of(fit([draw(rng, names) for names in shown], shown, list(THINGS)))


class Nobody:
    """A vision model that is never asked: the graph is filled by hand."""

    def label_now(self, keyframes: Sequence[Record]) -> dict[str, Any]:
        """Nothing on every keyframe."""
        return {"frames": []}

    async def label(self, keyframes: Sequence[Record]) -> dict[str, Any]:
        """As `label_now`."""
        return self.label_now(keyframes)


class Walker:
    """The way to a goal; executing is the world's business."""

    def __init__(self) -> None:
        self._walk = Navigator(9.0)

    def reset(self, size: int, origin: tuple[int, int]) -> None:
        """Begin."""
        self._walk.reset(size, origin)

    def navigate(self, frame: Frame, x: float, z: float) -> Control:
        """See `Controller`."""
        return self._walk.towards(frame, x, z)

    def execute(self, frame: Frame, subtask: Subtask) -> Control:
        """See `Controller`."""
        return Control(attack=True)


class Ground:
    """What the agent asks of a world at the start."""

    size, origin = SIZE, (0, 0)


def frames(count: int, first: int, rng: np.random.Generator, start: Pose) -> list[Frame]:
    """A walk of 0.2 blocks a tick with slow turns; every picture is another one."""
    view, pose, found = FieldOfView(), start, []
    for tick in range(first, first + count):
        yaw = (pose.yaw + rng.normal(0, 4)) % 360
        x = float(np.clip(pose.x - np.sin(np.deg2rad(yaw)) * 0.2, 2, SIZE - 2))
        z = float(np.clip(pose.z + np.cos(np.deg2rad(yaw)) * 0.2, 2, SIZE - 2))
        if not (2 < x < SIZE - 2 and 2 < z < SIZE - 2):
            yaw = (yaw + 150) % 360
        pose = Pose(x, 64.0, z, yaw)
        cells = view.offsets(x, z, yaw) + np.array(pose.cell, np.int32)
        cells = cells[((cells >= 0) & (cells < SIZE)).all(axis=1)]
        shown = [name for name in THINGS if rng.random() < 0.1]
        found.append(Frame(tick, pose, draw(rng, shown), cells))
    return found


def bench(stored: int, steps: int) -> dict[str, Any]:
    """Fill the memory, then time the steps."""
    rng = np.random.default_rng(0)
    seeing = encoder(rng)
    agent = WiseAgent(
        memory=SaegMemory(encoder=seeing, worker=VisionWorker(Nobody())),
        explorer=WiseExplorer(speed=0.2, turn_per_step=9.0),
        scheduler=OpportunisticScheduler(),
        controller=Walker(),
        schedule_every=1,
    )
    agent.reset(Ground(), 0)
    memory = agent.memory
    assert isinstance(memory, SaegMemory)
    walk = frames(stored, 0, rng, Pose(64, 64, 64))
    progress = Progress(abc_sparse(), walk[0])
    for frame in walk:
        agent.decide(frame, progress)
    fill(memory, rng)
    # The steps that count begin here.
    agent._steps.seconds.clear()
    agent._steps.cpu.clear()
    cpu: list[float] = []
    for frame in frames(steps, stored, rng, walk[-1].pose):
        agent.active = agent.target = None  # every step chooses: candidates of all subtasks, priorities
        begun = time.thread_time()
        agent.decide(frame, progress)
        cpu.append(time.thread_time() - begun)
    texts = np.stack([seeing.text(text) for text in ("near water", "near tree", "near cow")])
    vectors = rng.normal(size=(stored, seeing.dimension)).astype(np.float32)
    image = walk[-1].image
    assert image is not None
    floor = spread(timed(lambda: float((vectors @ texts.T).max()), steps))
    encoding = spread(timed(lambda: float(seeing.picture(image)[0]), steps))
    ours = spread(cpu)
    return {
        "stored_frames": len(memory.short),
        "event_clusters": memory.statistics().get("clusters"),
        "graph_nodes": memory.graph.statistics()["nodes"],
        "step_cpu_ms": ours,
        "floor_products_cpu_ms": floor,
        "floor_encoding_cpu_ms": encoding,
        "ratio_to_floors": round(ours["p50"] / (floor["p50"] + encoding["p50"]), 2),
        "share_of_tick_p99": round(ours["p99"] / 50, 4),
        "versions": {"python": platform.python_version(), "numpy": np.__version__},
    }


def fill(memory: SaegMemory, rng: np.random.Generator) -> None:
    """About a hundred instances, as after an episode."""
    knowledge = KnowledgeBase()
    records = list(memory.records.values())
    for record in records[:: max(1, len(records) // 150)][:150]:
        names = [str(rng.choice(THINGS))]
        facts = [fact for name in names for fact in knowledge.outcomes(name)][:3]
        said = [{"source": fact.source, "relation": fact.relation, "target": fact.target} for fact in facts]
        memory._learn(ground({"entities": names, "affordances": said}, record, knowledge))


def timed(what: Any, times: int) -> list[float]:
    """CPU seconds of each call."""
    found = []
    for _ in range(times):
        begun = time.thread_time()
        what()
        found.append(time.thread_time() - begun)
    return found


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("bench_wise.json"))
    parser.add_argument("--frames", type=int, default=10_000, help="stored before the steps that are timed")
    parser.add_argument("--steps", type=int, default=1000)
    args = parser.parse_args()
    results = bench(args.frames, args.steps)
    args.out.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    for name, value in results.items():
        print(f"{name:<24}{value}")
    print(f"Written to {args.out}")


if __name__ == "__main__":
    main()
