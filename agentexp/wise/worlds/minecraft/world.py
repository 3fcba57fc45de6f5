"""The part of a `VoxelWorld` that does not depend on how Minecraft is started: episodes, commands, frames."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agentexp.errors import EngineError, UserError
from agentexp.wise.core import EMPTY, Control, Frame, Pose
from agentexp.wise.worlds.minecraft.body import SLOTS, Action, Bumps, Keys, Region, carried
from agentexp.wise.worlds.minecraft.commands import Commands, Version

# A client that cannot be launched, or that died, shows as anything from EOFError to RuntimeError, by where it was noticed.
_DEAD = (OSError, EOFError, RuntimeError, AssertionError, KeyError)
_NOT_LAUNCHED = (*_DEAD, ValueError, TypeError, AttributeError)
_SETTLE = 2  # ticks after the last line of a set-up, for its effect to be in the first frame


class Look(NamedTuple):
    """What Minecraft gives back for one tick.

    Attributes:
        image: uint8 of shape (height, width, 3).
        pose: in Minecraft's numbers, which are ours.
        items: (item name, count), the game's own names; a name may come more than once.
        done: the mission is over (death, time).
        info: JSON values for `Frame.info`.
    """

    image: NDArray[np.uint8]
    pose: Pose
    items: Sequence[tuple[str, int]]
    done: bool = False
    info: Mapping[str, Any] = {}


class MinecraftWorld(ABC):
    """A `VoxelWorld` on Minecraft. Subclasses make what runs it (`_engine`), begin an episode and do one tick.

    There is no ground truth, so a simulated vision model cannot be used. When the body dies the episode goes on without it:
    frames repeat the last one with `info["done"]`, until the task's budget is over.

    Args:
        version: of Minecraft.
        size: side of the square evaluation region in blocks.
        origin: its corner (x, z); null: the spawn is its centre.
        turn_per_step: most degrees of turn in one tick.
        view_angle, view_radius: field of view for coverage, degrees and blocks (MrSteve's 70 and 10).
        hotbar: items in slots 1, 2 ... at the start; `command("hold", name=...)` takes one in hand.
        mobs: how many of which mob are spawned around the spawn at the start.
        mobs_within: how far from it at most on each axis, blocks (MrSteve's tasks: 20).
        setup: chat commands at the start, such as "/gamerule doDaylightCycle false".
        auto_jump: jump when walking does not move the body.

    Raises:
        UserError: a setting is out of range.
    """

    name = "minecraft"
    title = "Minecraft"

    def __init__(
        self,
        *,
        version: Version,
        size: int,
        origin: list[int] | None,
        turn_per_step: float,
        view_angle: float,
        view_radius: float,
        hotbar: list[str] | None,
        mobs: dict[str, int] | None,
        mobs_within: float,
        setup: list[str] | None,
        auto_jump: bool,
    ) -> None:
        self.version = version
        self._region = Region(size, origin, view_angle, view_radius)
        self._keys, self._bumps, self._commands = Keys(turn_per_step, auto_jump), Bumps(), Commands(version)
        self.turn_per_step = turn_per_step
        self.hotbar = list(hotbar or [])
        if len(self.hotbar) > SLOTS:
            raise UserError(f"world.hotbar names {len(self.hotbar)} items; a hotbar has {SLOTS} slots.")
        self.mobs, self.mobs_within, self.setup = dict(mobs or {}), mobs_within, list(setup or [])
        self._lines: deque[str] = deque()
        self._leaving: list[tuple[int, list[str]]] = []
        self._slot: int | None = None
        self._frame: Frame | None = None
        self._over = False
        self._engine: Any = None  # has `close`

    @property
    def size(self) -> int:
        """See `VoxelWorld`."""
        return self._region.size

    @property
    def origin(self) -> tuple[int, int]:
        """See `VoxelWorld`; where the spawn is the centre, known after `reset` only."""
        return self._region.origin

    # ------------------------------------------------------------------------------------------------------- protocol

    def reset(self, seed: int) -> Frame:
        """Start an episode: the world of the seed, the set-up's commands and the first mobs.

        Raises:
            EngineError: Minecraft could not be started.
            MissingDependency: something that it needs is not installed.
        """
        self._keys.reset()
        self._bumps.reset()
        self._lines.clear()
        self._leaving.clear()
        self._slot, self._frame, self._over = None, None, False
        look = self._start(seed)
        self._lines.extend(line if line.startswith("/") else f"/{line}" for line in self.setup)
        rng = np.random.default_rng([seed, 1])
        for name, count in self.mobs.items():
            for dx, dz in rng.uniform(-self.mobs_within, self.mobs_within, (count, 2)):
                self._lines.extend(self._commands.lines("spawn", look.pose, name=name, x=look.pose.x + dx, z=look.pose.z + dz))
        nothing = self._keys.press(Control())
        waits = _SETTLE if self._lines else 0
        while self._lines or waits:
            waits -= 0 if self._lines else 1
            look = self._do(nothing)
        self._region.centre(look.pose)
        return self._take(look, 0, EMPTY)

    def act(self, control: Control) -> Frame:
        """Do one tick. Chat lines of commands go out one per tick, before anything else happens in it.

        Raises:
            EngineError: Minecraft did not answer, or `reset` was not called.
        """
        if self._frame is None:
            raise EngineError(f"The world {self.name} was not reset.")
        before = self._frame
        if self._over:
            self._frame = Frame(
                before.tick + 1, before.pose, before.image, inventory=before.inventory, info={**before.info, "done": True}
            )
            return self._frame
        action = self._keys.press(control, self._bumps.stuck)
        if self._slot is not None:
            action[f"hotbar.{self._slot}"] = 1
            self._slot = None
        for due, lines in self._leaving:
            if due == before.tick:
                self._lines.extend(lines)
        look = self._do(action)
        blocked = self._bumps.after(before.pose, look.pose, bool(action["forward"]))
        return self._take(look, before.tick + 1, self._region.inside(blocked))

    def picture(self) -> NDArray[np.uint8]:
        """The last frame's."""
        if self._frame is None or self._frame.image is None:
            raise EngineError(f"The world {self.name} was not reset.")
        return self._frame.image

    def command(self, text: str, **values: Any) -> None:
        """See `Commands.lines`. Of "spawn", `stay` is the number of ticks after which what is left of it leaves.

        "hold" (name) presses the key of the slot that the item was put in at the start.

        Raises:
            UserError: it is not known, or the item is not in `hotbar`.
        """
        if self._frame is None:
            raise EngineError(f"The world {self.name} was not reset.")
        if text == "hold":
            item = values.get("name")
            if item not in self.hotbar:
                raise UserError(f"The item {item!r} cannot be held: world.hotbar has {', '.join(self.hotbar) or 'nothing'}.")
            self._slot = self.hotbar.index(item) + 1
            return
        stay = values.pop("stay", None) if text == "spawn" else None
        self._lines.extend(self._commands.lines(text, self._frame.pose, **values))
        if stay is not None:
            self._leaving.append((self._frame.tick + int(stay), self._commands.leave(self._commands.spawned)))

    def truth(self) -> Mapping[str, Any]:
        """Nothing: this world does not tell, so every cell counts as observable."""
        return {}

    def close(self) -> None:
        """Stop Minecraft."""
        self._frame = None
        self._stop()

    @abstractmethod
    def versions(self) -> dict[str, str]:
        """See `VoxelWorld`."""

    # ------------------------------------------------------------------------------------------------------ subclasses

    @abstractmethod
    def _make(self) -> Any:
        """What runs Minecraft, not launched yet.

        Raises:
            MissingDependency: something that it needs is not installed.
            UserError: a setting is not possible.
        """

    @abstractmethod
    def _begin(self, seed: int) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """Begin an episode: observation and info."""

    @abstractmethod
    def _press(self, action: Action, chat: str | None) -> tuple[Mapping[str, Any], Mapping[str, Any], bool]:
        """One tick with these keys pressed, after saying `chat`: observation, info, whether the mission is over."""

    @abstractmethod
    def _look(self, observation: Mapping[str, Any], info: Mapping[str, Any], done: bool) -> Look:
        """Both in the adapter's terms.

        Raises:
            EngineError: a part is missing.
        """

    @abstractmethod
    def _needs(self) -> str:
        """What else has to be there for Minecraft to start, in sentences."""

    # ---------------------------------------------------------------------------------------------------------- inside

    def _start(self, seed: int) -> Look:
        """Start an episode and, where that is needed, Minecraft."""
        if self._engine is None:
            self._engine = self._make()
        try:
            observation, info = self._begin(seed)
        except _NOT_LAUNCHED as error:
            self._stop()
            raise EngineError(f"{self.title} could not start Minecraft ({reason(error)}). {self._needs()}") from error
        return self._look(observation, info, False)

    def _tick(self, action: Action, chat: str | None) -> Look:
        try:
            observation, info, done = self._press(action, chat)
        except _DEAD as error:
            self._stop()
            raise EngineError(f"Minecraft stopped answering ({reason(error)}).") from error
        if "error" in info:  # MineRL, and MineStudio as well, hide a lost connection behind a random observation
            self._stop()
            raise EngineError(f"Minecraft stopped answering ({info['error']}).")
        return self._look(observation, info, done)

    def _stop(self) -> None:
        if self._engine is not None:
            engine, self._engine = self._engine, None
            # A client that is gone already may make closing fail; what ended it is what counts.
            with suppress(OSError, RuntimeError):
                engine.close()

    def _do(self, action: Action) -> Look:
        look = self._tick(action, self._lines.popleft() if self._lines else None)
        self._over = look.done
        return look

    def _take(self, look: Look, tick: int, blocked: NDArray[np.int32]) -> Frame:
        info = {**look.info, "done": True} if look.done else look.info
        cells = self._region.cells(look.pose)
        self._frame = Frame(tick, look.pose, look.image, cells, blocked, carried(look.items), info)
        return self._frame


def reason(error: Exception) -> str:
    """What an error says in short: some put the client's whole log into it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if "Exception" in line or "rror" in line] or lines[-1:]
    return ": ".join([type(error).__name__, *telling[:2]])[:300]
