"""Games of ours: small, freely licensed like the rest of this package, each with another mechanic.

They stand in for the official games, which everybody has to obtain from their makers, and are not comparable to those. The six
of the test split share no mechanic with those of train and dev.
"""

from agentexp.envs.arc_agi3.games.belts import Belts
from agentexp.envs.arc_agi3.games.flood import Flood
from agentexp.envs.arc_agi3.games.gravity import Gravity
from agentexp.envs.arc_agi3.games.hazard import Hazard
from agentexp.envs.arc_agi3.games.keys import Keys
from agentexp.envs.arc_agi3.games.lights import Lights
from agentexp.envs.arc_agi3.games.logic import Puzzle, Turn
from agentexp.envs.arc_agi3.games.paint import Paint
from agentexp.envs.arc_agi3.games.portals import Portals
from agentexp.envs.arc_agi3.games.push import Push
from agentexp.envs.arc_agi3.games.trail import Trail

TEST: tuple[type[Puzzle], ...] = (Keys, Lights, Push, Paint, Gravity, Hazard)
TRAIN: tuple[type[Puzzle], ...] = (Belts, Portals, Trail)
DEV: tuple[type[Puzzle], ...] = (Flood,)
TURNS: tuple[Turn, ...] = ("", "m", "f")


def game_ids(kinds: tuple[type[Puzzle], ...], turns: tuple[Turn, ...] = TURNS) -> list[str]:
    """Ids of games as they stand and turned: "bt01", "bt01-m" (left and right exchanged), "bt01-f" (up and down)."""
    return [kind.code + (f"-{turn}" if turn else "") for turn in turns for kind in kinds]


def make(game_id: str) -> Puzzle:
    """A game by its id. Raises `KeyError` for an unknown one."""
    code, _, end = game_id.partition("-")
    kinds = {kind.code: kind for kind in (*TEST, *TRAIN, *DEV)}
    turns: dict[str, Turn] = {turn: turn for turn in TURNS}
    return kinds[code](turns[end])


ALL = tuple(game_ids((*TEST, *TRAIN, *DEV)))
"""Ids of all games, the turned ones of the test games too; those belong to no split."""
