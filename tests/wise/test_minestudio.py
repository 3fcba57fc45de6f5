import sys
import types
from pathlib import Path

import pytest
from minecraft_fakes import FakeSim, Game

from agentexp.errors import EngineError, MissingDependency, UserError
from agentexp.wise.core import Control, Pose, VoxelWorld
from agentexp.wise.explore.wise import WiseExplorer
from agentexp.wise.explore_task import explore
from agentexp.wise.navigate import Navigator
from agentexp.wise.worlds.minestudio.world import MineStudioWorld


class Faked(MineStudioWorld):
    def __init__(self, fails: str = "", **settings: object) -> None:
        super().__init__(**settings)  # type: ignore[arg-type]
        self.game, self.fails = Game(), fails
        self.made: list[FakeSim] = []

    def _make(self) -> FakeSim:
        self.made.append(FakeSim(self.game, self.fails, num_empty_frames=self.empty_frames))
        return self.made[-1]


def test_is_a_voxel_world_and_constructing_starts_nothing() -> None:
    world = MineStudioWorld()
    assert isinstance(world, VoxelWorld) and world.version == "1.16.5"
    world.close()


def test_the_first_frame_and_the_seeds() -> None:
    world = Faked()
    frame = world.reset(7)
    assert world.game.seed == 7 and world.game.ticks == 20
    assert frame.tick == 0 and frame.pose == Pose(0.5, 64.0, 0.5, 0.0, 0.0)
    assert frame.inventory == {"bucket": 1, "diamond_sword": 1} and frame.info == {"health": 20.0}
    assert frame.image is not None and frame.image.shape == (36, 64, 3)
    world.reset(8)
    assert world.game.seed == 8 and len(world.made) == 1


def test_acting_looking_and_holding() -> None:
    world = Faked()
    start = world.reset(0).pose
    world.command("hold", name="diamond_sword")
    after = world.act(Control(forward=1.0, turn=7.0, look=-4.0, keys=("sprint",))).pose
    assert after.distance(start.x, start.z) == pytest.approx(0.2158)
    assert (after.yaw, after.pitch) == (7.0, -4.0)
    assert int(world.game.actions[-1]["sprint"]) == int(world.game.actions[-1]["hotbar.2"]) == 1


def test_commands_and_woods() -> None:
    world = Faked(mobs={"cow": 2}, setup=["/weather clear"])
    world.reset(0)
    assert world.game.chats[0] == "/weather clear" and len(world.game.mobs) == 2
    world.command("give", name="oak_log", count=3)
    assert world.act(Control()).inventory["log"] == 3
    assert world.game.chats[-1] == "/give @p minecraft:oak_log 3"


def test_a_death_a_lost_connection_and_a_failed_start() -> None:
    world = Faked(fails="death")
    world.reset(0)
    assert world.act(Control()).info["done"] and world.act(Control()).info["done"]
    world = Faked(fails="step")
    world.reset(0)
    with pytest.raises(EngineError, match="Connection timed out"):
        world.act(Control())
    assert world.made[0].closed == 1
    with pytest.raises(EngineError, match=r"finished unexpectedly.*JDK 8"):
        Faked(fails="reset").reset(0)


def test_the_explorer_explores_it() -> None:
    world = Faked(size=32)
    episode = explore(world, WiseExplorer(turn_per_step=10.0), 5, 1500, Navigator(turn_per_step=10.0))
    assert episode.coverage.final > 0.5


# ---------------------------------------------------------------------------------------------------- package and engine


def package(monkeypatch: pytest.MonkeyPatch, folder: Path) -> list[dict[str, object]]:
    made: list[dict[str, object]] = []

    def simulator(**settings: object) -> FakeSim:
        made.append(settings)
        return FakeSim(Game(), **settings)  # type: ignore[arg-type]

    def record(record_path: str) -> str:
        return f"records to {record_path}"

    modules = {
        "minestudio": {},
        "minestudio.simulator": {"MinecraftSim": simulator},
        "minestudio.simulator.callbacks": {"RecordCallback": record},
        "minestudio.utils": {"get_mine_studio_dir": lambda: str(folder)},
    }
    for name, contents in modules.items():
        module = types.ModuleType(name)
        vars(module).update(contents)
        monkeypatch.setitem(sys.modules, name, module)
    return made


def test_without_the_package_a_reset_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "minestudio", None)
    with pytest.raises(MissingDependency, match="pip install minestudio"):
        MineStudioWorld().reset(0)


def test_without_its_engine_nothing_is_asked_on_the_terminal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made = package(monkeypatch, tmp_path)
    with pytest.raises(MissingDependency, match=r"MINESTUDIO_DIR.*check_engine\(True\)"):
        MineStudioWorld().reset(0)
    assert not made


def test_the_simulator_is_made_as_the_package_wants_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made = package(monkeypatch, tmp_path)
    jar = tmp_path / "engine" / "build" / "libs" / "mcprec-6.13.jar"
    jar.parent.mkdir(parents=True)
    jar.write_bytes(b"")
    MineStudioWorld(callbacks={"RecordCallback": {"record_path": "videos"}}, biome="forest").reset(1)
    (settings,) = made
    assert settings["action_type"] == "env" and settings["obs_size"] == settings["render_size"] == (640, 360)
    assert settings["inventory"] == {0: {"type": "bucket", "quantity": 1}, 1: {"type": "diamond_sword", "quantity": 1}}
    assert settings["preferred_spawn_biome"] == "forest" and settings["callbacks"] == ["records to videos"]
    with pytest.raises(UserError, match="NoSuchCallback"):
        MineStudioWorld(callbacks={"NoSuchCallback": {}}).reset(1)
