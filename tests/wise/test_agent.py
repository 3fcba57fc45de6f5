"""The agent's loop in a small world: modes, preemption, giving up, places, and that it never waits for a vision model."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

pytest.importorskip("numpy", reason="needs the extra wise")
pytest.importorskip("networkx", reason="needs the extra wise")

from wise_helpers import AxisEncoder, ScriptedVision
from wise_world import SmallHands, SmallWorld

from agentexp.errors import EngineError, ModelError, UserError
from agentexp.wise.agent import WiseAgent
from agentexp.wise.episode import Trial, play
from agentexp.wise.explore.count_based import CountBased
from agentexp.wise.explore.wise import WiseExplorer
from agentexp.wise.memory.glance import GlanceMemory
from agentexp.wise.memory.keyframes import KeyframeFilter
from agentexp.wise.memory.labelled import SaegMemory
from agentexp.wise.memory.memories import FeatureMemory, MrSteveMemory, NoMemory
from agentexp.wise.scheduler import FixedOrder, OpportunisticScheduler
from agentexp.wise.tasks import SparseTask, aba_sparse, abc_sparse, mixed5
from agentexp.wise.vlm.simulated import SimulatedVision
from agentexp.wise.vlm.worker import VisionWorker

THINGS: list[list[Any]] = [["water", 10, 10], ["tree", 40, 12], ["tree", 42, 14], ["sheep", 8, 40], ["sand", 40, 40]]


def agent(memory: Any = None, scheduler: Any = None, explorer: Any = None, **settings: Any) -> WiseAgent:
    memory = memory or FeatureMemory(encoder=AxisEncoder(), threshold=0.5)
    return WiseAgent(
        memory=memory,
        explorer=explorer or WiseExplorer(),
        scheduler=scheduler or OpportunisticScheduler(d_max=68),
        controller=SmallHands(),
        speed=1.0,
        execute_ticks=60,
        **settings,
    )


def saeg(vision: Any = None, **worker: Any) -> SaegMemory:
    worker = {"batch": 4, "flush_ticks": 20, "latency_ticks": 5, **worker}
    return SaegMemory(
        encoder=AxisEncoder(),
        threshold=0.5,
        worker=VisionWorker(vision or SimulatedVision(false_names=0.0), **worker),
        keyframes=KeyframeFilter(every=5),
    )


def run(
    who: WiseAgent, task: SparseTask | None = None, seed: int = 0, budget: int = 1500, **world: Any
) -> tuple[dict[str, Any], SmallWorld]:
    place = SmallWorld(**{"things": THINGS, **world})
    who.controller.world = place  # type: ignore[attr-defined]
    return play(place, task or abc_sparse(spawn_tick=30, spawn_within=10), who, seed, budget), place


@pytest.mark.parametrize("memory", [None, "saeg", "mrsteve", "glance"])
@pytest.mark.parametrize("fixed", [True, False])
def test_every_method_does_the_task_where_it_is_easy(memory: str | None, fixed: bool) -> None:
    made = {
        None: None,
        "saeg": saeg(),
        "mrsteve": MrSteveMemory(encoder=AxisEncoder(), threshold=0.5),
        "glance": GlanceMemory(encoder=AxisEncoder(), threshold=0.5),
    }[memory]
    record, _ = run(agent(made, FixedOrder() if fixed else None))
    assert record["success"], record["done"]
    ticks = [row["tick"] for row in record["done"]]
    assert max(ticks) == record["steps"]
    if fixed:
        assert ticks == sorted(ticks)
    assert sum(record["agent"]["mode_share"].values()) == pytest.approx(1)
    assert [event["name"] for event in record["events"]] == ["cow", "cow"]
    assert record["agent"]["step_cpu_ms"]["p99"] < 50


def test_without_memory_nothing_is_executed() -> None:
    record, _ = run(agent(NoMemory()), budget=300)
    assert not record["success"] and record["agent"]["mode_share"]["explore"] == 1
    assert record["steps"] == 300 and record["coverage"]["final"] > 0.8


def test_the_scheduler_takes_what_appears_on_the_way_and_the_fixed_order_does_not() -> None:
    # Cows beside the agent from tick 30 on; water and logs are far away.
    task = abc_sparse(spawn_tick=30, spawn_within=6)
    taken, _ = run(agent(saeg()), task)
    waited, _ = run(agent(saeg(), FixedOrder()), task)
    beef = [record["done"][2]["tick"] for record in (taken, waited)]
    assert beef[0] < taken["steps"] <= waited["steps"] == beef[1]
    assert taken["agent"]["counts"]["preemptions"] >= 1
    assert "preemptions" not in waited["agent"]["counts"]


def test_what_is_being_worked_on_is_not_dropped_for_what_is_not_known() -> None:
    # Without affordances beef, third in the queue and in view, is worth just as much as water that was never seen.
    things: list[list[Any]] = [["cow", 24, 33], ["cow", 14, 24], ["cow", 34, 24], ["cow", 24, 14]]
    for seed in range(4):
        record, _ = run(agent(), abc_sparse(spawn_count=0), seed, 60, things=things)
        assert record["agent"]["counts"].get("preemptions", 0) <= 2, record["agent"]["counts"]


def test_opportunities_may_go_away() -> None:
    class Leaving(SmallWorld):
        def command(self, text: str, **values: Any) -> None:
            assert values.pop("stay") == 40

    place = Leaving(things=THINGS)
    who = agent(saeg())
    who.controller.world = place  # type: ignore[attr-defined]
    record = play(place, abc_sparse(spawn_stays=40), who, 0, 600)
    assert not record["success"] and record["done"][2]["tick"] is None


def test_going_back_needs_the_place_and_not_the_thing() -> None:
    pools: list[list[Any]] = [["water", 10, 10], ["water", 38, 38], ["tree", 40, 34]]
    task = aba_sparse(return_radius=4)
    for seed in range(4):
        record, _ = run(agent(saeg(), FixedOrder()), task, seed, things=pools)
        assert record["success"], record["done"]
        first, _, back = record["done"]
        assert ((first["x"] - back["x"]) ** 2 + (first["z"] - back["z"]) ** 2) ** 0.5 <= 4.3
        assert record["returned"] == back["tick"] - record["done"][1]["tick"]


def test_a_place_that_leads_to_nothing_is_forgotten() -> None:
    class Vanishing(SmallWorld):
        def act(self, control: Any) -> Any:
            if self.tick == 60:
                self.things = [thing for thing in self.things if thing[0] != "water"]
            return super().act(control)

    place = Vanishing(things=[["water", 24, 34], ["tree", 44, 4]])
    who = agent(FeatureMemory(encoder=AxisEncoder(), threshold=0.5), FixedOrder())
    who.controller.world = place  # type: ignore[attr-defined]
    task = abc_sparse(order=["log", "water_bucket"], spawn_count=0)
    record = play(place, task, who, 3, 900)
    assert record["agent"]["counts"]["forgotten"] >= 1 and not record["success"]


def test_what_was_never_seen_is_looked_for_again() -> None:
    record, _ = run(agent(), abc_sparse(order=["beef"], spawn_tick=900, spawn_within=60), budget=2000)
    assert record["success"] and record["agent"]["counts"]["passes"] >= 1


def test_ticks_go_on_while_labels_are_pending() -> None:
    """Answers take a second each; 400 ticks do not wait for them, and those that never come are counted as failures."""
    vision = ScriptedVision(delay=1.0)
    memory = saeg(vision, latency_ticks=0, settle_seconds=0.01)
    place = SmallWorld(things=THINGS)
    who = agent(memory, explorer=CountBased())
    who.controller.world = place  # type: ignore[attr-defined]
    trial = Trial(place, abc_sparse(order=["beef"], spawn_count=0), who, 150)

    async def episode() -> tuple[float, dict[str, Any]]:
        trial.begin(0)
        begun = time.monotonic()
        assert await trial.advance(100) == 100
        assert await trial.advance(100) == 50 and trial.over
        spent = time.monotonic() - begun
        return spent, await trial.finish()

    spent, record = asyncio.run(episode())
    assert vision.batches and record["memory"]["answers"] == 0
    assert spent < 1.0 + 0.9  # well before the third request would have been answered one after the other
    assert len(record["vision_failures"]) == record["memory"]["requests"]


def test_a_vision_model_that_fails_is_a_note_and_not_the_end() -> None:
    dead = ScriptedVision(ModelError("connection refused"))
    record, _ = run(agent(saeg(dead)), budget=1500)
    assert record["success"]  # features are left
    assert record["memory"]["failures"] == record["memory"]["requests"] > 0
    assert "connection refused" in record["vision_failures"][0]["error"]
    assert record["memory"]["nodes"] == 0


def test_a_world_that_breaks_is_the_harness_error_it_is() -> None:
    with pytest.raises(EngineError, match="broke"):
        run(agent(), breaks_at=20)


def test_equal_seeds_give_equal_episodes() -> None:
    def told(seed: int) -> Any:
        record, _ = run(agent(saeg()), seed=seed)
        return record["steps"], record["done"], record["events"], record["coverage"]["path"]

    assert told(3) == told(3)
    assert told(3)[2] != told(4)[2]


def test_mixed5_is_five_things() -> None:
    record, _ = run(agent(saeg()), mixed5(spawn_tick=30, spawn_within=8), budget=3000)
    assert len(record["done"]) == 5 and record["success"], record["done"]


@pytest.mark.parametrize(
    ("settings", "said"),
    [({"schedule_every": 0}, "schedule_every"), ({"arrive": 0}, "arrive"), ({"margin": -1.0}, "margin")],
)
def test_wrong_settings_are_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said):
        agent(**settings)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: abc_sparse(order=["log", "log"]), "twice"),
        (lambda: abc_sparse(spawn_within=0), "spawn_within"),
        (lambda: aba_sparse(budget=0), "budget"),
    ],
)
def test_wrong_tasks_are_refused(make: Any, said: str) -> None:
    with pytest.raises(UserError, match=said):
        make()
