"""Starts the node process from the installed packages."""

from __future__ import annotations

import os

from agentexp.wise.worlds.voxel.bridge import Bridge
from agentexp.wise.worlds.voxel.install import SOURCE, check_game, find_node, installed

HEAP_MB = 1024


def launch(version: str) -> Bridge:
    """The running process; it serves no world yet.

    Args:
        version: of the game, as in `world.minecraft`.

    Raises:
        MissingDependency: node or the packages are not installed.
        EngineError: node could not be started.
    """
    packages = installed()
    check_game(version)
    # The scripts are agentexp's own and lie in its folder; node finds the packages through NODE_PATH.
    env = {**os.environ, "NODE_PATH": str(packages / "node_modules"), "NODE_NO_WARNINGS": "1"}
    command = [str(find_node()), f"--max-old-space-size={HEAP_MB}", str(SOURCE / "bridge.js")]
    return Bridge(command, env=env)
