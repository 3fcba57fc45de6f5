import numpy as np
import pytest
from minecraft_fakes import FakeMineRL, Game

from agentexp.errors import EngineError, MissingDependency, UserError
from agentexp.wise.core import Control, Pose, VoxelWorld
from agentexp.wise.explore.wise import WiseExplorer
from agentexp.wise.explore_task import explore
from agentexp.wise.navigate import Navigator
from agentexp.wise.worlds.minecraft.body import KEYS
from agentexp.wise.worlds.minerl.mission import Mission
from agentexp.wise.worlds.minerl.world import MineRLWorld


class Faked(MineRLWorld):
    def __init__(self, fails: str = "", **settings: object) -> None:
        super().__init__(**settings)  # type: ignore[arg-type]
        self.game, self.fails = Game(), fails
        self.made: list[FakeMineRL] = []

    def _make(self) -> FakeMineRL:
        self.made.append(FakeMineRL(self.game, self.fails))
        return self.made[-1]


def test_is_a_voxel_world_and_constructing_starts_nothing() -> None:
    world = MineRLWorld()
    assert isinstance(world, VoxelWorld)
    world.close()


def test_the_first_frame() -> None:
    world = Faked()
    frame = world.reset(7)
    assert world.game.seed == 7
    assert frame.tick == 0 and frame.pose == Pose(0.5, 64.0, 0.5, 0.0, 0.0)
    assert frame.inventory == {"bucket": 1, "diamond_sword": 1}
    assert frame.image is not None and frame.image.shape == (36, 64, 3)
    assert world.origin == (-64, -64) and world.size == 128
    assert len(frame.cells) > 50 and (frame.cells[:, 1] >= 0).all()
    assert np.array_equal(world.picture(), frame.image)


def test_every_reset_is_seeded_and_the_client_is_kept() -> None:
    world = Faked()
    for seed in (3, 4):
        world.reset(seed)
        assert world.game.seed == seed
    assert len(world.made) == 1
    world.close()
    world.close()
    assert world.made[0].closed == 1


def test_walking_and_turning() -> None:
    world = Faked()
    start = world.reset(0)
    after = world.act(Control(forward=1.0))
    assert after.tick == 1 and after.pose.z - start.pose.z == pytest.approx(0.2158) and after.pose.x == start.pose.x
    for _ in range(9):
        after = world.act(Control(turn=10.0))
    assert after.pose.yaw == pytest.approx(90)
    moved = world.act(Control(forward=1.0))
    assert moved.pose.x < after.pose.x  # 90 degrees look to -x
    assert world.act(Control(look=8.0)).pose.pitch == 8.0  # down


def test_a_step_is_jumped_and_a_wall_is_reported() -> None:
    world = Faked()
    frame = world.reset(0)
    for _ in range(60):
        frame = world.act(Control(forward=1.0))
        assert not len(frame.blocked)
    assert frame.pose.z > 8  # over the low wall
    for _ in range(9):
        frame = world.act(Control(turn=10.0))
    blocked = []
    for _ in range(120):
        frame = world.act(Control(forward=1.0))
        blocked += frame.blocked.tolist()
    assert frame.pose.x > -12 and blocked and {cell[0] for cell in blocked} == {-13}


def test_commands_go_out_one_per_tick() -> None:
    world = Faked()
    world.reset(0)
    world.command("spawn", name="cow", x=5.0, z=9.0)
    assert not world.game.mobs
    world.act(Control())
    assert world.game.mobs == [("cow", 5.0, 9.0)]
    world.act(Control())
    assert world.game.chats[1].startswith("/spreadplayers 5.0 9.0")
    world.command("give", name="beef", count=2)
    assert world.act(Control()).inventory["beef"] == 2
    with pytest.raises(UserError, match="no command"):
        world.command("dance")


def test_what_was_spawned_can_leave() -> None:
    world = Faked()
    world.reset(0)
    world.command("spawn", name="cow", x=5.0, z=9.0, stay=10)
    for _ in range(12):
        world.act(Control())
    assert [line for line in world.game.chats if line.startswith("/kill")] == ["/kill @e[tag=agentexp1]"]
    assert world.truth() == {}


def test_the_right_thing_in_hand() -> None:
    world = Faked()
    world.reset(0)
    world.command("hold", name="diamond_sword")
    world.act(Control(attack=True))
    world.act(Control(attack=True))
    assert [int(action["hotbar.2"]) for action in world.game.actions] == [1, 0]
    with pytest.raises(UserError, match="bucket, diamond_sword"):
        world.command("hold", name="axe")


def test_the_set_up_comes_before_the_first_frame() -> None:
    world = Faked(mobs={"cow": 10}, setup=["gamerule doDaylightCycle false"])
    frame = world.reset(1)
    assert frame.tick == 0
    assert world.game.chats[0] == "/gamerule doDaylightCycle false"
    first = list(world.game.mobs)
    assert len(first) == 10 and all(abs(x - 0.5) <= 20 and abs(z - 0.5) <= 20 for _, x, z in first)
    world.reset(1)
    assert world.game.mobs == first
    world.reset(2)
    assert world.game.mobs != first


def test_a_death_leaves_a_body_that_does_nothing() -> None:
    world = Faked(fails="death")
    world.reset(0)
    last = world.act(Control(forward=1))
    assert last.info["done"]
    ticks = world.game.ticks
    after = world.act(Control(forward=1))
    assert after.tick == last.tick + 1 and after.pose == last.pose and world.game.ticks == ticks
    assert "done" not in world.reset(0).info


def test_a_lost_connection_is_the_harness_and_the_next_reset_starts_anew() -> None:
    world = Faked(fails="step")
    world.reset(0)
    with pytest.raises(EngineError, match="Connection timed out"):
        world.act(Control())
    assert world.made[0].closed == 1
    world.fails = ""
    world.reset(0)
    world.act(Control())
    assert len(world.made) == 2


def test_a_client_that_does_not_start_is_explained() -> None:
    world = Faked(fails="reset")
    with pytest.raises(EngineError, match=r"EOFError.*JDK 8.*xvfb.*Gradle"):
        world.reset(0)
    assert world.made[0].closed == 1


def test_acting_before_a_reset() -> None:
    with pytest.raises(EngineError, match="not reset"):
        Faked().act(Control())
    with pytest.raises(EngineError, match="not reset"):
        Faked().picture()


def test_the_explorer_explores_it() -> None:
    world = Faked(size=32, turn_per_step=10.0)
    episode = explore(world, WiseExplorer(turn_per_step=10.0), 5, 1500, Navigator(turn_per_step=10.0))
    assert episode.coverage.final > 0.5
    assert episode.total == 32 * 32


def test_the_whole_agent_does_a_task_in_it() -> None:
    """Memory, scheduler, explorer and a learned controller (scripted here) on the adapter: explore, recognise, execute."""
    import asyncio

    from agentexp.wise.agent import WiseAgent
    from agentexp.wise.controllers.actions import encode
    from agentexp.wise.controllers.minecraft import MinecraftController
    from agentexp.wise.episode import Trial
    from agentexp.wise.memory.memories import FeatureMemory
    from agentexp.wise.scheduler import FixedOrder
    from agentexp.wise.tasks import abc_sparse

    class Later:
        """Every picture after the 100th looks like a tree."""

        dimension = 2

        def picture(self, image: np.ndarray) -> np.ndarray:
            return np.eye(2, dtype=np.float32)[int(image.max() < 100)]

        def text(self, text: str) -> np.ndarray:
            return np.eye(2, dtype=np.float32)[0]

    class Chops:
        def begin(self, goal: object) -> None:
            self.goal = goal

        def act(self, image: np.ndarray) -> tuple[int, int]:
            return encode(Control(attack=True))

    world, skill = Faked(size=64), Chops()
    agent = WiseAgent(
        memory=FeatureMemory(encoder=Later(), threshold=0.5),
        explorer=WiseExplorer(turn_per_step=10.0),
        scheduler=FixedOrder(),
        controller=MinecraftController(skill=skill, hold={"*": 2}),
    )
    task = abc_sparse(order=["log"], spawn_tick=20, spawn_stays=50)
    trial = Trial(world, task, agent, 2000)
    trial.begin(3)
    while not trial.over:
        asyncio.run(trial.advance(200))
    record = asyncio.run(trial.finish())
    assert record["success"] and 160 <= record["steps"] <= 400
    assert skill.goal == "cut a tree" and record["agent"]["mode_share"]["explore"] > 0.2
    assert any(int(action["hotbar.2"]) for action in world.game.actions)
    assert [mob[0] for mob in world.game.mobs] == ["cow", "cow"]
    assert sum(line.startswith("/kill @e[tag=") for line in world.game.chats) == 2


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"generator": "void"}, "generator"),
        ({"biome": "moon"}, "biome"),
        ({"generator": "file"}, "file"),
        ({"weather": "fog"}, "weather"),
        ({"resolution": [8, 8]}, "resolution"),
        ({"hotbar": ["dirt"] * 10}, "hotbar"),
        ({"size": 4}, "size"),
        ({"start_time": 24_000}, "start_time"),
        ({"origin": [1]}, "origin"),
    ],
)
def test_wrong_settings_are_named(settings: dict[str, object], word: str) -> None:
    with pytest.raises(UserError, match=rf"world\.{word}"):
        MineRLWorld(**settings)  # type: ignore[arg-type]


def test_without_the_package_a_reset_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "minerl", None)
    with pytest.raises(MissingDependency, match=r"minerl==0\.4\.4"):
        MineRLWorld().reset(0)


# ----------------------------------------------------------------------------------------------- with the real package


def real(mission: Mission | None = None):  # type: ignore[no-untyped-def]
    pytest.importorskip("minerl", reason="MineRL 0.4.4 is not installed (docs/wise-minecraft.md)")
    from agentexp.wise.worlds.minerl.mission import specification

    return specification(mission or Mission(hotbar=("bucket", "diamond_sword")))


def test_the_real_specification() -> None:
    spec = real()
    assert set(spec.observation_space.spaces) == {"pov", "inventory", "location_stats"}
    assert spec.observation_space.spaces["pov"].shape == (360, 640, 3)
    assert {"water_bucket", "log", "beef", "mutton", "sand"} <= set(spec.observation_space.spaces["inventory"].spaces)
    assert set(spec.action_space.spaces) == {*KEYS, "camera", "chat"}
    spec.action_space.seed(3)


def test_the_real_mission() -> None:
    real()
    from lxml import etree

    for mission, generator in (
        (Mission(hotbar=("bucket", "diamond_sword")), '<BiomeGenerator forceReset="true" biome="1"/>'),
        (Mission(generator="default", time_passes=False, start_time=6000), "<DefaultWorldGenerator "),
        (Mission(generator="flat"), "<FlatWorldGenerator "),
        (Mission(generator="file", file="/maps/pond"), 'src="/maps/pond"'),
    ):
        text = real(mission).to_xml()
        etree.fromstring(text.encode())
        assert generator in text
        assert "<ChatCommands/>" in text and "<HumanLevelCommands/>" in text and "<ObservationFromFullStats/>" in text
        assert ("<StartTime>6000</StartTime>" in text) == (mission.start_time == 6000)
    text = real().to_xml()
    assert '<InventoryObject slot="0" type="bucket"' in text and '<InventoryObject slot="1" type="diamond_sword"' in text


def test_the_real_package_reads_malmos_answers_and_writes_its_commands() -> None:
    """On an answer that MineRL ships for its own tests; the client is the only part that is left out."""
    import copy

    spec = real(Mission(resolution=(64, 64)))
    from minerl.env._fake import _FakeSingleAgentEnv

    class Recorded(_FakeSingleAgentEnv):  # type: ignore[misc]
        said: list[str] = []  # noqa: RUF012

        def close(self) -> None:
            """There is no client."""

        def _get_fake_malmo_data(self) -> dict[str, object]:
            # The recording is of a mission without full statistics; these are Malmo's names (JSONWorldDataHelper.java).
            place = {"xpos": 30.5, "ypos": 71.0, "zpos": -8.25, "yaw": 450.0, "pitch": 12.0}
            return {**copy.deepcopy(self._fake_malmo_data), **place}

        def _process_action(self, actor: str, action: dict[str, object]) -> str:
            self.said.append(super()._process_action(actor, action))
            return self.said[-1]

    class OnRecorded(MineRLWorld):
        def _make(self) -> Recorded:
            return Recorded(env_spec=spec)

    world = OnRecorded(resolution=[64, 64])
    frame = world.reset(5)
    assert frame.image is not None and frame.image.shape == (64, 64, 3) and 0 < frame.image.mean() < 255
    assert frame.pose == Pose(30.5, 71.0, -8.25, 90.0, 12.0)
    world.command("spawn", name="cow", x=1.0, z=2.0)
    world.command("hold", name="diamond_sword")
    world.act(Control(forward=1, turn=3.0, look=-2.0, attack=True))
    lines = Recorded.said[-1].split("\n")
    assert {"forward 1", "attack 1", "camera -2.0 3.0", "hotbar.2 1", "jump 0"} <= set(lines)
    assert sum(line.startswith("chat /summon minecraft:cow 1.0 ") for line in lines) == 1
    world.act(Control())
    assert any(line.startswith("chat /spreadplayers") for line in Recorded.said[-1].split("\n"))
    world.act(Control())
    assert "chat" not in Recorded.said[-1]
    world.close()


@pytest.mark.engine
def test_the_real_client_starts_or_says_why() -> None:
    real()
    world = MineRLWorld()
    try:
        frame = world.reset(0)
    except EngineError as error:
        assert "JDK 8" in str(error) and len(str(error)) < 900
        return
    assert frame.image is not None
    world.close()
