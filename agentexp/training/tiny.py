"""A tiny random Llama with a byte-level tokenizer, made in code: what tests and smoke runs train.

Two layers, hidden size 64, 92,000 parameters, 275 tokens. Its replies are noise; its shapes, tokenizer, chat template and
files are those of a real model, so everything that works on SmolLM2 works on it, a thousand times faster.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentexp.errors import MissingDependency

if TYPE_CHECKING:
    import transformers

CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
# "hello" can be reached in two ways, so a text tokenised again need not give the tokens that a model sampled.
_MERGES = [
    *(("h", "e"), ("l", "l"), ("ll", "o"), ("he", "llo"), ("e", "r"), ("t", "h"), ("i", "n"), ("Ġ", "g"), ("a", "n")),
    *(("Ġ", "t"), ("o", "n"), (":", "Ġ"), ("a", "c"), ("t", "i"), ("ti", "on"), ("A", "c")),
]
INSTALL = "pip install torch==2.13.0 and then 'agentexp[train]'"


def tiny_tokenizer() -> transformers.PreTrainedTokenizerFast:
    """Byte-level BPE with 256 bytes, a few merges and ChatML's special tokens; any text is tokenised without loss.

    Raises:
        MissingDependency: transformers is not installed.
    """
    try:
        import transformers
        from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    except ImportError as error:
        raise MissingDependency(f"A tiny model needs transformers: {INSTALL}") from error
    words = [*SPECIAL, *sorted(pre_tokenizers.ByteLevel.alphabet()), *("".join(pair) for pair in _MERGES)]
    backend = Tokenizer(models.BPE(vocab={word: i for i, word in enumerate(words)}, merges=_MERGES))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    fast: Any = transformers.PreTrainedTokenizerFast
    made: transformers.PreTrainedTokenizerFast = fast(
        tokenizer_object=backend,
        bos_token="<|im_start|>",
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        unk_token="<|endoftext|>",
        additional_special_tokens=list(SPECIAL),
        model_max_length=4096,
        clean_up_tokenization_spaces=False,
    )
    made.chat_template = CHATML
    return made


def make_tiny(folder: str | os.PathLike[str], seed: int = 0) -> Path:
    """Write a tiny random model (fp32), its tokenizer and its chat template as a Hugging Face folder.

    Args:
        folder: where to; made if missing.
        seed: of the weights. torch's own random state is left as it was.

    Returns:
        The folder.

    Raises:
        MissingDependency: torch or transformers is not installed.
    """
    tokenizer = tiny_tokenizer()
    try:
        import torch
    except ImportError as error:
        raise MissingDependency(f"A tiny model needs torch: {INSTALL}") from error
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=4096,
        tie_word_embeddings=True,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        # The usual 0.02 gives a next-token distribution that is flat to three digits: nothing could be told apart.
        initializer_range=0.2,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = LlamaForCausalLM(config)
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    path = Path(folder)
    with no_bars():
        model.save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path


@contextmanager
def no_bars() -> Iterator[None]:
    """Without transformers' progress bars, which would be drawn over our own."""
    import transformers

    logging: Any = transformers.utils.logging
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()
