import numpy as np
import pytest

from agentexp.wise.explore.count_based import fill, pentagon
from agentexp.wise.seen import FieldOfView, SeenMap, sector


def cells(yaw: float, **settings: object) -> set[tuple[int, int]]:
    return {(int(x), int(z)) for x, z in sector(yaw, **settings)}  # type: ignore[arg-type]


@pytest.mark.parametrize(("yaw", "count"), [(0, 61), (90, 61), (180, 61), (270, 61), (9, 58), (12, 63)])
def test_sector_has_the_expected_cells(yaw: float, count: int) -> None:
    assert len(sector(yaw)) == count


def test_sector_area_is_that_of_the_circle_sector() -> None:
    counts = [len(sector(yaw, (x, z))) for yaw in range(0, 360, 3) for x in (0.1, 0.5, 0.9) for z in (0.1, 0.5, 0.9)]
    assert np.mean(counts) == pytest.approx(np.pi * 100 * 70 / 360, rel=0.02)
    assert min(counts) >= 56 and max(counts) <= 66


def test_yaw_is_minecrafts() -> None:
    assert (0, 9) in cells(0) and (0, -9) not in cells(0)
    assert (-9, 0) in cells(90)
    assert (0, -9) in cells(180)
    assert (9, 0) in cells(270)


def test_sector_turns_with_the_yaw_and_grows_with_the_angle() -> None:
    assert {(-z, x) for x, z in cells(20)} == cells(110)
    assert cells(20, angle=40.0) < cells(20) < cells(20, angle=120.0)
    assert cells(20, radius=5.0) < cells(20)


def test_tables_equal_the_sector_at_their_grid_points() -> None:
    view = FieldOfView()
    for yaw in (-30, 0, 47, 359, 720):
        for x in (0.125, 3.625, -1.375):
            expected = sector(yaw % 360, (x % 1, 0.375))
            assert np.array_equal(view.offsets(x, 7.375, yaw), expected)
    assert not view.offsets(0, 0, 0).flags.writeable


def test_swath_of_straight_walking_is_eleven_and_a_half() -> None:
    seen = SeenMap(128)
    for step in range(10, 110):
        seen.paint(sector(0) + np.array([64, step], np.int32))
    middle = seen.seen[:, 40:100].sum(0)
    assert middle.min() >= 11 and middle.max() <= 13


def test_paint_reports_each_new_cell_once() -> None:
    seen = SeenMap(16, (100, -8))
    twice = np.array([[100, -8], [100, -8], [101, -8], [99, -8], [116, 0]], np.int32)
    assert seen.paint(twice).tolist() == [[0, 0], [1, 0]]
    assert len(seen.paint(twice)) == 0
    assert seen.left == 16 * 16 - 2 == seen.wanted.sum()


def test_given_up_cells_are_neither_wanted_nor_seen() -> None:
    seen = SeenMap(8)
    seen.paint(np.array([[1, 1]], np.int32))
    assert seen.give_up(np.array([[1, 1], [2, 2]], np.int32)).tolist() == [[2, 2]]
    assert not seen.seen[2, 2] and not seen.wanted[2, 2] and not seen.given_up[1, 1]
    assert seen.left == 62


def test_random_painting_keeps_the_count() -> None:
    rng = np.random.default_rng(0)
    seen = SeenMap(32, (-5, 7))
    for _ in range(200):
        seen.paint(rng.integers(-10, 45, (rng.integers(0, 30), 2)).astype(np.int32))
        assert seen.left == seen.wanted.sum()
        assert np.array_equal(seen.wanted, ~seen.seen)


def test_mrsteves_pentagon_has_the_cells_that_opencv_fills() -> None:
    # Counts of cv2.fillPoly(..., lineType=LINE_AA) > 128 for yaws 0, 10 ... 350.
    opencv = 79.17
    ours = np.mean([fill(pentagon(yaw, 70, 10, 4), 11).sum() for yaw in range(0, 360, 10)])
    assert ours == pytest.approx(opencv, abs=1.0)
