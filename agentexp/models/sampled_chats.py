"""What a backend sampled, by conversation: the next prompt goes on from those tokens, and a trainer collects them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

from agentexp.core import Message, Request
from agentexp.training.core import ChatFormat, Sampled

_CHATS_REMEMBERED = 4096


class _Said(NamedTuple):
    """The newest sampled reply of a conversation: the messages before it, its text, its tokens."""

    messages: Sequence[Message]
    text: str
    sampled: Sampled


class SampledChats:
    """Remembers sampled calls.

    Args:
        recording: keep all of them for `take`, not only the newest of each conversation.
    """

    def __init__(self, recording: bool) -> None:
        self.recording = recording
        self._said: OrderedDict[str, _Said] = OrderedDict()
        self._taken: dict[str, list[Sampled]] = {}

    def prompt(self, request: Request, chats: ChatFormat) -> list[int]:
        """The prompt in tokens: what was sampled stays as it was sampled, as long as the conversation keeps its text.

        White space at the ends of a reply is no change. A reply that was kept in another form (text that it wrote in the
        world's name cut off, a new history) is a fork: the whole prompt is tokenised anew.
        """
        said = self._said.get(request.chat)
        messages = list(request.messages)
        if said is not None:
            n = len(said.messages)
            kept = messages[n] if n < len(messages) and messages[:n] == said.messages else None
            if kept is not None and kept.role == "assistant" and kept.content.strip() == said.text.strip():
                return chats.extend(said.sampled, messages[n + 1 :])
        return chats.prompt(messages)

    def add(self, request: Request, text: str, sampled: Sampled) -> None:
        """Keep the call that answered `request` with `text`."""
        self._said[request.chat] = _Said(list(request.messages), text, sampled)
        self._said.move_to_end(request.chat)
        while len(self._said) > _CHATS_REMEMBERED:
            self._said.popitem(last=False)
        if self.recording:
            self._taken.setdefault(request.chat, []).append(sampled)

    def take(self, prefix: str) -> dict[str, list[Sampled]]:
        """See `RecordsTokens.take`."""
        names = [chat for chat in self._taken if chat.startswith(prefix)]
        for chat in names:
            self._said.pop(chat, None)
        return {chat: self._taken.pop(chat) for chat in names}
