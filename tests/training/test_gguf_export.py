"""Exported files run in llama.cpp and give what torch gives."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentexp.core import Message
from agentexp.errors import UserError
from agentexp.models.embedded import EmbeddedModel
from agentexp.training.base import Base
from agentexp.training.chat import TemplateFormat
from agentexp.training.export_model import export_model
from agentexp.training.gguf_export import export_gguf
from agentexp.training.tiny import make_tiny, tiny_tokenizer

torch = pytest.importorskip("torch", reason="needs agentexp[train]")
pytest.importorskip("gguf", reason="needs the package gguf")
engine = pytest.mark.skipif(importlib.util.find_spec("xllamacpp") is None, reason="needs agentexp[embedded]")

TEXTS = ("go to drawer 12 and 345", "Zürich 🙂\n\n  two  spaces\ttab", "it's 3.14, isn't it?", "a\nb\n\nc <b>")


def small(kind: str, folder: Path, **settings: Any) -> Path:
    """A random model of another family with the tiny tokenizer."""
    import transformers

    tokenizer = tiny_tokenizer()
    config_class, model_class = {
        "qwen2": (transformers.Qwen2Config, transformers.Qwen2ForCausalLM),
        "qwen3": (transformers.Qwen3Config, transformers.Qwen3ForCausalLM),
        "llama": (transformers.LlamaConfig, transformers.LlamaForCausalLM),
    }[kind]
    config = config_class(
        **{
            "vocab_size": len(tokenizer) + 5,  # more than the tokenizer has, as Qwen's
            "hidden_size": 64,
            "intermediate_size": 96,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "max_position_embeddings": 1024,
            "initializer_range": 0.2,
            "tie_word_embeddings": False,
            "eos_token_id": tokenizer.eos_token_id,
            **settings,
        }
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        model = model_class(config)
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.normal_(parameter, std=0.3, generator=torch.Generator().manual_seed(len(name)))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def in_llama(file: Path, use: Callable[[Any], Any]) -> Any:
    async def run() -> Any:
        model = EmbeddedModel(path=str(file), n_ctx=512, n_threads=1, max_tokens=8)
        await model.start()
        try:
            assert model._engine is not None
            return await use(model._engine.client)
        finally:
            await model.close()

    return asyncio.run(run())


@engine
@pytest.mark.engine
@pytest.mark.parametrize(
    ("kind", "dtype", "tolerance"),
    [("tiny", "f32", 0.02), ("tiny", "q8_0", 0.6), ("llama3", "f16", 0.05), ("qwen2", "bf16", 0.3), ("qwen3", "f16", 0.05)],
)
def test_next_tokens_are_those_of_torch(kind: str, dtype: Any, tolerance: float, tmp_path: Path) -> None:
    """llama.cpp rounds activations to 8 bits for q8_0 and to half precision for others."""
    rope = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "rope_theta": 500.0}
    rope["original_max_position_embeddings"] = 128
    if kind == "tiny":
        folder = make_tiny(tmp_path / "model")
    elif kind == "llama3":
        folder = small("llama", tmp_path / "model", rope_parameters=rope)
    else:
        folder = small(kind, tmp_path / "model", **({"head_dim": 32} if kind == "qwen3" else {}))
    file = export_gguf(folder, tmp_path / "model.gguf", dtype)
    base = Base(path=str(folder), dtype="float32", device="cpu")
    model, tokenizer = base.load_model(), base.load_tokenizer()
    chats = TemplateFormat(tokenizer)
    for n in range(5, 40):  # llama.cpp reports nothing about a token that is a part of a character
        talk = [Message("user", "You see a drawer. " * n)]
        prompt = chats.prompt(talk)
        with torch.no_grad():
            logprobs = torch.log_softmax(model(torch.tensor([prompt])).logits[0, -1], dim=-1)
        if tokenizer.decode([int(logprobs.argmax())]).isascii():
            break

    async def use(client: Any) -> Any:
        rendered = await client.render(talk, {})
        assert list(await client.tokenize(rendered, start=True)) == prompt
        for text in TEXTS:
            assert list(await client.tokenize(text)) == tokenizer(text, add_special_tokens=False)["input_ids"]
        assert await client.end_of_turn({}) == "<|im_end|>"
        return await client.next_tokens(prompt, 20)

    top = in_llama(file, use)
    gaps = [abs(logprob - float(logprobs[token])) for token, logprob in top.logprobs.items()]
    assert max(gaps) < tolerance
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("dtype", ["f16", "q8_0"])
def test_transformers_reads_it_back(dtype: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = make_tiny(tmp_path / "model")
    file = export_gguf(folder, tmp_path / "model.gguf", dtype)
    before, after = Base(path=str(folder), device="cpu"), Base(path=str(file), device="cpu")
    ids = torch.tensor([before.load_tokenizer()("You see a drawer.")["input_ids"]])
    assert after.load_tokenizer()("You see a drawer.")["input_ids"] == ids[0].tolist()
    assert TemplateFormat(after.load_tokenizer()).end_of_turn == TemplateFormat(before.load_tokenizer()).end_of_turn
    with torch.no_grad():
        one, two = before.load_model()(ids).logits, after.load_model()(ids).logits
    assert float((one - two).abs().max()) < (0.05 if dtype == "f16" else 0.5)


def test_what_cannot_be_exported(tmp_path: Path) -> None:
    from transformers import GPT2Config, GPT2LMHeadModel

    folder = tmp_path / "gpt2"
    GPT2LMHeadModel(GPT2Config(n_layer=1, n_embd=32, n_head=2, vocab_size=280, n_positions=64)).save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    with pytest.raises(UserError, match="of type gpt2"):
        export_gguf(folder, tmp_path / "x.gguf")
    with pytest.raises(UserError, match="choose one of: f32"):
        export_gguf(folder, tmp_path / "x.gguf", "q2")
    odd = small("llama", tmp_path / "odd", rope_parameters={"rope_type": "linear", "factor": 2.0, "rope_theta": 1e4})
    with pytest.raises(UserError, match="type linear"):
        export_gguf(odd, tmp_path / "x.gguf")
    assert not list(tmp_path.glob("*x.gguf*"))


def test_a_file_that_is_no_model_is_not_overwritten(tmp_path: Path) -> None:
    kept = tmp_path / "notes.txt"
    kept.write_text("keep me")
    with pytest.raises(UserError, match="is no GGUF file"):
        export_model("tiny", gguf=kept)
    assert kept.read_text() == "keep me"


def test_merging_an_adapter(tmp_path: Path) -> None:
    peft = pytest.importorskip("peft", reason="needs agentexp[train]")
    from agentexp.training.merge import merge_folder, merged

    folder = make_tiny(tmp_path / "model")
    base = Base(path=str(folder), device="cpu")
    torch.manual_seed(0)
    tuned = peft.get_peft_model(base.load_model(), peft.LoraConfig(r=4, target_modules="all-linear", init_lora_weights=False))
    tuned.save_pretrained(tmp_path / "adapter")
    ids = torch.tensor([[5, 6, 7, 8]])
    with torch.no_grad():
        wanted = tuned(ids).logits
    out = merge_folder(str(folder), tmp_path / "adapter", tmp_path / "out")
    again = Base(path=str(out), device="cpu")
    with torch.no_grad():
        assert float((again.load_model()(ids).logits - wanted).abs().max()) < 1e-4
    assert again.load_tokenizer().chat_template == base.load_tokenizer().chat_template
    with pytest.raises(UserError, match="not empty"):
        merge_folder(str(folder), tmp_path / "adapter", tmp_path / "out")
    with pytest.raises(UserError, match="no adapter"):
        merged(base.load_model(), folder)
