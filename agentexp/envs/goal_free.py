"""Goal-free exploration of any world: nothing that an agent sees tells the task, and nothing it does ends the session.

Defined by paper 001 (section 3.2: no task instruction, a fixed number of steps). `GoalFree` stands in the parent process around
a leased world, so it works for every environment, also one of the user's:

* the goal is nowhere: not in `Step.goal`, not in a text or in `Step.info`, and the commands that would tell it
  (`EnvCard.goal_commands`) answer "There is no task." without reaching the engine;
* score 0, never a success, never `done`. When the world ends it goes on, in the first of three ways that works:
  "on": the engine does not mind (`EnvCard.plays_on`); "replay": it is reset and the actions so far are sent again, without the
  one that ended it (deterministic worlds); "reset": it starts anew. The answer to the ending action is shown as it was, so that
  an agent cannot tell which action would have won; only after "reset" the first observation follows, for without it the
  agent would not know where it is.

What happened is kept in `GoalFree.events` for the record, out of the agent's sight.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from agentexp.core import Env, EnvCard, Step, Task
from agentexp.errors import UserError

if TYPE_CHECKING:
    from agentexp.rollout import Rollout, World

NO_TASK = "There is no task."

_TELLING_KEYS = re.compile(r"goal|task|score|reward|success|won|win|lost|lose|done|complete|progress", re.IGNORECASE)
_CLOSING_WORDS = re.compile(
    r"^\W*(?:the end|you (?:have )?(?:won|lost|win|lose)|game over"
    r"|(?:the |your )?(?:task|goal)\b.*\b(?:complete|completed|done|failed|reached|solved)\b.*|you scored\b.*)\W*$",
    re.IGNORECASE | re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Ending:
    """A moment at which the world would have ended.

    Attributes:
        action: what ended it.
        won: whether the hidden task was solved by it.
        went_on: how the session went on.
    """

    action: str
    won: bool
    went_on: Literal["on", "replay", "reset"]


class GoalFree:
    """A `World` without goal, reward and end.

    Args:
        world: the leased world.
        env: its parent-side twin, for the card and for whether it is deterministic.
    """

    def __init__(self, world: World, env: Env) -> None:
        self._world, self._card = world, env.card
        self._deterministic = bool(getattr(env, "deterministic", True))
        self.goal = ""  # what is hidden, for the record
        self.events: list[Ending] = []
        self._task: Task | None = None
        self._told = re.compile("(?!)")
        self._last = Step("")
        self._start = Step("")
        self._ended = False
        self._done: list[tuple[str, Step]] = []  # since the last reset, without what ended the world

    async def reset(self, task: Task) -> Step:
        """The initial state, without its goal. Starts a new session."""
        self._task, self.events = task, []
        step = await self._begin()
        return self._show(step, "")

    async def step(self, action: str) -> Step:
        """Carry out one action; the session goes on whatever happens."""
        if asks_for_goal(self._card, action):
            return replace(self._last, observation=NO_TASK, error=False, info={})
        step = await self._world.step(action)
        if step.done and not self._ended:
            return await self._go_on(action, step)
        self._ended = step.done
        self._done.append((action, step))
        return self._show(step, action)

    async def call(self, method: str, *args: Any) -> Any:
        """See `World.call`. The expert is refused: it knows the goal."""
        if method == "oracle":
            raise UserError("There is no expert while the goal is hidden. Use a scripted explorer, for example curious.")
        return await self._world.call(method, *args)

    # ----------------------------------------------------------------------------------------------------------- endings

    async def _go_on(self, action: str, step: Step) -> Step:
        answer = _CLOSING_WORDS.sub("", step.observation).strip() or step.observation
        how: Literal["on", "replay", "reset"]
        if self._card.plays_on:
            self._ended, how, now = True, "on", step
            self._done.append((action, step))
        elif self._deterministic and (replayed := await self._replay()) is not None:
            how, now = "replay", replayed
        else:
            how, now = "reset", await self._begin()
            answer = f"{answer}\n{now.observation}"
        self.events.append(Ending(action, step.success, how))
        return self._show(replace(now, observation=answer, error=step.error, info={}), action)

    async def _replay(self) -> Step | None:
        """Reset and repeat; the newest answer, or None where the world does not repeat itself."""
        done, start = self._done, self._start
        now = await self._begin()
        same = now.observation == start.observation
        for action, seen in done:
            if not same or now.done:
                return None
            now = await self._world.step(action)
            same = now.observation == seen.observation and now.error == seen.error
        if not same or now.done:
            return None
        self._done = done
        return now

    async def _begin(self) -> Step:
        assert self._task is not None, "reset comes first"
        step = await self._world.reset(self._task)
        self.goal, self._told = step.goal, _pattern(step.goal)
        self._start, self._done, self._ended = step, [], False
        return step

    # ------------------------------------------------------------------------------------------------------------ hiding

    def _show(self, step: Step, action: str) -> Step:
        """The step as the agent may see it."""
        # A goal that the agent has said itself is no news, and blanking its echo would be.
        text = step.observation if self._told.search(action) else self._told.sub(NO_TASK, step.observation)
        listed = step.admissible
        if listed is not None and self._card.goal_commands:
            listed = tuple(entry for entry in listed if not asks_for_goal(self._card, entry))
        self._last = Step(text, error=step.error, admissible=listed, info=self._harmless(step.info))
        return self._last

    def _harmless(self, info: Any) -> dict[str, Any]:
        return {
            key: value
            for key, value in info.items()
            if not _TELLING_KEYS.search(key) and not self._told.search(json.dumps(value, ensure_ascii=False, default=str))
        }


@contextmanager
def goal_hidden(ro: Rollout) -> Iterator[GoalFree]:
    """Within this block the rollout's world is goal-free. Afterwards the record names the goal; no agent sees the record."""
    world = ro.world
    hidden = GoalFree(world, ro.env)
    ro.world = hidden
    try:
        yield hidden
    finally:
        ro.world = world
        ro.episode.goal = hidden.goal


def asks_for_goal(card: EnvCard, action: str) -> bool:
    """Whether this command's answer would be the goal."""
    pattern = card.goal_commands
    return bool(pattern) and re.search(pattern, " ".join(action.split()), re.IGNORECASE) is not None


def goal_free_actions(card: EnvCard) -> str:
    """The card's action forms without the commands that tell the goal."""
    forms = [form for form in re.split(r"\s*\|\s*", card.actions.strip()) if form and not asks_for_goal(card, form)]
    return " | ".join(forms)


def _pattern(goal: str) -> re.Pattern[str]:
    """Finds the goal's words in a text, whatever stands between them; nothing if there is no goal."""
    words = re.findall(r"\w+", goal)
    return re.compile(r"\b" + r"\W+".join(words) + r"\b\.?", re.IGNORECASE) if words else re.compile("(?!)")
