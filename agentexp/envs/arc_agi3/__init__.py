"""ARC-AGI-3: interactive grid games without instructions (arXiv 2603.24621); MAP, tables 2, 7 and 8."""

from agentexp.envs.arc_agi3.world import ArcAgi3

__all__ = ["ArcAgi3"]
