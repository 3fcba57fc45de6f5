"""A small world with things in it for tests of the agent: open ground, one block per tick, a picture of what is ahead."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from wise_helpers import picture

from agentexp.errors import EngineError
from agentexp.wise.core import EMPTY, Control, Frame, Pose, Subtask
from agentexp.wise.navigate import Navigator, bearing
from agentexp.wise.seen import FieldOfView
from agentexp.wise.vlm.simulated import Sighting

SOURCES = {"beef": "cow", "log": "tree", "water_bucket": "water", "mutton": "sheep", "sand": "sand"}
SEEN_AS = {"tree": "log"}  # what a vision model calls it
VIEW = 12.0


class SmallWorld:
    """Things are (name, x, z); collecting one removes it, except water."""

    name = "small"
    speed = 1.0

    def __init__(
        self, size: int = 48, things: list[list[Any]] | None = None, breaks_at: int | None = None, turn_per_step: float = 30.0
    ) -> None:
        self.size, self.origin, self.turn_per_step = size, (0, 0), turn_per_step
        self._first = [tuple(thing) for thing in things or []]
        self.breaks_at = breaks_at
        self._fov = FieldOfView()
        self.closed = False

    def reset(self, seed: int) -> Frame:
        self.things = list(self._first)
        self.inventory: dict[str, int] = {}
        self.tick = 0
        rng = np.random.default_rng(seed)
        self.pose = Pose(self.size / 2, 64, self.size / 2, float(rng.uniform(0, 360)))
        return self.frame()

    def act(self, control: Control) -> Frame:
        self.tick += 1
        if self.breaks_at is not None and self.tick >= self.breaks_at:
            raise EngineError("The small world broke.")
        turn = float(np.clip(control.turn, -self.turn_per_step, self.turn_per_step))
        yaw = (self.pose.yaw + turn) % 360
        step = float(np.clip(control.forward, 0, 1))
        x = float(np.clip(self.pose.x - np.sin(np.deg2rad(yaw)) * step, 0.5, self.size - 0.5))
        z = float(np.clip(self.pose.z + np.cos(np.deg2rad(yaw)) * step, 0.5, self.size - 0.5))
        self.pose = Pose(x, 64, z, yaw, float(np.clip(self.pose.pitch + control.look, -60, 60)))
        if control.attack or control.use:
            self._collect()
        return self.frame()

    def _collect(self) -> None:
        near = [thing for thing in self.things if self.pose.distance(thing[1], thing[2]) < 2.5]
        if near:
            name = near[0][0]
            item = next(item for item, source in SOURCES.items() if source == name)
            self.inventory[item] = self.inventory.get(item, 0) + 1
            if name != "water":
                self.things.remove(near[0])

    def visible(self) -> list[tuple[str, float, float]]:
        return [
            thing
            for thing in self.things
            if self.pose.distance(thing[1], thing[2]) < VIEW and abs(bearing(self.pose, thing[1], thing[2])) < 35
        ]

    def frame(self) -> Frame:
        cells = self._fov.offsets(self.pose.x, self.pose.z, self.pose.yaw) + np.array(self.pose.cell, np.int32)
        cells = cells[((cells >= 0) & (cells < self.size)).all(axis=1)]
        image = picture(*{name for name, _, _ in self.visible()}, noise=self.tick)
        return Frame(self.tick, self.pose, image, cells, EMPTY, dict(self.inventory))

    def picture(self) -> np.ndarray:
        return picture(*{name for name, _, _ in self.visible()}, noise=self.tick)

    def command(self, text: str, **values: Any) -> None:
        assert text == "spawn"
        self.things.append((values["name"], values["x"], values["z"]))

    def truth(self) -> Mapping[str, Any]:
        return {"passable": np.ones((self.size, self.size), bool)}

    def sightings(self) -> list[Sighting]:
        return [Sighting(SEEN_AS.get(name, name), 200) for name, _, _ in self.visible()]

    def close(self) -> None:
        self.closed = True

    def versions(self) -> dict[str, str]:
        return {}


class SmallHands:
    """Walks as the shared navigator; executes by going to the nearest thing it sees of the right kind (it knows the world)."""

    def __init__(self, turn_per_step: float = 30.0) -> None:
        self._walk = Navigator(turn_per_step)
        self.world: SmallWorld | None = None

    def reset(self, size: int, origin: tuple[int, int]) -> None:
        self._walk.reset(size, origin)

    def navigate(self, frame: Frame, x: float, z: float) -> Control:
        return self._walk.towards(frame, x, z)

    def execute(self, frame: Frame, subtask: Subtask) -> Control:
        assert self.world is not None
        wanted = SOURCES[subtask.target]
        seen = sorted((frame.pose.distance(x, z), x, z) for name, x, z in self.world.visible() if name == wanted)
        if not seen:
            return Control(turn=10)
        distance, x, z = seen[0]
        return Control(use=True) if distance < 2 else self._walk.towards(frame, x, z)
