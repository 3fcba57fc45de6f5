"""Names of files that come from somebody else's data, kept inside the folder that they belong to."""

from __future__ import annotations

from pathlib import Path, PurePosixPath, PureWindowsPath

from agentexp.errors import UserError


def inside(folder: Path, name: str, what: str) -> Path:
    """`folder / name`, where `name` was read from a file: the task of a run folder, or the description of a data set.

    By its words only: links inside the folder are the user's own arrangement.

    Args:
        folder: where the file must be.
        name: relative path of the file.
        what: what it is, for the message ("the problem of task x").

    Raises:
        UserError: the name leads out of the folder.
    """
    parts = {*PurePosixPath(name).parts, *PureWindowsPath(name).parts}
    if not name or "\0" in name or ".." in parts or PurePosixPath(name).is_absolute() or PureWindowsPath(name).anchor:
        raise UserError(f"{what} is called {name!r}, which is no name of a file inside {folder}. It was not opened.")
    return folder / name
