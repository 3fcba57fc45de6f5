"""What an episode is made of: a leased world, conversations and turns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from agentexp.actions import Parsed
from agentexp.core import Message, Step, Task


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
