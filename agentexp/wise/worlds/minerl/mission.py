"""What a MineRL episode is made of, and the `EnvSpec` that says so to MineRL 0.4.4 (Minecraft 1.11.2), the paper's backend.

MineRL is imported only when a specification is built, so this module can be read without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from agentexp.errors import MissingDependency, UserError
from agentexp.wise.worlds.minecraft.body import KEYS

INSTALL = (
    "pip install 'setuptools<60' wheel==0.37.1 && pip install --no-build-isolation gym==0.19.0 && "
    "pip install --no-build-isolation minerl==0.4.4 (it builds Minecraft with JDK 8; see docs/wise-minecraft.md)"
)
Generator = Literal["default", "biome", "flat", "file"]

# Ids of 1.11.2, for the landscapes that the paper names.
BIOMES = {"plains": 1, "desert": 2, "extreme_hills": 3, "forest": 4, "taiga": 5, "swampland": 6, "savanna": 35}


_FAR = 30_000_000.0
# Of location_stats: (key of Malmo, least, greatest).
_NUMBERS = (
    *((key, -_FAR, _FAR) for key in ("xpos", "ypos", "zpos")),
    ("yaw", -_FAR, _FAR),
    ("pitch", -90.0, 90.0),
)


@dataclass(frozen=True, slots=True)
class Mission:
    """Settings of an episode.

    Attributes:
        resolution: width and height of the picture.
        generator: how the ground is made: the game's own, one biome everywhere (MrSteve: plains), flat, or a saved world.
        biome: of "biome": one of `BIOMES`.
        file: of "file": path of the saved world's folder.
        hotbar: items of slots 1, 2 ... at the start.
        ticks: after which the mission ends; more than a task's budget and its set-up.
        start_time: time of day in ticks, 0 = sunrise, 6000 = noon.
        time_passes: day turns into night.
        mobs_spawn: the game spawns mobs of its own.
        weather: clear, rain, thunder, or normal (changing).
    """

    resolution: tuple[int, int] = (640, 360)
    generator: Generator = "biome"
    biome: str = "plains"
    file: str | None = None
    hotbar: tuple[str, ...] = ()
    ticks: int = 50_000
    start_time: int = 0
    time_passes: bool = True
    mobs_spawn: bool = True
    weather: str = "clear"

    def __post_init__(self) -> None:
        if self.generator not in get_args(Generator):
            raise UserError(f"world.generator={self.generator} is not possible; choose {', '.join(get_args(Generator))}.")
        if self.generator == "biome" and self.biome not in BIOMES:
            raise UserError(f"world.biome={self.biome} is not known; choose one of: {', '.join(BIOMES)}.")
        if (self.generator == "file") != (self.file is not None):
            raise UserError("world.file, the folder of a saved world, goes with world.generator=file and with no other.")
        if self.weather not in ("clear", "rain", "thunder", "normal"):
            raise UserError(f"world.weather={self.weather} is not possible; choose clear, rain, thunder or normal.")
        if min(self.resolution) < 16:
            raise UserError(
                f"world.resolution is {list(self.resolution)}; it needs a width and a height of at least 16 pixels."
            )
        if self.ticks < 1 or not 0 <= self.start_time < 24_000:
            raise UserError("world.ticks must be at least 1 and world.start_time from 0 to 23999.")


def specification(mission: Mission, name: str = "AgentExpWise-v0") -> Any:
    """The `EnvSpec` of a mission.

    Observations: pov, inventory, location_stats. Actions: the keys of `KEYS`, camera, chat.

    Raises:
        MissingDependency: MineRL is not installed.
    """
    try:
        from minerl.herobraine.env_spec import EnvSpec
        from minerl.herobraine.hero import handlers, mc, spaces
        from minerl.herobraine.hero.handlers.agent.action import Action
        from minerl.herobraine.hero.handlers.translation import KeymapTranslationHandler, TranslationHandlerGroup
    except ImportError as error:
        raise MissingDependency(f"world=minerl needs MineRL 0.4.4 ({error}): {INSTALL}.") from error

    class Chat(Action):  # type: ignore[misc]
        """Malmo's handler of chat, which MineRL 0.4.4 ships in Java but not in Python. Commands begin with a slash."""

        def __init__(self) -> None:
            # Of MineRL's spaces, Text has no no-op of a batch, so no action space could hold it. This one says: nothing.
            super().__init__("chat", spaces.Enum("", default=""))

        def xml_template(self) -> str:
            return "<ChatCommands/>"

        def from_universal(self, obs: Any) -> str:
            return ""

    class Number(KeymapTranslationHandler):  # type: ignore[misc]
        """One number of Malmo's full statistics; its absence is an error, where MineRL's own handler takes 0 for it."""

        def __init__(self, key: str, low: float, high: float) -> None:
            super().__init__([key], [key], spaces.Box(low=low, high=high, shape=(), dtype=np.float32))

        def xml_template(self) -> str:
            return "<ObservationFromFullStats/>"

    class Place(TranslationHandlerGroup):  # type: ignore[misc]
        """Where the body is and looks. MineRL's own group needs numpy before 1.24 (np.float)."""

        def __init__(self) -> None:
            super().__init__(handlers=[Number(*numbers) for numbers in _NUMBERS])

        def to_string(self) -> str:
            return "location_stats"

        def xml_template(self) -> str:
            return "<ObservationFromFullStats/>"

    class WiseSparse(EnvSpec):  # type: ignore[misc]
        """WISE's sparse tasks: an open world, no reward; success is judged from the inventory."""

        def create_observables(self) -> Sequence[Any]:
            return [
                handlers.POVObservation(list(mission.resolution)),
                handlers.FlatInventoryObservation(items(mc)),
                Place(),
            ]

        def create_actionables(self) -> Sequence[Any]:
            keys = [handlers.KeybasedCommandAction(key, mc.INVERSE_KEYMAP[key.removeprefix("hotbar.")]) for key in KEYS]
            return [*keys, handlers.CameraAction(), Chat()]

        def create_rewardables(self) -> Sequence[Any]:
            return []

        def create_agent_handlers(self) -> Sequence[Any]:
            return []

        def create_agent_start(self) -> Sequence[Any]:
            return [handlers.SimpleInventoryAgentStart([{"type": item, "quantity": 1} for item in mission.hotbar])]

        def create_monitors(self) -> Sequence[Any]:
            return []

        def create_server_initial_conditions(self) -> Sequence[Any]:
            return [
                handlers.TimeInitialCondition(allow_passage_of_time=mission.time_passes, start_time=mission.start_time),
                handlers.SpawningInitialCondition(allow_spawning=mission.mobs_spawn),
                handlers.WeatherInitialCondition(mission.weather),
            ]

        def create_server_decorators(self) -> Sequence[Any]:
            return []

        def create_server_world_generators(self) -> Sequence[Any]:
            if mission.generator == "biome":
                return [handlers.BiomeGenerator(BIOMES[mission.biome], force_reset=True)]
            if mission.generator == "flat":
                return [handlers.FlatWorldGenerator(force_reset=True)]
            if mission.generator == "file":
                return [handlers.FileWorldGenerator(filename=mission.file, destroy_after_use=True)]
            return [handlers.DefaultWorldGenerator(force_reset=True)]

        def create_server_quit_producers(self) -> Sequence[Any]:
            limit = handlers.ServerQuitFromTimeUp(mission.ticks * mc.MS_PER_STEP)
            return [limit, handlers.ServerQuitWhenAnyAgentFinishes()]

        def is_from_folder(self, folder: str) -> bool:
            return False

        def determine_success_from_rewards(self, rewards: list[float]) -> bool:
            return False

        def get_docstring(self) -> str:
            return str(self.__class__.__doc__)

    return WiseSparse(name, max_episode_steps=mission.ticks)


def items(mc: Any) -> list[str]:
    """The items that an inventory observation counts: all of the game's."""
    return [str(item) for item in mc.ALL_ITEMS]
