"""Our own games as folders in the official form, and random play."""

from __future__ import annotations

import json
from pathlib import Path

from agentexp.envs.arc_agi3 import games

SOURCE = """from agentexp.envs.arc_agi3.games import make
from agentexp.envs.arc_agi3.games.board import Board


class {name}(Board):
    def __init__(self, seed=0):
        super().__init__(make("{code}"), "{game}", seed)
"""


def write_game(folder: Path, code: str, game: str) -> None:
    """One of our games under another id, as official games are shipped: metadata.json and the source."""
    name = game[:4].capitalize()
    home = folder / game
    home.mkdir(parents=True)
    metadata = {"game_id": game, "title": game.upper(), "baseline_actions": list(games.make(code).baseline)}
    (home / "metadata.json").write_text(json.dumps(metadata))
    (home / f"{name.lower()}.py").write_text(SOURCE.format(name=name, code=code, game=game))
