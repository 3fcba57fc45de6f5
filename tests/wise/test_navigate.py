from itertools import pairwise

import numpy as np
import pytest

from agentexp.wise.core import Frame, Pose
from agentexp.wise.navigate import Navigator, astar, bearing
from agentexp.wise.worlds.flat import FlatWorld


def test_bearing_is_the_turn_to_the_left_or_right() -> None:
    here = Pose(0, 0, 0, yaw=0)
    assert bearing(here, 0, 5) == pytest.approx(0)
    assert bearing(here, -5, 0) == pytest.approx(90)
    assert bearing(here, 5, 0) == pytest.approx(-90)
    assert bearing(here._replace(yaw=350), -5, 0) == pytest.approx(100)


def length(path: list[tuple[int, int]], start: tuple[int, int]) -> float:
    cells = [start, *path]
    return sum(np.hypot(a - c, b - d) for (a, b), (c, d) in pairwise(cells))


def test_astar_finds_shortest_ways() -> None:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import dijkstra

    rng = np.random.default_rng(5)
    for _ in range(10):
        blocked = rng.random((15, 15)) < 0.3
        blocked[0, 0] = blocked[14, 14] = False
        edges = []
        for i, j in np.argwhere(~blocked):
            for di in (-1, 0, 1):
                for dj in (-1, 0, 1):
                    a, b = i + di, j + dj
                    if (di or dj) and 0 <= a < 15 and 0 <= b < 15 and not (blocked[a, b] or blocked[i, b] or blocked[a, j]):
                        edges.append((i * 15 + j, a * 15 + b, np.hypot(di, dj)))
        rows, columns, costs = zip(*edges, strict=True)
        best = dijkstra(coo_array((costs, (rows, columns)), shape=(225, 225)).tocsr(), indices=0)[224]
        path, found = astar(blocked, (0, 0), (14, 14))
        assert found == np.isfinite(best)
        if found:
            assert length(path, (0, 0)) == pytest.approx(best)
            assert not any(blocked[cell] for cell in path)


def test_unreachable_goal_leads_as_near_as_possible() -> None:
    blocked = np.zeros((20, 20), bool)
    blocked[:, 10] = True
    path, found = astar(blocked, (5, 0), (5, 15))
    assert not found
    assert path[-1] == (5, 9)


@pytest.mark.parametrize("turn", [30.0, None])
def test_it_arrives_on_open_ground(turn: float | None) -> None:
    world = FlatWorld(turn_per_step=turn)
    navigator = Navigator(turn)
    rng = np.random.default_rng(0)
    frame = world.reset(0)
    navigator.reset(128, (0, 0))
    for _ in range(20):
        x, z = rng.uniform(2, 126, 2)
        allowed = int(frame.pose.distance(x, z)) + 20
        for _ in range(allowed):
            frame = world.act(navigator.towards(frame, x, z))
            if frame.pose.distance(x, z) < 0.5:
                break
        assert frame.pose.distance(x, z) < 0.5


def test_it_gets_out_of_a_room() -> None:
    world = FlatWorld(size=64, obstacles="rooms", density=3)
    passable, seed = None, -1
    while passable is None or not passable[60, 60] or not world.truth()["observable"][60, 60]:
        seed += 1
        frame = world.reset(seed)
        passable = world.truth()["passable"]
    navigator = Navigator()
    navigator.reset(64, (0, 0))
    for _ in range(1500):
        frame = world.act(navigator.towards(frame, 60.5, 60.5))
        if frame.pose.cell == (60, 60):
            break
    assert frame.pose.cell == (60, 60)


def test_it_stands_at_the_goal() -> None:
    navigator = Navigator()
    navigator.reset(128, (0, 0))
    control = navigator.towards(Frame(0, Pose(3.5, 0, 3.5)), 3.5, 3.5)
    assert control.forward == 0 and control.turn == 0
