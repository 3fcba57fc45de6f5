"""How long a conversation is, in tokens: exactly, as it is trained on, or estimated from its characters."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from agentexp.core import Message
from agentexp.errors import MissingDependency, UserError

log = logging.getLogger(__name__)

CHARACTERS = "characters"
PER_TOKEN = 3.5  # characters of English text in one token, about
PER_MESSAGE = 5  # tokens of a chat template around a message, about


class Length(NamedTuple):
    """Tokens of a conversation, and how many of them are trained on (the assistant's, with the end of each turn)."""

    tokens: int
    trained: int


class Counter(Protocol):
    """Counts tokens.

    Attributes:
        name: of the tokenizer, for the card.
        exact: no estimate.
    """

    name: str
    exact: bool

    def count(self, messages: Sequence[Mapping[str, str]]) -> Length:
        """The length of a conversation."""
        ...


class Estimate:
    """Characters instead of tokens: needs no tokenizer."""

    name = CHARACTERS
    exact = False

    def count(self, messages: Sequence[Mapping[str, str]]) -> Length:
        """See `Counter`."""
        sizes = [(message["role"], round(len(message["content"]) / PER_TOKEN)) for message in messages]
        trained = sum(size + 1 for role, size in sizes if role == "assistant")
        return Length(sum(size + PER_MESSAGE for _, size in sizes), trained)


class Tokenized:
    """The chat template and tokenizer of a base model (`agentexp.training.base`).

    Args:
        path: as `base.path`: "smollm2", a folder, a GGUF file, a hub name. Messages call it --tokenizer.

    Raises:
        MissingDependency: transformers, or what the model needs, is not installed.
        UserError: there is no such model.
    """

    exact = True

    def __init__(self, path: str) -> None:
        from agentexp.training.base import Argument
        from agentexp.training.chat import TemplateFormat

        base = Argument("--tokenizer", path)
        self._format = TemplateFormat(base.load_tokenizer())
        self.name = base.name

    def count(self, messages: Sequence[Mapping[str, str]]) -> Length:
        """See `Counter`."""
        row = self._format.supervised([_message(message) for message in messages])
        return Length(len(row.ids), row.n_trained)


def counter(tokenizer: str) -> Counter:
    """The counter of a setting: "characters", or a base model; the packaged one is replaced by an estimate where it is missing.

    Raises:
        MissingDependency: another base model than the packaged one was asked for and cannot be read.
        UserError: there is no such base model.
    """
    if tokenizer == CHARACTERS:
        return Estimate()
    try:
        return Tokenized(tokenizer)
    except MissingDependency as missing:
        if tokenizer != "smollm2":
            raise MissingDependency(f"{missing}\n(or take --tokenizer {CHARACTERS}, an estimate)") from missing
        log.warning("Tokens are estimated (characters / %s): %s", PER_TOKEN, missing)
        return Estimate()


def _message(message: Mapping[str, str]) -> Message:
    if message["role"] not in ("system", "user", "assistant"):
        raise UserError(f"A conversation has a message of role {message['role']}; only system, user and assistant are known.")
    return Message(message["role"], message["content"])  # type: ignore[arg-type]  # checked above
