"""A `VoxelWorld` on `minestudio.simulator.MinecraftSim`. See docs/wise-minecraft.md for what was run where."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from agentexp.errors import EngineError, MissingDependency, UserError
from agentexp.packages import installed
from agentexp.wise.worlds.minecraft.body import Action, pose_of
from agentexp.wise.worlds.minecraft.world import Look, MinecraftWorld

INSTALL = "pip install minestudio==1.1.6; it also needs JDK 8 and Xvfb (docs/wise-minecraft.md)"
ENGINE = "python -c 'from minestudio.simulator.entry import check_engine; check_engine(True)'"
_JAR = Path("engine", "build", "libs", "mcprec-6.13.jar")
_NEEDS = "It needs JDK 8 (java -version says 1.8) and a display (xvfb-run); docs/wise-minecraft.md has the commands"


class MineStudioWorld(MinecraftWorld):
    """See the module's text. One simulator serves all episodes; the seed is set anew before each.

    Args:
        size: see `MinecraftWorld`, as `origin`, `turn_per_step`, `view_angle`, `view_radius`, `hotbar`, `mobs`, `mobs_within`,
            `setup` and `auto_jump`.
        origin: corner (x, z), or null.
        turn_per_step: degrees; VPT's largest turn is 10.
        view_angle: degrees.
        view_radius: blocks.
        hotbar: null: bucket and diamond sword.
        mobs: at the start.
        mobs_within: blocks.
        setup: chat commands.
        auto_jump: see there.
        resolution: width and height of the picture; null: 640 x 360, at which VPT was trained.
        biome: that the spawn is looked for in; null: anywhere.
        empty_frames: ticks after a reset until the picture is there.
        callbacks: of minestudio.simulator.callbacks by name, with their settings, e.g. {RecordCallback: {record_path: videos}}.

    Raises:
        UserError: a setting is out of range.
    """

    name = "minestudio"
    title = "MineStudio"

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
        biome: str | None = "plains",
        empty_frames: int = 20,
        callbacks: dict[str, dict[str, Any]] | None = None,
    ) -> None:
        super().__init__(
            version="1.16.5",
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
        if min(width, height) < 16 or empty_frames < 1:
            raise UserError("world.resolution needs at least 16 pixels on each side, world.empty_frames at least 1.")
        self.resolution, self.biome, self.empty_frames = (width, height), biome, empty_frames
        self.callbacks = dict(callbacks or {})

    def _make(self) -> Any:
        """A simulator.

        Raises:
            MissingDependency: the package or its engine is not there.
            UserError: there is no such callback.
        """
        try:
            simulator = import_module("minestudio.simulator")
            offered = import_module("minestudio.simulator.callbacks")
            folder = import_module("minestudio.utils").get_mine_studio_dir()
        except ImportError as error:
            raise MissingDependency(f"world=minestudio needs its package ({error}): {INSTALL}.") from error
        # Without its engine the simulator would ask on the terminal and end the process.
        if not (Path(folder) / _JAR).is_file():
            raise MissingDependency(
                f"MineStudio's engine is not in {folder} (environment variable MINESTUDIO_DIR). Download it: {ENGINE}."
            )
        unknown = [name for name in self.callbacks if not hasattr(offered, name)]
        if unknown:
            raise UserError(f"world.callbacks names {unknown[0]}, which is not in minestudio.simulator.callbacks.")
        return simulator.MinecraftSim(
            action_type="env",
            obs_size=self.resolution,
            render_size=self.resolution,
            inventory={slot: {"type": item, "quantity": 1} for slot, item in enumerate(self.hotbar)},
            preferred_spawn_biome=self.biome,
            num_empty_frames=self.empty_frames,
            callbacks=[getattr(offered, name)(**settings) for name, settings in self.callbacks.items()],
        )

    def _begin(self, seed: int) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        self._engine.env.seed(seed)  # the seed of the constructor holds for one reset only
        observation, info = self._engine.reset()
        return observation, info

    def _press(self, action: Action, chat: str | None) -> tuple[Mapping[str, Any], Mapping[str, Any], bool]:
        full = {**self._engine.noop_action(), **action, "chat": chat or ""}
        observation, _, terminated, truncated, info = self._engine.step(full)
        return observation, info, bool(terminated or truncated)

    def _look(self, observation: Mapping[str, Any], info: Mapping[str, Any], done: bool) -> Look:
        return look(observation, info, done)

    def _needs(self) -> str:
        return f"{_NEEDS}."

    def versions(self) -> dict[str, str]:
        """Of Minecraft and the packages that are installed."""
        return {"minecraft": self.version, **installed(("minestudio", "torch", "numpy"))}


def look(observation: Mapping[str, Any], info: Mapping[str, Any], done: bool = False) -> Look:
    """MineStudio's observation and info in the adapter's terms.

    Raises:
        EngineError: a part is missing.
    """
    try:
        place = info["player_pos"]
        pose = pose_of(place["x"], place["y"], place["z"], place["yaw"], place["pitch"])
        items = [(str(slot["type"]), int(slot["quantity"])) for slot in info["inventory"].values()]
        image = np.asarray(observation["image"], np.uint8)
    except KeyError as error:
        raise EngineError(f"MineStudio's info has no {error}.") from error
    told = {name: float(info[name]) for name in ("health", "food_level") if name in info}
    return Look(image, pose, items, done, told)
