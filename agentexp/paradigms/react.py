"""ReAct: think, act, look, until the goal is reached or the steps are used up.

Also the acting half of other paradigms: `ReAct.play` is the loop; what they know beyond the goal comes in as `knowledge`.
"""

from __future__ import annotations

from typing import Any, Literal

from agentexp.core import EnvCard, Step
from agentexp.prompts import Style, render
from agentexp.rollout import Chat, Rollout

Form = Literal["thought_action", "think_answer", "map_think_act"]

# A turn's list of allowed actions is cut here: ScienceWorld can list tens of thousands, and every turn stays in the history.
MAX_LISTED = 100


class ReAct:
    """The baseline of MAP (section 4.1). Acts for the total budget, mapping steps included, so that comparisons are fair.

    Args:
        style: "compact" for models below about one billion parameters.
        form: how a reply has to look.
        show_admissible: list the actions allowed now in every turn, where the world lists them; None = only in compact style.
            It changes results a lot: never mix both in one table.
        show_steps_left: say in every turn how many steps are left.
        examples: text shown as an example in the system prompt.
    """

    name = "react"
    roles: tuple[str, ...] = ()  # that it asks besides "actor"

    def __init__(
        self,
        style: Style = "full",
        form: Form = "thought_action",
        show_admissible: bool | None = None,
        show_steps_left: bool = False,
        examples: str = "",
    ) -> None:
        self.style, self.form, self.examples = style, form, examples
        self.show_admissible = style == "compact" if show_admissible is None else show_admissible
        self.show_steps_left = show_steps_left

    async def __call__(self, ro: Rollout) -> None:
        """Reset, act for the whole budget, settle."""
        with ro.phase("acting", ro.budget.total):
            await ro.reset()
            await self.act(ro)
        ro.finish()

    async def act(self, ro: Rollout, knowledge: str = "") -> None:
        """Act in the present phase, towards the goal, with what is known beforehand in the system prompt."""
        await self.play(ro, ro.chat("acting").system(self.system(ro.env.card, ro.task.env, knowledge)))

    async def play(self, ro: Rollout, chat: Chat) -> None:
        """Turn after turn in `chat` until the world ends or the steps of the phase are used up."""
        text = self.first(ro.step, ro.steps_left, ro.goal)
        while ro.steps_left > 0 and not ro.step.done:
            turn = await ro.turn(chat.user(text), self.form)
            text = self.next(turn.step, ro.steps_left)

    def system(self, card: EnvCard, env: str, knowledge: str = "") -> str:
        """The system prompt; `knowledge` is shown between the rules of the world and the reply form."""
        return render(
            "react/system",
            env,
            style=self.style,
            intro=card.intro,
            actions=card.actions,
            notes=card.notes,
            knowledge=knowledge,
            format=self.format(env),
            examples=self.examples,
        )

    def format(self, env: str = "") -> str:
        """How a reply has to look, in words."""
        return render(f"format/{self.form}", env, style=self.style)

    def first(self, step: Step, steps_left: int, goal: str = "") -> str:
        """The first user message: observation, goal unless it is empty, allowed actions, steps left."""
        return render(
            "react/first", style=self.style, observation=step.observation, goal=goal, **self._extras(step, steps_left)
        )

    def next(self, step: Step, steps_left: int) -> str:
        """A later user message."""
        return render("react/next", style=self.style, observation=step.observation, **self._extras(step, steps_left))

    def _extras(self, step: Step, steps_left: int) -> dict[str, Any]:
        admissible = list(step.admissible or ()) if self.show_admissible else []
        more = len(admissible) - MAX_LISTED
        listed = "; ".join(admissible[:MAX_LISTED]) + (f"; and {more} more" if more > 0 else "")
        return {"admissible": listed, "steps_left": steps_left if self.show_steps_left else None}
