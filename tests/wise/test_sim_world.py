import time

import numpy as np
import pytest

from agentexp.errors import UserError
from agentexp.wise.core import Control, Frame, VoxelWorld
from agentexp.wise.knowledge import KnowledgeBase
from agentexp.wise.vlm.simulated import Witness
from agentexp.wise.worlds.sim.hands import DIG
from agentexp.wise.worlds.sim.materials import NAMES, WATER
from agentexp.wise.worlds.sim.mobs import KINDS
from agentexp.wise.worlds.sim.terrain import Recipe, Terrain
from agentexp.wise.worlds.sim.world import SimWorld


def play(seed: int, ticks: int = 120, **settings: object) -> list[tuple[object, ...]]:
    world = SimWorld(cows=2, **settings)  # type: ignore[arg-type]
    rng = np.random.default_rng(1)
    frames = [world.reset(seed)]
    for _ in range(ticks):
        control = Control(1.0, float(rng.normal(0, 8)), float(rng.normal(0, 3)), rng.random() < 0.3, rng.random() < 0.3)
        frames.append(world.act(control))
    return [
        (f.pose, f.cells.tolist(), f.blocked.tolist(), dict(f.inventory), None if f.image is None else f.image.tobytes())
        for f in frames
    ]


def test_protocols() -> None:
    world = SimWorld()
    assert isinstance(world, VoxelWorld) and isinstance(world, Witness)
    with pytest.raises(UserError, match="reset"):
        world.truth()


def test_equal_seeds_make_equal_episodes() -> None:
    assert play(3) == play(3)
    assert play(3, 5) != play(4, 5)


def test_rendering_does_not_change_what_happens() -> None:
    often, seldom = play(5), play(5, picture_every=7)
    assert [frame[:4] for frame in often] == [frame[:4] for frame in seldom]
    assert [frame[4] for frame in often[::7]] == [frame[4] for frame in seldom[::7]]
    assert seldom[1][4] is None


def test_one_map_for_all_seeds() -> None:
    world = SimWorld(map_seed=7)
    first, poses = None, []
    for seed in (1, 2):
        poses.append(world.reset(seed).pose)
        height = world.truth()["height"]
        first = height if first is None else first
        assert np.array_equal(first, height)
    assert poses[0] != poses[1]


def test_the_ground_can_be_walked_and_has_what_tasks_need() -> None:
    for seed in range(5):
        terrain = Terrain(128, 44, Recipe(), seed)
        ground = terrain.ground
        for a, b in ((ground[1:], ground[:-1]), (ground[:, 1:], ground[:, :-1]), (ground[1:, 1:], ground[:-1, :-1])):
            assert np.abs(a - b).max() <= 1
        names = {NAMES[int(code)] for code in np.unique(terrain.inner(terrain.material))}
        assert {"grass", "sand", "stone", "water", "tallgrass"} <= names
        assert 40 <= len(terrain.trees) <= 60
        water = int((terrain.inner(terrain.material) == WATER).sum())
        assert 60 <= water <= 600
        world = SimWorld()
        world.reset(seed)
        truth = world.truth()
        assert truth["observable"].mean() > 0.97 and truth["passable"].mean() > 0.9


def test_ponds_and_forests_keep_their_distance() -> None:
    for seed in range(3):
        terrain = Terrain(128, 44, Recipe(ponds=1, apart=100), seed)
        water = np.argwhere(terrain.inner(terrain.material) == WATER)
        trees = np.array(list(terrain.trees))
        assert np.hypot(*(water[:, None] - trees[None]).transpose(2, 0, 1)).min() >= 100
    with pytest.raises(UserError, match=r"world\.apart"):
        Terrain(128, 44, Recipe(apart=150), 0)


@pytest.mark.parametrize("seed", range(4))
def test_a_body_is_never_in_a_tree_or_in_water_and_climbs_one_block_at_most(seed: int) -> None:
    world = SimWorld(picture_every=0)
    frame = world.reset(seed)
    passable, height = world.truth()["passable"], world.truth()["height"]
    rng = np.random.default_rng(seed)
    told = np.zeros_like(passable)
    before = height[frame.pose.cell]
    for _ in range(1500):
        frame = world.act(Control(1.0, float(rng.normal(0, 6)), jump=rng.random() < 0.5))
        x, z = frame.pose.x, frame.pose.z
        for a in (-0.29, 0.29):
            for b in (-0.29, 0.29):
                assert passable[int(x + a), int(z + b)]
        here = height[frame.pose.cell]
        assert here <= before + 1
        assert here - 1e-6 <= frame.pose.y <= here + 2.5
        before = here
        told[frame.blocked[:, 0], frame.blocked[:, 1]] = True
    assert told.any() and not (told & passable).any()


def test_steps_need_a_jump_and_speed_is_minecrafts() -> None:
    world = SimWorld(picture_every=0)
    frame = world.reset(0)
    height = world.truth()["height"]
    steps = np.argwhere((height[1:-1] - height[:-2] == 1) & (height[2:] == height[1:-1]) & world.truth()["passable"][1:-1])
    for x, z in steps:
        if world.truth()["passable"][x, z]:
            break
    world.stand(x + 0.5, z + 0.5, yaw=-90)
    frame = world.act(Control())
    assert frame.pose.cell == (x, z)
    for _ in range(20):
        frame = world.act(Control(forward=1.0))
    assert frame.pose.cell == (x, z) and frame.pose.x == pytest.approx(x + 0.7, abs=0.25)
    for _ in range(12):
        frame = world.act(Control(forward=1.0, jump=True))
    assert frame.pose.x > x + 1
    lengths = []
    for _ in range(50):
        old = frame.pose
        frame = world.act(Control(forward=1.0, turn=3))
        lengths.append(frame.pose.distance(old.x, old.z))
    assert max(lengths) <= 0.215 + 1e-9 and np.mean([n for n in lengths if n > 0.1]) == pytest.approx(0.188, abs=0.01)


def test_turning_is_limited_and_the_origin_is_added() -> None:
    world = SimWorld(origin=[-1000, 500])
    frame = world.reset(0)
    after = world.act(Control(turn=90, look=-50))
    assert (after.pose.yaw - frame.pose.yaw) % 360 == pytest.approx(9) and after.pose.pitch == pytest.approx(-9)
    assert -1000 <= after.pose.x < -872 and 500 <= after.pose.z < 628
    assert (after.cells >= (-1000, 500)).all() and (after.cells < (-872, 628)).all()
    free = SimWorld(turn_per_step=None)
    frame = free.reset(0)
    assert (free.act(Control(turn=170)).pose.yaw - frame.pose.yaw) % 360 == pytest.approx(170)


def cow(world: SimWorld) -> dict[str, float]:
    return next(thing for thing in world.truth()["things"] if thing["name"] == "cow")


def test_cows_come_by_command_only_near_the_agent_on_free_ground() -> None:
    for seed in range(10):
        world = SimWorld(origin=[100, -50], picture_every=0)
        frame = world.reset(seed)
        assert not any(thing["name"] == "cow" for thing in world.truth()["things"])
        world.command("spawn", name="cow")
        at = cow(world)
        assert frame.pose.distance(at["x"], at["z"]) <= 30.8
        assert world.truth()["passable"][int(at["x"]) - 100, int(at["z"]) + 50]
    world.command("spawn", name="cow", x=164.2, z=14.9)
    last = [thing for thing in world.truth()["things"] if thing["name"] == "cow"][-1]
    assert np.hypot(last["x"] - 164.2, last["z"] - 14.9) < 15


def test_a_cow_leaves_when_its_time_is_up() -> None:
    world = SimWorld(picture_every=0, stay_ticks=40)
    world.reset(0)
    world.command("spawn", name="cow")
    world.command("spawn", name="cow", stay=60)
    counts = []
    for _ in range(61):
        world.act(Control())
        counts.append(sum(thing["name"] == "cow" for thing in world.truth()["things"]))
    assert counts[38] == 2 and counts[40] == 1 and counts[60] == 0


def test_mobs_stay_on_free_ground_and_move() -> None:
    world = SimWorld(picture_every=0, cows=20)
    world.reset(1)
    start = {thing["number"]: (thing["x"], thing["z"]) for thing in world.truth()["things"] if "number" in thing}
    passable = world.truth()["passable"]
    for _ in range(400):
        world.act(Control())
    for thing in world.truth()["things"]:
        if "number" in thing:
            assert passable[int(thing["x"]), int(thing["z"])]
    moved = [
        np.hypot(t["x"] - start[t["number"]][0], t["z"] - start[t["number"]][1])
        for t in world.truth()["things"]
        if "number" in t
    ]
    assert np.median(moved) > 0.5 and max(moved) < 400 * 0.06 + 1


def beside(world: SimWorld, x: float, z: float, far: float = 2.0) -> Frame:
    """Stand near a place on a free cell and look at its foot."""
    for angle in np.linspace(0, 2 * np.pi, 16, endpoint=False):
        world.stand(x + far * np.cos(angle), z + far * np.sin(angle), 0)
        pose = world.act(Control()).pose
        if pose.distance(x, z) < far + 0.8:
            break
    return aim_at(world, x, z)


def aim_at(world: SimWorld, x: float, z: float, up: float = 0.7) -> Frame:
    body = world.body
    body.yaw = float(np.degrees(np.arctan2(body.x - x, z - body.z)))
    height = world.truth()["height"][int(x), int(z)] + up
    body.pitch = float(np.degrees(np.arctan2(body.y + 1.62 - height, np.hypot(x - body.x, z - body.z))))
    return world.act(Control())


def test_a_hit_cow_flees_and_leaves_beef_behind() -> None:
    world = SimWorld(picture_every=0)
    world.reset(2)
    world.command("spawn", name="cow", x=64, z=64)
    for _ in range(200):
        at = cow(world) if any(t["name"] == "cow" for t in world.truth()["things"]) else None
        if at is None:
            break
        beside(world, at["x"], at["z"])
        before = world.body.x, world.body.z
        world.act(Control(attack=True))
        if any(t["name"] == "cow" for t in world.truth()["things"]):
            hurt = cow(world)
            for _ in range(20):
                world.act(Control())
            fled = cow(world)
            assert (
                np.hypot(fled["x"] - before[0], fled["z"] - before[1])
                > np.hypot(hurt["x"] - before[0], hurt["z"] - before[1]) - 1
            )
    drops = [t for t in world.truth()["things"] if t["name"] == "beef"]
    assert 1 <= len(drops) <= 3
    world.stand(drops[0]["x"], drops[0]["z"], 0)
    assert world.act(Control()).inventory["beef"] >= 1


def test_a_log_takes_three_seconds_and_a_tree_has_as_many_as_it_is_high() -> None:
    world = SimWorld(picture_every=0)
    world.reset(0)
    tree = next(iter(world._ground().trees.values()))
    beside(world, tree.x + 0.5, tree.z + 0.5, 1.5)
    ticks = 0
    while not world.act(Control(attack=True)).inventory.get("log"):
        ticks += 1
        assert ticks < 70
    assert ticks >= 58
    trees = len(world._ground().trees)
    for _ in range(60 * tree.height):
        frame = world.act(Control(attack=True))
    assert frame.inventory["log"] == tree.height and len(world._ground().trees) == trees - 1
    assert world.truth()["passable"][tree.x, tree.z]


def test_water_is_taken_with_a_bucket_within_reach() -> None:
    world = SimWorld(picture_every=0, tools={"bucket": 1})
    world.reset(0)
    x, z, radius = world.truth()["ponds"][0]
    beside(world, x, z, radius + 1.5)
    assert world.act(Control(use=True)).inventory.get("water_bucket") is None  # the middle of the pond is out of reach
    aim_at(world, world.body.x + (x - world.body.x) * 0.4, world.body.z + (z - world.body.z) * 0.4, 0.0)
    found = [world.act(Control(use=True, look=-1.0)).inventory for _ in range(30)][-1]
    assert found.get("water_bucket") == 1 and "bucket" not in found


def test_sheep_are_sheared_once() -> None:
    world = SimWorld(picture_every=0, sheep=0)
    world.reset(3)
    world.command("spawn", name="sheep", x=60, z=60)
    counts = []
    for _ in range(6):
        sheep = next(t for t in world.truth()["things"] if t["name"] == "sheep")
        beside(world, sheep["x"], sheep["z"])
        counts.append(world.act(Control(use=True)).inventory.get("wool", 0))
    assert 1 <= counts[-1] <= 3 and counts[-1] == max(counts)


def test_the_knowledge_base_knows_every_drop_of_this_world() -> None:
    for version in ("1.11.2", "1.16.5"):
        base = KnowledgeBase(version)
        pairs = {(kind, drop[0]) for kind in KINDS for drop in KINDS[kind].drops}
        pairs |= {(kind, KINDS[kind].product) for kind in KINDS if KINDS[kind].product}
        pairs |= {(NAMES[code], item) for code, (_, item) in DIG.items()} | {("water", "water_bucket")}
        for thing, item in pairs:
            name = base.source(thing)
            assert name is not None
            assert item in {fact[2] for fact in base.outcomes(name)}, (version, thing, item)


def test_wrong_settings_are_named() -> None:
    for settings, word in (
        ({"size": 20}, "size"),
        ({"spawn": "here"}, "spawn"),
        ({"turn_per_step": 0}, "turn_per_step"),
        ({"picture": [4, 4]}, "picture"),
        ({"terrain": {"lakes": 3}}, "lakes"),
        ({"terrain": {"ponds": -1}}, "ponds"),
        ({"sheep": -1}, "animals"),
    ):
        with pytest.raises(UserError, match=word):
            SimWorld(**settings)  # type: ignore[arg-type]
    world = SimWorld()
    world.reset(0)
    with pytest.raises(UserError, match="rain"):
        world.command("rain")
    with pytest.raises(UserError, match="dragon"):
        world.command("spawn", name="dragon")


def test_a_tick_costs_little_more_than_the_arrays_it_needs() -> None:
    """As a ratio to the bare work of one look-up of the field of view, so that a slow machine changes nothing."""
    world = SimWorld(picture_every=0)
    world.reset(0)
    ground = world._ground()
    offsets = np.random.default_rng(0).integers(-9, 10, (63, 2)).astype(np.int32)

    def floor() -> None:
        for _ in range(10):
            (ground.top[offsets[:, :1] + np.arange(100, 111), offsets[:, 1:] + 100] <= 70).all(axis=1)

    def act() -> None:
        world.act(Control(forward=1.0, turn=3.0))

    def best(work: object) -> float:
        times = []
        for _ in range(60):
            started = time.perf_counter()
            work()  # type: ignore[operator]
            times.append(time.perf_counter() - started)
        return float(np.percentile(times, 20))

    assert best(act) < 5 * best(floor)
