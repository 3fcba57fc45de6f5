"""The voxel world's Python side: angles, the ground in view, the bridge and its processes. A script plays node."""

import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentexp.errors import EngineError, EngineTimeout, MissingDependency, UserError
from agentexp.wise.core import Control, Pose, VoxelWorld
from agentexp.wise.navigate import bearing
from agentexp.wise.seen import FieldOfView
from agentexp.wise.worlds.voxel import install, world
from agentexp.wise.worlds.voxel.angles import pose_of, turned
from agentexp.wise.worlds.voxel.bridge import Bridge
from agentexp.wise.worlds.voxel.surface import OPEN, SOLID, UNKNOWN, WATER, Surface, barred, reachable
from agentexp.wise.worlds.voxel.world import VoxelMinecraft

FAKE = Path(__file__).parent / "fake_voxel_bridge.py"


def fake(mode: str = "") -> Bridge:
    return Bridge([sys.executable, str(FAKE), mode])


@pytest.fixture
def mode(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    chosen = {"mode": ""}
    monkeypatch.setattr(world, "launch", lambda version: fake(chosen["mode"]))
    return chosen


def gone(pid: int, seconds: float = 10.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            with open(f"/proc/{pid}/stat") as file:
                if file.read().rpartition(")")[2].split()[0] == "Z":
                    return True
        except OSError:
            return True
        time.sleep(0.02)
    return False


# --------------------------------------------------------------------------------------------------------------- angles


@pytest.mark.parametrize(
    ("yaw", "expected"),
    [(0.0, 180.0), (math.pi / 2, 90.0), (math.pi, 0.0), (-math.pi / 2, 270.0)],
    ids=["north -z", "west -x", "south +z", "east +x"],
)
def test_yaw_of_mineflayer_is_minecrafts(yaw: float, expected: float) -> None:
    assert pose_of((0, 64, 0), yaw, 0.0).yaw == pytest.approx(expected)


@settings(deadline=None)
@given(st.floats(-math.pi, math.pi - 1e-6), st.floats(-1.5, 1.5))
def test_angles_there_and_back(yaw: float, pitch: float) -> None:
    pose = pose_of((1, 2, 3), yaw, pitch)
    assert turned(pose.yaw, pose.pitch) == pytest.approx((yaw, pitch), abs=1e-9)
    # Both conventions look the same way: mineflayer's forward is (-sin yaw, -cos yaw), ours (-sin yaw, cos yaw) in degrees.
    ours = math.radians(pose.yaw)
    assert (-math.sin(ours), math.cos(ours)) == pytest.approx((-math.sin(yaw), -math.cos(yaw)), abs=1e-9)
    assert bearing(pose, pose.x - math.sin(yaw), pose.z - math.cos(yaw)) == pytest.approx(0, abs=1e-6)


def test_looking_up_is_negative_pitch() -> None:
    assert pose_of((0, 0, 0), 0.0, 0.5).pitch == pytest.approx(-math.degrees(0.5))


# -------------------------------------------------------------------------------------------------------------- surface


def surface(size: int = 32) -> Surface:
    ground = Surface(size, (0, 0), FieldOfView())
    ground.ground[:] = ground.top[:] = 64
    return ground


def cells(ground: Surface, pose: Pose) -> set[tuple[int, int]]:
    return {(int(x), int(z)) for x, z in ground.in_view(pose)[0]}


def test_on_flat_ground_the_whole_sector_is_in_view() -> None:
    pose = Pose(16.5, 64, 16.5, 0.0)
    expected = FieldOfView().offsets(16.5, 16.5, 0.0) + 16
    assert cells(surface(), pose) == {(int(x), int(z)) for x, z in expected if x < 32 and z < 32}


def test_a_wall_hides_what_is_behind_and_is_seen_itself() -> None:
    ground = surface()
    ground.top[:, 20 + ground.margin] = 68
    ground.kind[:, 20 + ground.margin] = SOLID
    seen = cells(ground, Pose(16.5, 64, 16.5, 0.0))
    assert (16, 20) in seen and not any(z > 20 for _, z in seen)
    blocked = {tuple(cell) for cell in ground.in_view(Pose(16.5, 64, 16.5, 0.0))[1].tolist()}
    assert blocked == {cell for cell in seen if cell[1] == 20}


def test_a_hill_hides_the_valley_behind_but_not_from_above() -> None:
    ground = surface()
    ground.ground[:, 18 + ground.margin] = ground.top[:, 18 + ground.margin] = 67
    assert (16, 22) not in cells(ground, Pose(16.5, 64, 14.5, 0.0))
    assert (16, 22) in cells(ground, Pose(16.5, 67, 18.5, 0.0))


def test_unknown_ground_is_not_seen() -> None:
    ground = surface()
    ground.ground[:, 20 + ground.margin :] = UNKNOWN
    ground.top[:, 20 + ground.margin :] = UNKNOWN
    assert max(z for _, z in cells(ground, Pose(16.5, 64, 16.5, 0.0))) == 19


def test_outside_the_region_nothing_is_seen() -> None:
    assert len(surface().in_view(Pose(-3.0, 64, 5.0, 0.0))[0]) == 0


def test_barred_and_reachable_follow_steps() -> None:
    heights = np.full((5, 5), 64, np.int16)
    kind = np.zeros((5, 5), np.uint8)
    heights[2, 2] = 66
    kind[0, 4] = WATER
    assert barred(heights, kind)[2, 2] and barred(heights, kind)[0, 4] and barred(heights, kind).sum() == 2
    heights[2, 1] = 65  # a step on the way up
    assert not barred(heights, kind)[2, 2]
    free = reachable(heights, kind != OPEN, (0, 0))
    assert free[2, 2] and not free[0, 4] and free.sum() == 24


def test_observable_leaves_out_what_no_one_can_see() -> None:
    ground = surface()
    block = slice(10 + ground.margin, 15 + ground.margin)
    ground.kind[block, block] = SOLID
    ground.top[block, block] = 70
    seen = ground.observable((2, 2))
    assert seen[10:15, 10].all() and not seen[11:14, 11:14].any() and seen.sum() == 32 * 32 - 9


# --------------------------------------------------------------------------------------------------------------- bridge


def test_calls_are_answered_in_order() -> None:
    bridge = fake()
    try:
        first = bridge.call("reset", size=32)
        assert first["position"] == [16.5, 64.0, 16.5]
        for _ in range(3):
            assert "position" in bridge.call("act", forward=1, turn=0, look=0, attack=False)
    finally:
        bridge.close()
        bridge.close()
    assert not bridge.alive and gone(bridge.pid) and not Path(bridge._folder).exists()
    with pytest.raises(EngineError, match="closed"):
        bridge.call("act")


def test_a_user_error_leaves_it_alive() -> None:
    bridge = fake()
    try:
        with pytest.raises(UserError, match="nonsense"):
            bridge.call("command", text="nonsense")
        assert bridge.alive
    finally:
        bridge.close()


def test_no_answer_in_time_ends_it() -> None:
    bridge = fake("hangs")
    with pytest.raises(EngineTimeout, match=r"act within 0\.3 seconds"):
        bridge.call("act", timeout=0.3)
    assert gone(bridge.pid)


def test_what_is_no_json_ends_it() -> None:
    bridge = fake("garbage")
    with pytest.raises(EngineError, match="no JSON object"):
        bridge.call("act")
    assert gone(bridge.pid)


def test_a_program_that_is_not_there() -> None:
    with pytest.raises(EngineError, match="could not start"):
        Bridge(["/nonexistent/node"])


@pytest.mark.parametrize("mode", ["child", "deaf"])
def test_close_ends_the_whole_group(mode: str) -> None:
    bridge = fake(mode)
    bridge.call("reset", size=32)
    said = bridge._said()
    bridge.close()
    assert gone(bridge.pid)
    if mode == "child":
        assert gone(int(said.split()[-1]))


@pytest.mark.parametrize("mode", ["child", "deaf"])
def test_it_dies_with_python_even_after_sigkill(mode: str, tmp_path: Path) -> None:
    script = (
        "import sys, time\n"
        "from agentexp.wise.worlds.voxel.bridge import Bridge\n"
        f"b = Bridge([sys.executable, {str(FAKE)!r}, {mode!r}])\n"
        "b.call('reset', size=32)\n"
        "print(b._folder, b.pid, b._said().split()[-1] if 'child' in b._said() else b.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    folder, *words = parent.stdout.readline().split()
    pids = [int(word) for word in words]
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    assert len(pids) == 2 and all(gone(pid) for pid in pids)
    assert not Path(folder).exists()


# ---------------------------------------------------------------------------------------------------------------- world


def test_it_is_a_voxel_world_and_frames_follow_the_body(mode: dict[str, str]) -> None:
    voxel = VoxelMinecraft(size=32, pictures="none")
    assert isinstance(voxel, VoxelWorld)
    try:
        frame = voxel.reset(3)
        assert frame.tick == 0 and frame.pose.yaw == pytest.approx(180) and frame.inventory == {"bucket": 1}
        frame = voxel.act(Control(turn=90))
        assert frame.tick == 1 and frame.pose.yaw == pytest.approx(190), "one tick turns by ten degrees at most"
        before = frame.pose
        frame = voxel.act(Control(forward=1))
        heading = math.radians(frame.pose.yaw)
        assert frame.pose.x - before.x == pytest.approx(-0.2 * math.sin(heading))
        assert frame.pose.z - before.z == pytest.approx(0.2 * math.cos(heading))
        assert frame.cells.dtype == np.int32 and len(frame.cells) > 40
        frame = voxel.act(Control(attack=True))
        assert frame.inventory == {"bucket": 1, "oak_log": 3, "log": 3}
        assert voxel.act(Control()).inventory == frame.inventory, "kept while nothing changes"
        assert voxel.act(Control(look=5)).pose.pitch == pytest.approx(5)
    finally:
        voxel.close()


def test_truth_of_our_own_server(mode: dict[str, str]) -> None:
    voxel = VoxelMinecraft(size=32, pictures="none")
    try:
        voxel.reset(0)
        truth = voxel.truth()
        assert truth["own"] and truth["passable"].shape == (32, 32)
        assert not truth["passable"][20, 20] and not truth["passable"][30].any() and truth["passable"].sum() == 32 * 31 - 1
        assert truth["observable"].all(), "over the water one sees the far bank"
    finally:
        voxel.close()


def test_ticks_per_act(mode: dict[str, str]) -> None:
    voxel = VoxelMinecraft(size=32, ticks_per_act=4, pictures="none")
    try:
        voxel.reset(0)
        frame = voxel.act(Control(turn=90))
        assert frame.tick == 4 and frame.pose.yaw == pytest.approx(220)
    finally:
        voxel.close()


def test_a_dead_process_is_an_engine_error_and_the_next_reset_works(mode: dict[str, str]) -> None:
    mode["mode"] = "dies"
    voxel = VoxelMinecraft(size=32, pictures="none")
    try:
        voxel.reset(0)
        voxel.act(Control())
        voxel.act(Control())
        with pytest.raises(EngineError, match=r"died \(exit status 7\) in act. It said: boom"):
            voxel.act(Control())
        with pytest.raises(EngineError, match="closed"):
            voxel.act(Control())
        mode["mode"] = ""
        voxel.reset(1)
        assert voxel.act(Control()).tick == 1
    finally:
        voxel.close()


def test_a_killed_process_is_an_engine_error(mode: dict[str, str]) -> None:
    voxel = VoxelMinecraft(size=32, pictures="none")
    try:
        voxel.reset(0)
        assert voxel._bridge is not None
        os.kill(voxel._bridge.pid, signal.SIGKILL)
        with pytest.raises(EngineError, match="died"):
            for _ in range(3):
                voxel.act(Control())
        assert voxel.reset(0).tick == 0
    finally:
        voxel.close()


def test_wrong_settings_are_said() -> None:
    with pytest.raises(UserError, match=r"world\.address is 'here'"):
        VoxelMinecraft(address="here")
    with pytest.raises(UserError, match=r"world\.size"):
        VoxelMinecraft(size=8)
    with pytest.raises(UserError, match=r"world\.pictures is none"):
        VoxelMinecraft(pictures="none").picture()
    with pytest.raises(UserError, match="has not been reset"):
        VoxelMinecraft().act(Control())
    with pytest.raises(UserError, match="not ours"):
        VoxelMinecraft(address="127.0.0.1:25565").command("spawn", name="cow", x=0, z=0)


# -------------------------------------------------------------------------------------------------------------- install


def test_missing_programs_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("AGENTEXP_NODE", "AGENTEXP_CHROMIUM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(MissingDependency, match="needs node 18"):
        install.find_node()
    with pytest.raises(MissingDependency, match="apt install chromium"):
        install.find_chromium()
    with pytest.raises(MissingDependency, match="make wise-voxel"):
        install.installed()
    with pytest.raises(MissingDependency):
        VoxelMinecraft().reset(0)
    old = tmp_path / "node"
    old.write_text("#!/bin/sh\necho v12.1.0\n")
    old.chmod(0o755)
    with pytest.raises(MissingDependency, match=r"is v12\.1\.0"):
        install.find_node()
    (tmp_path / "node").write_text("#!/bin/sh\necho v20.1.0\n")
    with pytest.raises(MissingDependency, match="needs npm"):
        install.install()
