"""minigrid behind plain data: one BabyAI level at a time, its state as a `Scene`, its mission as clauses, and its own verdict.

minigrid prints to standard output while it generates and pygame while it is imported; both are kept from there.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, TypeAlias

from agentexp.envs.babyai.levels import registered
from agentexp.envs.babyai.scene import OPEN, Cell, Scene, Thing
from agentexp.errors import EngineError, MissingDependency

Verdict = Literal["continue", "success", "failure"]
Verb: TypeAlias = Literal["go to", "pick up", "open"]
NO_LIMIT = 10**9  # moves; the caller counts text steps


class Clause(NamedTuple):
    """One part of a mission.

    Attributes:
        verb: what has to be done.
        things: numbers of all things that fit the description, as they were chosen at reset.
        words: the description without article ("red ball", "door on your left").
        strict: doing the same to another thing fails the mission.
        rank: parts of a lower rank come first; those of one rank may be done in any order.
    """

    verb: Verb
    things: frozenset[int]
    words: str
    strict: bool = False
    rank: int = 0


class Engine:
    """One level with one seed.

    Attributes:
        mission: in minigrid's words.
        room_size: width of a room with both its walls.

    Args:
        level: name without prefix and version, as in `levels.LEVELS`.
        seed: of the instance.

    Raises:
        MissingDependency: minigrid is not installed.
    """

    def __init__(self, level: str, seed: int) -> None:
        with _quiet():
            try:
                import gymnasium
                import minigrid  # noqa: F401 - registers the levels
            except ImportError as error:
                raise MissingDependency("env=babyai needs minigrid: pip install 'agentexp[babyai]'.") from error
            made: Any = gymnasium.make(registered(level), disable_env_checker=True)
            self._env: Any = made.unwrapped
            self._env.reset(seed=seed)
        self._env.max_steps = NO_LIMIT
        grid = self._env.grid
        cells = {(x, y): grid.get(x, y) for x in range(grid.width) for y in range(grid.height)}
        self._walls = frozenset(cell for cell, thing in cells.items() if thing is not None and thing.type == "wall")
        self._objects = [thing for thing in cells.values() if thing is not None and thing.type != "wall"]
        self._number = {id(thing): i for i, thing in enumerate(self._objects)}  # they live as long as this engine
        self.mission = str(self._env.mission)
        self.room_size = int(self._env.room_size)

    def scene(self) -> Scene:
        """The state now."""
        grid = self._env.grid
        things: dict[Cell, Thing] = {}
        for index, thing in enumerate(grid.grid):
            if thing is not None and thing.type != "wall":
                things[index % grid.width, index // grid.width] = self._thing(thing)
        x, y = self._env.agent_pos
        held = self._env.carrying
        return Scene(
            grid.width,
            grid.height,
            self._walls,
            things,
            (int(x), int(y)),
            int(self._env.agent_dir),
            self._thing(held) if held is not None else None,
        )

    def move(self, move: int) -> Verdict:
        """Carry out one move and ask minigrid whether the mission is over.

        One repair: after the first part of an ordered mission minigrid verifies the second with the same move, so that a
        strict second part ("open the red door, then open the blue door") fails by the very move that does the first part
        right. That failure is passed over; the mission goes on and can be solved.
        """
        first = self._first_done()
        _, reward, terminated, _, _ = self._env.step(move)
        if not terminated:
            return "continue"
        if reward > 0:
            return "success"
        return "continue" if self._first_done() and not first else "failure"

    def clauses(self) -> list[Clause]:
        """All parts of the mission, in the order in which they have to be done."""
        return [clause for clause, _ in self._parts(self._env.instrs)]

    def pending(self) -> list[Clause]:
        """Those that are not done."""
        return [clause for clause, done in self._parts(self._env.instrs) if not done]

    def _first_done(self) -> bool:
        """Whether the part of an ordered mission that comes first is done."""
        mission = self._env.instrs
        name = type(mission).__name__
        done = mission.a_done if name == "BeforeInstr" else mission.b_done if name == "AfterInstr" else ""
        return bool(done == "success")

    def _parts(self, part: Any, done: bool = False, rank: int = 0) -> Iterator[tuple[Clause, bool]]:
        name = type(part).__name__
        verbs: dict[str, Verb] = {"GoToInstr": "go to", "PickupInstr": "pick up", "OpenInstr": "open"}
        if name in verbs:
            # "a grey object" fits grey walls as well, for minigrid; no move does anything to them.
            things = frozenset(self._number[id(thing)] for thing in part.desc.obj_set if thing.type != "wall")
            yield Clause(verbs[name], things, _words(part.desc), bool(getattr(part, "strict", False)), rank), done
            return
        if name not in ("AndInstr", "BeforeInstr", "AfterInstr"):
            raise EngineError(f"babyai cannot read a mission with {name}: {self.mission}")
        halves = [(part.instr_a, done or part.a_done == "success"), (part.instr_b, done or part.b_done == "success")]
        for later, (half, over) in enumerate(reversed(halves) if name == "AfterInstr" else halves):
            yield from self._parts(half, over, rank + later if name != "AndInstr" else rank)

    def _thing(self, thing: Any) -> Thing:
        state = ""
        if thing.type == "door":
            state = OPEN if thing.is_open else "locked" if thing.is_locked else "closed"
        return Thing(self._number[id(thing)], str(thing.type), str(thing.color), state)


def _words(desc: Any) -> str:
    place = {"front": "in front of you", "behind": "behind you", "left": "on your left", "right": "on your right"}
    return " ".join(filter(None, (desc.color, desc.type or "object", place.get(desc.loc, ""))))


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    with contextlib.redirect_stdout(io.StringIO()):
        yield
