"""MAP (Map-then-Act): global exploration, task-specific mapping, knowledge-augmented execution."""

from agentexp.paradigms.map.paradigm import MapThenAct
from agentexp.paradigms.map.qa import MapQa
from agentexp.paradigms.map.stage1 import GlobalExploration
from agentexp.paradigms.map.stopping import DualConvergence, FixedSteps, NoStopping

__all__ = ["DualConvergence", "FixedSteps", "GlobalExploration", "MapQa", "MapThenAct", "NoStopping"]
