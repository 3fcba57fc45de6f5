"""Observations: what an agent is shown of a frame, and how the parent process reads the frame back from the text.

full     the whole grid and one line about what changed, at every step (about 400-900 characters)
diff     the whole grid at the start of a level and after RESET, then the changed rows only
objects  the shapes with their boxes instead of the grid
picture  a picture and one line, for vision models
both     picture and full
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from agentexp.envs.arc_agi3 import actions, picture
from agentexp.envs.arc_agi3.frames import Frame, Grid, changed_rows, decode, difference, encode
from agentexp.envs.arc_agi3.shapes import shapes

View = Literal["full", "diff", "objects", "picture", "both"]
VIEWS: tuple[View, ...] = ("full", "diff", "objects", "picture", "both")
_MOST_SHAPES = 80
_LEVEL = re.compile(r"^Level (\d+) of (\d+)\.", re.MULTILINE)
_ACTIONS = re.compile(r"^Actions: (.+)\.$", re.MULTILINE)
OVER = "GAME OVER."
WON = "All levels are completed."
NOTHING = "Nothing changed."
SAME = "Rows not listed are as before."


class Seen(NamedTuple):
    """What a text tells.

    Attributes:
        grid: the frame; None where the text has none.
        level: 1-based; 0 where it is not told.
        levels: likewise.
        over: the game is over until a RESET.
        completed: this answer completed a level.
        available: numbers of the actions, where listed.
    """

    grid: Grid | None
    level: int = 0
    levels: int = 0
    over: bool = False
    completed: bool = False
    available: tuple[int, ...] = ()


def show(frame: Frame, before: Grid | None, level: int, *, view: View, completed: bool, fresh: bool, scale: int = 8) -> str:
    """The observation of a frame.

    Args:
        frame: the game's answer.
        before: the grid before the action.
        level: 1-based number of the level that is shown.
        view: see the module.
        completed: the action completed a level.
        fresh: the level has just begun: nothing to compare with.
        scale: pixels of a cell's side in pictures.
    """
    lines = []
    if completed:
        lines.append(WON if frame.state == "WIN" else f"Level {level - 1} is completed.")
    lines.append(f"Level {level} of {frame.levels}.")
    if fresh or frame.state == "GAME_OVER":
        lines.append(actions.listing(frame.available if frame.state != "GAME_OVER" else ()))
    if frame.state == "GAME_OVER":
        lines.append(f"{OVER} Only RESET works now.")
    if len(frame.grids) > 1:
        lines.append(f"The change took {len(frame.grids)} frames; the last one is shown.")
    if not frame.grids:
        return "\n".join(lines)
    grid = frame.grids[-1]
    if before is not None and not fresh:
        change = difference(before, grid)
        lines.append(f"{change}." if change else NOTHING)
    if view in ("full", "both") or (view == "diff" and (fresh or before is None)):
        lines.append(encode(grid))
    elif view == "diff" and before is not None and (rows := changed_rows(before, grid)):
        lines += [encode(grid, rows), SAME]
    elif view == "objects":
        found = sorted(shapes(grid), key=lambda s: -s.size)[:_MOST_SHAPES]
        lines += [f"colour {s.kind} at {s.box} ({s.size} cells)" for s in found]
    if view in ("picture", "both"):
        lines.append(picture.markdown(grid, scale))
    return "\n".join(lines)


def read(text: str, before: Grid | None = None) -> Seen:
    """Read an observation; `before` is the frame before it."""
    grid = decode(text)
    if grid is None and SAME in text:
        grid = decode(text, before)
    if grid is None:
        grid = picture.read(text)
    if grid is None and NOTHING in text:
        grid = before
    level, listed = _LEVEL.search(text), _ACTIONS.search(text)
    return Seen(
        grid,
        int(level[1]) if level else 0,
        int(level[2]) if level else 0,
        OVER in text,
        re.search(r"^(?:Level \d+ is completed|All levels are completed)\.", text, re.MULTILINE) is not None,
        tuple(int(n) for n in re.findall(r"ACTION(\d)", listed[1])) if listed else (),
    )
