"""The user's own story files (`env.games=FOLDER`): AgentBoard's 20 games by name, or all that is in the folder.

None is shipped or downloaded: their licences are between the user and their authors. jericho recognises an edition by its MD5.
"""

from __future__ import annotations

import re
from pathlib import Path

from agentexp.errors import UserError

# AgentBoard (Ma et al., 2024), in the order of its task list.
AGENTBOARD = (
    "905", "acorncourt", "afflicted", "balances", "dragon", "jewel", "library", "omniquest", "reverb", "snacktime",
    "zenon", "zork1", "zork2", "zork3", "detective", "night", "pentari", "weapon", "huntdark", "loose",
)  # fmt: skip
SPLITS = ("test", "all")
_STORY = re.compile(r"\.z[1-8]$", re.IGNORECASE)


def story_files(folder: str) -> dict[str, str]:
    """Name -> file name of the story files of a folder, sorted by name. Raises `UserError` if there is no such folder."""
    place = Path(folder).expanduser()
    if not place.is_dir():
        raise UserError(
            f"env.games={folder} is not a folder. Give a folder with z-machine story files, or null for our stories."
        )
    files = sorted(file.name for file in place.iterdir() if _STORY.search(file.name))
    return {_STORY.sub("", name).lower(): name for name in files}


def games(folder: str, split: str, allow_partial: bool) -> list[tuple[str, str]]:
    """(name, file name) of the games of a split.

    Args:
        folder: the user's folder.
        split: "test" (AgentBoard's 20) or "all".
        allow_partial: take those of the 20 that are there.

    Raises:
        UserError: files are missing.
    """
    files = story_files(folder)
    if split == "all":
        if not files:
            raise UserError(f"env.games={folder} has no story files (*.z3, *.z5, *.z8).")
        return list(files.items())
    missing = [name for name in AGENTBOARD if name not in files]
    if missing and (not allow_partial or len(missing) == len(AGENTBOARD)):
        raise UserError(
            f"env.games={folder} lacks {len(missing)} of AgentBoard's 20 games ({', '.join(missing[:5])} ...). Put them there, "
            "each named after its game (zork1.z5), or set env.allow_partial=true or env.split=all."
        )
    return [(name, files[name]) for name in AGENTBOARD if name in files]
