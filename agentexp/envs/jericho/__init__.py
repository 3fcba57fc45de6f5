"""Jericho (Hausknecht et al., 2020): text adventures on the z-machine, version 3.3.1 of the `jericho` package.

`stories/` holds our stories, Inform 6 source beside the compiled file (`build.py` compiles them); `stories.py` their goals and
splits, `roms.py` the user's files. `engine.py` runs the z-machine; `memory.py` and `scene.py` read a story's world from its
memory, `valid.py` lists actions, `expert.py` with `plans.py` is the expert, `walkthrough.py` jericho's solutions for the user's
files. `texts.py`, `commands.py` and `tracker.py` read texts into facts, `policies.py` are the scripted agents.
"""

from agentexp.envs.jericho.world import Jericho

__all__ = ["Jericho"]
