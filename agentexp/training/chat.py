"""Chat templates as tokens that are only ever appended.

A model's own template is rendered once with placeholders and cut at them (see `glue`): what stands between two turns is the
same text wherever those two roles meet. A conversation is glue and messages in turn, each piece tokenised on its own (see
`pieces`), so that a longer conversation begins with exactly the tokens of the shorter one, and nothing sampled is tokenised
again.

Where this differs from the template itself:

* What a generation prompt holds stays in the history (Qwen3 with thinking off: an empty thought before every reply), and so
  does the reasoning in a reply: templates that drop it change what the model was given.
* A system message goes into the first user message where the template has no place for it before the first turn.
* Neighbouring user messages are joined where the template refuses them.

Text of messages never becomes a special token: "<|im_end|>" in an observation is tokenised as the letters it is written with.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from agentexp.core import Message
from agentexp.errors import UserError
from agentexp.training.core import Row, Sampled
from agentexp.training.glue import find_glue
from agentexp.training.pieces import Pieces

if TYPE_CHECKING:
    import transformers


class _Piece(NamedTuple):
    """A stretch of a conversation: its token ids, and whether an assistant writes them."""

    ids: Sequence[int]
    trained: bool = False


class TemplateFormat:
    """The `ChatFormat` of a tokenizer's own chat template.

    Args:
        tokenizer: a fast tokenizer with a chat template.
        template: variables for the template, for example {"enable_thinking": False}.

    Attributes:
        end_of_turn: the token id that ends an assistant turn.

    Raises:
        UserError: there is no template, or it cannot be made append-only.
    """

    end_of_turn: int

    def __init__(self, tokenizer: transformers.PreTrainedTokenizerBase, template: Mapping[str, Any] | None = None) -> None:
        self._glue = find_glue(tokenizer, template or {})
        self._pieces = Pieces(tokenizer, self._glue.table.values())
        first = self._pieces.glue(self._glue.between("assistant", "user"))[:1]
        if not self._pieces.added.issuperset(first) or not first:
            raise UserError(
                f"The chat template of {self._glue.name} does not end an assistant's turn with a token of its own, so a model "
                "could not be trained to stop. Give its tokenizer another chat_template (ChatML for example)."
            )
        self.end_of_turn = first[0]

    # ------------------------------------------------------------------------------------------------------ protocol

    def prompt(self, messages: Sequence[Message]) -> list[int]:
        """Token ids of a whole conversation, ready for the assistant's next turn.

        Raises:
            UserError: a system message comes later than at the beginning, or the template has no place for the order of turns.
        """
        return _ids(self._walk("", messages)) + _ids(self._lead(self._after("", messages), "assistant"))

    def extend(self, last: Sampled, messages: Sequence[Message]) -> list[int]:
        """Token ids of the prompt after `last`; see `ChatFormat.extend`. Raises as `prompt`."""
        tokens = list(last.tokens)
        if tokens[-1:] == [self.end_of_turn]:
            tokens.pop()  # what follows begins with it
        rest = _ids(self._walk("assistant", messages)) + _ids(self._lead(self._after("assistant", messages), "assistant"))
        return [*last.prompt, *tokens, *rest]

    def supervised(self, messages: Sequence[Message]) -> Row:
        """A conversation with every assistant turn trained, its end-of-turn token included, and nothing else.

        It ends with the last assistant turn: of what follows, nothing could be trained. Raises as `prompt`.
        """
        said = max((i + 1 for i, message in enumerate(messages) if message.role == "assistant"), default=0)
        row = Row([], [])
        for piece in self._walk("", messages[:said]):
            row.ids += piece.ids
            row.trained += [piece.trained] * len(piece.ids)
        if said:
            row.ids.append(self.end_of_turn)
            row.trained.append(True)
        return row

    # -------------------------------------------------------------------------------------------------------- pieces

    def reply(self, text: str) -> list[int]:
        """Token ids of an assistant turn as `supervised` trains it, its end-of-turn token included."""
        return [*self._message(Message("assistant", text)), self.end_of_turn]

    def text(self, tokens: Sequence[int]) -> str:
        """The text of sampled tokens, without special tokens."""
        return self._pieces.decode(tokens)

    def _walk(self, before: str, messages: Sequence[Message]) -> Iterator[_Piece]:
        """The pieces of `messages` after a turn of `before` ("": at the beginning)."""
        for message in self._glue.turns(before, messages):
            yield from self._lead(before, message.role)
            yield _Piece(self._message(message, self._space(before, message.role)), message.role == "assistant")
            before = message.role

    def _after(self, before: str, messages: Sequence[Message]) -> str:
        turns = self._glue.turns(before, messages)
        return turns[-1].role if turns else before

    def _lead(self, before: str, after: str) -> Iterator[_Piece]:
        """The glue before a turn of `after`; the end of an assistant's turn is its own."""
        text = self._glue.between(before, after)
        ids = self._pieces.glue(text.removesuffix(self._space(before, after)), start=not before)
        if before == "assistant":
            yield _Piece([self.end_of_turn], trained=True)
            ids = ids[1:]
        yield _Piece(ids)

    def _space(self, before: str, after: str) -> str:
        """Spaces at the end of the glue. Tokenisers tie them to the word that follows, so they go with the message; those of a
        generation prompt are there before the reply.
        """
        text = self._glue.between(before, after)
        return "" if after == "assistant" else text[len(text.rstrip(" ")) :]

    def _message(self, message: Message, space: str = "") -> list[int]:
        return self._pieces.text(space + self._glue.written(message), message.role)


def _ids(pieces: Iterator[_Piece]) -> list[int]:
    return [token for piece in pieces for token in piece.ids]
