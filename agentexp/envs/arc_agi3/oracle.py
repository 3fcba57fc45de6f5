"""Expert actions for our own games, from the present state of the present level to the end of the game."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentexp.envs.arc_agi3.actions import Action
from agentexp.envs.arc_agi3.games.logic import Move, Puzzle

if TYPE_CHECKING:
    from agentexp.envs.arc_agi3.games.board import Board


def plan(board: Board, over: bool) -> list[str]:
    """The plan.

    Args:
        board: the game as it stands; it is not changed.
        over: the game waits for a RESET.
    """
    puzzle, level = board.puzzle, board.level_index
    left = board.left()
    here = None if over else puzzle.solve(level, board.state)
    if here is None or (left is not None and left < len(here)):
        actions = ["RESET", *_texts(puzzle, level, puzzle.solution(level))]
    else:
        actions = _texts(puzzle, level, here)
    for later in range(level + 1, len(puzzle.levels)):
        actions += _texts(puzzle, later, puzzle.solution(later))
    return actions


def _texts(puzzle: Puzzle, level: int, moves: list[Move]) -> list[str]:
    return [str(as_action(puzzle, level, move)) for move in moves]


def as_action(puzzle: Puzzle, level: int, move: Move) -> Action:
    """A move as the action that an agent would send: clicks hit the middle of a cell."""
    if move.cell is None:
        return Action(move.action)
    x, y = puzzle.levels[level].pixel(move.cell)
    return Action(move.action, x + 1, y + 1)
