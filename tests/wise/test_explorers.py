import numpy as np
import pytest

from agentexp.errors import UserError
from agentexp.wise.core import Explorer, Frame, Pose
from agentexp.wise.coverage import coverage
from agentexp.wise.explore.count_based import CountBased
from agentexp.wise.explore.escape import Escape
from agentexp.wise.explore.sweep import Sweep
from agentexp.wise.explore.walk import Walk
from agentexp.wise.explore.wise import TIERS, WiseExplorer
from agentexp.wise.explore_task import explore
from agentexp.wise.measure import METHODS, explorer, measure, summary, table
from agentexp.wise.navigate import Navigator
from agentexp.wise.worlds.flat import FlatWorld


@pytest.mark.parametrize("method", METHODS)
def test_every_method_explores_and_is_deterministic(method: str) -> None:
    assert isinstance(explorer(method), object)
    first, again = [explore(FlatWorld(size=48), explorer(method), 5, 250) for _ in range(2)]
    assert np.array_equal(first.path, again.path) and np.array_equal(first.curve, again.curve)
    assert (np.diff(first.curve) >= 0).all()
    assert first.curve[-1] == first.seen.seen.sum() > first.curve[0]
    steps = np.hypot(*np.diff(first.path, axis=0).T)
    assert steps.max() <= 1 + 1e-4


def test_a_used_explorer_starts_afresh() -> None:
    used: Explorer = WiseExplorer()
    explore(FlatWorld(size=64, obstacles="rooms"), used, 1, 200)
    again = explore(FlatWorld(size=48), used, 5, 200)
    assert np.array_equal(again.path, explore(FlatWorld(size=48), WiseExplorer(), 5, 200).path)


@pytest.mark.parametrize("tiers", TIERS)
@pytest.mark.parametrize("kind", ["none", "rooms", "mixed"])
def test_wise_heads_for_unseen_cells_and_sees_everything(tiers: str, kind: str) -> None:
    world = FlatWorld(size=48, origin=[-20, 7], obstacles=kind, spawn="random")  # type: ignore[arg-type]
    wise = WiseExplorer(tiers=tiers)  # type: ignore[arg-type]
    navigator = Navigator()
    frame = world.reset(4)
    wise.reset(world.size, world.origin, 4)
    navigator.reset(world.size, world.origin)
    goal = None
    for _ in range(2500):
        wise.observe(frame)
        goal = wise.goal(frame)
        if goal is None:
            break
        if goal.tier != "escape":
            cell = wise.seen.cell(goal.x, goal.z)
            assert wise.seen.wanted[cell] and not wise.seen.seen[cell]
        frame = world.act(navigator.towards(frame, goal.x, goal.z))
    assert goal is None
    missed = world.truth()["observable"] & ~wise.seen.seen
    assert missed.mean() < 0.01
    for level, counts in enumerate(wise.tree.counts):
        assert counts.sum() == wise.seen.left == 0, level


def test_wise_rejects_unknown_tiers() -> None:
    with pytest.raises(UserError, match="tiers"):
        WiseExplorer(tiers="local")  # type: ignore[arg-type]
    with pytest.raises(UserError, match="choose one of"):
        explorer("frontier")


# ------------------------------------------------------------------------------------------------------------------ escape


def still(escape: Escape, ticks: range) -> None:
    for tick in ticks:
        escape.observe(Pose(3.0 + tick % 2, 0, 3), tick)


def test_stagnation_needs_a_whole_window() -> None:
    escape = Escape()
    for tick in range(600):
        escape.observe(Pose(3, 0, 3), tick)
        assert escape.stagnant == (tick >= 599)
    escape.observe(Pose(9, 0, 3), 600)
    assert not escape.stagnant


def test_escapes_escalate_on_the_same_target_only() -> None:
    escape = Escape()
    assert [escape.failed(10, 10), escape.failed(50, 50), escape.failed(12, 9), escape.failed(10, 11)] == [
        "replan",
        "replan",
        "reset",
        "rollback",
    ]
    assert escape.counts == {"replan": 2, "reset": 1, "rollback": 1}


def test_an_agent_that_cannot_move_replans_and_ends() -> None:
    wise = WiseExplorer(local_every=1)
    wise.reset(32, (0, 0), 0)
    pose, stages = Pose(16.5, 0, 16.5), set()
    for tick in range(20_000):
        wise.observe(Frame(tick, pose))
        if wise.goal(Frame(tick, pose)) is None:
            break
        stages |= {name for name, count in wise.escape.counts.items() if count}
    assert stages == {"replan", "reset", "rollback"}


def test_time_spent_on_something_else_is_no_failure() -> None:
    for agent in (WiseExplorer(), CountBased(), Sweep()):
        agent.reset(64, (0, 0), 0)
        world = FlatWorld(size=64)
        first = world.reset(0)
        agent.observe(first)
        assert agent.goal(first) is not None
        for tick in range(1, 3000):
            agent.observe(Frame(tick, first.pose, cells=first.cells))
        assert agent.goal(Frame(3000, first.pose, cells=first.cells)) is not None
    wise = WiseExplorer()
    wise.reset(64, (0, 0), 0)
    for tick in (0, 3000):
        wise.observe(Frame(tick, first.pose, cells=first.cells))
        assert wise.goal(Frame(tick, first.pose)) is not None
    assert not any(wise.escape.counts.values()) and not wise.seen.given_up.any()


def test_ground_stood_on_counts_as_seen() -> None:
    wise = WiseExplorer()
    wise.reset(32, (0, 0), 0)
    wise.observe(Frame(0, Pose(3.5, 0, 4.5)))
    assert wise.seen.seen[3, 4] and wise.seen.left == wise.tree.counts[0].sum() == 1023
    wise.observe(Frame(1, Pose(-3.5, 0, 4.5)))
    assert wise.seen.left == 1023


# --------------------------------------------------------------------------------------------------------------- baselines


def frame(x: float, z: float, yaw: float = 0.0, tick: int = 0) -> Frame:
    return Frame(tick, Pose(x, 64, z, yaw))


def test_mrsteve_cuts_its_map_into_patches_of_15() -> None:
    agent = CountBased()
    agent.reset(128, (0, 0), 0)
    assert agent.patches().shape == (7, 7)
    agent.reset(384, (0, 0), 0)
    assert agent.patches().shape == (24, 24)


def test_mrsteve_heads_for_the_nearest_untouched_patch() -> None:
    agent = CountBased()
    agent.reset(128, (0, 0), 0)
    agent.observe(frame(64.5, 64.5))
    goal = agent.goal(frame(64.5, 64.5))
    assert goal is not None
    patch = np.array([goal.x, goal.z]) - 64.5 + 64
    assert (patch % 15 == 0).all()
    untouched = np.argwhere(agent.patches() == 0)
    far = np.hypot(*(untouched - 3).T)
    assert np.hypot(*(patch / 15 - 1 - 3)) == pytest.approx(far.min())


def test_mrsteve_keeps_a_goal_until_it_is_near_or_2000_ticks_have_passed() -> None:
    agent = CountBased()
    agent.reset(128, (0, 0), 0)
    agent.observe(frame(64.5, 64.5))
    goal = agent.goal(frame(64.5, 64.5))
    assert goal is not None
    for _ in range(2000):
        assert agent.goal(frame(64.5, 64.5)) == goal
    agent.goal(frame(64.5, 64.5))
    assert sum(agent.statistics()["decisions"].values()) == 2
    assert agent.goal(frame(goal.x + 2.5, goal.z)) is not None


def test_mrsteve_repeats_the_patch_with_the_fewest_cells_once_none_is_untouched() -> None:
    agent = CountBased()
    agent.reset(128, (0, 0), 0)
    agent.observe(frame(64.5, 64.5))
    agent.map[7:-7, 7:-7] = True
    agent.map[7 + 15 : 7 + 28, 7 + 30 : 7 + 45] = False
    goal = agent.goal(frame(64.5, 64.5))
    assert goal is not None and (goal.x, goal.z) == (30 + 0.5, 45 + 0.5)
    assert agent.statistics()["decisions"] == {"fewest": 1}


def test_walk_idles_its_share() -> None:
    walk = Walk(idle=0.6)
    episode = explore(FlatWorld(size=64), walk, 0, 1000)
    moved = np.hypot(*np.diff(episode.path, axis=0).T) > 0.5
    assert moved.mean() == pytest.approx(0.4, abs=0.06)


def test_sweep_sees_everything_on_open_ground() -> None:
    episode = explore(FlatWorld(size=64), Sweep(), 0, 2000, Navigator(walk_within=20))
    assert episode.coverage.final > 0.99
    assert episode.steps < 700


# ----------------------------------------------------------------------------------------------------------------- numbers


def test_coverage_numbers() -> None:
    numbers = coverage([0, 50, 90, 99, 100], 100, budget=10, marks=(1, 3, 20))
    assert numbers.marks == {1: 0.5, 3: 0.99}
    assert (numbers.t90, numbers.t99, numbers.final) == (2, 3, 1.0)
    assert numbers.auc == pytest.approx((0.5 + 0.9 + 0.99 + 7) / 10)
    assert numbers.rate == pytest.approx(100)
    never = coverage([0, 10], 100, budget=1)
    assert never.t90 is None and never.t99 is None


def test_summaries_do_not_average_over_episodes_that_failed() -> None:
    records = measure("wise", 48, range(2), budget=400)
    assert summary(records)["t90"] is not None
    records[0]["t99"] = None
    assert summary(records)["t99"] is None
    assert "reached by" in table(records)
    assert table(records, records).count("\n") == 3


def test_records_are_json() -> None:
    import json

    (record,) = measure("mrsteve", 48, [1], budget=50)
    assert json.loads(json.dumps(record))["method"] == "mrsteve"


def test_pictures(tmp_path) -> None:  # type: ignore[no-untyped-def]
    pytest.importorskip("matplotlib")
    from agentexp.wise.pictures import curves, trajectories

    episode = explore(FlatWorld(size=48, obstacles="mixed"), WiseExplorer(), 0, 100)
    for path in (trajectories({"wise": episode}, tmp_path / "a.png"), curves({"wise": [episode]}, tmp_path / "b.svg")):
        assert path.stat().st_size > 1000


# ----------------------------------------------------------------------------------------------------------------- targets


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_128_published_and_beyond() -> None:
    wise, mrsteve = summary(measure("wise", 128)), summary(measure("mrsteve", 128))
    assert wise["final"][0] >= 0.99
    assert wise["t90"][0] <= 1150 and wise["t99"][0] <= 1950
    assert wise["decision_cpu_ms_p99"] < 5
    assert 0.60 <= mrsteve["final"][0] <= 0.65


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_384_published_and_beyond() -> None:
    wise, mrsteve = summary(measure("wise", 384)), summary(measure("mrsteve", 384, range(3)))
    assert wise["final"][0] >= 0.99
    assert wise["t99"][0] <= 16_200
    assert wise["decision_cpu_ms_p99"] < 5
    assert 0.79 <= mrsteve["final"][0] <= 0.82
