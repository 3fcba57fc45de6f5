from itertools import pairwise

import numpy as np
import pytest

from agentexp.errors import UserError
from agentexp.wise.core import Control, VoxelWorld
from agentexp.wise.worlds.flat import FlatWorld
from agentexp.wise.worlds.obstacles import KINDS, observable, obstacles
from agentexp.wise.worlds.sight import Sight, line


def test_is_a_voxel_world() -> None:
    assert isinstance(FlatWorld(), VoxelWorld)


def test_one_block_and_thirty_degrees_per_step() -> None:
    world = FlatWorld()
    before = world.reset(1).pose
    after = world.act(Control(forward=5.0, turn=90)).pose
    assert after.distance(before.x, before.z) == pytest.approx(1)
    assert (after.yaw - before.yaw) % 360 == pytest.approx(30)
    heading = np.deg2rad(after.yaw)
    assert (after.x - before.x, after.z - before.z) == pytest.approx((-np.sin(heading), np.cos(heading)))


def test_free_turning() -> None:
    world = FlatWorld(turn_per_step=None)
    before = world.reset(1).pose
    assert (world.act(Control(turn=170)).pose.yaw - before.yaw) % 360 == pytest.approx(170)


def test_the_agent_stays_inside_and_frames_too() -> None:
    world = FlatWorld(size=16, origin=[-100, 50])
    frame = world.reset(0)
    for step in range(200):
        frame = world.act(Control(forward=1, turn=10.0 * (step % 5)))
        assert -100 <= frame.pose.x < -84 and 50 <= frame.pose.z < 66
        assert (frame.cells >= (-100, 50)).all() and (frame.cells < (-84, 66)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_equal_seeds_make_equal_episodes(kind: str) -> None:
    def run(seed: int) -> list[object]:
        world = FlatWorld(size=64, obstacles=kind, spawn="random")  # type: ignore[arg-type]
        frames = [world.reset(seed)] + [world.act(Control(forward=1, turn=7)) for _ in range(30)]
        return [(frame.pose, frame.cells.tolist(), frame.blocked.tolist()) for frame in frames]

    assert run(3) == run(3)
    assert run(3) != run(4)


def test_nothing_is_seen_through_a_wall() -> None:
    sight = Sight(10)
    solid = np.zeros((41, 41), bool)
    solid[:, 25] = True
    offsets = np.array([[x, z] for x in range(-5, 6) for z in range(1, 9)], np.int32)
    clear = sight.clear(solid, 20, 20, offsets)
    assert clear[offsets[:, 1] <= 5].all()
    assert not clear[offsets[:, 1] > 5].any()


def test_lines_are_connected_and_exclude_their_ends() -> None:
    for x in range(-9, 10):
        for z in range(-9, 10):
            way = [(0, 0), *line(x, z), (x, z)]
            assert all(max(abs(a - c), abs(b - d)) <= 1 for (a, b), (c, d) in pairwise(way))
            assert len(line(x, z)) == max(max(abs(x), abs(z)) - 1, 0)


@pytest.mark.parametrize("kind", KINDS[1:])
def test_walking_never_enters_solid_ground_and_bumping_tells(kind: str) -> None:
    world = FlatWorld(size=64, obstacles=kind)  # type: ignore[arg-type]
    world.reset(2)
    passable = world.truth()["passable"]
    told = np.zeros_like(passable)
    rng = np.random.default_rng(0)
    for _ in range(400):
        frame = world.act(Control(forward=1, turn=float(rng.normal(0, 20))))
        assert passable[frame.pose.cell]
        told[frame.blocked[:, 0], frame.blocked[:, 1]] = True
    assert told.any() and not (told & passable).any()


def test_a_closed_room_is_not_observable_but_its_wall_is() -> None:
    solid = np.zeros((20, 20), bool)
    solid[5:10, [5, 9]] = solid[[5, 9], 5:10] = True
    seen = observable(solid, (0, 0))
    assert not seen[6:9, 6:9].any()
    assert seen[5, 5:10].all()
    solid[7, 5] = False
    assert observable(solid, (0, 0)).all()


def test_rooms_keep_their_doors() -> None:
    for seed in range(20):
        solid = obstacles("rooms", 48, 0.5, np.random.default_rng(seed))
        assert observable(solid, tuple(np.argwhere(~solid)[0])).any()


def test_wrong_settings_are_named() -> None:
    for settings, word in (
        ({"obstacles": "lava"}, "obstacles"),
        ({"turn_per_step": 0}, "turn_per_step"),
        ({"spawn": "here"}, "spawn"),
    ):
        with pytest.raises(UserError, match=word):
            FlatWorld(**settings).reset(0)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="pictures"):
        FlatWorld().picture()
