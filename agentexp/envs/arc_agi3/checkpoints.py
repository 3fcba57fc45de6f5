"""What an exploration can come to know of a game (paper 001, Algorithm 1), from the game's own rules.

    location     a situation: a frame without its border, by its digest
    object       a shape, by colour and extent, that some action changes; seeing it is no proof, all of a frame is seen at once
    affordance   what an action does: "ACTION1: 9 4x4 moves up 4"

    "task_closure"   the situations on a shortest way through all levels and one action beyond them
    "all"            the situations that a breadth-first search meets first, at most 40 a level

Of a game that is not ours only the first frame is known: its shapes, and for each action that it does anything at all.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from functools import cache

from agentexp.capabilities import Checkpoint
from agentexp.core import Step
from agentexp.envs.arc_agi3 import actions
from agentexp.envs.arc_agi3.actions import name
from agentexp.envs.arc_agi3.frames import Grid
from agentexp.envs.arc_agi3.games.logic import Puzzle, State
from agentexp.envs.arc_agi3.games.paintbox import paint
from agentexp.envs.arc_agi3.oracle import as_action
from agentexp.envs.arc_agi3.reader import Reader, click_context
from agentexp.envs.arc_agi3.shapes import Change, change, things
from agentexp.envs.arc_agi3.tracker import digest

MOST_STATES = 40
ANY = "any effect"


def of_puzzle(puzzle: Puzzle, relevance: str) -> list[Checkpoint]:
    """The checkpoints of one of our games."""
    key = puzzle.code, puzzle.turned, relevance
    if key not in _KNOWN:
        found: set[Checkpoint] = set()
        for level in range(len(puzzle.levels)):
            found |= _of_level(puzzle, level, relevance)
        _KNOWN[key] = sorted(found)
    return list(_KNOWN[key])


_KNOWN: dict[tuple[str, str, str], list[Checkpoint]] = {}  # a game never changes within a process


def _of_level(puzzle: Puzzle, level: int, relevance: str) -> set[Checkpoint]:
    @cache
    def grid(state: State) -> Grid:
        return paint(puzzle, level, state)

    found: set[Checkpoint] = set()
    for state in _situations(puzzle, level, relevance):
        for move in puzzle.moves(level, state):
            states, status = puzzle.apply(level, state, move)
            if not states:
                continue
            action = as_action(puzzle, level, move)
            context = name(action.number)
            if action.x is not None and action.y is not None:
                context, _ = click_context(grid(state), action.x, action.y)
            if status == "won":
                found.add(Checkpoint("affordance", f"{context}: level completed"))
                continue
            seen = change(grid(state), grid(states[-1]))
            effect = seen.signature
            if status == "lost":
                effect = "game over" + (f": {effect}" if effect else "")
            found |= _proven(context, effect, seen)
            if status == "play":
                found.add(Checkpoint("location", digest(grid(states[-1]))))
    return found


def _situations(puzzle: Puzzle, level: int, relevance: str) -> Iterator[State]:
    start = puzzle.start(level)
    if relevance == "task_closure":
        yield start
        for move in puzzle.solution(level)[:-1]:
            start = puzzle.apply(level, start, move).states[-1]
            yield start
        return
    queue, known = deque([start]), {start}
    while queue:
        state = queue.popleft()
        yield state
        for move in puzzle.moves(level, state):
            states, status = puzzle.apply(level, state, move)
            if states and status == "play" and states[-1] not in known and len(known) < MOST_STATES:
                known.add(states[-1])
                queue.append(states[-1])


def _proven(context: str, effect: str, seen: Change | None) -> set[Checkpoint]:
    found = {Checkpoint("affordance", f"{context}: {effect}")} if effect else set()
    if effect:
        action = context.partition(" on ")[0]
        found.add(Checkpoint("affordance", f"{action}: {ANY}"))
    if seen is not None:
        shapes = [*(shape for shape, _, _ in seen.moved), *seen.gone, *seen.new]
        found |= {Checkpoint("object", shape.kind) for shape in shapes}
    return found


def of_unknown_game(grid: Grid, available: tuple[int, ...]) -> list[Checkpoint]:
    """The checkpoints of a game whose rules nobody here knows."""
    found = {Checkpoint("object", shape.kind) for shape in things(grid)}
    return sorted(found | {Checkpoint("affordance", f"{name(number)}: {ANY}") for number in available})


class FrameMatcher:
    """Implements `CheckpointMatcher`: all is read from the frames that the answers show, nothing from an action's text."""

    def __init__(self) -> None:
        self._reader = Reader()

    def observe(self, action: str | None, step: Step) -> set[Checkpoint]:
        """See `CheckpointMatcher`."""
        event = self._reader.observe(action, step)
        if event.action is None or event.action.number == actions.RESET or not event.effect:
            return set()
        found = _proven(event.context, event.effect, event.change)
        if self._reader.grid is not None and event.effect != "level completed":
            found.add(Checkpoint("location", digest(self._reader.grid)))
        return found
