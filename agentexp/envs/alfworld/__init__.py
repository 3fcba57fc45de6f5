"""ALFWorld: household tasks in text (Shridhar et al. 2021), on the real TextWorld engine.

Read `world` first (the `Env`). `engine` is TextWorld made cheap and is imported late; `wheel` reads the files of the installed
alfworld package; `games` loads the official games, `generator` makes others after the counts in `priors`; `problem` is a house
as data and `oracle` the expert on it; `texts` reads the game's words, `facts` keeps what an exploration has told, and
`policies` acts on that.
"""

from agentexp.envs.alfworld.world import AlfWorld

__all__ = ["AlfWorld"]
