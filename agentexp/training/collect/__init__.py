"""Training data from ordinary runs: MAP-2K (MAP, appendix B.2 and table 6) and the ACT traces beside it.

teacher.py        a scripted model that explains itself: explorer, extractor and actor in one
narrators/        its thoughts, one module per world
paradigm.py       `CollectMaps`: map then act on training tasks, every map checked against the engine
samples.py        episodes as conversations, in the two forms that can be trained on
filters.py        which episodes are kept, and why the others are not
decontaminate.py  instances that are held out for tests, recognised by content
tokens.py         length of a conversation in tokens
dataset.py        rows on disk: a Hugging Face dataset, or JSON lines
card.py           the README of a data set: the paper's table 6 beside ours
build.py          `agentexp collect`: from run folders to data sets
"""
