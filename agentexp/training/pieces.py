"""Pieces of a conversation as tokens, each on its own: glue with its special tokens, messages without any."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from agentexp.errors import UserError

_SPACE = "\u2581"  # how SentencePiece writes a space
_ANCHORS = ("\n", ".", "a", "0")


class Pieces:
    """Tokenises for one tokenizer.

    Args:
        tokenizer: a fast one of transformers. It is copied: its own settings neither matter nor change.
        glue: the texts between turns.

    Attributes:
        added: ids of the tokens that the vocabulary's own merges do not make.

    Raises:
        UserError: the tokenizer is no fast one.
    """

    def __init__(self, tokenizer: Any, glue: Iterable[str]) -> None:
        backend = getattr(tokenizer, "backend_tokenizer", None)
        if backend is None:
            raise UserError(
                f"{type(tokenizer).__name__} is no fast tokenizer: text that looks like a special token could not be told "
                "apart. Use a model with a tokenizer.json."
            )
        self._tokenizer = tokenizer
        self._marked, self._plain = _copy(backend, as_text=False), _copy(backend, as_text=True)
        added = {int(i): token for i, token in tokenizer.added_tokens_decoder.items()}
        self.added = {i for i, token in added.items() if not token.content.isspace()}
        # A tokenizer's stand-in for what it does not know may well come out of ordinary text.
        self._special = {i for i, token in added.items() if token.special} - {tokenizer.unk_token_id}
        first = self._plain.encode("a", add_special_tokens=False).tokens
        self._prefixes = bool(first) and first[0].startswith(_SPACE)
        self._known: dict[str, list[int]] = {}
        self._control = set(self._special)
        for text in glue:
            self._control |= self.added.intersection(self.glue(text))

    def glue(self, text: str, *, start: bool = False) -> list[int]:
        """Token ids of a text between turns, special tokens recognised.

        Args:
            text: the text.
            start: it is the beginning of a conversation.
        """
        if text not in self._known:
            ids = list(self._marked.encode(text, add_special_tokens=False).ids)
            if ids and self._prefixes and not start and ids[0] not in self.added:
                ids = self._anchored(self._marked, text)
            self._known[text] = ids
        return list(self._known[text])

    def text(self, text: str, role: str) -> list[int]:
        """Token ids of a message of `role`, none of which is a special token.

        Tokens of the model's own that are not special (Qwen3's "<think>") stay tokens in replies of the assistant.

        Raises:
            UserError: the tokenizer makes a special token of ordinary text.
        """
        if not text:
            return []
        if not text.isascii():  # half of a surrogate pair is no text for a tokenizer
            text = text.encode("utf-8", "replace").decode()
        ids = (
            self._anchored(self._plain, text)
            if self._prefixes
            else list(self._plain.encode(text, add_special_tokens=False).ids)
        )
        control = self._special if role == "assistant" else self._control
        if control.isdisjoint(ids):
            return ids
        ids = self._without_added(text)
        if not control.isdisjoint(ids):
            bad = self._tokenizer.convert_ids_to_tokens(sorted(control.intersection(ids))[0])
            raise UserError(f"The text of a message would become the special token {bad}: {text[:80]!r}.")
        return ids

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of sampled tokens, special ones left out."""
        return str(self._tokenizer.decode(list(tokens), skip_special_tokens=True, clean_up_tokenization_spaces=False))

    def _anchored(self, backend: Any, text: str) -> list[int]:
        """Tokens of `text` in the middle of a text: SentencePiece puts a space before the first word that it is given."""
        for anchor in _ANCHORS:
            lead = backend.encode(anchor, add_special_tokens=False).ids
            ids = backend.encode(anchor + text, add_special_tokens=False).ids
            if ids[: len(lead)] == lead:
                return list(ids[len(lead) :])
        raise UserError(f"The tokenizer {self._tokenizer.name_or_path} cannot tokenise a message on its own: {text[:80]!r}.")

    def _without_added(self, text: str) -> list[int]:
        """Tokens of `text` by the vocabulary alone."""
        backend = self._plain
        if backend.normalizer is not None:
            text = backend.normalizer.normalize_str(text)
        words = [text] if backend.pre_tokenizer is None else [word for word, _ in backend.pre_tokenizer.pre_tokenize_str(text)]
        return [token.id for word in words for token in backend.model.tokenize(word)]


def _copy(backend: Any, *, as_text: bool) -> Any:
    """A tokenizer of its own, without truncation and padding.

    Args:
        backend: of the library tokenizers.
        as_text: special tokens in a text are read as the letters they are written with.
    """
    made = type(backend).from_str(backend.to_str())
    made.no_truncation()
    made.no_padding()
    made.encode_special_tokens = as_text
    return made
