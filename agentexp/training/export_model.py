"""`agentexp export-model`: a trained model as a merged folder, as a GGUF file, or both."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from agentexp.errors import UserError
from agentexp.training.gguf_export import export_gguf
from agentexp.training.merge import merge_folder


def export_model(
    model: str, *, adapter: Path | None = None, folder: Path | None = None, gguf: Path | None = None, dtype: str = "q8_0"
) -> list[Path]:
    """Write a model in other forms.

    Args:
        model: as `base.path`; with `adapter`, the model that it was trained on.
        adapter: folder of a LoRA adapter to merge into it.
        folder: write the merged model here, as a Hugging Face folder.
        gguf: write a GGUF file here.
        dtype: of the GGUF file's matrices.

    Returns:
        What was written.

    Raises:
        MissingDependency: torch, transformers, peft or gguf is not installed.
        UserError: nothing to write is named, or the model is of a kind that is not supported.
    """
    if folder is None and gguf is None:
        raise UserError("Nothing to write: give --gguf FILE or --folder FOLDER.")
    if folder is not None and adapter is None:
        raise UserError("--folder takes a model with its adapter merged: give --adapter as well.")
    if gguf is not None and gguf.exists() and not (gguf.is_file() and _is_gguf(gguf)):
        raise UserError(f"--gguf {gguf} exists and is no GGUF file; choose another name.")
    written: list[Path] = []
    with TemporaryDirectory() as scratch:
        if adapter is not None:
            merged = merge_folder(model, adapter, folder or Path(scratch) / "model")
            written += [merged] if folder is not None else []
            model = str(merged)
        if gguf is not None:
            written.append(export_gguf(model, gguf, dtype))
    return written


def _is_gguf(file: Path) -> bool:
    with file.open("rb") as start:
        return start.read(4) in (b"GGUF", b"")
