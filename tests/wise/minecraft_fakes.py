"""A game of two dozen lines behind the interfaces of MineRL and of MineStudio, so that the adapters are driven whole."""

import re
from typing import Any

import numpy as np

KEYS = ("attack", "back", "forward", "jump", "left", "right", "sneak", "sprint", "use", *(f"hotbar.{n}" for n in range(1, 10)))
WALK = 0.2158


class Game:
    """Flat ground, a wall one block high along z = 8 and one that cannot be jumped along x = -12; logs everything."""

    def __init__(self) -> None:
        self.chats: list[str] = []
        self.actions: list[dict[str, Any]] = []
        self.mobs: list[tuple[str, float, float]] = []
        self.seed: int | None = None
        self.ticks = 0

    def begin(self, seed: int | None) -> None:
        self.seed, self.ticks, self.mobs, self.dug = seed, 0, [], 0
        self.x, self.y, self.z, self.yaw, self.pitch = 0.5, 64.0, 0.5, 0.0, 0.0
        self.bag = {"bucket": 1, "diamond_sword": 1}

    def tick(self, action: dict[str, Any], chat: str) -> None:
        self.actions.append({key: np.copy(value) for key, value in action.items()})
        self.ticks += 1
        if chat:
            self.say(chat)
        self.dug = self.dug + 1 if int(action["attack"]) else 0
        if self.dug == 60:  # wherever it stands there is a tree
            self.bag["log"] = self.bag.get("log", 0) + 1
        pitch, yaw = (float(value) for value in action["camera"])
        self.yaw += yaw  # counts on beyond a turn, as the game's does
        self.pitch = float(np.clip(self.pitch + pitch, -90, 90))
        step = WALK * (int(action["forward"]) - int(action["back"]))
        heading = np.deg2rad(self.yaw)
        x, z = self.x - step * np.sin(heading), self.z + step * np.cos(heading)
        if x > -12.0 + 0.3 and (z < 7.7 or self.z >= 7.7 or int(action["jump"])):
            self.x, self.z = x, z

    def say(self, line: str) -> None:
        self.chats.append(line)
        if found := re.match(r"/summon minecraft:(\w+) (\S+) (\S+) (\S+) ", line):
            self.mobs.append((found[1], float(found[2]), float(found[4])))
        if found := re.match(r"/give @p minecraft:(\w+) (\d+)", line):
            self.bag[found[1]] = self.bag.get(found[1], 0) + int(found[2])

    @property
    def picture(self) -> np.ndarray:
        return np.full((36, 64, 3), self.ticks % 256, np.uint8)


class Space:
    def no_op(self) -> dict[str, Any]:
        return {**dict.fromkeys(KEYS, 0), "camera": np.zeros(2, np.float32), "chat": ["", "no line"]}


class FakeMineRL:
    """What `EnvSpec.make()` of MineRL 0.4.4 returns."""

    def __init__(self, game: Game, fails: str = "") -> None:
        self.game, self.fails, self.closed = game, fails, 0
        self.action_space = Space()
        self._seed: int | None = None

    def seed(self, seed: int) -> None:
        assert isinstance(seed, int)
        self._seed = seed

    def reset(self) -> dict[str, Any]:
        if self.fails == "reset":
            raise EOFError
        self.game.begin(self._seed)
        self._seed = None
        return self._observation()

    def step(self, action: dict[str, Any]) -> tuple[dict[str, Any], float, bool, dict[str, Any]]:
        if self.fails == "step":
            return self._observation(), 0.0, True, {"error": "Connection timed out!"}
        self.game.tick(action, action.get("chat", ""))
        return self._observation(), 0.0, self.fails == "death", {}

    def close(self) -> None:
        self.closed += 1

    def _observation(self) -> dict[str, Any]:
        game = self.game
        place = {"xpos": game.x, "ypos": game.y, "zpos": game.z, "yaw": game.yaw, "pitch": game.pitch}
        bag = {**dict.fromkeys(("air", "log", "log2", "beef"), 0), **game.bag}
        return {
            "pov": game.picture,
            "inventory": {name: np.array(count) for name, count in bag.items()},
            "location_stats": {name: np.array(value) for name, value in place.items()},
        }


class FakeSim:
    """What `minestudio.simulator.MinecraftSim(action_type="env", ...)` is."""

    def __init__(self, game: Game, fails: str = "", **settings: Any) -> None:
        assert settings.get("action_type", "env") == "env"
        self.game, self.fails, self.settings, self.closed = game, fails, settings, 0
        self.env = FakeMineRL(game)
        self._told: dict[str, Any] = {}

    def noop_action(self) -> dict[str, Any]:
        return {**self.env.action_space.no_op(), "inventory": 0, "chat": "", "voxels": [], "mobs": []}

    def reset(self) -> tuple[dict[str, Any], dict[str, Any]]:
        if self.fails == "reset":
            raise ConnectionRefusedError("Minecraft process finished unexpectedly.")
        self.env.reset()
        for _ in range(self.settings.get("num_empty_frames", 20)):
            self.game.tick(self.noop_action(), "")
        return self._seen()

    def step(self, action: dict[str, Any]) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        assert set(self.noop_action()) == set(action)
        self.game.tick(action, action["chat"])
        observation, info = self._seen()
        if self.fails == "step":
            info["error"] = "Connection timed out!"
        return observation, 0.0, self.fails == "death", False, info

    def close(self) -> None:
        self.closed += 1

    def _seen(self) -> tuple[dict[str, Any], dict[str, Any]]:
        game = self.game
        place = {"x": game.x, "y": game.y, "z": game.z, "yaw": game.yaw, "pitch": game.pitch}
        slots = [{"type": name, "quantity": count} for name, count in game.bag.items()]
        slots.append({"type": "none", "quantity": 0})
        # The simulator keeps what it was told before and returns a copy of all of it.
        self._told.update(player_pos=place, inventory=dict(enumerate(slots)), health=20.0, isGuiOpen=False, pov=game.picture)
        return {"image": game.picture}, dict(self._told)
