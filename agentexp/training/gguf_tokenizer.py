"""Byte-level tokenizers in GGUF files: what llama.cpp has to know, and what transformers does not read back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from agentexp.errors import UserError

# llama.cpp knows ways of splitting text into words by name only. These are the byte-level ones of the model families here.
_LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_QWEN2 = _LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
_DIGITS_APART = ("smollm", "starcoder", "refact", "command-r", "codeshell")


def add_tokenizer(writer: Any, tokenizer: Any, vocabulary: int) -> None:
    """Enter vocabulary, merges, special tokens and chat template into a GGUF file.

    Args:
        writer: `gguf.GGUFWriter`.
        tokenizer: a fast tokenizer of transformers.
        vocabulary: tokens of the model; the tokenizer may have fewer.

    Raises:
        UserError: it is no byte-level BPE tokenizer, or splits words in a way that llama.cpp has no name for.
    """
    import gguf

    backend = getattr(tokenizer, "backend_tokenizer", None)
    state = json.loads(backend.to_str()) if backend is not None else {"model": {}}
    if state["model"].get("type") != "BPE" or "ByteLevel" not in json.dumps(state.get("pre_tokenizer")):
        raise UserError("GGUF export knows byte-level BPE tokenizers only (SmolLM2, Llama 3, Qwen).")
    names = {int(i): token for token, i in tokenizer.get_vocab().items()}
    added = {int(i): token for i, token in tokenizer.added_tokens_decoder.items()}
    tokens, types = [], []
    for i in range(vocabulary):
        tokens.append(names.get(i, f"[PAD{i}]"))
        kind = gguf.TokenType.NORMAL if i in names else gguf.TokenType.UNUSED
        if i in added:
            kind = gguf.TokenType.CONTROL if added[i].special else gguf.TokenType.USER_DEFINED
        types.append(int(kind))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(_split_name(state["pre_tokenizer"]))
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges([merge if isinstance(merge, str) else " ".join(merge) for merge in state["model"]["merges"]])
    for token, add in (
        (tokenizer.bos_token_id, writer.add_bos_token_id),
        (tokenizer.eos_token_id, writer.add_eos_token_id),
        (tokenizer.unk_token_id, writer.add_unk_token_id),
        (tokenizer.pad_token_id, writer.add_pad_token_id),
    ):
        if token is not None:
            add(token)
    writer.add_add_bos_token(tokenizer.bos_token_id is not None and tokenizer("a")["input_ids"][:1] == [tokenizer.bos_token_id])
    writer.add_add_space_prefix(False)
    if isinstance(tokenizer.chat_template, str):
        writer.add_chat_template(tokenizer.chat_template)


def _split_name(splitter: dict[str, Any]) -> str:
    parts = splitter["pretokenizers"] if splitter["type"] == "Sequence" else [splitter]
    kinds = [part["type"] for part in parts]
    if kinds == ["ByteLevel"] and parts[0].get("use_regex", True):
        return "gpt-2"
    if kinds == ["Digits", "ByteLevel"] and parts[0].get("individual_digits"):
        return "smollm"
    if kinds == ["Split", "ByteLevel"]:
        name = {_LLAMA3: "llama-bpe", _QWEN2: "qwen2"}.get(parts[0]["pattern"].get("Regex", ""))
        if name is not None:
            return name
    raise UserError(f"GGUF export does not know this way of splitting text into words: {', '.join(kinds)}.")


def repair_split(tokenizer: Any, file: Path) -> None:
    """Make a tokenizer that transformers read from a GGUF file split digits where the model was trained so.

    Transformers (5.24) reads "smollm" as GPT-2's way, which keeps "12" together where the model knows "1", "2" only.

    Args:
        tokenizer: what transformers made of `file`; changed in place.
        file: the GGUF file.
    """
    import gguf
    from tokenizers import pre_tokenizers

    field = gguf.GGUFReader(file).get_field("tokenizer.ggml.pre")
    if field is not None and str(field.contents()) in _DIGITS_APART:
        tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
        )
