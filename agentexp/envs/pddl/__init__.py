"""PDDL worlds as text: gripper, blockworld, barman, tyreworld (AgentBoard, Ma et al. 2024), or any STRIPS domain of the user.

`language.py` reads PDDL, `grounding.py` is the transition system, `search.py` the planner; `generators.py`, `freeze.py` and
`suite.py` make the problems; `phrases.py` turns facts and actions into sentences and back; `world.py` is the environment,
`tracker.py` reads its texts, `policies.py` are the scripted agents.
"""

from agentexp.envs.pddl.world import Pddl

__all__ = ["Pddl"]
