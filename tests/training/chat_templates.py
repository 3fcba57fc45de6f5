"""Small chat templates in the manner of well-known models, and byte-level tokenizers for them, made in code."""

from __future__ import annotations

from typing import Any

from agentexp.training.gguf_tokenizer import _LLAMA3

CHATML = (
    "{% for m in messages %}{% if loop.first and m['role'] != 'system' %}<|im_start|>system\nYou help.<|im_end|>\n{% endif %}"
    "<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
LLAMA3 = (
    "{{ bos_token }}{% for m in messages %}<|start_header_id|>{{ m['role'] }}<|end_header_id|>\n\n{{ m['content'] | trim }}"
    "<|eot_id|>{% endfor %}{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}"
)
# Drops the thoughts of earlier turns, gives the last turn an empty one, and has a switch for thinking.
QWEN3 = (
    "{% set ns = namespace(last=0) %}{% for m in messages %}{% if m['role'] == 'user' %}"
    "{% set ns.last = loop.index0 %}{% endif %}{% endfor %}"
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{% set text = m['content'] %}"
    "{% if m['role'] == 'assistant' %}{% set text = text.split('</think>')[-1].lstrip('\n') %}"
    "{% if loop.index0 > ns.last %}{% set text = '<think>\n\n</think>\n\n' + text %}{% endif %}{% endif %}"
    "{{ text }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{% if enable_thinking is defined and enable_thinking is false %}<think>\n\n</think>\n\n{% endif %}{% endif %}"
)
# No system role, turns must alternate, messages are stripped, the assistant is called model.
GEMMA = (
    "{{ bos_token }}{% for m in messages %}"
    "{% if m['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
    "{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Roles must alternate') }}{% endif %}"
    "<start_of_turn>{{ 'model' if m['role'] == 'assistant' else m['role'] }}\n{{ m['content'] | trim }}<end_of_turn>\n"
    "{% endfor %}{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}"
)
# The system message moves to the last user turn; a space stands before each reply but not after the prompt.
MISTRAL = (
    "{% set ns = namespace(system='') %}{% if messages[0]['role'] == 'system' %}{% set ns.system = messages[0]['content'] %}"
    "{% set messages = messages[1:] %}{% endif %}{{ bos_token }}{% for m in messages %}"
    "{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Roles must alternate') }}{% endif %}"
    "{% if m['role'] == 'user' %}[INST] {% if loop.last and ns.system %}{{ ns.system }}\n\n{% endif %}"
    "{{ m['content'] }} [/INST]"
    "{% else %} {{ m['content'] | trim }}</s>{% endif %}{% endfor %}"
)
COUNTING = "{% for m in messages %}<|im_start|>{{ messages | length }}{{ m['role'] }}\n{{ m['content'] }}<|im_end|>{% endfor %}"
NO_END = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}"

SPECIAL = {
    "chatml": ["<|im_start|>", "<|im_end|>"],
    "llama3": ["<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"],
    "qwen3": ["<|im_start|>", "<|im_end|>"],
    "gemma": ["<bos>", "<start_of_turn>", "<end_of_turn>"],
    "mistral": ["<s>", "</s>"],
}
ENDS = {"chatml": "<|im_end|>", "llama3": "<|eot_id|>", "qwen3": "<|im_end|>", "gemma": "<end_of_turn>", "mistral": "</s>"}
TEMPLATES = {"chatml": CHATML, "llama3": LLAMA3, "qwen3": QWEN3, "gemma": GEMMA, "mistral": MISTRAL}
_MERGES = [("h", "e"), ("l", "l"), ("ll", "o"), ("he", "llo"), ("Ċ", "Ċ"), ("Ġ", "g"), ("Ġg", "o"), (":", "Ġ")]


def tokenizer_for(kind: str, template: str | None = None) -> Any:
    """A byte-level tokenizer with the special tokens and the template of a kind; "<think>" is an added token of Qwen3's."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = [*SPECIAL[kind], *sorted(pre_tokenizers.ByteLevel.alphabet()), *("".join(pair) for pair in _MERGES)]
    backend = Tokenizer(models.BPE(vocab={word: i for i, word in enumerate(words)}, merges=_MERGES))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    if kind in ("llama3", "qwen3"):  # line breaks stay together, whatever follows
        split = pre_tokenizers.Split(Regex(_LLAMA3), behavior="isolated")
        backend.pre_tokenizer = pre_tokenizers.Sequence(
            [split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
        )
    backend.decoder = decoders.ByteLevel()
    bos = {"llama3": "<|begin_of_text|>", "gemma": "<bos>", "mistral": "<s>"}.get(kind)
    made: Any = PreTrainedTokenizerFast(
        tokenizer_object=backend, bos_token=bos, eos_token=ENDS[kind], additional_special_tokens=SPECIAL[kind]
    )
    if kind == "qwen3":
        made.add_tokens([AddedToken("<think>", special=False), AddedToken("</think>", special=False)])
    made.chat_template = template or TEMPLATES[kind]
    return made


def sentencepiece_mistral() -> Any:
    """Pieces with SentencePiece's mark for spaces, which puts a space before whatever it tokenises."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    letters = ["▁", *map(chr, range(33, 127)), "\n"]
    merges = [("▁", "g"), ("▁g", "o"), ("h", "e"), ("▁", "he"), ("l", "l"), ("ll", "o"), ("he", "llo"), ("▁he", "llo")]
    words = ["<unk>", "<s>", "</s>", *letters, *("".join(pair) for pair in merges)]
    backend = Tokenizer(models.BPE(vocab={word: i for i, word in enumerate(words)}, merges=merges, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    backend.decoder = decoders.Metaspace(prepend_scheme="first", split=False)
    made: Any = PreTrainedTokenizerFast(tokenizer_object=backend, bos_token="<s>", eos_token="</s>", unk_token="<unk>")
    made.chat_template = MISTRAL
    return made
