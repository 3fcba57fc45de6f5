"""Scripted agents for stories. They read what a language model reads: the texts, the listed actions, the goal and the map.

* `curious` (also called `systematic`) explores without a goal: in each room it opens what is closed, takes, talks and reads,
  then takes the nearest way not yet taken; at last it tries the other actions that change something.
* `repetitive` goes back and forth between two rooms and looks at the same things.
* `myopic` does the first listed action that shares a word with the goal, else walks at random; it repeats a refused command
  with probability 0.3.
* `mapuser` explores like `curious` while mapping. While acting it weighs every listed action: by its verb, the goal's words,
  and what it has read (a note that names one valve speaks against the others); it walks to what the map knows, else explores.
"""

from __future__ import annotations

from agentexp.core import Policy
from agentexp.envs.agents import fresh_agent
from agentexp.envs.jericho.explorers import Curious, Myopic, Random, Reader, Repetitive
from agentexp.envs.jericho.mapuser import MapUser

KINDS: dict[str, type[Reader]] = {
    "curious": Curious,
    "systematic": Curious,
    "repetitive": Repetitive,
    "myopic": Myopic,
    "mapuser": MapUser,
    "random": Random,
}


def make(name: str, seed: int) -> Policy:
    """A fresh policy by name."""
    return fresh_agent(KINDS, name, "jericho", seed)
