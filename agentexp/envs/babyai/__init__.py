"""BabyAI: instructions in grid rooms (Chevalier-Boisvert et al. 2019) on minigrid, in the text protocol of AgentBoard.

Read in this order: `scene.py` (the grid as plain data, what the robot sees and does), `protocol.py` (its texts and the
actions that stand for several moves), `engine.py` (minigrid), `world.py` (the environment). `expert.py` solves, `levels.py`
lists the instances.
"""

from agentexp.envs.babyai.world import BabyAI

__all__ = ["BabyAI"]
