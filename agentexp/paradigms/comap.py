"""CoMAP: one loop that maps while it acts, the baseline without a mapping phase of its own (MAP, appendix G)."""

from __future__ import annotations

from agentexp.core import EnvCard
from agentexp.paradigms.react import ReAct
from agentexp.prompts import Style, render


class CoMap(ReAct):
    """ReAct plus the instruction to keep a world model. Its replies have a Map part, which stays in the history.

    Same total budget as ReAct; no K_g, no M. Arguments as for `ReAct`; the reply form is always Map / Thought / Action.
    """

    name = "comap"

    def __init__(
        self,
        style: Style = "full",
        show_admissible: bool | None = None,
        show_steps_left: bool = False,
        examples: str = "",
    ) -> None:
        super().__init__(style, "map_think_act", show_admissible, show_steps_left, examples)

    def system(self, card: EnvCard, env: str, knowledge: str = "") -> str:
        """ReAct's system prompt with the CoMAP block where MAP has its knowledge."""
        block = render("comap/block", env, style=self.style)
        return super().system(card, env, f"{knowledge}\n\n{block}".strip())
