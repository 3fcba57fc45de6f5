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
from agentexp.envs.arc_agi3.games.logic import Puzzle
from agentexp.envs.arc_agi3.games.paint import Paint
from agentexp.envs.arc_agi3.games.portals import Portals
from agentexp.envs.arc_agi3.games.push import Push

TEST: tuple[type[Puzzle], ...] = (Keys, Lights, Push, Paint, Gravity, Hazard)
TRAIN: tuple[type[Puzzle], ...] = (Belts, Portals)
DEV: tuple[type[Puzzle], ...] = (Flood,)
MIRRORED = "-m"


def game_ids(kinds: tuple[type[Puzzle], ...], mirrored: bool) -> list[str]:
    """Ids of games, with their mirrored twins if wanted."""
    return [kind.code + end for end in (("", MIRRORED) if mirrored else ("",)) for kind in kinds]


def make(game_id: str) -> Puzzle:
    """A game by its id. Raises `KeyError` for an unknown one."""
    code = game_id.removesuffix(MIRRORED)
    kinds = {kind.code: kind for kind in (*TEST, *TRAIN, *DEV)}
    return kinds[code](mirrored=game_id.endswith(MIRRORED))


ALL = tuple(game_ids((*TEST, *TRAIN, *DEV), mirrored=True))
"""Ids of all games, the mirrored twins of the test games too; those belong to no split."""
