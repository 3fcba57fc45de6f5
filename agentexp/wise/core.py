"""The nouns of WISE (Pose, Frame, Control, Record, Opportunity) and the protocols between its parts.

The agent's loop (`agent.py`, the paper's algorithm 1) owns no policy: it is made of a memory, an explorer, a scheduler and a
controller, each behind a protocol below, and drives a world that it knows only through frames and poses. A method of the paper
(MrSteve, WISE, an ablation) is a choice of parts; the controller and the world are the same for all of them.

Coordinates are Minecraft's: x grows to the east, z to the south, y upwards, one unit = one block. Yaw in degrees: 0 looks to
+z (south), 90 to -x (west), clockwise seen from above; pitch in degrees, positive looks down. Time is counted in ticks, 20 a
second. The cell of a position is (floor(x), floor(z)). Maps are arrays of shape (size, size), indexed [x, z], with their
corner at the world's `origin`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import floor
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

TICKS_PER_SECOND = 20
EMPTY: NDArray[np.int32] = np.empty((0, 2), np.int32)

# ---------------------------------------------------------------------------------------------------------------- worlds


class Pose(NamedTuple):
    """l_t = (x, y, z, yaw, pitch) of the paper's eq. 1; blocks and degrees, see the module's text."""

    x: float
    y: float
    z: float
    yaw: float = 0.0
    pitch: float = 0.0

    @property
    def cell(self) -> tuple[int, int]:
        """The map cell below."""
        return floor(self.x), floor(self.z)

    def distance(self, x: float, z: float) -> float:
        """Horizontal distance in blocks."""
        return float(np.hypot(self.x - x, self.z - z))


@dataclass(frozen=True, slots=True)
class Frame:
    """o_t = (I_t, l_t, t): all that an agent perceives in one tick.

    Attributes:
        tick: ticks since the reset.
        pose: where the agent is and looks.
        image: first-person picture, uint8 of shape (height, width, 3); None where the world renders on request only.
        cells: map cells in view now, int32 of shape (n, 2): the field of view less what is hidden.
        blocked: map cells found impassable now, int32 of shape (n, 2): seen as obstacles, or bumped into.
        inventory: counts by item name.
        info: anything else that is perceived (JSON values).
    """

    tick: int
    pose: Pose
    image: NDArray[np.uint8] | None = None
    cells: NDArray[np.int32] = field(default_factory=lambda: EMPTY)
    blocked: NDArray[np.int32] = field(default_factory=lambda: EMPTY)
    inventory: Mapping[str, int] = field(default_factory=dict)
    info: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Control:
    """What the body does in one tick.

    Attributes:
        forward: share of full speed, from -1 to 1.
        turn: change of yaw in degrees; the world cuts it to what one tick allows.
        look: change of pitch in degrees.
        jump, attack, use: keys held down.
        keys: further keys held down, by their names in Minecraft (left, sneak, sprint, hotbar.2); other worlds have none.
    """

    forward: float = 0.0
    turn: float = 0.0
    look: float = 0.0
    jump: bool = False
    attack: bool = False
    use: bool = False
    keys: tuple[str, ...] = ()


@runtime_checkable
class VoxelWorld(Protocol):
    """A world for one agent. Not a language world: it is driven in ticks, by pictures and poses.

    Attributes:
        name: as in `world=`.
        size: side of the square evaluation region in blocks.
        origin: its corner (smallest x and z).
    """

    name: str
    size: int
    origin: tuple[int, int]

    def reset(self, seed: int) -> Frame:
        """Build the episode's world, equal for equal seeds, and return its first frame. May raise `EngineError`."""
        ...

    def act(self, control: Control) -> Frame:
        """Do one tick. May raise `EngineError`."""
        ...

    def picture(self) -> NDArray[np.uint8]:
        """The first-person picture now, for worlds whose frames carry none. Slow there."""
        ...

    def command(self, text: str, **values: Any) -> None:
        """A change made by the protocol of a task, not by the agent ("spawn", name="cow", x=..., z=...)."""
        ...

    def truth(self) -> Mapping[str, Any]:
        """Ground truth, for scoring and simulated labels only: "passable" (size, size) bool, "things" ..."""
        ...

    def close(self) -> None:
        """Stop the engine. Safe to call twice."""
        ...

    def versions(self) -> dict[str, str]:
        """Versions of what the world runs on."""
        ...


# ---------------------------------------------------------------------------------------------------------------- memory


@dataclass(slots=True)
class Record:
    """x = (e_x, l_x, t_x): one remembered frame.

    Attributes:
        id: index in order of arrival, unique in its memory.
        embedding: unit vector, float32 of shape (d,).
        pose: where it was seen from.
        tick: when.
        picture: the frame's picture where it is kept (keyframes).
    """

    id: int
    embedding: NDArray[np.float32]
    pose: Pose
    tick: int
    picture: NDArray[np.uint8] | None = None


@dataclass(frozen=True, slots=True)
class Opportunity:
    """A candidate that memory offers for a subtask: where to go and why.

    Attributes:
        x, z: the place, in blocks.
        tick: when it was seen.
        score: eq. 6, in [0, 1].
        affordance: AffordanceMatch, 0 or 1 (the graph links what is there to the subtask).
        similarity: of picture and task text.
        entity: name of the thing, where it is known.
        relation: such as CAN_OBTAIN.
        in_view: it is seen right now.
        pose: from where it was seen, to look at it the same way again.
        target: of the subtask that it is offered for.
    """

    x: float
    z: float
    tick: int
    score: float
    affordance: float = 0.0
    similarity: float = 0.0
    entity: str = ""
    relation: str = ""
    in_view: bool = False
    pose: Pose | None = None
    target: str = ""


@dataclass(frozen=True, slots=True)
class Subtask:
    """tau_i: something to obtain.

    Attributes:
        text: the instruction, "obtain beef".
        target: item name of the knowledge base ("beef", "log", "water_bucket").
        count: how many.
        place: for a subtask that means one certain place ("back to where A was"), its index in the task; None otherwise.
    """

    text: str
    target: str
    count: int = 1
    place: int | None = None


class Memory(Protocol):
    """What the agent remembers; `observe` is called every tick and never blocks on a language model."""

    def observe(self, frame: Frame) -> None:
        """Take in one frame."""
        ...

    def candidates(self, subtask: Subtask, frame: Frame) -> list[Opportunity]:
        """C_i: what it offers for a subtask, best first; empty when it knows nothing."""
        ...

    def forget(self, opportunity: Opportunity) -> None:
        """It was tried and is not (or no longer) there."""
        ...

    async def settle(self) -> None:
        """Wait for what is still being worked on in the background (end of the episode)."""
        ...

    def statistics(self) -> dict[str, Any]:
        """Counts for the record: frames, clusters, keyframes, requests, tokens, cost, nodes, edges."""
        ...


# ------------------------------------------------------------------------------------------------------ exploring, acting


@dataclass(frozen=True, slots=True)
class Goal:
    """Where an explorer wants to go: the centre of a cell, and the rule that chose it (global, regional, local, escape)."""

    x: float
    z: float
    tier: str = ""


class Explorer(Protocol):
    """Chooses where to look next from what has been seen. Keeps its own map; knows neither tasks nor pictures."""

    def reset(self, size: int, origin: tuple[int, int], seed: int) -> None:
        """Begin an episode."""
        ...

    def observe(self, frame: Frame) -> None:
        """Take in one frame; called every tick, also while the agent does something else."""
        ...

    def goal(self, frame: Frame) -> Goal | None:
        """The present goal (kept until it is reached, seen or given up); None when nothing is left to explore."""
        ...

    def statistics(self) -> dict[str, Any]:
        """Decisions by tier, escapes, seconds per decision (p50, p99), index nodes visited."""
        ...


class Scheduler(Protocol):
    """Orders the pending subtasks."""

    def order(
        self, pending: Sequence[Subtask], candidates: Mapping[int, Sequence[Opportunity]], frame: Frame
    ) -> list[tuple[int, float]]:
        """(index into `pending`, priority) in the order of execution."""
        ...


class Controller(Protocol):
    """Moves the body: the stand-in for VPT-Nav (navigate) and STEVE-1 (execute)."""

    def navigate(self, frame: Frame, x: float, z: float) -> Control:
        """One tick towards a place."""
        ...

    def execute(self, frame: Frame, subtask: Subtask) -> Control:
        """One tick of doing the subtask with what is in view."""
        ...


class Encoder(Protocol):
    """Pictures and texts in one space (MineCLIP's role)."""

    dimension: int

    def picture(self, image: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Unit vector of shape (dimension,)."""
        ...

    def text(self, text: str) -> NDArray[np.float32]:
        """Unit vector of shape (dimension,)."""
        ...


class VisionModel(Protocol):
    """Names what is on keyframes (GPT-4o's role), in the JSON of the paper's appendix A.9."""

    async def label(self, keyframes: Sequence[Record]) -> Mapping[str, Any]:
        """{"frames": [...]}; raises `ModelError`."""
        ...
