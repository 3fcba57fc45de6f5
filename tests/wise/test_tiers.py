import numpy as np
import pytest
from scipy import ndimage

from agentexp.wise.core import Pose
from agentexp.wise.explore.frontier import Frontier, Reach, box_sum, frontier
from agentexp.wise.explore.keynodes import KeyNodes
from agentexp.wise.explore.quadtree import Quadtree
from agentexp.wise.explore.regions import Regions, remainder
from agentexp.wise.explore.voronoi import Voronoi
from agentexp.wise.seen import SeenMap


def blobs(size: int, seed: int, seen: float = 0.6) -> SeenMap:
    """A map of which about a share is seen, in blobs."""
    noise = ndimage.gaussian_filter(np.random.default_rng(seed).normal(size=(size, size)), 4)
    result = SeenMap(size)
    result.paint(np.argwhere(noise < np.quantile(noise, seen)).astype(np.int32))
    return result


# ---------------------------------------------------------------------------------------------------------------- quadtree


@pytest.mark.parametrize(("size", "depth"), [(128, 5), (384, 6), (100, 5)])
def test_counters_equal_recounts(size: int, depth: int) -> None:
    seen, tree = SeenMap(size), Quadtree(size, depth)
    rng = np.random.default_rng(0)
    for _ in range(30):
        tree.remove(seen.paint(rng.integers(0, size, (400, 2)).astype(np.int32)))
    for level in range(depth + 1):
        for _ in range(20):
            i, j = rng.integers(0, 2**level, 2)
            x0, x1, z0, z1 = tree.rectangle(level, int(i), int(j))
            assert tree.counts[level][i, j] == seen.wanted[x0:x1, z0:z1].sum()
            assert tree.cells[level][i, j] == (x1 - x0) * (z1 - z0)


@pytest.mark.parametrize("size", [100, 128])
def test_best_first_search_finds_the_best_leaf(size: int) -> None:
    rng = np.random.default_rng(1)
    for seed in range(12):
        tree = Quadtree(size, 5)
        seen = blobs(size, seed, rng.uniform(0.05, 0.99))
        tree.remove(np.argwhere(~seen.wanted).astype(np.int32))
        for x, z in rng.uniform(0, size, (5, 2)):
            best = tree.best(x, z)
            assert best is not None
            utility = tree.utility(x, z)
            assert utility[best] == pytest.approx(utility.max())


def test_equation_11_by_hand() -> None:
    tree = Quadtree(32, 3)  # leaves of 4 x 4
    x0, _, z0, _ = tree.rectangle(3, 5, 2)
    tree.remove(np.array([[x0, z0], [x0 + 1, z0]], np.int32))
    far = np.hypot(22 - 1, 10 - 1) / (32 * 2**0.5)
    assert tree.utility(1, 1)[5, 2] == pytest.approx(0.6 * 14 / 16 - 0.4 * far)


def test_search_opens_few_nodes_and_skips_what_it_is_told_to() -> None:
    tree = Quadtree(384, 6)
    assert tree.best(100, 200) is not None
    assert tree.visited[-1] < 60 < tree.leaves == 4096
    skip = np.ones((8, 8), bool)
    skip[7, 7] = False
    leaf = tree.best(0, 0, skip=skip)
    assert leaf is not None and leaf[0] >> 3 == 7 and leaf[1] >> 3 == 7
    assert tree.best(0, 0, skip=np.ones((8, 8), bool)) is None


def test_nothing_wanted_no_leaf() -> None:
    tree = Quadtree(16, 2)
    tree.remove(np.argwhere(np.ones((16, 16), bool)).astype(np.int32))
    assert tree.best(3, 3) is None


# ---------------------------------------------------------------------------------------------------------------- frontier


def test_frontier_cells_are_unseen_and_touch_seen_ground() -> None:
    for seed in range(5):
        seen = blobs(64, seed)
        i, j = frontier(seen, (8, 40, 0, 33))
        assert seen.wanted[i, j].all()
        near = ndimage.binary_dilation(seen.seen)
        assert near[i, j].all()
        expected = (seen.wanted & near)[8:40, 0:33].sum()
        assert len(i) == expected


def test_region_without_frontier_offers_all_its_cells() -> None:
    i, _ = frontier(SeenMap(64), (0, 16, 16, 32))
    assert len(i) == 256


def test_box_sum_is_the_windows_sum() -> None:
    values = np.random.default_rng(0).integers(0, 9, (20, 17)).astype(np.int32)
    sums = box_sum(values, 3)
    assert sums.shape == (14, 11)
    assert sums[4, 5] == values[4:11, 5:12].sum()


def test_steps_until_in_view() -> None:
    reach = Reach(radius=10, angle=70, turn_per_step=30)
    pose = Pose(0, 0, 0, yaw=0)

    def steps(x: float, z: float) -> float:
        return float(reach.steps(pose, np.array([x]), np.array([z]))[0])

    assert steps(0, 9) == 0
    assert steps(0, 25) == pytest.approx(15)
    assert steps(-5, 0) == pytest.approx((90 - 35) / 30)
    assert steps(0, -20) == pytest.approx(10 + (180 - 35) / 30)
    assert Reach(turn_per_step=None).steps(pose, np.array([0.0]), np.array([-9.0]))[0] == 0


def test_equation_12_by_hand() -> None:
    seen = SeenMap(64)
    seen.paint(np.argwhere(np.arange(64)[:, None] < np.full(64, 32)[None]).astype(np.int32))
    tier = Frontier(cover=0.2, novel=0.1, distance=0.7)
    visits = np.zeros((64 + 14, 64 + 14), np.int32)
    visits[7 + 30, 7 + 20] = 3
    i, j = np.array([32]), np.array([20])
    utility = tier.utility(seen, visits, (24, 40, 16, 32), Pose(12.5, 0, 20.5, yaw=-90), i, j)
    cover, novel, distance = 7 * 13 / 169, 1 / 4, 10 / 16
    assert utility[0] == pytest.approx(0.2 * cover + 0.1 * novel - 0.7 * distance)


# ----------------------------------------------------------------------------------------------------------------- regions


def seen_but(size: int, *rectangles: tuple[int, int, int, int]) -> SeenMap:
    """All seen but some rectangles."""
    left = np.zeros((size, size), bool)
    for x0, x1, z0, z1 in rectangles:
        left[x0:x1, z0:z1] = True
    result = SeenMap(size)
    result.paint(np.argwhere(~left).astype(np.int32))
    return result


def test_remainder_leaves_what_is_connected_to_unseen_ground() -> None:
    region = (16, 32, 16, 32)
    open_ = seen_but(64, (30, 60, 20, 24))
    assert remainder(open_, region, 2, 25) is None
    whole = remainder(open_, region, 2, 0)
    assert whole is not None and whole[1].sum() == 8


def test_remainder_keeps_what_is_cut_off_but_for_crumbs() -> None:
    region = (16, 32, 16, 32)
    pocket = seen_but(64, (20, 23, 20, 22), (28, 29, 28, 30))
    found = remainder(pocket, region, 2, 25, crumb=4)
    assert found is not None
    window, mask = found
    at = np.argwhere(mask) + np.array([window[0], window[2]])
    assert sorted(map(tuple, at.tolist())) == [(x, z) for x in (20, 21, 22) for z in (20, 21)]
    beside = seen_but(64, (32, 34, 20, 23))
    assert remainder(beside, region, 4, 25) is not None
    assert remainder(beside, region, 0, 25) is None


def test_the_edge_of_the_map_encloses() -> None:
    assert remainder(seen_but(64, (0, 3, 0, 3)), (0, 16, 0, 16), 2, 25) is not None


def test_regions_go_on_until_nothing_is_wanted() -> None:
    seen = SeenMap(64)
    tree = Quadtree(64, 5)
    regions = Regions(seen, tree, 12, 3, 3.0, 6, 2, 4, Reach())
    pose = Pose(32, 0, 32)
    for _ in range(1000):
        found = regions.left() or regions.next(pose)
        if found is None:
            break
        (x0, _, z0, _), mask = found
        i, j = np.argwhere(mask)[0]
        assert seen.wanted[x0 + i, z0 + j]
        near = np.argwhere(mask)[:7] + np.array([x0, z0])
        tree.remove(seen.paint(near.astype(np.int32)))
    assert seen.left == 0 and regions.finishing


# ------------------------------------------------------------------------------------------------------------------- local


def test_residues_are_enclosed_groups_of_min_area_cut_by_the_nearest_site() -> None:
    seen = seen_but(96, (40, 50, 40, 50), (60, 65, 60, 65), (0, 96, 90, 96))
    sites = np.array([[38, 45], [52, 45]], np.int32)
    found = Voronoi(max_area=512, window=40).residues(seen, sites, None, Pose(45, 0, 30))
    assert sum(len(residue.cells) for residue in found) == 100
    assert all(residue.enclosed for residue in found) and len(found) == 2
    for residue in found:
        to = np.hypot(*(residue.cells[:, None] - sites[None]).transpose(2, 0, 1)).argmin(1)
        assert len(set(to.tolist())) == 1
    assert [r.utility for r in found] == sorted((r.utility for r in found), reverse=True)


def test_the_region_is_searched_even_where_open() -> None:
    seen = seen_but(96, (40, 96, 40, 50))
    sites = np.array([[30, 45]], np.int32)
    assert Voronoi(window=20).residues(seen, sites, None, Pose(45, 0, 30)) == []
    found = Voronoi(window=20).residues(seen, sites, (40, 48, 40, 48), Pose(45, 0, 30))
    assert len(found) == 1 and len(found[0].cells) == 64


def test_equation_13_by_hand() -> None:
    seen = seen_but(96, (44, 52, 60, 70))
    found = Voronoi(area=0.5, distance=0.5, max_area=400, window=40).residues(
        seen, np.array([[0, 0]], np.int32), None, Pose(48.5, 0, 40.5, yaw=0)
    )
    assert found[0].utility == pytest.approx(0.5 * 80 / 400 - 0.5 * 10 / 80)


def test_key_nodes_stand_for_their_square_and_get_visited() -> None:
    seen = SeenMap(32)
    seen.block(np.array([[3, 3]], np.int32))
    nodes = KeyNodes(32)
    new = seen.paint(np.array([[3, 3], [4, 4], [5, 5], [20, 20]], np.int32))
    nodes.observe(seen, new, 30, 30)
    assert sorted(nodes.sites().tolist()) == [[4, 4], [20, 20]]
    assert nodes.unvisited(seen, 6, 6) == (4, 4)
    nodes.observe(seen, new[:0], 6, 6)
    assert nodes.unvisited(seen, 6, 6) == (20, 20)
    nodes.observe(seen, new[:0], 20, 21)
    assert nodes.unvisited(seen, 6, 6) is None
