"""What an episode is made of: a leased world, conversations and turns."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass, field
from typing import Any, Protocol

from agentexp.actions import Parsed
from agentexp.core import Message, Step, Task
from agentexp.errors import EngineError


class World(Protocol):
    """A leased engine, usually in another process. Raises `EngineError` when it dies, hangs or fails."""

    async def reset(self, task: Task) -> Step:
        """See `Env.reset`."""
        ...

    async def step(self, action: str) -> Step:
        """See `Env.step`."""
        ...

    async def call(self, method: str, *args: Any) -> Any:
        """Call any other method of the `Env`; arguments and result must be picklable."""
        ...


def checked(step: Step, method: str) -> Step:
    """What a world answered, if it can be shown and counted: a defect of a plug-in must not reach the numbers of the run.

    Raises:
        EngineError: it is no `Step` with a text and a finite score.
    """
    if not isinstance(step, Step) or not isinstance(step.observation, str):
        raise EngineError(f"The world's {method}() must return a Step whose observation is text, not {step!r:.200}.")
    if (type(step.score) is not float and not isinstance(step.score, numbers.Real)) or not math.isfinite(step.score):
        raise EngineError(f"The world's {method}() returned the score {step.score!r:.80}; it must be a number from 0 to 1.")
    return step


@dataclass(slots=True)
class Chat:
    """One append-only conversation of an episode."""

    name: str
    messages: list[Message] = field(default_factory=list)

    def system(self, text: str) -> Chat:
        """Append a system message."""
        self.messages.append(Message("system", text))
        return self

    def user(self, text: str) -> Chat:
        """Append a user message."""
        self.messages.append(Message("user", text))
        return self

    def assistant(self, text: str) -> Chat:
        """Append an assistant message."""
        self.messages.append(Message("assistant", text))
        return self


@dataclass(frozen=True, slots=True)
class Turn:
    """What one `Rollout.turn` led to. `stopped`: the model said the stop word, which costs no step."""

    step: Step
    parsed: Parsed
    stopped: bool = False
