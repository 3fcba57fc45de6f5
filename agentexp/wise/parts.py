"""What the agent asks of its parts beyond the protocols of `core.py`: to be made anew, and to be told what it has to know."""

from __future__ import annotations

import inspect
from typing import Any, Protocol, Self, TypeVar, runtime_checkable

from agentexp.wise.core import Frame, Memory, Scheduler

T = TypeVar("T")


def again(component: T, **own: Any) -> T:
    """A component of the same class with the same settings, for another episode.

    Args:
        component: keeps every setting of its constructor in an attribute of the same name.
        own: settings that the new one does not share with it.
    """
    names = inspect.signature(type(component)).parameters
    return type(component)(**{name: own[name] if name in own else getattr(component, name) for name in names})


class EpisodeMemory(Memory, Protocol):
    """A memory that can be made anew for each episode; see `agentexp.wise.memory.memories`."""

    def fresh(self, world: object = None) -> Self:
        """An empty one with the same settings."""
        ...

    async def pace(self, frame: Frame) -> None:
        """Wait for answers that are due by now in game time."""
        ...

    def close(self) -> None:
        """Stop background work."""
        ...


@runtime_checkable
class Begins(Protocol):
    """A controller that is told where an episode takes place."""

    def reset(self, size: int, origin: tuple[int, int]) -> None:
        """Begin an episode."""
        ...


@runtime_checkable
class Looks(Protocol):
    """A controller that knows whether it sees what it is to work on.

    Attributes:
        lost: pictures in a row, while it executes, on which it did not recognise that.
    """

    lost: int


@runtime_checkable
class Renews(Protocol):
    """A scheduler with a state of its own."""

    def fresh(self) -> Scheduler:
        """One for another episode."""
        ...
