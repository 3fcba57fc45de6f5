"""A scripted teacher: it explores, writes the map and acts like the worlds' scripted agents, and says why.

A small model learns from text, so every reply is one that such a model could have written from what it was shown: the thought
names the fact, the line of the map or the step of the plan that the action follows from. The explorer says that it is finished
as soon as nothing is left to see.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from agentexp.core import Env, View
from agentexp.errors import UserError
from agentexp.models.scripted import EXPLORING, ScriptedModel, _State, works
from agentexp.paradigms.map.paradigm import STOP_WORD
from agentexp.training.collect.narrators import Narrator, narrator_for

Actor = Literal["auto", "mapuser", "oracle"]


class Teacher(ScriptedModel):
    """Teacher of MAP-2K and of ACT traces.

    Args:
        actor: who acts. "mapuser" uses the map and searches what it leaves open, so all that it does can be learnt; "oracle"
            follows the world's expert, who knows what nobody has seen (the paper's ACT traces). "auto": mapuser, and the
            oracle where the world's mapuser masters only few tasks (ScienceWorld) or does not exist.
        explorer: who explores: a scripted agent of the world ("curious" = "systematic", "random" ...).
        finish_from: mapping steps after which the explorer may say that it is finished, as the stop rule has it
            (`stopping.t_min`); None: it never says so.
        seed: of the scripted agents.
        label: name in folders and tables.
    """

    def __init__(
        self,
        actor: Actor = "auto",
        explorer: str = "curious",
        finish_from: int | None = 3,
        seed: int = 0,
        label: str = "",
    ) -> None:
        if actor not in ("auto", "mapuser", "oracle"):
            raise UserError(f"model.actor={actor} is not possible; choose auto, mapuser or oracle.")
        super().__init__("oracle", explorer, 0.0, seed, label or f"teacher-{actor}")
        self.actor, self.finish_from = actor, finish_from

    def check(self, env: Env) -> None:
        """Raise `UserError` unless actor and explorer exist in this world."""
        actor = self._actor(env)
        for setting, name in (("actor", actor), ("explorer", self.explorer)):
            if not works(env, name):
                raise UserError(f"model.{setting}={name} is not possible in env={env.name}.")

    def _actor(self, env: Env) -> str:
        if self.actor != "auto":
            return self.actor
        wanted = narrator_for(env).actor
        return wanted if works(env, wanted) else "oracle"

    def _name(self, view: View) -> str:
        return self.explorer if view.phase in EXPLORING else self._actor(view.env)

    async def _action(self, view: View, state: _State) -> str:
        narrator = narrator_for(view.env)
        action = await super()._action(_informed(view, narrator), state)
        may_finish = self.finish_from is not None and len(view.history) >= self.finish_from
        if view.phase in EXPLORING and may_finish and narrator.seen_all(view, action):
            return STOP_WORD
        return action

    def _thought(self, view: View, action: str) -> str:
        narrator = narrator_for(view.env)
        if action == STOP_WORD:
            return "Nothing new is left to see here."
        if view.phase in EXPLORING:
            return narrator.exploring(view, action)
        return narrator.acting(view, action, self._state(view).plan)


def _informed(view: View, narrator: Narrator) -> View:
    """The view of somebody who has read the world's card; K_g, where there is one, says more."""
    if view.knowledge.get("k_g"):
        return view
    return replace(view, knowledge={**view.knowledge, "k_g": narrator.rules(view.env.card)})
