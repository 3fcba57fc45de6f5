"""Changes that a task's protocol makes, as Minecraft's chat commands. The body must be allowed to use them (cheats)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from agentexp.errors import UserError
from agentexp.wise.core import Pose

Version = Literal["1.11.2", "1.16.5"]
KNOWN = ("spawn", "remove", "give", "clear", "teleport", "time", "weather", "run")

ALL = "agentexp"  # tag of everything that was spawned

# How items and blocks were called before the 1.13 "flattening", for the few that tasks use.
_BEFORE_1_13 = {"oak_log": "log", "oak_planks": "planks"}


class Commands:
    """Texts of the commands of one version.

    Args:
        version: of Minecraft.

    Attributes:
        spawned: tags of what the last "spawn" put into the world.
    """

    def __init__(self, version: Version) -> None:
        if version not in ("1.11.2", "1.16.5"):
            raise UserError(f"There are no commands for Minecraft {version}; choose 1.11.2 or 1.16.5.")
        self.version = version
        self.spawned: list[str] = []
        self._number = 0

    def lines(self, text: str, here: Pose, **values: Any) -> list[str]:
        """The chat lines of one command.

        Args:
            text: "spawn" (name, x, z, count = 1), "remove" (name: all that were spawned), "give" (name, count = 1), "clear",
                "teleport" (x, z), "time" (ticks), "weather" (kind), "run" (line).
            here: where the body is.
            values: see above.

        Raises:
            UserError: another text, or a value is missing.
        """
        if text not in KNOWN:
            raise UserError(f"Minecraft worlds know no command {text!r}; choose one of: hold, {', '.join(KNOWN)}.")
        try:
            return list(getattr(self, f"_{text}")(here, **values))
        except TypeError as error:
            raise UserError(f"The command {text!r} was given {sorted(values)}: {error}.") from error

    def _spawn(self, here: Pose, *, name: str, x: float, z: float, count: int = 1) -> list[str]:
        """The ground's height is not known: summon beside the body's own height, then put the mob on the surface."""
        lines = []
        self.spawned = [f"{ALL}{self._number + k + 1}" for k in range(count)]
        self._number += count
        for tag in self.spawned:
            lines.append(f'/summon minecraft:{_bare(name)} {x:.1f} {here.y + 3:.1f} {z:.1f} {{Tags:["{ALL}","{tag}"]}}')
            lines.append(f"/spreadplayers {x:.1f} {z:.1f} 0 1 false @e[tag={tag}]")
        return lines

    @staticmethod
    def leave(tags: Sequence[str]) -> list[str]:
        """Take away what was spawned with these tags and still lives."""
        return [f"/kill @e[tag={tag}]" for tag in tags]

    def _remove(self, here: Pose, *, name: str) -> list[str]:
        return [f"/kill @e[type={_bare(name)},tag={ALL}]"]

    def _give(self, here: Pose, *, name: str, count: int = 1) -> list[str]:
        item = _bare(name)
        if self.version == "1.11.2":
            item = _BEFORE_1_13.get(item, item)
        return [f"/give @p minecraft:{item} {count}"]

    def _clear(self, here: Pose) -> list[str]:
        return ["/clear @p"]

    def _teleport(self, here: Pose, *, x: float, z: float) -> list[str]:
        return [f"/spreadplayers {x:.1f} {z:.1f} 0 1 false @p"]

    def _time(self, here: Pose, *, ticks: int) -> list[str]:
        return [f"/time set {ticks}"]

    def _weather(self, here: Pose, *, kind: str) -> list[str]:
        return [f"/weather {kind}"]

    def _run(self, here: Pose, *, line: str) -> list[str]:
        return [line if line.startswith("/") else f"/{line}"]


def _bare(name: str) -> str:
    return name.removeprefix("minecraft:")
