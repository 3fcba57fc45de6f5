"""Conversations as token rows: what is trained, what had to be cut, and what is refused because nothing of it is left."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from agentexp.core import Message, stable_seed
from agentexp.errors import UserError
from agentexp.training.core import ChatFormat, Row
from agentexp.training.sft_data import Conversation

TooLong = Literal["cut", "drop"]
_NAMED = 10  # instances that a sentence names


@dataclass(slots=True)
class Counts:
    """What became of the conversations.

    Attributes:
        conversations: that were given.
        empty: refused, because a reply of the assistant is empty: the model would learn to say nothing.
        empty_in: the instance of the first of them.
        nothing_to_train: refused, because no assistant turn is in them, or none within the first `max_len` tokens.
        too_long: dropped, because they are longer than `max_len` tokens.
        cut: shortened to the turns that fit into `max_len` tokens.
        lost_tokens: trained tokens that were cut off.
        refused: by the chat template.
        reason: why, for the first of them.
        unused: the instances of all conversations that are not trained.
    """

    conversations: int = 0
    empty: int = 0
    empty_in: str = ""
    nothing_to_train: int = 0
    too_long: int = 0
    cut: int = 0
    lost_tokens: int = 0
    refused: int = 0
    reason: str = ""
    unused: list[str] = field(default_factory=list)

    def refuse_empty(self, messages: Iterable[Message], instance: str) -> bool:
        """Whether the assistant says nothing in one of its turns; counted."""
        found = any(message.role == "assistant" and not message.content.strip() for message in messages)
        if found:
            self.empty += 1
            self.empty_in = self.empty_in or instance
            self.unused.append(instance)
        return found

    def sentences(self) -> list[str]:
        """What a user must know; empty when every conversation is trained in full."""
        lines, of = [], f"of {self.conversations} conversations"
        if self.cut:
            lines.append(f"{self.cut} {of} are cut to max_len: their last turns ({self.lost_tokens} tokens) are not trained.")
        if self.too_long:
            lines.append(f"{self.too_long} {of} are left out: longer than max_len.")
        if self.empty:
            lines.append(f"{self.empty} {of} are refused: a reply of the assistant is empty (the first: {self.empty_in}).")
        if self.nothing_to_train:
            lines.append(f"{self.nothing_to_train} {of} are refused: no assistant turn that fits into max_len.")
        if self.refused:
            lines.append(f"{self.refused} {of} are refused by the chat template: {self.reason}")
        if self.unused:
            more = f" and {len(self.unused) - _NAMED} more" if len(self.unused) > _NAMED else ""
            lines.append(f"Not trained: {', '.join(self.unused[:_NAMED])}{more}.")
        return lines


@dataclass(slots=True)
class Prepared:
    """Rows to train on and rows to measure the loss on. Every row has at least one trained token."""

    rows: list[Row] = field(default_factory=list)
    held_out: list[Row] = field(default_factory=list)
    counts: Counts = field(default_factory=Counts)


def check(conversations: Iterable[Conversation]) -> None:
    """Refuse what no tokenizer could make trainable, before one is loaded.

    Raises:
        UserError: there is no conversation with replies of the assistant, none of them empty.
    """
    counts = Counts()
    for messages, instance in conversations:
        counts.conversations += 1
        if counts.refuse_empty(messages, instance):
            continue
        if any(message.role == "assistant" for message in messages):
            return
        counts.nothing_to_train += 1
    raise _nothing(counts)


def _nothing(counts: Counts, settings: str = "") -> UserError:
    reasons = " ".join(counts.sentences()) or "There are no conversations."
    return UserError(f"There is nothing to train on. {reasons} Check trainer.data{settings}.")


def prepare(
    conversations: Iterable[Conversation],
    chat: ChatFormat,
    *,
    max_len: int,
    too_long: TooLong = "cut",
    held_out: float = 0.0,
) -> Prepared:
    """Tokenise, cut, count, and put the held-out instances apart.

    Args:
        conversations: in their order.
        chat: the model's chat template.
        max_len: tokens of a row at most.
        too_long: see `fit`.
        held_out: share of the instances; which ones depends on their names alone, so that data sets of the same instances
            keep the same ones out.

    Raises:
        UserError: nothing is left to train on.
    """
    made = Prepared()
    for messages, instance in conversations:
        made.counts.conversations += 1
        if made.counts.refuse_empty(messages, instance):
            continue
        try:
            row = chat.supervised(messages)
        except UserError as error:
            made.counts.refused += 1
            made.counts.reason = made.counts.reason or str(error)
            made.counts.unused.append(instance)
            continue
        fitted = fit(row, max_len, too_long, made.counts)
        if fitted is None:
            made.counts.unused.append(instance)
        else:
            fitted.tags["instance"] = instance
            apart = stable_seed("held out", instance) < held_out * 2**31
            (made.held_out if apart else made.rows).append(fitted)
    if not made.rows:
        raise _nothing(made.counts, f", trainer.max_len={max_len} and held_out")
    return made


def fit(row: Row, max_len: int, too_long: TooLong, counts: Counts) -> Row | None:
    """The row, shortened to its last assistant turn that ends within `max_len` tokens; None if no trained token is left.

    A turn is never cut in two: the model would be trained to go on where it should have ended.
    """
    if not row.n_trained:
        counts.nothing_to_train += 1
        return None
    if len(row.ids) <= max_len:
        return row
    if too_long == "drop":
        counts.too_long += 1
        return None
    ends = [i for i in range(1, max_len + 1) if row.trained[i - 1] and not row.trained[i]]  # len(ids) > max_len
    if not ends:
        counts.nothing_to_train += 1
        return None
    counts.cut += 1
    counts.lost_tokens += sum(row.trained[ends[-1] :])
    return Row(row.ids[: ends[-1]], row.trained[: ends[-1]], tags=dict(row.tags))
