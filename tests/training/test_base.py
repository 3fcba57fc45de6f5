from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from agentexp.errors import MissingDependency, UserError
from agentexp.models import weights
from agentexp.models.transformers import TransformersModel
from agentexp.training.base import Argument, Base, ModelBase
from agentexp.training.chat import TemplateFormat
from agentexp.training.export_model import export_model
from agentexp.training.tiny import make_tiny

torch = pytest.importorskip("torch", reason="needs agentexp[train]")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_tiny_is_made_once_and_differs_by_seed(cache: Path) -> None:
    folder = Base(path="tiny").folder()
    assert cache in folder.parents and Base(path="tiny").folder() == folder
    stamp = (folder / "config.json").stat().st_mtime_ns
    model, other = Base(path="tiny").load_model(), Base(path="tiny", seed=1).load_model()
    assert (folder / "config.json").stat().st_mtime_ns == stamp
    assert not model.training and model.num_parameters() == 91_648
    assert not torch.equal(model.lm_head.weight, other.lm_head.weight)
    assert not list((cache / "agentexp" / "bases").glob(".*"))  # nothing half-made is left


def test_tiny_is_the_same_for_the_same_seed(tmp_path: Path) -> None:
    state = torch.random.get_rng_state()
    a, b = (make_tiny(tmp_path / name, 3) for name in ("a", "b"))
    assert (a / "model.safetensors").read_bytes() == (b / "model.safetensors").read_bytes()
    assert torch.equal(torch.random.get_rng_state(), state)


def test_folder_dtype_and_tokenizer(tmp_path: Path) -> None:
    folder = make_tiny(tmp_path / "mine")
    base = Base(path=str(folder), dtype="bfloat16", device="cpu")
    assert base.folder() == folder and base.name == "mine"
    assert base.load_model().dtype == torch.bfloat16
    tokenizer = base.load_tokenizer()
    assert tokenizer.pad_token == "<|endoftext|>"
    assert tokenizer.convert_ids_to_tokens(TemplateFormat(tokenizer).end_of_turn) == "<|im_end|>"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"path": "no-such-thing"}, "Choose smollm2"),
        ({"path": "gone.gguf"}, "does not exist"),
        ({"dtype": "int8"}, "choose one of: auto, float32"),
        ({"path": "tiny", "revision": "main"}, "hub"),
    ],
)
def test_impossible(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        Base(**settings).folder()


def test_messages_name_the_setting_that_was_given(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    make_tiny(tmp_path / "run" / "model")
    run = str(tmp_path / "run")
    bad: list[tuple[Any, str]] = [
        (lambda: TransformersModel(path=run)._base.folder(), rf"^model\.path={run} .* Did you mean {run}/model\?$"),
        (lambda: TransformersModel(path="gone.gguf").versions(), r"^model\.path=gone\.gguf does not exist"),
        (lambda: ModelBase(path="tiny", device="toaster").load_model(), r"^model\.device=toaster"),
        (lambda: ModelBase(dtype="int8"), r"^model\.dtype=int8"),  # type: ignore[arg-type]
        (lambda: Base(path=run).folder(), rf"^base\.path={run} .* Did you mean {run}/model\?$"),
        (lambda: export_model(run, gguf=tmp_path / "x.gguf"), rf"^MODEL={run} .* Did you mean {run}/model\?$"),
        (lambda: export_model("tiny", adapter=tmp_path, gguf=tmp_path / "x.gguf"), "is no adapter"),
        (lambda: Argument("--tokenizer", "nope").folder(), r"^--tokenizer=nope does not exist"),
    ]
    for act, message in bad:
        with pytest.raises(UserError, match=message):
            act()
    file = tmp_path / "x.gguf"
    file.write_bytes(b"junk")
    with pytest.raises(UserError, match=r"^base\.path=.* Give a GGUF file\.$"):  # null means nothing to base.path
        Base(path=str(file)).folder()


def test_folder_without_a_model(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no config\.json"):
        Base(path=str(tmp_path)).folder()
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama"}))
    with pytest.raises(UserError, match="cannot be loaded"):
        Base(path=str(tmp_path)).load_model()
    file = tmp_path / "x.gguf"
    file.write_bytes(b"junk")
    with pytest.raises(UserError, match="no GGUF file"):
        Base(path=str(file)).folder()


def test_device_that_is_not_there() -> None:
    with pytest.raises(UserError, match="no torch device"):
        Base(path="tiny", device="toaster").load_model()
    if not torch.cuda.is_available():
        with pytest.raises(UserError, match="needs a GPU"):
            Base(path="tiny", device="cuda").load_model()


@pytest.mark.parametrize("missing", ["torch", "transformers"])
def test_without_the_extra(missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    for path in ("tiny", str(tmp_path)):
        (tmp_path / "config.json").touch()
        with pytest.raises(MissingDependency, match=rf"^base\.path={path} needs torch .* and then 'agentexp\[train\]'"):
            Base(path=path).load_model()


@pytest.mark.engine
@pytest.mark.slow
def test_packaged_weights_are_dequantised(cache: Path) -> None:
    """Half a minute: digits stay apart, special tokens are special, weights can be saved and trained."""
    try:
        weights.locate(None)
    except UserError:
        pytest.skip("needs the packaged weights")
    base = Base(path="smollm2", device="cpu")
    tokenizer, model = base.load_tokenizer(), base.load_model()
    assert base.versions()["base_sha256"] == weights.SHA256
    assert tokenizer.tokenize("drawer 12") == ["draw", "er", "Ġ", "1", "2"]
    chats = TemplateFormat(tokenizer)
    assert tokenizer.convert_ids_to_tokens(chats.end_of_turn) == "<|im_end|>"
    assert model.dtype == torch.float32 and all(p.requires_grad for p in model.parameters())
    model.save_pretrained(cache / "again")
