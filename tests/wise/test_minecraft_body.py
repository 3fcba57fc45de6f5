from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentexp.errors import EngineError, UserError
from agentexp.wise.core import Control, Pose
from agentexp.wise.navigate import bearing
from agentexp.wise.worlds.minecraft.body import KEYS, Bumps, Keys, Region, carried, pose_of
from agentexp.wise.worlds.minecraft.commands import Commands

HERE = Pose(10.5, 70.0, -3.5)


@pytest.mark.parametrize(("yaw", "x", "z"), [(0, 0, 9), (90, -9, 0), (180, 0, -9), (-90, 9, 0), (450, -9, 0), (-270, -9, 0)])
def test_minecrafts_yaw_is_ours(yaw: float, x: float, z: float) -> None:
    pose = pose_of(0.0, 64.0, 0.0, yaw, 12.0)
    assert 0 <= pose.yaw < 360 and pose.pitch == 12.0
    assert bearing(pose, x, z) == pytest.approx(0)


def test_what_lies_in_the_direction_of_the_yaw_is_in_view() -> None:
    region = Region(64, None, 70.0, 10.0)
    region.centre(HERE)
    assert region.origin == (10 - 32, -4 - 32)
    for yaw, ahead in ((0, (10, 4)), (90, (2, -4)), (180, (10, -12)), (270, (18, -4))):
        cells = {tuple(cell) for cell in region.cells(HERE._replace(yaw=yaw)).tolist()}
        assert ahead in cells and len(cells) > 50
        assert (2 * 10 - ahead[0], 2 * -4 - ahead[1]) not in cells


def test_cells_end_where_the_region_does() -> None:
    region = Region(16, [0, 0], 70.0, 10.0)
    region.centre(HERE)
    assert region.origin == (0, 0)
    assert len(region.cells(Pose(8.5, 64, 14.5))) and (region.cells(Pose(8.5, 64, 14.5)) < 16).all()
    assert not len(region.cells(Pose(-20.5, 64, 8.5)))


def test_no_position_is_an_error() -> None:
    with pytest.raises(EngineError, match="no position"):
        pose_of(float("nan"), 0, 0, 0, 0)


def test_woods_are_one_item_and_empty_slots_none() -> None:
    slots = [("oak_log", 2), ("minecraft:birch_log", 3), ("log2", 1), ("none", 0), ("air", 5), ("beef", 0), ("water_bucket", 1)]
    assert carried(slots) == {"log": 6, "water_bucket": 1}


# ---------------------------------------------------------------------------------------------------------------- keys


@given(st.floats(-1, 1))
def test_a_share_of_full_speed_is_a_share_of_the_ticks(speed: float) -> None:
    keys = Keys(10.0)
    pressed = [keys.press(Control(forward=speed)) for _ in range(200)]
    walked = sum(action["forward"] - action["back"] for action in pressed)
    assert walked == pytest.approx(200 * speed, abs=1.01)
    assert not any(action["forward"] and action["back"] for action in pressed)


def test_the_camera_is_pitch_then_yaw_and_limited() -> None:
    keys = Keys(10.0)
    assert keys.press(Control(turn=4.0, look=-3.0))["camera"].tolist() == [-3.0, 4.0]
    assert keys.press(Control(turn=-90.0, look=25.0))["camera"].tolist() == [10.0, -10.0]


def test_keys_by_name() -> None:
    action = Keys(10.0).press(Control(attack=True, keys=("sneak", "hotbar.2")))
    assert {key for key in KEYS if action[key]} == {"attack", "sneak", "hotbar.2"}
    with pytest.raises(UserError, match=r"no key 'fly'.*forward"):
        Keys(10.0).press(Control(keys=("fly",)))


def test_it_jumps_when_it_is_stuck_and_only_when_walking() -> None:
    keys = Keys(10.0)
    assert not keys.press(Control(forward=1), stuck=0)["jump"]
    assert keys.press(Control(forward=1), stuck=5)["jump"]
    assert not keys.press(Control(), stuck=5)["jump"]
    assert not Keys(10.0, auto_jump=False).press(Control(forward=1), stuck=5)["jump"]


@pytest.mark.parametrize("degrees", [0, -5, 181])
def test_turn_limits(degrees: float) -> None:
    with pytest.raises(UserError, match="turn_per_step"):
        Keys(degrees)


# --------------------------------------------------------------------------------------------------------------- bumps


@pytest.mark.parametrize(("yaw", "cell"), [(0, (0, 1)), (90, (-1, 0)), (180, (0, -1)), (270, (1, 0)), (45, (-1, 1))])
def test_the_cell_in_the_way_is_found(yaw: float, cell: tuple[int, int]) -> None:
    bumps, pose = Bumps(patience=5), Pose(0.5, 64, 0.5, yaw)
    found = [bumps.after(pose, pose, True) for _ in range(5)]
    assert [len(cells) for cells in found] == [0, 0, 0, 0, 1]
    assert tuple(found[-1][0]) == cell


def test_standing_walking_and_turning_are_no_bumps() -> None:
    bumps, pose = Bumps(patience=3), Pose(0.5, 64, 0.5)
    assert not any(len(bumps.after(pose, pose, False)) for _ in range(20))
    walk = [pose._replace(z=0.5 + 0.2 * k) for k in range(20)]
    assert not any(len(bumps.after(a, b, True)) for a, b in pairwise(walk))
    for k in range(20):
        turned = pose._replace(yaw=(k * 40.0) % 360)
        assert not len(bumps.after(pose._replace(yaw=((k - 1) * 40.0) % 360), turned, True))


def test_a_jump_that_gets_over_ends_it() -> None:
    bumps, pose = Bumps(patience=15), Pose(0.5, 64, 0.5)
    for _ in range(14):
        assert not len(bumps.after(pose, pose, True))
    assert not len(bumps.after(pose, pose._replace(y=65.0, z=0.7), True))
    assert bumps.stuck == 0


# ------------------------------------------------------------------------------------------------------------ commands


def test_a_mob_is_summoned_and_put_on_the_surface() -> None:
    commands = Commands("1.11.2")
    lines = commands.lines("spawn", HERE, name="cow", x=12.0, z=-30.25, count=2)
    assert lines[0].startswith("/summon minecraft:cow 12.0 73.0 -30.2 {Tags:")
    tags = [line.split("tag=")[1] for line in lines[1::2]]
    assert len(lines) == 4 and tags[0] != tags[1]
    assert all(line.startswith("/spreadplayers 12.0 -30.2 0 1 false @e[tag=") for line in lines[1::2])
    for line, tag in zip(lines[::2], tags, strict=True):
        assert f'"{tag[:-1]}"' in line
    assert commands.lines("remove", HERE, name="cow") == ["/kill @e[type=cow,tag=agentexp]"]


def test_items_have_the_names_of_their_version() -> None:
    assert Commands("1.11.2").lines("give", HERE, name="oak_log", count=3) == ["/give @p minecraft:log 3"]
    assert Commands("1.16.5").lines("give", HERE, name="oak_log", count=3) == ["/give @p minecraft:oak_log 3"]


def test_other_lines() -> None:
    commands = Commands("1.16.5")
    assert commands.lines("teleport", HERE, x=1, z=2) == ["/spreadplayers 1.0 2.0 0 1 false @p"]
    assert commands.lines("time", HERE, ticks=6000) == ["/time set 6000"]
    assert commands.lines("run", HERE, line="difficulty peaceful") == ["/difficulty peaceful"]
    with pytest.raises(UserError, match=r"no command 'fly'.*spawn"):
        commands.lines("fly", HERE)
    with pytest.raises(UserError, match="spawn"):
        commands.lines("spawn", HERE, name="cow")
