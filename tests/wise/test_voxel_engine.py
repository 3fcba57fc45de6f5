"""The voxel world with its real node processes: walking, digging, collecting, seeing, dying. Needs `make wise-voxel`."""

import os
import signal
from collections.abc import Iterator

import numpy as np
import pytest

from agentexp.errors import EngineError, MissingDependency, UserError
from agentexp.wise.core import Control, Frame, Subtask
from agentexp.wise.navigate import bearing
from agentexp.wise.worlds.voxel import install
from agentexp.wise.worlds.voxel.controller import VoxelController
from agentexp.wise.worlds.voxel.world import VoxelMinecraft

try:
    install.find_node()
    install.installed()
    PROBLEM = ""
except MissingDependency as error:
    PROBLEM = str(error)

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.skipif(bool(PROBLEM), reason=PROBLEM)]


@pytest.fixture
def voxel() -> Iterator[VoxelMinecraft]:
    made = VoxelMinecraft(size=64, pictures="rays", picture_size=[64, 36], look_every=5)
    yield made
    made.close()


def ready(controller: VoxelController, voxel: VoxelMinecraft, seed: int = 0) -> Frame:
    frame = voxel.reset(seed)
    controller.reset(voxel.size, voxel.origin)
    return frame


def test_walking_goes_where_the_yaw_says_at_the_games_speed(voxel: VoxelMinecraft) -> None:
    first = voxel.reset(0)
    assert first.pose.cell in {tuple(cell) for cell in first.cells.tolist()}
    assert first.inventory == {"bucket": 1, "diamond_sword": 1}
    ways = []
    for _ in range(4):
        for _ in range(9):
            frame = voxel.act(Control(turn=10))
        for _ in range(8):
            frame = voxel.act(Control())  # comes to rest
        start = frame.pose
        for _ in range(12):
            frame = voxel.act(Control(forward=1))
        if abs(frame.pose.y - start.y) < 0.1 and frame.pose.distance(start.x, start.z) > 1.5:
            ways.append(frame.pose.distance(start.x, start.z))
            assert abs(bearing(start, frame.pose.x, frame.pose.z)) < 2
    assert ways, "it was held up in all four directions"
    assert max(ways) == pytest.approx(12 * 0.2158, rel=0.1)


def test_equal_seeds_give_equal_worlds(voxel: VoxelMinecraft) -> None:
    def played() -> tuple[list[Frame], dict[str, object]]:
        frames = [voxel.reset(5)]
        frames += [voxel.act(Control(forward=1, turn=3)) for _ in range(20)]
        return frames, dict(voxel.truth())

    one, truth = played()
    other, same = played()
    assert [frame.pose for frame in one] == [frame.pose for frame in other]
    assert all((a.cells.tolist() == b.cells.tolist()) for a, b in zip(one, other, strict=True))
    assert truth["things"] == same["things"] and np.array_equal(truth["passable"], same["passable"])  # type: ignore[arg-type]
    assert np.mean(truth["observable"]) > 0.95  # type: ignore[arg-type]


def test_digging_takes_its_time_and_what_falls_is_picked_up(voxel: VoxelMinecraft) -> None:
    voxel.reset(1)
    for _ in range(9):
        frame = voxel.act(Control(look=10))
    assert frame.pose.pitch == pytest.approx(90, abs=1)
    below = frame.info["target"]["name"]
    assert below in ("grass_block", "sand", "stone", "grass", "poppy", "dandelion", "dead_bush")
    got = {}
    began = frame.tick
    for _ in range(120):
        frame = voxel.act(Control(attack=True))
        if got := {name: count for name, count in frame.inventory.items() if name in ("dirt", "sand")}:
            break
    assert got and frame.tick - began >= 10


def test_water_log_and_beef_are_collected(voxel: VoxelMinecraft) -> None:
    controller = VoxelController()
    frame = ready(controller, voxel)
    for target, source in (("water_bucket", "water"), ("log", "oak_log"), ("beef", "cow")):
        if source == "cow":
            voxel.command("spawn", name="cow", x=frame.pose.x + 5, z=frame.pose.z + 3)
        things = [one for one in voxel.truth()["things"] if one["name"] == source]
        near = min(things, key=lambda one: frame.pose.distance(one["x"], one["z"]))
        for _ in range(1200):
            if frame.pose.distance(near["x"], near["z"]) < 5 + near.get("radius", 0):
                break
            frame = voxel.act(controller.navigate(frame, near["x"], near["z"]))
        for _ in range(800):
            if frame.inventory.get(target):
                break
            frame = voxel.act(controller.execute(frame, Subtask("", target)))
        assert frame.inventory.get(target), f"no {target} after {frame.tick} ticks at {frame.pose}: {dict(frame.inventory)}"
    assert "bucket" not in frame.inventory


def test_the_body_stays_inside_the_wall(voxel: VoxelMinecraft) -> None:
    voxel.reset(2)
    frame = voxel.act(Control())
    for _ in range(700):
        turn = bearing(frame.pose, 200.0, frame.pose.z)
        frame = voxel.act(Control(forward=1, turn=float(np.clip(turn, -10, 10)), jump=True))
    assert frame.pose.x < voxel.size


def test_pictures_by_rays_and_what_they_show(voxel: VoxelMinecraft) -> None:
    frame = voxel.reset(0)
    voxel.command("spawn", name="cow", x=frame.pose.x, z=frame.pose.z)
    pictures = []
    for _ in range(4):
        for _ in range(9):
            voxel.act(Control(turn=10))
        picture = voxel.picture()
        assert picture.shape == (36, 64, 3) and picture.dtype == np.uint8
        pictures.append(picture)
        total = sum(sighting.pixels for sighting in voxel.sightings())
        assert 0 < total <= 64 * 36 and all(0 < sighting.visible <= 1 for sighting in voxel.sightings())
    assert max(picture.std() for picture in pictures) > 20
    assert not np.array_equal(pictures[0], pictures[1])


def test_commands(voxel: VoxelMinecraft) -> None:
    frame = voxel.reset(0)
    voxel.command("give", name="oak_log", count=3)
    assert voxel.act(Control()).inventory["log"] == 3
    voxel.command("spawn", name="cow", x=frame.pose.x + 3, z=frame.pose.z, stay=10)
    cows = [one for one in voxel.truth()["things"] if one["name"] == "cow"]
    assert len(cows) == 1
    for _ in range(12):
        voxel.act(Control())
    assert not any(one["name"] == "cow" for one in voxel.truth()["things"])
    with pytest.raises(UserError, match="cannot spawn dragon"):
        voxel.command("spawn", name="dragon", x=1, z=1)
    with pytest.raises(UserError, match="choose spawn, give or time"):
        voxel.command("dance")


def test_a_killed_node_is_an_engine_error_and_the_next_reset_works(voxel: VoxelMinecraft) -> None:
    voxel.reset(0)
    assert voxel._bridge is not None
    os.kill(voxel._bridge.pid, signal.SIGKILL)
    with pytest.raises(EngineError, match="died"):
        for _ in range(3):
            voxel.act(Control())
    assert voxel.reset(0).tick == 0


def test_a_server_that_is_not_ours(voxel: VoxelMinecraft) -> None:
    """Its own server stands in for a user's: the second body joins by its address, in real time."""
    voxel.reset(3)
    port = voxel._call("port")["port"]
    guest = VoxelMinecraft(size=64, address=f"127.0.0.1:{port}", username="guest", pictures="none")
    try:
        first = guest.reset(0)
        assert first.pose.distance(guest.origin[0] + 32, guest.origin[1] + 32) < 2
        frame = first
        for _ in range(20):
            frame = guest.act(Control(forward=1, turn=5))
        assert frame.pose.distance(first.pose.x, first.pose.z) > 0.5 and len(frame.cells) > 10
        truth = guest.truth()
        assert not truth["own"] and truth["observable"].all() and 0 < truth["passable"].mean() < 1
        with pytest.raises(UserError, match="not ours"):
            guest.command("spawn", name="cow", x=0, z=0)
    finally:
        guest.close()


def test_a_picture_from_chromium() -> None:
    try:
        install.find_chromium()
    except MissingDependency as error:
        pytest.skip(str(error))
    voxel = VoxelMinecraft(size=64, pictures="chromium")
    try:
        voxel.reset(0)
        first = voxel.picture()
        assert first.shape == (180, 320, 3) and first.std() > 20
        for _ in range(9):
            voxel.act(Control(turn=10))
        assert not np.array_equal(voxel.picture(), first)
    finally:
        voxel.close()
