"""The z-machine behind a story: jericho's FrotzEnv, with states that can be put back and a view into memory.

jericho knows score, moves and the end of a game only for files in its own table (by MD5) and for files named "tw-*".
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentexp.envs.jericho.memory import Memory
from agentexp.envs.jericho.scene import Scene
from agentexp.errors import EngineError, MissingDependency, UserError

INSTALL = "pip install 'agentexp[jericho]'"
SEED = 1  # of the emulator's random numbers where jericho has no seed for a game; ours draw none
MOST_BYTES = 190  # jericho cuts a command at 198


@dataclass(frozen=True, slots=True)
class Answer:
    """What a story says to a command.

    Attributes:
        text: its words.
        score: points so far.
        over: the story has ended.
        won: it has ended well.
        refused: the story's own mark that nothing was done; None for a story without one.
    """

    text: str
    score: int
    over: bool
    won: bool
    refused: bool | None


class Engine:
    """One z-machine with one story at a time. Raises `EngineError` when the emulator has stopped."""

    def __init__(self) -> None:
        try:
            import jericho
        except ImportError as error:
            raise MissingDependency(f"Playing stories needs jericho: {INSTALL} (it compiles C code: gcc and make).") from error
        self._make = jericho.FrotzEnv
        self._env: Any = None
        self._file: Path | None = None
        self._layout: dict[str, int] = {}
        self._names: list[str] = []
        self._last = Answer("", 0, False, False, None)

    def load(self, file: Path, ours: bool) -> None:
        """Open a story file. One of ours (`ours`) tells the layout of its memory. Raises `UserError` for an unknown game."""
        if file == self._file:
            return
        self.close()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an unknown game is refused below
            env = self._make(str(file), seed=SEED if ours else None)
        if not env.is_fully_supported:
            raise UserError(
                f"jericho does not know {file.name}: it is another edition of that game than the one in its table (by MD5), so "
                "there is neither score nor end. Take the edition of jericho's own game suite, or a TextWorld game named tw-*."
            )
        self._env, self._file, self._layout = env, file, {}
        if ours:
            env.reset()
            words = env.step("tw-print layout")[0].split()
            self._layout = {name: int(number) for name, number in zip(words[::2], words[1::2], strict=True)}
        self._names = [thing.name for thing in env.get_world_objects()]

    def begin(self, variant: int | None = None) -> Answer:
        """Start the story anew; one of ours in a variant."""
        text, info = self._env.reset()
        if variant is None:
            return self._answer(text, info)
        return self.send(f"tw-seed {variant}")

    def send(self, command: str) -> Answer:
        """Type one line."""
        text, _, _, info = self._env.step(command[:MOST_BYTES])
        if self._env._emulator_halted():
            raise EngineError(f"The z-machine stopped at {command!r} ({self._file.name if self._file else ''}).")
        return self._answer(text, info)

    def _answer(self, text: str, info: dict[str, Any]) -> Answer:
        won, lost = bool(self._env.victory()), bool(self._env.game_over())
        if self._layout:
            memory = self.memory()
            self._last = Answer(text, memory.number("tally"), won or lost, won, memory.byte("refusal") == 1)
        else:
            self._last = Answer(text, int(info["score"]), won or lost, won, None)
        return self._last

    def unchanged(self) -> Answer:
        """The last answer again, without words: for a command that is not sent."""
        return Answer("", self._last.score, self._last.over, self._last.won, True)

    def has_changed(self) -> bool:
        """Whether the last command changed the world, as jericho sees it."""
        return bool(self._env._world_changed())

    @property
    def max_score(self) -> int:
        """Most points."""
        return int(self._env.get_max_score())

    @property
    def walkthrough(self) -> list[str]:
        """jericho's own solution from the start; empty where it has none."""
        if not self._env.bindings:
            return []
        return [str(action) for action in self._env.get_walkthrough()]

    # ---------------------------------------------------------------------------------------------------------------- states

    def save(self) -> Any:
        """The state, to be put back later."""
        return self._env.get_state(), self._last

    def restore(self, state: Any) -> None:
        """Put a state back."""
        machine, self._last = state
        self._env.set_state(machine)

    def memory(self) -> Memory:
        """A snapshot of the memory of one of our stories."""
        return Memory(self._env._get_ram().tobytes(), len(self._names) - 1, self._names, self._layout)

    def scene(self) -> Scene:
        """The world of one of our stories now."""
        return Scene(self.memory(), int(self._env.player_obj_num))

    def place(self) -> str:
        """Name of the room of the player, from the object tree; empty where the story keeps the player elsewhere."""
        room = self._env.get_player_location()
        return re.sub(r"\s+", " ", room.name).strip() if room is not None and room.num else ""

    # ------------------------------------------------------------------------------------------------------ any story at all

    def things_near(self) -> list[str]:
        """Names in the object tree around the player and in the player's hands."""
        env = self._env
        room, player = env.get_player_location(), env.get_player_object()
        found: list[str] = []
        for top in (room, player):
            child = env.get_object(top.child) if top is not None and top.num and top.child else None
            while child is not None and child.num and len(found) < 64:  # some old games have loops in their tree
                if child.num != player.num:
                    found.append(child.name.strip().lower())
                child = env.get_object(child.sibling) if child.sibling else None
        return [name for name in dict.fromkeys(found) if name]

    def dictionary(self) -> set[str]:
        """Words that the story knows, cut to the length that it compares."""
        return {word.word for word in self._env.get_dictionary()}

    def grammar(self) -> list[str]:
        """jericho's command templates for this game ("put OBJ in OBJ"); empty where it has none."""
        return list(self._env.act_gen.templates) if self._env.act_gen else []

    def changing(self, candidates: list[str]) -> list[str]:
        """Those of the commands that change the world, one for each change. The state stays as it is."""
        found = self._env._filter_candidate_actions(candidates, use_ctypes=True, use_parallel=False)
        order = {action: i for i, action in enumerate(candidates)}
        return sorted((min(same, key=order.__getitem__) for same in found.values()), key=order.__getitem__)

    def close(self) -> None:
        """Free the z-machine."""
        if self._env is not None:
            self._env.close()
        self._env, self._file = None, None
