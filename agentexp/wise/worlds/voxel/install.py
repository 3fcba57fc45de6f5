"""Puts the node packages of the voxel world into the user's cache folder: `python -m agentexp.wise.worlds.voxel.install`.

The folder is named after the lock file, so that a new version of agentexp with other packages installs anew beside the old one.
npm runs no scripts of the packages. What is not needed is removed: data of other Minecraft versions and what only serves to
build pictures for them. Block textures in `prismarine-viewer` are Mojang's; they come from npm and stay in the user's cache.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from agentexp.errors import MissingDependency, UserError

SOURCE = Path(__file__).parent / "node"
NODE_AT_LEAST = 18
CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
HOW = "make wise-voxel, or python -m agentexp.wise.worlds.voxel.install"
# The version of the game that our own server speaks, and the one whose pictures are used for it.
GAME, LOOK = "1.16.5", "1.16.4"
MARK = ".agentexp"


def find_node() -> Path:
    """The node program, 18 or newer (AGENTEXP_NODE names one that is not on the search path).

    Raises:
        MissingDependency: there is none, or it is too old.
    """
    found = os.environ.get("AGENTEXP_NODE") or shutil.which("node") or shutil.which("nodejs")
    if not found or not Path(found).exists():
        raise MissingDependency(
            f"world=voxel needs node {NODE_AT_LEAST} or newer: install it (on Debian: apt install nodejs npm), or name it in "
            "the environment variable AGENTEXP_NODE."
        )
    said = subprocess.run([found, "--version"], capture_output=True, text=True, check=False).stdout.strip()
    match = re.match(r"v(\d+)\.", said)
    if not match or int(match[1]) < NODE_AT_LEAST:
        raise MissingDependency(f"world=voxel needs node {NODE_AT_LEAST} or newer, but {found} is {said or 'not node'}.")
    return Path(found)


def find_chromium() -> Path:
    """The browser that renders the pictures (AGENTEXP_CHROMIUM names one that is not on the search path).

    Raises:
        MissingDependency: there is none.
    """
    named = os.environ.get("AGENTEXP_CHROMIUM")
    for name in (named,) if named else CHROMIUM:
        if found := shutil.which(name):
            return Path(found)
    raise MissingDependency(
        "Pictures of world=voxel need Chromium: install it (on Debian: apt install chromium), name it in the environment "
        "variable AGENTEXP_CHROMIUM, or choose world.pictures=rays."
    )


def folder() -> Path:
    """Where the packages of this version of agentexp are, or will be."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    lock = hashlib.sha256((SOURCE / "package-lock.json").read_bytes()).hexdigest()[:12]
    return cache / "agentexp" / "voxel" / lock


def installed() -> Path:
    """The folder of the installed packages.

    Raises:
        MissingDependency: they are not installed.
    """
    if not (folder() / "node_modules" / MARK).is_file():
        raise MissingDependency(f"The node packages of world=voxel are not installed: {HOW}.")
    return folder()


def check_game(version: str) -> None:
    """See that the data of a version of the game are there.

    Raises:
        MissingDependency: they are not.
    """
    if version != GAME and (installed() / "node_modules" / MARK).read_text("utf-8") != "all":
        raise MissingDependency(
            f"world.minecraft={version}: only the data of {GAME} are installed. For all versions run "
            "python -m agentexp.wise.worlds.voxel.install --all-versions, or leave world.minecraft at its default."
        )


def install(all_versions: bool = False) -> Path:
    """Install with `npm ci` from the lock file; nothing is done where it is done already.

    Args:
        all_versions: keep the data and textures of every version of the game (about 1 GB), for servers of other versions.

    Returns:
        The folder.

    Raises:
        MissingDependency: node or npm is missing.
        UserError: npm failed; the message ends with what it said.
    """
    target = folder()
    mark = target / "node_modules" / MARK
    if mark.is_file() and (not all_versions or mark.read_text("utf-8") == "all"):
        return target
    find_node()
    npm = shutil.which("npm")
    if npm is None:
        raise MissingDependency("Installing world=voxel needs npm: install it (on Debian: apt install npm).")
    target.parent.mkdir(parents=True, exist_ok=True)
    # Beside the target and renamed at the end: a broken installation is never found.
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".new-") as name:
        new = Path(name) / "voxel"
        new.mkdir()
        for file in ("package.json", "package-lock.json"):
            shutil.copy(SOURCE / file, new)
        command = [npm, "ci", "--ignore-scripts", "--omit=dev", "--no-audit", "--no-fund", "--loglevel=error"]
        done = subprocess.run(command, cwd=new, capture_output=True, text=True, check=False)
        if done.returncode:
            raise UserError(f"npm could not install the packages of world=voxel: {(done.stderr or done.stdout).strip()[-600:]}")
        if not all_versions:
            prune(new / "node_modules")
        (new / "node_modules" / MARK).write_text("all" if all_versions else GAME, "utf-8")
        shutil.rmtree(target, ignore_errors=True)
        new.rename(target)
    return target


def prune(modules: Path) -> None:
    """Remove what our own server and body never read: other versions of the game, and what only bundlers need."""
    data = modules / "minecraft-data" / "minecraft-data" / "data"
    paths = json.loads((data / "dataPaths.json").read_text("utf-8"))["pc"]
    family = GAME.rpartition(".")[0]  # packages ask for sisters of the version, whose data lie in folders of others
    keep = {"common", *(path.partition("/")[2] for game in paths if game.startswith(family) for path in paths[game].values())}
    public = modules / "prismarine-viewer" / "public"
    unneeded = [
        *(path for path in (data / "bedrock").iterdir() if path.name != "common"),
        *(path for path in (data / "pc").iterdir() if path.name not in keep),
        *(
            path
            for name in ("textures", "blocksStates")
            for path in (public / name).iterdir()
            if not path.name.startswith(LOOK)
        ),
        modules / "three",  # the viewer's page has its own copy
        modules / "prismarine-viewer" / "examples",
        modules / "minecraft-data" / "minecraft-data" / "tools",
    ]
    for path in unneeded:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def megabytes(path: Path) -> float:
    """Size of all files below a folder."""
    return sum(file.lstat().st_size for file in path.rglob("*") if not file.is_dir()) / 1e6


def main() -> int:
    """Install, and say what and where."""
    try:
        path = install(all_versions="--all-versions" in sys.argv[1:])
    except UserError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(f"{path} ({megabytes(path):.0f} MB)\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
