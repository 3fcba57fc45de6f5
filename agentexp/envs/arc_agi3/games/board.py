"""A game of ours on arcengine: levels, resets, frames and the camera are the engine's, the rule is the puzzle's.

Every piece is a sprite of 4 x 4 pixels named after its kind; what never changes lies below as one sprite per kind. Undo
(ACTION7) takes back moves of the level one by one and costs an action like any other.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from arcengine import ARCBaseGame, BlockingMode, Camera, GameAction, Level, RenderableUserDisplay, Sprite

from agentexp.envs.arc_agi3.games.logic import (
    BLACK,
    CELL,
    CLICK,
    COAL,
    HEIGHT,
    SIDE,
    UNDO,
    YELLOW,
    Move,
    Outcome,
    Piece,
    Puzzle,
    State,
)


class Counter(RenderableUserDisplay):
    """The bar below the level: its yellow part is the share of the actions that are left."""

    def __init__(self) -> None:
        self.share: float | None = None

    def render_interface(self, frame: np.ndarray) -> np.ndarray:
        """Draw into the last two rows."""
        if self.share is not None:
            frame[SIDE - 2 :] = COAL
            frame[SIDE - 2 :, : round(SIDE * self.share)] = YELLOW
        return frame


class Board(ARCBaseGame):
    """One of our games.

    Args:
        puzzle: its levels and rule.
        game_id: the id that frames carry.
        seed: as every game takes it; nothing is drawn.
    """

    def __init__(self, puzzle: Puzzle, game_id: str, seed: int = 0) -> None:
        self.puzzle, self.counter = puzzle, Counter()
        self.state: State = puzzle.start(0)
        self.past: list[State] = []
        self.used = 0
        self._waiting: list[State] = []
        self._outcome = Outcome()
        levels = [
            Level(_sprites(puzzle, number, puzzle.scenery(number), 0), name=f"level {number + 1}")
            for number in range(len(puzzle.levels))
        ]
        camera = Camera(background=BLACK, letter_box=BLACK, interfaces=[self.counter])
        super().__init__(game_id, levels, camera, available_actions=list(puzzle.actions), seed=seed)

    def on_set_level(self, level: Level) -> None:
        """Start a level, also after a reset."""
        self.state, self.past, self.used = self.puzzle.start(self.level_index), [], 0
        self._waiting = []
        self._show()

    def step(self) -> None:
        """One frame: the first of an action applies the rule, each further one shows the next state of its way."""
        if not self._waiting:
            self._outcome = self._move()
            self._waiting = list(self._outcome.states)
            self.used += self.action.id != GameAction.RESET
        if self._waiting:
            self.state = self._waiting.pop(0)
        self._show()
        if not self._waiting:
            self._settle()
            self.complete_action()

    def _move(self) -> Outcome:
        action = self.action.id.value
        if action == UNDO and UNDO in self.puzzle.actions:
            return Outcome([self.past.pop()]) if self.past else Outcome()
        if action not in self.puzzle.actions:
            return Outcome()
        level = self.level_index
        cell = None
        if action == CLICK:
            cell = self.puzzle.levels[level].cell_at(int(self.action.data.get("x", 0)), int(self.action.data.get("y", 0)))
        outcome = self.puzzle.apply(level, self.state, Move(action, cell))
        if outcome.states:
            self.past.append(self.state)
        return outcome

    def _settle(self) -> None:
        if self._outcome.status == "won":
            self.next_level()
        elif self._outcome.status == "lost" or self.left() == 0:
            self.lose()

    def left(self) -> int | None:
        """Actions that the counter still allows; None without a counter."""
        limit = self.puzzle.limit(self.level_index)
        return None if limit is None else max(limit - self.used, 0)

    def _show(self) -> None:
        level = self.current_level
        for sprite in level.get_sprites_by_tag("piece"):
            level.remove_sprite(sprite)
        for sprite in _sprites(self.puzzle, self.level_index, self.puzzle.pieces(self.level_index, self.state), 1):
            level.add_sprite(sprite)
        left = self.left()
        self.counter.share = None if left is None else left / (self.puzzle.limit(self.level_index) or 1)


def pixels(piece: Piece) -> np.ndarray:
    """The 4 x 4 pixels of a piece."""
    image = np.full((CELL, CELL), piece.colour, dtype=np.int8)
    if piece.ring is not None:
        image[1:-1, 1:-1] = piece.ring
    return image


def _sprites(puzzle: Puzzle, number: int, pieces: Iterable[Piece], layer: int) -> list[Sprite]:
    """One sprite per piece; of scenery (layer 0) one per kind, in the order of the kinds."""
    level, found = puzzle.levels[number], list(pieces)
    if layer:
        return [
            Sprite(pixels(p), p.name, *level.pixel(p.cell), layer=layer, blocking=BlockingMode.NOT_BLOCKED, tags=["piece"])
            for p in found
        ]
    sheets: dict[str, np.ndarray] = {}
    for piece in found:
        sheet = sheets.setdefault(piece.name, np.full((HEIGHT, SIDE), -1, dtype=np.int8))
        x, y = level.pixel(piece.cell)
        sheet[y : y + CELL, x : x + CELL] = pixels(piece)
    return [
        Sprite(sheet, name, layer=i - len(sheets), blocking=BlockingMode.NOT_BLOCKED)
        for i, (name, sheet) in enumerate(sheets.items())
    ]
