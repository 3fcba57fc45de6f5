"""Which observations a conversation can do without once it no longer fits into a model's context (`limits.context`).

The record keeps the whole conversation; what a call was not sent is listed in `Call.info["left_out"]`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from agentexp.core import Message

LEFT_OUT = "(left out for want of room)"
KEPT = 2  # newest observations that always stay: what the agent reacts to, and what led there


def more_to_drop(messages: Sequence[Message], left_out: Collection[int]) -> list[int]:
    """Indices of the observations to leave out next: the older quarter of those still there, at least one; empty: none.

    An observation is a user message after the first, which holds the task; the newest `KEPT` stay.
    """
    users = [i for i, message in enumerate(messages) if message.role == "user"]
    droppable = [i for i in users[1:-KEPT] if i not in left_out and len(messages[i].content) > len(LEFT_OUT)]
    return droppable[: max(1, len(droppable) // 4)]


def without(messages: Sequence[Message], left_out: Collection[int]) -> list[Message]:
    """The conversation as it is sent."""
    return [Message(m.role, LEFT_OUT) if i in left_out else m for i, m in enumerate(messages)]
