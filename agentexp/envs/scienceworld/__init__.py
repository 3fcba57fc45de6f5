"""ScienceWorld (Wang et al., 2022) on its own JVM engine, version 1.2.3.

`catalog.py` is the frozen table of tasks and variations with the splits, `engine.py` starts and talks to the JVM, `world.py` is
the environment, `texts.py` and `tracker.py` read its texts into facts, `policies.py` are the scripted agents. Only `engine.py`
needs Java and the `scienceworld` package, and only once an episode starts.
"""

from agentexp.envs.scienceworld.world import ScienceWorld

__all__ = ["ScienceWorld"]
