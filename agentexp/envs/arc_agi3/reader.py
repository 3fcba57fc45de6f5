"""Follows the answers of a game: which frame is shown, what each action did. For trackers, matchers and scripted agents."""

from __future__ import annotations

from dataclasses import dataclass

from agentexp.core import Step
from agentexp.envs.arc_agi3 import actions, views
from agentexp.envs.arc_agi3.frames import HEX, Grid
from agentexp.envs.arc_agi3.shapes import Change, Shape, change, shape_at, things


@dataclass(frozen=True, slots=True)
class Event:
    """What one action did, as far as its answer shows.

    Attributes:
        action: as read; None for the reset, and for what the world refused.
        context: the action with what it was aimed at: "ACTION1", "ACTION6 on 8 4x4", "ACTION6 on ground 5".
        target: the shape that was clicked.
        change: between the frames before and after; None where they are not of one level.
        effect: the change in words; "level completed", "game over: ...", "reset", or "" for none.
        before: the frame before.
    """

    action: actions.Action | None
    context: str = ""
    target: Shape | None = None
    change: Change | None = None
    effect: str = ""
    before: Grid | None = None


class Reader:
    """The state that the texts tell.

    Attributes:
        grid: the frame that is shown; None before the first.
        start: the first frame of the present level.
        level: 1-based.
        levels: number of levels.
        over: the game waits for a RESET.
        available: numbers of the game's actions.
    """

    def __init__(self) -> None:
        self.grid: Grid | None = None
        self.start: Grid | None = None
        self.level = self.levels = 0
        self.over = False
        self.available: tuple[int, ...] = ()

    def observe(self, text: str | None, step: Step) -> Event:
        """Take in one answer; `text` is the action, None for the reset."""
        seen = views.read(step.observation, self.grid)
        before = self.grid
        if text is None:
            self.grid, self.start, self.level, self.levels = seen.grid, seen.grid, seen.level, seen.levels
            self.available, self.over = seen.available, False
            return Event(None)
        action, _ = actions.parse(text, tuple(range(1, 8)))
        if action is None or step.error or seen.level == 0:
            return Event(None)
        context, target = self._context(action, before)
        self.grid = seen.grid or before
        fresh = seen.completed or action.number == actions.RESET
        found = change(before, self.grid) if before and self.grid and not fresh else None
        if seen.completed:
            effect = "level completed"
        elif action.number == actions.RESET:
            effect = "reset"
        else:
            effect = found.signature if found else ""
            if seen.over and not self.over:
                effect = "game over" + (f": {effect}" if effect else "")
        if fresh and seen.grid:
            self.start = seen.grid
        self.level, self.levels = seen.level, seen.levels or self.levels
        self.over = seen.over
        self.available = seen.available or self.available
        return Event(action, context, target, found, effect, before)

    def _context(self, action: actions.Action, grid: Grid | None) -> tuple[str, Shape | None]:
        if action.number != actions.CLICK or action.x is None or action.y is None:
            return actions.name(action.number), None
        return click_context(grid, action.x, action.y)


def click_context(grid: Grid | None, x: int, y: int) -> tuple[str, Shape | None]:
    """What a click hits: a thing by its kind, or ground by its colour."""
    if grid is None:
        return "ACTION6", None
    shape = shape_at(things(grid), x, y)
    return (f"ACTION6 on {shape.kind}" if shape else f"ACTION6 on ground {HEX[grid[y * 64 + x]]}"), shape
