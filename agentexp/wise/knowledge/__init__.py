"""What things in Minecraft are good for: drops, crafting, smelting, transitions. `build.py` makes it, `base.py` reads it."""

from agentexp.wise.knowledge.base import KnowledgeBase, Known

__all__ = ["KnowledgeBase", "Known"]
