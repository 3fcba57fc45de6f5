"""The voxel world's controller on frames written by hand, and the settings that are shipped for the world."""

from typing import Any

import pytest

from agentexp.errors import UserError
from agentexp.wise.core import Control, Controller, Frame, Pose, Subtask
from agentexp.wise.worlds.voxel.controller import ASIDE, STALE, VAIN, VoxelController

LOG = Subtask("obtain log", "log")


def thing(name: str, x: float, y: float, z: float, mob: bool = False) -> dict[str, Any]:
    return {"name": name, "x": x, "y": y, "z": z, "mob": mob, "pixels": 50}


def frame(tick: int, *things: dict[str, Any], on: str = "", pose: Pose | None = None, look: bool = True) -> Frame:
    info: dict[str, Any] = {"target": {"name": on, "distance": 2.0} if on else None}
    if look:
        info["seen"] = list(things)
    return Frame(tick, pose or Pose(0.5, 64, 0.5, 0.0), info=info)


@pytest.fixture
def controller() -> VoxelController:
    made = VoxelController()
    made.reset(64, (-32, -32))
    return made


def test_is_a_controller(controller: VoxelController) -> None:
    held: Controller = controller
    assert held.navigate(frame(0), 0.5, 10.5).forward > 0


def test_walks_to_what_is_far_and_turns_to_it(controller: VoxelController) -> None:
    ahead = controller.execute(frame(0, thing("oak_log", 0.5, 65.5, 20.5)), LOG)
    assert ahead.forward == 1 and not ahead.attack
    behind = controller.execute(frame(1, thing("oak_log", 8.5, 65.5, 0.5)), LOG)
    assert behind.turn == pytest.approx(-10), "east is to the left of south"


def test_aims_before_it_digs_and_keeps_still_while_it_digs(controller: VoxelController) -> None:
    log = thing("birch_log", 2.5, 65.62, 2.5)
    aims = controller.execute(frame(0, log), LOG)
    assert aims.turn < 0 and not aims.attack and aims.forward == 0
    digs = controller.execute(frame(1, log, on="birch_log"), LOG)
    assert digs == Control(attack=True)


def test_leaves_before_the_trunk_are_dug_away(controller: VoxelController) -> None:
    control = controller.execute(frame(0, thing("oak_log", 0.5, 65.62, 3.5), on="oak_leaves"), LOG)
    assert control.attack


def test_water_is_used_and_cows_are_hit(controller: VoxelController) -> None:
    water = thing("water", 0.5, 63.5, 3.0)
    assert controller.execute(frame(0, water, on="water"), Subtask("", "water_bucket")).use
    cow = thing("cow", 0.5, 64.7, 2.5, mob=True)
    turned = Pose(0.5, 64, 0.5, 0.0, 25.0)
    hit = controller.execute(frame(1, cow, on="cow", pose=turned), Subtask("", "beef"))
    assert hit.attack and not hit.use
    far = thing("cow", 0.5, 64.7, 4.0, mob=True)
    assert not controller.execute(frame(2, far, on="cow"), Subtask("", "beef")).attack, "arms are shorter than a look"


def test_what_fell_is_fetched_also_when_it_is_out_of_sight(controller: VoxelController) -> None:
    fallen = thing("item:oak_log", 0.5, 64.1, 4.5, mob=True)
    assert controller.execute(frame(0, fallen, thing("oak_log", 5.5, 65.5, 4.5)), LOG).forward > 0
    near = Pose(0.5, 64, 3.0, 0.0)
    again = controller.execute(frame(1, thing("oak_log", 5.5, 65.5, 4.5), pose=near), LOG)
    assert again.forward > 0 and abs(again.turn) < 1 and controller.lost == 0
    other = controller.execute(frame(2 + STALE, pose=near), LOG)
    assert other.forward == 0 and controller.lost == 1, "it is believed for a while only"


def test_it_looks_around_and_counts_what_it_does_not_find(controller: VoxelController) -> None:
    for tick in range(5):
        control = controller.execute(frame(tick, thing("sand", 0.5, 63.5, 3.5)), LOG)
        assert control.turn == 10 and controller.lost == tick + 1
    controller.execute(frame(50), LOG)
    assert controller.lost == 1, "taken up anew"


def test_it_steps_aside_after_work_in_vain(controller: VoxelController) -> None:
    log = thing("oak_log", 0.5, 65.62, 3.5)
    controls = [controller.execute(frame(tick, log, on="oak_log"), LOG) for tick in range(VAIN + ASIDE + 2)]
    assert all(control.attack for control in controls[:VAIN])
    assert all(control.forward == 1 and not control.attack for control in controls[VAIN : VAIN + ASIDE])
    assert controls[-1].attack


def test_unknown_items_are_said(controller: VoxelController) -> None:
    with pytest.raises(UserError, match="cannot obtain 'diamond'"):
        controller.execute(frame(0), Subtask("", "diamond"))
