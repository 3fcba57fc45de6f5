"""agentexp: experiments with language-model agents that first understand a world and then act in it."""

__version__ = "0.1.0"
