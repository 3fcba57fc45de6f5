"""LoRA adapters (peft) put into the weights they were trained on."""

from __future__ import annotations

from pathlib import Path
from pickle import UnpicklingError
from typing import Any

from agentexp.errors import MissingDependency, UserError
from agentexp.training.base import PICKLED, Argument, Dtype
from agentexp.training.tiny import no_bars


def merged(model: Any, adapter: str | Path) -> Any:
    """A model with an adapter's changes added to its weights.

    Args:
        model: the model of transformers that the adapter was trained on; changed in place.
        adapter: folder of a LoRA adapter.

    Raises:
        MissingDependency: peft is not installed.
        UserError: the folder holds no adapter, or one of another model.
    """
    folder = Path(adapter).expanduser()
    if not (folder / "adapter_config.json").is_file():
        inside = folder / "adapter"  # a run folder of a training
        hint = f"Did you mean {inside}?" if (inside / "adapter_config.json").is_file() else "Give the folder that peft saved."
        raise UserError(f"{adapter} is no adapter: it has no adapter_config.json. {hint}")
    try:
        from peft import PeftModel
    except ImportError as error:
        raise MissingDependency(f"{adapter} is a LoRA adapter; using it needs: pip install 'agentexp[train]'") from error
    try:
        return PeftModel.from_pretrained(model, str(folder)).merge_and_unload(safe_merge=True)
    except (RuntimeError, ValueError, KeyError) as error:
        raise UserError(f"The adapter {adapter} cannot be merged into this model ({type(error).__name__}): {error}") from error
    except UnpicklingError as error:
        raise UserError(f"The adapter {adapter} {PICKLED}") from error


def merge_folder(base: str, adapter: str | Path, out: str | Path, dtype: Dtype = "auto") -> Path:
    """Write a Hugging Face folder with an adapter merged into its base model.

    Args:
        base: as `base.path`.
        adapter: folder of the adapter.
        out: folder to write.
        dtype: of the merged weights; "auto" = as the base was saved.

    Returns:
        The folder.

    Raises:
        MissingDependency, UserError: as `merged` and `Base`; also where `out` holds something already.
    """
    target = Path(out).expanduser()
    if target.exists() and any(target.iterdir()):
        raise UserError(f"{out} is not empty; give another folder.")
    source = Argument("MODEL", base, dtype)
    model = merged(source.load_model(), adapter)
    with no_bars():
        model.save_pretrained(target)
    source.load_tokenizer().save_pretrained(target)
    return target
