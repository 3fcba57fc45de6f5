"""Scripted agents behind the `Model` interface: expert, random, and the agents that a world brings along.

They cost nothing, so they serve as controls (how far does a blind, a shortsighted or a map-using agent get?), as teachers for
supervised data, and in tests. They read the `View` of a request instead of its messages, and answer in the form that the
prompt asks of a language model, so everything downstream is exercised.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from agentexp import __version__
from agentexp.capabilities import HasOracle, HasPolicies, Thinks
from agentexp.core import Completion, Env, Policy, Request, Sampling, View, stable_seed
from agentexp.errors import UserError
from agentexp.models import scripted_text
from agentexp.models.scripted_random import random_action
from agentexp.models.scripted_repetitive import Repetitive

KNOWN = (
    *("oracle", "random", "repetitive", "myopic", "curious", "systematic", "mapuser", "memorised"),
    *("follower", "rulefinder"),  # paper 003: an actor and a thinker
)
ALIASES = {"systematic": "curious"}  # every world's curious explorer looks into everything once, in a fixed order
EXPLORING = ("mapping", "exploring")  # phases without the task as their aim
ANYWHERE = ("random", "repetitive")  # policies that need nothing of a world
TASK_BOUND = ("oracle", "mapuser", "memorised", "follower", "rulefinder")  # policies that only make sense with a task in hand


@dataclass(slots=True)
class _State:
    """What the model remembers of one phase of one episode."""

    rng: random.Random
    policy: Policy | None = None
    plan: list[str] = field(default_factory=list)
    expected: int = -1  # length of the history at which the next action of `plan` is due
    facts: set[Any] = field(default_factory=set)


class ScriptedModel:
    """A model that follows a fixed policy.

    Args:
        policy: "oracle" follows the world's expert plan, "random" draws from the admissible actions, "repetitive" does so only
            at first and then repeats itself; any other name is a scripted agent of the world itself (`HasPolicies`), usually
            "myopic", "curious" or "mapuser". "systematic" is another name of "curious".
        explorer: policy that replaces those that need a task ("oracle", "mapuser", "memorised") while they explore; "random"
            where the world has no such one.
        error_rate: probability that an action is replaced by a random one.
        seed: of everything that is drawn, together with the task's key.
        label: name in folders and tables; by default the policy's.
    """

    def __init__(
        self,
        policy: str = "oracle",
        explorer: str = "curious",
        error_rate: float = 0.0,
        seed: int = 0,
        label: str = "",
    ) -> None:
        if not 0.0 <= error_rate <= 1.0:
            raise UserError(f"model.error_rate must be from 0 to 1, not {error_rate}.")
        self.policy, self.explorer, self.error_rate, self.seed = policy, explorer, error_rate, seed
        self.label = label or f"scripted-{policy}" + (f"-p{error_rate:g}" if error_rate else "")
        self.sampling = Sampling()
        self._checked: set[str] = set()

    async def start(self) -> None:
        """Nothing to load."""

    async def close(self) -> None:
        """Nothing to release."""

    def versions(self) -> dict[str, str]:
        """See `Model`."""
        return {"scripted": __version__}

    def check(self, env: Env) -> None:
        """Raise `UserError`, naming the policies that work, unless the policy can act in this world."""
        if not works(env, self.policy):
            choices = ", ".join(name for name in KNOWN if works(env, name))
            raise UserError(f"model.policy={self.policy} is not possible in env={env.name}; choose from {choices}.")

    async def chat(self, request: Request) -> Completion:
        """Answer from the view. Raises `UserError` when the policy cannot act in this world."""
        view = request.view
        if request.purpose != "act":
            thinks = request.purpose == "ttx_thinker"
            return Completion(self._think(view) if thinks else scripted_text.reply(request.purpose, view))
        if view.env.name not in self._checked:
            self.check(view.env)
            self._checked.add(view.env.name)
        state = self._state(view)
        action = await self._action(view, state)
        if self.error_rate and state.rng.random() < self.error_rate:
            action, state.plan = random_action(view, state.rng), []
        return Completion(_in_form(request.form, action, self._thought(view, action), state, view))

    def _think(self, view: View) -> str:
        """As TTExplore's thinker: what the world's own agent thinks where it can, else what refusals tell in any world."""
        if isinstance(view.env, HasPolicies) and self.policy not in ("oracle", *ANYWHERE):
            policy = view.env.policy(ALIASES.get(self.policy, self.policy), stable_seed(view.task.key, self.seed))
            if isinstance(policy, Thinks):
                return policy.think(view)
        return scripted_text.reply("ttx_thinker", view)

    # ------------------------------------------------------------------------------------------------------------ actions

    def _state(self, view: View) -> _State:
        key = f"{self.label}|{view.phase}"
        if key not in view.memory:
            view.memory[key] = _State(random.Random(stable_seed(view.task.key, view.phase, self.seed)))
        state: _State = view.memory[key]
        return state

    def _name(self, view: View) -> str:
        if view.phase in EXPLORING and self.policy in TASK_BOUND:
            return self.explorer if works(view.env, self.explorer) else "random"
        return self.policy

    async def _action(self, view: View, state: _State) -> str:
        name = self._name(view)
        if name == "oracle":
            return await self._planned(view, state)
        if name == "random":
            return random_action(view, state.rng)
        if state.policy is None or not view.history:
            state.policy = self._policy(name, view, state)
        return state.policy.act(view)

    def _policy(self, name: str, view: View, state: _State) -> Policy:
        if name == "repetitive":
            return Repetitive(state.rng)
        assert isinstance(view.env, HasPolicies)
        return view.env.policy(ALIASES.get(name, name), stable_seed(view.task.key, self.seed))

    async def _planned(self, view: View, state: _State) -> str:
        """The plan's next action. Asks for a new plan at a reset, after a refusal, and where the world has left the plan."""
        due = len(view.history)
        if not state.plan or not due or due != state.expected or view.step.error or not _possible(state.plan[0], view):
            state.plan = list(await view.oracle())
        state.expected = due + 1
        if not state.plan:  # the expert has nothing left to do, but the episode goes on
            return random_action(view, state.rng)
        return state.plan.pop(0)

    def _thought(self, view: View, action: str) -> str:
        if view.step.error and view.history:
            return f"That was refused, so I choose again: {action}."
        aim = "To reach the goal" if view.goal and view.phase not in EXPLORING else "To learn more about this place"
        return f"{aim}, the next thing to do is: {action}."


def works(env: Env, policy: str) -> bool:
    """Whether a policy can act in a world."""
    if policy in ANYWHERE:
        return True
    if policy == "oracle":
        return isinstance(env, HasOracle)
    if not isinstance(env, HasPolicies):
        return False
    try:
        env.policy(ALIASES.get(policy, policy), 0)
    except UserError:
        return False
    return True


def _possible(action: str, view: View) -> bool:
    listed = view.step.admissible
    return listed is None or not view.env.card.complete_admissible or action in listed


def _in_form(form: str, action: str, thought: str, state: _State, view: View) -> str:
    if form == "thought_action":
        return f"Thought: {thought}\nAction: {action}"
    if form == "think_answer":
        return f"<think>{thought}</think> <answer>{action}</answer>"
    if form == "map_think_act":
        known = set(view.tracker.facts()) if view.tracker else set()
        new, state.facts = sorted(known - state.facts), known
        return f"Map: {scripted_text.sentence(new) or 'no change'}\nThought: {thought}\nAction: {action}"
    return action
