"""A Hugging Face folder as a GGUF file, for `model=embedded model.path=FILE.gguf` and everything else that runs llama.cpp.

For models of the Llama family (Llama, SmolLM2, Qwen2, Qwen3) with a byte-level tokenizer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agentexp.errors import MissingDependency, UserError
from agentexp.training.base import Argument
from agentexp.training.gguf_tokenizer import add_tokenizer

TYPES = ("f32", "f16", "bf16", "q8_0")
_ARCHITECTURES = {"llama": "llama", "qwen2": "qwen2", "qwen3": "qwen3"}
_BLOCK = 32  # weights that share a scale in q8_0


def export_gguf(folder: str | Path, out: str | Path, dtype: str = "q8_0") -> Path:
    """Write a GGUF file with weights, tokenizer and chat template.

    Args:
        folder: a Hugging Face folder, or anything else that `base.path` takes.
        out: the file; it appears when it is complete.
        dtype: of matrices: "f32", "f16", "bf16" or "q8_0" (8 bits and a scale per 32 weights). Vectors stay float32.

    Returns:
        The file.

    Raises:
        MissingDependency: torch, transformers or gguf is not installed.
        UserError: the model or its tokenizer is of a kind that is not supported.
    """
    if dtype not in TYPES:
        raise UserError(f"--dtype {dtype} is not possible; choose one of: {', '.join(TYPES)}.")
    try:
        import gguf
    except ImportError as error:
        raise MissingDependency("Writing GGUF files needs: pip install gguf") from error
    base = Argument("MODEL", str(folder), "auto")
    model, tokenizer = base.load_model(), base.load_tokenizer()
    config = model.config
    kind = _ARCHITECTURES.get(config.model_type)
    if kind is None:
        raise UserError(f"{folder} is a model of type {config.model_type}; GGUF export knows {', '.join(_ARCHITECTURES)}.")
    target = Path(out).expanduser()
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".{target.name}.part")
    writer = gguf.GGUFWriter(part, kind)
    try:
        writer.add_name(base.name)
        _add_shape(writer, config)
        add_tokenizer(writer, tokenizer, config.vocab_size)
        types = {
            "f32": (gguf.GGMLQuantizationType.F32, gguf.LlamaFileType.ALL_F32),
            "f16": (gguf.GGMLQuantizationType.F16, gguf.LlamaFileType.MOSTLY_F16),
            "bf16": (gguf.GGMLQuantizationType.BF16, gguf.LlamaFileType.MOSTLY_BF16),
            "q8_0": (gguf.GGMLQuantizationType.Q8_0, gguf.LlamaFileType.MOSTLY_Q8_0),
        }
        wanted, file_type = types[dtype]
        writer.add_file_type(file_type)
        writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
        for name, data in _tensors(model, kind):
            stored = wanted
            if data.ndim == 1:
                stored = gguf.GGMLQuantizationType.F32
            elif dtype == "q8_0" and data.shape[-1] % _BLOCK:
                stored = gguf.GGMLQuantizationType.F16
            writer.add_tensor(name, gguf.quants.quantize(data, stored), raw_dtype=stored)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
    return target


def _add_shape(writer: Any, config: Any) -> None:
    heads = config.num_attention_heads
    size = getattr(config, "head_dim", None) or config.hidden_size // heads
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(config.vocab_size)
    writer.add_rope_dimension_count(size)
    writer.add_rope_freq_base(float(_rope(config)["rope_theta"]))
    if size * heads != config.hidden_size:
        writer.add_key_length(size)
        writer.add_value_length(size)


def _rope(config: Any) -> dict[str, Any]:
    """Settings of the rotary embedding: "rope_theta", "rope_type" and what the type needs."""
    rope = dict(getattr(config, "rope_parameters", None) or {"rope_theta": config.rope_theta})
    kind = rope.setdefault("rope_type", "default")
    if kind not in ("default", "llama3"):
        raise UserError(f"GGUF export does not know rotary embeddings of type {kind}.")
    return rope


def _tensors(model: Any, kind: str) -> Iterator[tuple[str, Any]]:
    """Names and float32 arrays as llama.cpp wants them."""
    import gguf
    import numpy as np

    config = model.config
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH[kind.upper()], config.num_hidden_layers)
    rope = _rope(config)
    if rope["rope_type"] == "llama3":
        yield "rope_freqs.weight", np.array(_factors(config, rope), dtype=np.float32)
    for name, tensor in model.state_dict().items():
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        new = names.get_name(name, try_suffixes=(".weight", ".bias"))
        if new is None:
            raise UserError(f"GGUF export does not know the weights {name}.")
        data = tensor.detach().float().numpy()
        if kind == "llama" and ".self_attn.q_proj." in name:
            data = _interleave(data, config.num_attention_heads)
        elif kind == "llama" and ".self_attn.k_proj." in name:
            data = _interleave(data, config.num_key_value_heads)
        yield new, np.ascontiguousarray(data)


def _interleave(data: Any, heads: int) -> Any:
    """Rows of a query or key projection in the order of llama.cpp's Llama: the two halves that rotate together alternate."""
    return data.reshape(heads, 2, data.shape[0] // heads // 2, *data.shape[1:]).swapaxes(1, 2).reshape(data.shape)


def _factors(config: Any, rope: dict[str, Any]) -> list[float]:
    """What Llama 3 divides its rotation frequencies by: 1 for short waves, `factor` for long ones, between them in between."""
    size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    low, high, factor = rope["low_freq_factor"], rope["high_freq_factor"], rope["factor"]
    context = rope["original_max_position_embeddings"]
    found: list[float] = []
    for i in range(0, size, 2):
        wave = 2 * math.pi * rope["rope_theta"] ** (i / size)
        if wave < context / high:
            found.append(1.0)
        elif wave > context / low:
            found.append(float(factor))
        else:
            smooth = (context / wave - low) / (high - low)
            found.append(1 / ((1 - smooth) / factor + smooth))
    return found
