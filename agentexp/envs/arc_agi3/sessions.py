"""A game that is being played, wherever it runs. `LocalSession` runs it in this process, on arcengine.

Games from a folder are other people's Python and are executed here, with all rights of the user: that is why it happens in a
worker process only, never while tasks are listed.
"""

from __future__ import annotations

import inspect
import sys
import types
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from agentexp.envs.arc_agi3.actions import Action
from agentexp.envs.arc_agi3.frames import Frame
from agentexp.errors import MissingDependency, UserError

if TYPE_CHECKING:
    from arcengine import ARCBaseGame

ENGINE_MISSING = (
    "env=arc_agi3 needs arcengine, which declares Python 3.12 but runs on 3.11: "
    "pip install 'agentexp[arc]' && pip install --no-deps --ignore-requires-python arcengine==0.9.3"
)


class Session(Protocol):
    """One play of one game."""

    def start(self) -> Frame:
        """Begin at level 1."""
        ...

    def act(self, action: Action) -> Frame:
        """Carry out one action, also RESET."""
        ...

    def close(self) -> None:
        """Give up what is held. Safe to call twice."""
        ...


class LocalSession:
    """A game on arcengine.

    Args:
        game: a new instance.
    """

    def __init__(self, game: ARCBaseGame) -> None:
        self.game = game

    def start(self) -> Frame:
        """The first RESET, which every client sends."""
        return self._frame(Action(0))

    def act(self, action: Action) -> Frame:
        """See `Session`."""
        return self._frame(action)

    def close(self) -> None:
        """Nothing is held."""

    def _frame(self, action: Action) -> Frame:
        from arcengine import ActionInput, GameAction

        data = {} if action.x is None else {"x": action.x, "y": action.y}
        answer: Any = self.game.perform_action(ActionInput(id=GameAction.from_id(action.number), data=data), raw=True)
        return Frame(
            tuple(grid.astype("int8").tobytes() for grid in answer.frame),
            answer.state.value,
            answer.levels_completed,
            answer.win_levels,
            tuple(answer.available_actions),
            answer.full_reset,
        )


def require_engine() -> None:
    """Raise `MissingDependency` where arcengine is not installed."""
    try:
        import arcengine  # noqa: F401
    except ImportError as error:
        raise MissingDependency(ENGINE_MISSING) from error


def own_game(game_id: str) -> LocalSession:
    """One of our games by its id."""
    require_engine()
    from agentexp.envs.arc_agi3.games import make
    from agentexp.envs.arc_agi3.games.board import Board

    return LocalSession(Board(make(game_id), game_id))


def folder_game(file: Path, class_name: str, game_id: str, seed: int) -> LocalSession:
    """A game from a file: its source is executed, as the official toolkit does it.

    Raises:
        UserError: the file is missing or does not define the class.
        Exception: whatever its code raises; the worker process reports it as an engine error.
    """
    require_engine()
    from arcengine import ARCBaseGame

    module = types.ModuleType(f"arc_agi3_game_{game_id.replace('-', '_')}")
    module.__file__ = str(file)
    sys.modules[module.__name__] = module  # dataclasses and pickling inside a game look their module up
    try:
        source = file.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"The source of the game {game_id} cannot be read: {file} ({error.strerror}).") from error
    exec(compile(source, str(file), "exec"), module.__dict__)
    found = getattr(module, class_name, None)
    if not isinstance(found, type) or not issubclass(found, ARCBaseGame):
        raise UserError(f"{file.name} defines no game class {class_name}; see class_name in its metadata.json.")
    takes_seed = "seed" in inspect.signature(found).parameters
    made: Any = found
    return LocalSession(made(seed=seed) if takes_seed else made())
