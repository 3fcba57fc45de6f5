"""A `VoxelWorld` on MineRL 0.4.4. Tested up to the launch of the client: see docs/wise-minecraft.md for what was run where."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from typing import Any

import numpy as np

from agentexp.errors import EngineError
from agentexp.packages import installed
from agentexp.wise.worlds.minecraft.body import Action, pose_of
from agentexp.wise.worlds.minecraft.world import Look, MinecraftWorld
from agentexp.wise.worlds.minerl.mission import Generator, Mission, specification

_NEEDS = (
    "It needs JDK 8 (java -version says 1.8), a display (xvfb-run) and the client that Gradle builds when MineRL is installed "
    "with a network; docs/wise-minecraft.md has the commands"
)


class MineRLWorld(MinecraftWorld):
    """See the module's text. The client is started at the first reset and kept for the following ones.

    Args:
        size: see `MinecraftWorld`, as `origin`, `turn_per_step`, `view_angle`, `view_radius`, `hotbar`, `mobs`, `mobs_within`,
            `setup` and `auto_jump`.
        origin: corner (x, z), or null.
        turn_per_step: degrees.
        view_angle: degrees.
        view_radius: blocks.
        hotbar: null: bucket and diamond sword (MrSteve's tools).
        mobs: at the start.
        mobs_within: blocks.
        setup: chat commands.
        auto_jump: see there.
        resolution: width and height of the picture; null: 640 x 360.
        generator: see `Mission`, as all below.
        biome: of generator=biome.
        file: of generator=file.
        ticks: of the mission.
        start_time: ticks.
        time_passes: see there.
        mobs_spawn: see there.
        weather: see there.

    Raises:
        UserError: a setting is out of range.
    """

    name = "minerl"
    title = "MineRL"

    def __init__(
        self,
        *,
        size: int = 128,
        origin: list[int] | None = None,
        turn_per_step: float = 10.0,
        view_angle: float = 70.0,
        view_radius: float = 10.0,
        hotbar: list[str] | None = None,
        mobs: dict[str, int] | None = None,
        mobs_within: float = 20.0,
        setup: list[str] | None = None,
        auto_jump: bool = True,
        resolution: list[int] | None = None,
        generator: Generator = "biome",
        biome: str = "plains",
        file: str | None = None,
        ticks: int = 50_000,
        start_time: int = 0,
        time_passes: bool = True,
        mobs_spawn: bool = True,
        weather: str = "clear",
    ) -> None:
        super().__init__(
            version="1.11.2",
            size=size,
            origin=origin,
            turn_per_step=turn_per_step,
            view_angle=view_angle,
            view_radius=view_radius,
            hotbar=["bucket", "diamond_sword"] if hotbar is None else hotbar,
            mobs=mobs,
            mobs_within=mobs_within,
            setup=setup,
            auto_jump=auto_jump,
        )
        width, height = resolution or (640, 360)
        self.mission = Mission(
            resolution=(width, height),
            generator=generator,
            biome=biome,
            file=file,
            hotbar=tuple(self.hotbar),
            ticks=ticks,
            start_time=start_time,
            time_passes=time_passes,
            mobs_spawn=mobs_spawn,
            weather=weather,
        )

    def _make(self) -> Any:
        """A gym environment."""
        return specification(self.mission).make()

    def _begin(self, seed: int) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        self._engine.seed(seed)  # MineRL forgets it with every reset
        return self._engine.reset(), {}

    def _press(self, action: Action, chat: str | None) -> tuple[Mapping[str, Any], Mapping[str, Any], bool]:
        full = self._engine.action_space.no_op()
        full.update(action)
        full.pop("chat", None)
        if chat:
            full["chat"] = chat
        observation, _, done, info = self._engine.step(full)
        return observation, info, bool(done)

    def _look(self, observation: Mapping[str, Any], info: Mapping[str, Any], done: bool) -> Look:
        return look(observation, done)

    def _needs(self) -> str:
        return f"{'' if shutil.which('java') else 'There is no java on this machine. '}{_NEEDS}."

    def versions(self) -> dict[str, str]:
        """Of Minecraft and the packages that are installed."""
        return {"minecraft": self.version, **installed(("minerl", "gym", "numpy"))}


def look(observation: Mapping[str, Any], done: bool = False) -> Look:
    """A MineRL observation in the adapter's terms.

    Raises:
        EngineError: a part is missing.
    """
    try:
        place = observation["location_stats"]
        pose = pose_of(place["xpos"], place["ypos"], place["zpos"], place["yaw"], place["pitch"])
        items = [(str(name), int(count)) for name, count in observation["inventory"].items()]
        image = np.asarray(observation["pov"], np.uint8)
    except KeyError as error:
        raise EngineError(f"MineRL's observation has no {error}.") from error
    return Look(image, pose, items, done)
