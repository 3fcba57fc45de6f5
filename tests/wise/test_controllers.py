from pathlib import Path

import numpy as np
import pytest
import torch_fake
from hypothesis import given
from hypothesis import strategies as st

from agentexp.errors import EngineError, MissingDependency, UserError
from agentexp.wise.controllers.actions import BINS, COMBINATIONS, INVENTORY, STILL, decode, degrees, encode, step_of
from agentexp.wise.controllers.loading import pretrained
from agentexp.wise.controllers.minecraft import MinecraftController, towards
from agentexp.wise.controllers.policies import small
from agentexp.wise.controllers.steve1 import Steve1
from agentexp.wise.controllers.vpt_nav import VptNav, goal_layers
from agentexp.wise.core import Control, Controller, Frame, Pose, Subtask
from agentexp.wise.navigate import bearing

IMAGE = np.zeros((36, 64, 3), np.uint8)
LOG, BEEF = Subtask("obtain log", "log"), Subtask("obtain beef", "beef")


def frame(tick: int = 0, x: float = 0.5, z: float = 0.5, yaw: float = 0.0) -> Frame:
    return Frame(tick, Pose(x, 64, z, yaw), IMAGE)


# ------------------------------------------------------------------------------------------------------------- actions


def test_the_space_has_vpts_size_and_its_no_op() -> None:
    assert len(COMBINATIONS) == 8640 and INVENTORY == 8640 and STILL == 60
    assert encode(Control()) == (0, 60)
    assert decode(0, 60) == Control()
    assert decode(INVENTORY, 60) == Control()


def test_camera_steps_are_mu_law() -> None:
    angles = [degrees(step) for step in range(BINS)]
    assert angles[0] == pytest.approx(-10) and angles[5] == 0 and angles[10] == pytest.approx(10)
    assert angles[6] == pytest.approx(0.615, abs=1e-3)  # (11 ** 0.2 - 1)
    assert angles == pytest.approx([-angle for angle in reversed(angles)])
    assert [step_of(angle) for angle in angles] == list(range(BINS))
    assert step_of(-90) == 0 and step_of(400) == 10


@given(st.integers(0, 8639), st.integers(0, 120))
def test_actions_survive_the_way_there_and_back(buttons: int, camera: int) -> None:
    keys = COMBINATIONS[buttons]
    control = decode(buttons, camera, hotbar=True)
    again = decode(*encode(control), hotbar=True)
    assert again.turn == pytest.approx(control.turn) and again.look == pytest.approx(control.look)
    assert (again.forward, again.jump, again.attack, again.use) == (control.forward, control.jump, control.attack, control.use)
    assert again.keys == control.keys
    assert control.forward == ("forward" in keys) - ("back" in keys)
    if "camera" not in keys:
        assert control.turn == control.look == 0


def test_pitch_is_the_slow_index_and_yaw_the_fast_one() -> None:
    camera_on = next(i for i, keys in enumerate(COMBINATIONS) if keys[-1] == "camera")
    down, right = decode(camera_on, 10 * BINS + 5), decode(camera_on, 5 * BINS + 10)
    assert down.look == pytest.approx(10) and down.turn == 0
    assert right.turn == pytest.approx(10) and right.look == 0


def test_the_hand_is_not_the_policys() -> None:
    buttons, camera = encode(Control(attack=True, keys=("hotbar.3", "sneak")))
    assert decode(buttons, camera) == Control(attack=True, keys=("sneak",))
    assert decode(buttons, camera, hotbar=True).keys == ("hotbar.3", "sneak")


@pytest.mark.parametrize("action", [(-1, 60), (8641, 60), (0, 121), (0, -1)])
def test_there_is_no_such_action(action: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="VPT"):
        decode(*action)


# ---------------------------------------------------------------------------------------------------------- controller


class Chops:
    """A skill that attacks and logs what it was asked for."""

    def __init__(self) -> None:
        self.goals: list[object] = []

    def begin(self, goal: object) -> None:
        self.goals.append(goal)

    def act(self, image: np.ndarray) -> tuple[int, int]:
        assert image is IMAGE
        return encode(Control(attack=True, keys=("hotbar.9",)))


class Walks:
    """Turns to the goal by what it is told, then walks."""

    def __init__(self) -> None:
        self.starts = 0
        self.told: list[tuple[np.ndarray, np.ndarray]] = []

    def begin(self) -> None:
        self.starts += 1

    def act(self, image: np.ndarray, goal: np.ndarray, compass: np.ndarray) -> tuple[int, int]:
        self.told.append((goal, compass))
        yaw = np.degrees(np.arctan2(compass[1], compass[0]))
        turn = bearing(Pose(0, 64, 0, yaw), float(goal[0]), float(goal[1]))
        return encode(Control(forward=float(abs(turn) < 20), turn=turn))


def test_it_is_a_controller_and_uses_mrsteves_texts() -> None:
    skill = Chops()
    controller: Controller = MinecraftController(skill=skill)
    for task in (LOG, LOG, BEEF, Subtask("obtain a diamond", "diamond")):
        assert controller.execute(frame(), task) == Control(attack=True)
    assert skill.goals == ["cut a tree", "kill cow", "obtain a diamond"]


def test_a_subtask_begins_anew_after_walking() -> None:
    skill = Chops()
    controller = MinecraftController(skill=skill)
    controller.execute(frame(), LOG)
    controller.navigate(frame(), 20, 20)
    controller.execute(frame(), LOG)
    assert skill.goals == ["cut a tree"] * 2


def test_the_tool_is_taken_in_hand_once() -> None:
    controller = MinecraftController(skill=Chops(), hold={"water_bucket": 1, "*": 2})
    keys = [controller.execute(frame(), task).keys for task in (LOG, LOG, Subtask("obtain water", "water_bucket"), LOG)]
    assert keys == [("hotbar.2",), (), ("hotbar.1",), ("hotbar.2",)]
    with pytest.raises(UserError, match="slot 0"):
        MinecraftController(skill=Chops(), hold={"*": 0})


def test_visual_prompts(tmp_path: Path) -> None:
    clip = np.random.default_rng(0).integers(0, 255, (16, 20, 30, 3)).astype(np.uint8)
    np.save(tmp_path / "tree.npy", clip)
    skill = Chops()
    MinecraftController(skill=skill, clips={"log": str(tmp_path / "tree.npy")}).execute(frame(), LOG)
    assert np.array_equal(skill.goals[0], clip)  # type: ignore[arg-type]
    np.save(tmp_path / "short.npy", clip[:4])
    with pytest.raises(UserError, match=r"clips\.log.*16 pictures"):
        MinecraftController(skill=skill, clips={"log": str(tmp_path / "short.npy")})
    with pytest.raises(UserError, match=r"clips\.log=none\.npy"):
        MinecraftController(skill=skill, clips={"log": "none.npy"})


@pytest.mark.parametrize(("x", "z"), [(30.5, 0.5), (-30.5, 12.0), (0.5, -40.0), (-8.0, -8.0)])
def test_a_policy_that_is_told_where_the_goal_is_gets_there(x: float, z: float) -> None:
    walk = Walks()
    controller = MinecraftController(skill=Chops(), walk=walk)
    at = frame(yaw=135.0)
    for tick in range(400):
        control = controller.navigate(at, x, z)
        yaw = at.pose.yaw + control.turn
        step = 0.2 * control.forward
        at = frame(tick, at.pose.x - step * np.sin(np.deg2rad(yaw)), at.pose.z + step * np.cos(np.deg2rad(yaw)), yaw)
    assert at.pose.distance(x, z) < 2
    assert walk.starts == 1
    assert max(float(np.hypot(*goal)) for goal, _ in walk.told) <= 20 + 1e-4


def test_what_vpt_nav_is_told() -> None:
    goal, compass = towards(Pose(10, 64, 10, 90.0, 30.0), 10, 110)
    assert goal.tolist() == [0, 20]
    assert compass == pytest.approx([0, 1, np.cos(np.pi / 6), 0.5], abs=1e-6)
    assert towards(Pose(10, 64, 10), 13, 6)[0].tolist() == [3, -4]


def test_another_goal_begins_anew_and_a_near_one_does_not() -> None:
    walk = Walks()
    controller = MinecraftController(skill=Chops(), walk=walk)
    for x in (10.0, 11.0, 12.0, 40.0):
        controller.navigate(frame(), x, 5)
    assert walk.starts == 2
    controller.execute(frame(), LOG)
    controller.navigate(frame(), 40, 5)
    assert walk.starts == 3


def test_it_jumps_where_it_stands() -> None:
    controller = MinecraftController(skill=Chops(), walk=Walks())
    jumps = [controller.navigate(frame(tick), 0.5, 30).jump for tick in range(5)]
    assert jumps == [False, False, True, True, True]


def test_without_a_policy_the_shared_planner_walks() -> None:
    controller = MinecraftController(skill=Chops())
    controller.reset(64, (-32, -32))
    assert controller.navigate(frame(yaw=0.0), 0.5, 20.5) == Control(forward=1.0)


def test_pictures_are_needed() -> None:
    with pytest.raises(EngineError, match="pictures"):
        MinecraftController(skill=Chops()).execute(Frame(0, Pose(0, 64, 0)), LOG)


def test_pictures_are_squeezed_to_what_vpt_sees() -> None:
    assert small(IMAGE).shape == (128, 128, 3)
    square = np.zeros((128, 128, 3), np.uint8)
    assert small(square) is square


# ------------------------------------------------------------------------------------------------------------- loading


def test_without_the_package_the_sentence_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "minestudio", None)
    with pytest.raises(MissingDependency, match="pip install minestudio"):
        Steve1().begin("cut a tree")


def test_weights_that_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys
    import types

    class Policy:
        @classmethod
        def from_pretrained(cls, name: str) -> "Policy":
            raise OSError(f"{name} is no repository")

    monkeypatch.setitem(sys.modules, "some_models", types.SimpleNamespace(Policy=Policy))
    with pytest.raises(UserError, match=r"skill\.weights=nobody/nothing.*hub"):
        pretrained("some_models", "Policy", "nobody/nothing", "skill", "cpu")


def test_vpt_navs_files_are_checked_when_it_is_constructed(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"walk\.weights"):
        VptNav(weights=str(tmp_path / "vpt_nav.weights"), base="a/b")
    (tmp_path / "vpt_nav.weights").write_bytes(b"")
    with pytest.raises(UserError, match=r"walk\.model .* and walk\.base"):
        VptNav(weights=str(tmp_path / "vpt_nav.weights"))
    with pytest.raises(UserError, match=r"no file walk\.model"):
        VptNav(weights=str(tmp_path / "vpt_nav.weights"), model=str(tmp_path / "2x.model"))


def test_the_goal_networks_layers_are_found_by_number() -> None:
    stored = {f"goal_embed._mlp.{n}.{part}": np.zeros((8, 6)) for n in (0, 2, 10, 4) for part in ("weight", "bias")}
    stored |= {"goal_proj.weight": np.zeros((9, 8)), "goal_proj.bias": np.zeros(9), "net.x.0.weight": np.zeros((1, 1))}
    assert goal_layers(stored, "f") == [*(f"goal_embed._mlp.{n}" for n in (0, 2, 4, 10)), "goal_proj"]
    with pytest.raises(UserError, match="no goal network"):
        goal_layers({"net.x.0.weight": np.zeros((1, 1))}, "f")
    stored["goal_embed._mlp.0.weight"] = np.zeros((8, 5))
    with pytest.raises(UserError, match="takes 5 numbers"):
        goal_layers(stored, "f")


# --------------------------------------------------------------------------------- learned policies on a fake of torch


def test_steve1_is_called_as_its_package_wants(monkeypatch: pytest.MonkeyPatch) -> None:
    torch_fake.install(monkeypatch)
    skill = Steve1(device="cpu")
    with pytest.raises(UserError, match="begin"):
        skill.act(IMAGE)
    skill.begin("cut a tree")
    assert [skill.act(IMAGE) for _ in range(3)] == [(10, 0), (10, 1), (10, 2)]  # its state goes on
    skill.begin(np.zeros((16, 20, 30, 3), np.uint8))
    assert skill.act(IMAGE) == (0, 0)
    assert skill._condition["cond_scale"] == 6.0 and "video" in skill._condition


def test_steve1s_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    torch_fake.install(monkeypatch)
    with pytest.raises(UserError, match=r"skill\.weights=nobody/nothing"):
        Steve1(weights="nobody/nothing").begin("kill cow")
    with pytest.raises(UserError, match=r"skill\.device=tpu"):
        Steve1(device="tpu").begin("kill cow")
    with pytest.raises(UserError, match="cond_scale"):
        Steve1(cond_scale=-1)


def nav_weights(**more: np.ndarray) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    stored: dict[str, np.ndarray] = dict(more)
    sizes = ((0, 6, 8), (3, 8, 8), (6, 8, 8), (9, 8, 5))  # linear layers of an MLP with norm and ReLU between them
    for number, inputs, outputs in sizes:
        stored[f"goal_embed._mlp.{number}.weight"] = rng.normal(size=(outputs, inputs))
        stored[f"goal_embed._mlp.{number}.bias"] = rng.normal(size=outputs)
    stored["goal_proj.weight"], stored["goal_proj.bias"] = rng.normal(size=(4, 5)), rng.normal(size=4)
    return stored


def test_vpt_nav_adds_the_goal_to_the_latent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "vpt_nav.weights"
    file.write_bytes(b"")
    stored = nav_weights()
    torch_fake.install(monkeypatch, {str(file): stored})
    walk = VptNav(weights=str(file), base="some/vpt", device="cpu")
    goal, compass = towards(Pose(0, 64, 0, 30.0, 5.0), 40, -7)
    with pytest.raises(UserError, match="begin"):
        walk.act(IMAGE, goal, compass)
    walk.begin()
    x = np.concatenate((np.sign(goal) * np.log1p(np.abs(goal)), compass))
    for number in (0, 3, 6):
        x = np.maximum(stored[f"goal_embed._mlp.{number}.weight"] @ x + stored[f"goal_embed._mlp.{number}.bias"], 0)
    x = stored["goal_embed._mlp.9.weight"] @ x + stored["goal_embed._mlp.9.bias"]
    x = stored["goal_proj.weight"] @ x + stored["goal_proj.bias"]
    for tick in range(3):  # the fake's latent is the number of calls
        assert walk.act(IMAGE, goal, compass) == tuple(np.round(x[:2] + tick).astype(int))


def test_vpt_nav_says_which_weights_it_lacks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file, model = tmp_path / "vpt_nav.weights", tmp_path / "2x.model"
    file.write_bytes(b"")
    model.write_bytes(b"")
    torch_fake.install(monkeypatch, {str(file): nav_weights()})
    with pytest.raises(UserError, match=r"lacks 2 of VPT's own weights.*walk\.base"):
        VptNav(weights=str(file), model=str(model), device="cpu").begin()
    whole = nav_weights(**{"net.a": np.ones(1), "pi_head.a": np.ones(1)})
    torch_fake.install(monkeypatch, {str(file): whole})
    walk = VptNav(weights=str(file), model=str(model), device="cpu")
    walk.begin()
    assert set(walk._policy.loaded) == {"net.a", "pi_head.a"}
    torch_fake.install(monkeypatch)
    with pytest.raises(UserError, match="not a file of weights"):
        VptNav(weights=str(file), model=str(model), device="cpu").begin()
