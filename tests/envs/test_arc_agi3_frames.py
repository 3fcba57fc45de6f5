"""Frames as text and as pictures, shapes, actions."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentexp.actions import parse as read_reply
from agentexp.envs.arc_agi3 import ArcAgi3, actions, picture, views
from agentexp.envs.arc_agi3.frames import SIDE, Frame, changed_rows, decode, difference, encode
from agentexp.envs.arc_agi3.games import ALL, make
from agentexp.envs.arc_agi3.games.paintbox import paint
from agentexp.envs.arc_agi3.shapes import change, shape_at, shapes, things

BLANK = bytes(SIDE * SIDE)


def boxes(*found, ground=5):
    grid = bytearray([ground]) * (SIDE * SIDE)
    for x, y, width, height, colour in found:
        for row in range(y, y + height):
            grid[row * SIDE + x : row * SIDE + x + width] = bytes([colour]) * width
    return bytes(grid)


grids = st.lists(
    st.tuples(st.integers(0, 60), st.integers(0, 60), st.integers(1, 20), st.integers(1, 20), st.integers(0, 15)), max_size=12
).map(lambda found: boxes(*[(x, y, min(w, SIDE - x), min(h, SIDE - y), c) for x, y, w, h, c in found]))


@settings(max_examples=60, deadline=None)
@given(grids, grids)
def test_text_and_picture_are_lossless(old, new):
    assert decode(encode(new)) == new
    rows = changed_rows(old, new)
    assert decode(encode(new, rows), old) == new if rows else old == new
    assert picture.read(f"before\n{picture.markdown(new, 3)}\nafter") == new
    assert picture.strip("a\n" + picture.markdown(new)) == "a"


@settings(max_examples=60, deadline=None)
@given(grids)
def test_shapes_are_a_partition_into_connected_cells_of_one_colour(grid):
    found = shapes(grid)
    assert sum(shape.size for shape in found) == SIDE * SIDE
    cells = {}
    for number, shape in enumerate(found):
        for dy, first, last in shape.form:
            for x in range(shape.x + first, shape.x + last + 1):
                cells[(x, shape.y + dy)] = number
                assert grid[(shape.y + dy) * SIDE + x] == shape.colour
    assert len(cells) == SIDE * SIDE
    for (x, y), number in cells.items():  # neighbours of one colour are one shape
        for near in ((x + 1, y), (x, y + 1)):
            if near in cells and grid[y * SIDE + x] == grid[near[1] * SIDE + near[0]]:
                assert cells[near] == number
    for shape in found:
        assert cells[shape.at] == found.index(shape)


def test_text_of_a_frame():
    grid = boxes((8, 20, 4, 3, 9), (12, 21, 1, 1, 15))
    assert encode(grid) == "0-19: 5*64\n20: 5*8 9*4 5*52\n21: 5*8 9*4 f 5*51\n22: 5*8 9*4 5*52\n23-63: 5*64"
    assert difference(boxes(), grid) == "13 cells changed in x8-12 y20-22: 5->9 x12, 5->f x1"
    assert difference(grid, grid) == ""
    assert decode("12-13: 5*63") is None
    assert decode("0-62: 5*64") is None


def test_changes_in_words():
    old = boxes((8, 20, 4, 4, 9), (20, 20, 4, 4, 8), (0, 62, 64, 2, 11))
    moved = boxes((12, 20, 4, 4, 9), (20, 20, 4, 4, 8), (0, 62, 60, 2, 11))
    found = change(old, moved)
    assert found.signature == "9 4x4 moves right 4"
    assert found.counter
    assert change(old, boxes((8, 20, 4, 4, 9), (0, 62, 64, 2, 11))).signature == "8 4x4 disappears"
    assert change(old, boxes((8, 20, 4, 4, 9), (20, 20, 4, 4, 12), (0, 62, 64, 2, 11))).signature == "8 becomes c"
    only_counter = change(old, boxes((8, 20, 4, 4, 9), (20, 20, 4, 4, 8), (0, 62, 50, 2, 11)))
    assert (only_counter.signature, only_counter.counter) == ("", True)
    assert change(old, old).signature == ""
    hit = shape_at(things(old), 21, 22)
    assert hit is not None and (hit.kind, hit.box) == ("8 4x4", "x20-23 y20-23")
    assert shape_at(things(old), 40, 40) is None  # ground


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("ACTION1", "ACTION1"),
        (" action_3. ", "ACTION3"),
        ("reset", "RESET"),
        ("ACTION6 12 40", "ACTION6 12 40"),
        ("ACTION6(12, 40)", "ACTION6 12 40"),
        ("action6 x=12 y=40", "ACTION6 12 40"),
        ("ACTION6: x: 12, y: 40", "ACTION6 12 40"),
    ],
)
def test_spellings_of_actions(text, read):
    found, reason = actions.parse(text, (1, 3, 6))
    assert (str(found), reason) == (read, "")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no such action"),
        ("go left", "no such action"),
        ("ACTION8", "no such action"),
        ("ACTION2", "does not use ACTION2"),
        ("ACTION6", "needs a position"),
        ("ACTION6 64 0", "from 0 to 63"),
        ("ACTION6 " + "9" * 5000 + " 1", "no such action"),
    ],
)
def test_refusals_say_why(text, reason):
    found, why = actions.parse(text, (1, 6))
    assert found is None
    assert reason in why


@pytest.mark.parametrize("reply", ["ACTION6 12 40", "ACTION6 12, 40", "ACTION6 (12, 40)", "action6 12 40"])
def test_replies_reach_the_game(reply):
    """Positions need not be listed; the parser of replies lets them through."""
    listed = ("ACTION1", "ACTION6 3 3")
    parsed = read_reply(f"Thought: click.\nAction: {reply}", admissible=listed, card=ArcAgi3.card)
    assert parsed.status == "ok"
    assert str(actions.parse(parsed.action, (1, 6))[0]) == "ACTION6 12 40"


@pytest.mark.parametrize("view", views.VIEWS)
def test_views_can_be_read_back(view):
    puzzle = make("kd01")
    first, second = paint(puzzle, 0, puzzle.start(0)), paint(puzzle, 0, ((1, 2), "a"))
    frame = Frame((first,), "NOT_FINISHED", 0, 4, (1, 2, 3, 4))
    text = views.show(frame, None, 1, view=view, completed=False, fresh=True)
    seen = views.read(text)
    assert (seen.level, seen.levels, seen.available, seen.over) == (1, 4, (1, 2, 3, 4), False)
    assert seen.grid == (None if view == "objects" else first)
    text = views.show(Frame((second,), "GAME_OVER", 0, 4, (1, 2)), first, 1, view=view, completed=False, fresh=False)
    seen = views.read(text, first)
    assert seen.over
    assert seen.grid == (None if view == "objects" else second)
    same = views.show(Frame((second, second), "NOT_FINISHED", 0, 4, ()), second, 1, view=view, completed=False, fresh=False)
    assert views.NOTHING in same and "2 frames" in same
    assert views.read(same, second).grid == second


def test_texts_are_short():
    """The code is several times shorter than the 4159 characters of the plain grid."""
    for game_id in ALL:
        puzzle = make(game_id)
        for level in range(len(puzzle.levels)):
            assert len(encode(paint(puzzle, level, puzzle.start(level)))) < 1200
            assert not re.search(r"[^0-9a-f:*\- \n]", encode(paint(puzzle, level, puzzle.start(level))))
