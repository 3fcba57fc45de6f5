import time

import numpy as np
import pytest

from agentexp.wise.core import Control
from agentexp.wise.worlds.sim.camera import Camera, Figure, View
from agentexp.wise.worlds.sim.materials import GRASS, LEAVES, MOBS, NAMES, STONE, TRUNK, WATER
from agentexp.wise.worlds.sim.rays import Eye, Rays
from agentexp.wise.worlds.sim.terrain import Recipe, Terrain, Tree
from agentexp.wise.worlds.sim.world import SimWorld

BARE = Recipe(relief=0, ponds=0, forests=0, deserts=0, quarries=0, boulders=0, tallgrass=0)
EYE = Eye(64.5, 64.5, 64 + 1.62, 0.0, 0.0)  # looks south, to greater z


def plain() -> Terrain:
    return Terrain(128, 54, BARE, 0)


def cow(far: float, right: float = 0.0, number: int = 0, heading: float = 90.0) -> Figure:
    return Figure("cow", number, EYE.x - right, 64.0, EYE.z + far, heading, 1.5, 0.9, 1.4)


def look(terrain: Terrain, *figures: Figure, eye: Eye = EYE, size: tuple[int, int] = (64, 32), light: float = 1.0) -> View:
    return Camera(*size, noise=0).view(eye, terrain, figures, light, 0)


def raised(terrain: Terrain, x: int, z: int, height: float) -> None:
    terrain.ground[x + terrain.pad, z + terrain.pad] += height
    terrain.top[x + terrain.pad, z + terrain.pad] += height


def reference(terrain: Terrain, eye: Eye, rays: Rays) -> tuple[np.ndarray, np.ndarray]:
    """Depth and whether leaves are hit, by marching each pixel's ray in small steps."""
    ahead = np.array(eye.forward)
    right = np.array([-ahead[1], ahead[0]])
    depth = np.full((rays.height, rays.width), np.inf)
    leaf = np.zeros(depth.shape, bool)
    t = np.arange(0.002, rays.distance, 0.004)
    for c in range(rays.width):
        way = ahead + right * rays.across[c]
        i = np.floor(eye.x + way[0] * t).astype(int) + terrain.pad
        j = np.floor(eye.z + way[1] * t).astype(int) + terrain.pad
        for r in range(rays.height):
            y = eye.height - (rays.down[r] + np.tan(np.deg2rad(eye.pitch))) * t
            leaves = (y < terrain.leaf_high[i, j]) & (y > terrain.leaf_low[i, j]) & (y > terrain.top[i, j])
            hit = np.flatnonzero((y <= terrain.top[i, j]) | leaves)
            if len(hit):
                depth[r, c], leaf[r, c] = t[hit[0]], leaves[hit[0]]
    return depth, leaf


@pytest.mark.parametrize(("seed", "yaw", "pitch"), [(0, 20.0, 0.0), (1, 200.0, 15.0), (2, 301.0, -10.0), (3, 90.0, 40.0)])
def test_the_march_equals_small_steps_along_every_ray(seed: int, yaw: float, pitch: float) -> None:
    terrain = Terrain(128, 54, Recipe(trees=80, forest_radius=20), seed)
    x, z, _ = terrain.forests[0]
    cell = int(x) + 3, int(z) - 4
    eye = Eye(cell[0] + 0.31, cell[1] + 0.77, float(terrain.ground[cell[0] + 54, cell[1] + 54]) + 1.62, yaw, pitch)
    if terrain.solid[cell[0] + 54, cell[1] + 54]:
        pytest.skip("the camera would stand in a tree")
    rays = Rays(24, 16, 70, 30)
    hits = rays.cast(eye, terrain)
    depth, leaf = reference(terrain, eye, rays)
    both = np.isfinite(depth) & np.isfinite(hits.depth)
    # Grazing rays may miss an edge that the small steps hit, or the other way round.
    assert (np.isfinite(depth) == np.isfinite(hits.depth)).mean() > 0.985
    close = np.abs(depth[both] - hits.depth[both]) < 0.03 + 0.01 * depth[both]
    assert close.mean() > 0.985
    assert (leaf == hits.leaf).mean() > 0.985


def test_flat_ground_is_where_geometry_says() -> None:
    view = look(plain())
    rays = Camera().rays
    below = np.flatnonzero(rays.down > 0.045)
    assert np.allclose(view.depth[below].T, 1.62 / rays.down[below], rtol=1e-4)
    assert (view.shown[below] == GRASS).all()
    assert (view.shown[rays.down < 0] == 0).all() and np.isinf(view.depth[rays.down < 0]).all()


def test_a_nearer_cow_covers_more_pixels() -> None:
    counts = [int((look(plain(), cow(far)).shown == MOBS).sum()) for far in (3, 5, 8, 12, 20, 30)]
    assert counts == sorted(counts, reverse=True) and counts[0] > 100 > counts[-1] > 0
    assert not (look(plain(), cow(50)).shown == MOBS).any()
    assert not (look(plain(), cow(-5)).shown == MOBS).any()


def test_right_is_right() -> None:
    shown = look(plain(), cow(8, right=3)).shown == MOBS
    assert np.nonzero(shown)[1].mean() > 40
    turned = look(plain(), cow(8), eye=Eye(EYE.x, EYE.z, EYE.height, 20.0, 0.0)).shown == MOBS
    assert np.nonzero(turned)[1].mean() < 25  # turned to the right, it is on the left
    down = look(plain(), cow(8), eye=Eye(EYE.x, EYE.z, EYE.height, 0.0, 12.0)).shown == MOBS
    assert np.nonzero(down)[0].mean() < np.nonzero(look(plain(), cow(8)).shown == MOBS)[0].mean()


def test_a_cow_looks_different_from_each_side() -> None:
    side, front = (look(plain(), cow(6, heading=heading)).shown == MOBS for heading in (90.0, 180.0))
    assert np.ptp(np.nonzero(side)[1]) > 1.3 * np.ptp(np.nonzero(front)[1])
    left, right = (look(plain(), cow(4, heading=heading), size=(160, 90)).image for heading in (-90.0, 90.0))
    assert np.abs(left.astype(int) - right).max() > 50 and np.array_equal(left[:, :50], right[:, :50])


def test_the_nearer_of_two_hides_the_other() -> None:
    for order in (1, -1):
        figures = [cow(6, number=0), cow(10, number=1)][::order]
        view = look(plain(), *figures)
        assert (view.shown == MOBS).sum() == view.whole[MOBS]
        assert (view.shown == MOBS + 1).sum() < view.whole[MOBS + 1]
        assert view.depth[view.shown == MOBS] == pytest.approx(6)


def test_what_is_behind_a_hill_is_not_seen() -> None:
    terrain = plain()
    for x in range(40, 90):
        raised(terrain, x, 70, 3)
    view = look(terrain, cow(12))
    assert not (view.shown == MOBS).any() and view.whole[MOBS] > 0
    half = plain()
    raised(half, 64, 74, 1)  # a block as high as its legs and half of its body
    view = look(half, cow(12))
    assert 0 < (view.shown == MOBS).sum() < view.whole[MOBS]


def test_a_tree_has_a_trunk_and_leaves_above_it() -> None:
    terrain = plain()
    terrain.trees[64, 72] = Tree(64, 72, 5, 5)
    terrain._settle()
    view = look(terrain, size=(160, 120))
    trunk, leaves = np.argwhere(view.shown == TRUNK), np.argwhere(view.shown == LEAVES)
    assert len(trunk) and len(leaves) and leaves[:, 0].mean() < trunk[:, 0].mean()
    assert view.depth[view.shown == TRUNK] == pytest.approx(7.5, abs=0.01)
    covered = look(terrain, cow(9.5), size=(160, 120))
    assert 0 < (covered.shown == MOBS).sum() < covered.whole[MOBS]


def test_fog_night_and_water_change_colours_only() -> None:
    terrain = plain()
    terrain.material[100:140, 125:140] = WATER
    day, night = look(terrain), look(terrain, light=0.3)
    assert np.array_equal(day.shown, night.shown) and night.image.mean() < 0.5 * day.image.mean()
    wet = day.image[day.shown == WATER].astype(float)
    assert (wet[:, 2] > wet[:, 0]).all()
    near, far = (day.image[row, :, 1].std() for row in (31, 18))
    assert near > far


def test_boulders_are_stone_on_all_sides() -> None:
    terrain = plain()
    raised(terrain, 64, 70, 0)
    terrain.top[64 + 54, 70 + 54] += 3
    terrain.material[64 + 54, 70 + 54] = STONE
    view = look(terrain)
    assert (view.shown == STONE).sum() > 50 and not (view.shown == TRUNK).any()


def test_sightings_count_the_segmentation() -> None:
    world = SimWorld(cows=30)
    for seed in range(4):
        world.reset(seed)
        for _ in range(40):
            world.act(Control(forward=1, turn=8))
        view = world.view()
        counted: dict[str, int] = {}
        names = {MOBS + int(n): name for n, name in zip(world.herd.number, world.herd.names, strict=True)}
        for code in view.shown.ravel().tolist():
            name = names.get(code) or NAMES.get(code)
            if name:
                counted[name] = counted.get(name, 0) + 1
        said: dict[str, int] = {}
        for sighting in world.sightings():
            assert 0 < sighting.visible <= 1
            said[sighting.name] = said.get(sighting.name, 0) + sighting.pixels
        assert said == counted


def test_pictures_of_any_size() -> None:
    world = SimWorld(noise=0)
    world.reset(0)
    assert world.picture().shape == (32, 64, 3) and world.picture().dtype == np.uint8
    large = world.render(320, 180)
    assert large.shape == (180, 320, 3)
    small = world.picture().astype(float).mean(axis=(0, 1))
    middle = large[10:170].astype(float).mean(axis=(0, 1))  # 16:9 is lower than 2:1 is wide
    assert np.abs(small - middle).max() < 25


def test_a_picture_costs_little_more_than_its_arrays() -> None:
    """As a ratio to a sort and a search of the same sizes, so that a slow machine changes nothing."""
    terrain = Terrain(128, 54, Recipe(), 0)
    camera = Camera()
    rng = np.random.default_rng(0)
    borders, keys = rng.random((64, 100)).astype(np.float32), np.sort(rng.random(64 * 70))

    def floor() -> None:
        np.sort(borders, axis=1)
        np.searchsorted(keys, borders.ravel()[: 64 * 32])
        rng.random((64, 32, 3)) * borders[0, 0]

    def best(work: object) -> float:
        times = []
        for _ in range(40):
            started = time.perf_counter()
            work()  # type: ignore[operator]
            times.append(time.perf_counter() - started)
        return float(np.percentile(times, 20))

    assert best(lambda: camera.view(EYE, terrain, [cow(8)], 1.0, 0)) < 25 * best(floor)
