"""A real Minecraft-protocol world as a `VoxelWorld`; see the package's text.

Every `act` is one tick of the game. With our own server game time is the body's: a tick of the server follows each tick of the
body, however long the agent thinks, and an episode runs as fast as the machine allows. On a server of the user's it runs in
real time.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from agentexp.errors import UserError
from agentexp.wise.core import Control, Frame
from agentexp.wise.knowledge.names import generic
from agentexp.wise.seen import FieldOfView
from agentexp.wise.vlm.simulated import Sighting
from agentexp.wise.worlds.voxel.angles import pose_of
from agentexp.wise.worlds.voxel.bridge import Bridge
from agentexp.wise.worlds.voxel.install import GAME
from agentexp.wise.worlds.voxel.launch import launch
from agentexp.wise.worlds.voxel.surface import Surface

STUCK_TICKS = 8
STUCK_BLOCKS = 0.4
Pictures = Literal["chromium", "rays", "none"]
Spawn = Literal["centre", "near_centre", "random"]


class VoxelMinecraft:
    """A body in Minecraft. Every `reset` starts new processes, so a killed one costs its episode and no more.

    Args:
        size: side of the square evaluation region in blocks.
        turn_per_step: most degrees of turn in one tick; null for free turning. 10 is the camera's limit in VPT's actions.
        view_angle, view_radius: of the sector that counts as seen, degrees and blocks; pictures are as wide.
        spawn: "centre"; "near_centre" (within an eighth of the side); "random" (anywhere dry).
        animals: how many of each walk about from the start, for example {sheep: 6}.
        items: what the body carries at first, by slot of its hot bar.
        auto_jump: jump up a block that is walked into, and swim up in water (the game's own option, and on there by default).
        ticks_per_act: ticks that one control lasts.
        pictures: who renders: "chromium" (the game's look, slow), "rays" (flat colours, from the blocks), "none".
        picture_size: width and height.
        image_every: frames carry a picture every so many ticks; 0: never, ask for `picture()`.
        look_every: `Frame.info["seen"]` names what is in view every so many ticks; 0: never.
        address: "host:port" of a Minecraft Java server that is running (in offline mode, or one that takes `username` without
            a login); null: our own server. With an address the seed, `spawn`, `animals` and `items` have no effect, `command`
            is refused, the region is centred on where the server puts the body, and `truth` is what the body has seen.
        username: the body's name.
        minecraft: version to speak; with our own server always 1.16.5.
        start_timeout, call_timeout: seconds for starting a world and for one answer.

    Raises:
        UserError: a setting is out of range.
    """

    name = "voxel"

    def __init__(
        self,
        size: int = 128,
        turn_per_step: float | None = 10.0,
        view_angle: float = 70.0,
        view_radius: float = 10.0,
        spawn: Spawn = "near_centre",
        animals: dict[str, int] | None = None,
        items: list[str] | None = None,
        auto_jump: bool = True,
        ticks_per_act: int = 1,
        pictures: Pictures = "chromium",
        picture_size: list[int] | None = None,
        image_every: int = 0,
        look_every: int = 0,
        address: str | None = None,
        username: str = "agentexp",
        minecraft: str = "1.16.5",
        start_timeout: float = 180.0,
        call_timeout: float = 60.0,
    ) -> None:
        if size < 32:
            raise UserError(f"world.size is {size}; choose a side of at least 32 blocks.")
        if turn_per_step is not None and turn_per_step <= 0:
            raise UserError(f"world.turn_per_step is {turn_per_step}; choose a number above 0, or null for free turning.")
        if ticks_per_act < 1:
            raise UserError(f"world.ticks_per_act is {ticks_per_act}; choose at least 1.")
        for name, value, choices in (
            ("spawn", spawn, ("centre", "near_centre", "random")),
            ("pictures", pictures, ("chromium", "rays", "none")),
        ):
            if value not in choices:
                raise UserError(f"world.{name} is {value!r}; choose one of {', '.join(choices)}.")
        if address is not None and not _is_address(address):
            raise UserError(f"world.address is {address!r}; write host:port, for example 127.0.0.1:25565, or null.")
        self.size, self.origin = size, (0, 0)
        self.turn_per_step, self.ticks_per_act = turn_per_step, ticks_per_act
        self.image_every, self.look_every = image_every, look_every
        self.pictures, self.address, self.call_timeout, self.start_timeout = pictures, address, call_timeout, start_timeout
        self._game = minecraft if address else GAME
        self._settings: dict[str, Any] = {
            "size": size,
            "spawn": spawn,
            "animals": animals or {},
            "items": ["bucket", "diamond_sword"] if items is None else items,
            "autoJump": auto_jump,
            "address": address,
            "username": username,
            "version": self._game,
            "picture": picture_size or [320, 180],
            "angle": view_angle,
        }
        self._view = FieldOfView(view_angle, view_radius)
        self._surface = Surface(size, self.origin, self._view)
        self._bridge: Bridge | None = None
        self._versions: dict[str, str] = {}
        self._inventory: dict[str, int] = {}
        self._tick = self._stuck = 0
        self._start = (0, 0)
        self._last: dict[str, Any] = {}

    # ---------------------------------------------------------------------------------------------------------- VoxelWorld

    def reset(self, seed: int) -> Frame:
        """A new world and body of this seed, at tick 0.

        Raises:
            MissingDependency: node or the packages are not installed.
            EngineError: the processes could not start or died.
        """
        self.close()  # one world per process: nothing of the last episode can be left
        self._bridge = launch(self._game)
        answer = self._call("reset", self.start_timeout, seed=int(seed), **self._settings)
        self.origin = (int(answer["origin"][0]), int(answer["origin"][1]))
        self._versions = {str(k): str(v) for k, v in answer["versions"].items()}
        self._surface = Surface(self.size, self.origin, self._view)
        self._tick = self._stuck = 0
        self._inventory, self._last = {}, {}
        frame = self._frame(answer, Control())
        self._start = frame.pose.cell
        return frame

    def act(self, control: Control) -> Frame:
        """One control, for `ticks_per_act` ticks. Turning and looking happen at once, within `turn_per_step` a tick."""
        turn, look = control.turn, control.look
        if self.turn_per_step is not None:
            limit = self.turn_per_step * self.ticks_per_act
            turn, look = (float(np.clip(value, -limit, limit)) for value in (turn, look))
        self._tick += self.ticks_per_act
        answer = self._call(
            "act",
            ticks=self.ticks_per_act,
            forward=float(np.clip(control.forward, -1, 1)),
            turn=turn,
            look=look,
            jump=control.jump,
            attack=control.attack,
            use=control.use,
            see=self._due(self.look_every),
        )
        return self._frame(answer, control)

    def picture(self) -> NDArray[np.uint8]:
        """The first-person picture now, uint8 of shape (height, width, 3). The first one of an episode takes the longest.

        Raises:
            UserError: `pictures` is "none".
            MissingDependency: Chromium is missing.
            EngineError: the renderer failed.
        """
        if self.pictures == "none":
            raise UserError("world.pictures is none; choose chromium or rays for tasks that look.")
        if self.pictures == "rays":
            answer = self._call("rays")
            width, height = answer["size"]
            return np.frombuffer(base64.b64decode(answer["rgb"]), np.uint8).reshape(height, width, 3).copy()
        from PIL import Image

        from agentexp.wise.worlds.voxel.install import find_chromium

        answer = self._call("picture", self.start_timeout, chromium=str(find_chromium()))
        with Image.open(io.BytesIO(base64.b64decode(answer["png"]))) as image:
            return np.asarray(image.convert("RGB"), np.uint8)

    def sightings(self) -> list[Sighting]:
        """The things in view, with their pixels in a picture of 64 x 36; for simulated vision models and for scoring."""
        seen = self._call("look")["seen"]
        there = [one for one in seen if not one["name"].startswith("item:")]
        return [Sighting(generic(one["name"]), int(one["pixels"]), float(one["visible"])) for one in there]

    def seen(self) -> list[dict[str, Any]]:
        """The things in view: "name" ("item:beef" lies about), "x", "y", "z" (nearest visible point), "pixels", "mob"."""
        return list(self._call("look")["seen"])

    def command(self, text: str, **values: Any) -> None:
        """A change of the task's protocol: "spawn" (name, x, z, count, stay in ticks), "give" (name, count), "time" (ticks).

        Raises:
            UserError: unknown, or the server is not ours.
        """
        if self.address is not None:
            raise UserError(f"world.address is set: the server there is not ours to {text!r}; use world.address=null.")
        self._call("command", text=text, values=values)

    def truth(self) -> Mapping[str, Any]:
        """Maps of shape (size, size): "passable", "observable" (bool); "things": [{"name", "x", "y", "z"}]; "own": our server.

        On a server of the user's, passable is what the body has received of the region, observable is all of it, and the things
        are what the body's client knows of.
        """
        answer = self._call("truth", self.start_timeout)
        if self.address is not None:
            everything = np.ones((self.size, self.size), bool)
            return {"passable": self._surface.passable(), "observable": everything, "things": answer["things"], "own": False}
        whole = Surface(self.size, self.origin, self._view)
        for column in answer["columns"]:
            whole.load(column)
        return {
            "passable": whole.passable(),
            "observable": whole.observable(self._start),
            "things": answer["things"],
            "own": True,
        }

    def close(self) -> None:
        """Stop the processes. Safe to call twice."""
        if self._bridge is not None:
            self._bridge.close()
            self._bridge = None

    def versions(self) -> dict[str, str]:
        """Of node, the game and the packages; empty before the first reset."""
        return {"numpy": np.__version__, **self._versions}

    # ------------------------------------------------------------------------------------------------------------- inside

    def _call(self, op: str, timeout: float | None = None, **values: Any) -> dict[str, Any]:
        if self._bridge is None:
            raise UserError(f"The voxel world has not been reset: call reset(seed) before {op}.")
        return self._bridge.call(op, timeout or self.call_timeout, **values)

    def _due(self, every: int) -> bool:
        return every > 0 and self._tick % every < self.ticks_per_act

    def _frame(self, answer: Mapping[str, Any], control: Control) -> Frame:
        for column in answer.get("columns", ()):
            self._surface.load(column)
        pose = pose_of(answer["position"], answer["yaw"], answer["pitch"])
        cells, blocked = self._surface.in_view(pose)
        if (bump := self._bumped(answer, control)) is not None:
            blocked = np.concatenate((blocked, bump))
        if "inventory" in answer:
            self._inventory = _counts(answer["inventory"])
        info = {key: answer[key] for key in ("health", "food", "ground", "water", "target", "seen") if key in answer}
        image = self.picture() if self.pictures != "none" and self._due(self.image_every) else None
        return Frame(self._tick, pose, image, cells, blocked, self._inventory, info)

    def _bumped(self, answer: Mapping[str, Any], control: Control) -> NDArray[np.int32] | None:
        """The cell ahead, when the body has been pressing against it without getting anywhere."""
        here, last = answer["position"], self._last.get("position", answer["position"])
        if control.forward <= 0 or control.turn or not answer.get("collided"):
            self._stuck, self._last = 0, {"position": here}
            return None
        self._stuck += self.ticks_per_act
        if self._stuck < STUCK_TICKS:
            return None
        moved = float(np.hypot(here[0] - last[0], here[2] - last[2]))
        self._stuck, self._last = 0, {"position": here}
        if moved >= STUCK_BLOCKS:
            return None
        heading = np.deg2rad(pose_of(here, answer["yaw"], answer["pitch"]).yaw)
        x, z = int(np.floor(here[0] - 0.8 * np.sin(heading))), int(np.floor(here[2] + 0.8 * np.cos(heading)))
        inside = 0 <= x - self.origin[0] < self.size and 0 <= z - self.origin[1] < self.size
        return np.array([[x, z]], np.int32) if inside else None


def _counts(items: Mapping[str, int]) -> dict[str, int]:
    """By the game's names, and by the generic ones that tasks use ("log" for oak_log)."""
    counts = {name: int(count) for name, count in items.items()}
    for name, count in items.items():
        if (same := generic(name)) != name:
            counts[same] = counts.get(same, 0) + int(count)
    return counts


def _is_address(text: str) -> bool:
    host, colon, port = text.rpartition(":")
    return bool(host and colon and port.isdecimal() and 0 < int(port) < 65536)
