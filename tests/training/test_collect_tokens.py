"""Lengths: exact with a tokenizer, an estimate without one."""

import builtins
import sys
from typing import Any

import pytest

from agentexp.errors import MissingDependency, UserError
from agentexp.training.collect import tokens
from agentexp.training.collect.tokens import Estimate, counter

TURNS = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "hello"},
    {"role": "assistant", "content": "Thought: x\nAction: go"},
]


def test_exact_lengths_are_those_of_training() -> None:
    pytest.importorskip("torch", reason="the tiny model is made with torch")
    from agentexp.core import Message
    from agentexp.training.base import Base
    from agentexp.training.chat import TemplateFormat

    found = counter("tiny")
    row = TemplateFormat(Base(path="tiny").load_tokenizer()).supervised([Message(**turn) for turn in TURNS])  # type: ignore[arg-type]
    assert found.exact and found.count(TURNS) == (len(row.ids), row.n_trained)
    with pytest.raises(UserError, match="role tool"):
        found.count([{"role": "tool", "content": ""}])


def test_the_packaged_model_is_estimated_where_it_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(path: str) -> Any:
        raise MissingDependency(f"{path} needs torch.")

    monkeypatch.setattr(tokens, "Tokenized", missing)
    assert not counter("smollm2").exact
    with pytest.raises(MissingDependency, match="or take --tokenizer characters"):
        counter("some/model")


def test_without_torch_the_option_and_the_way_around_it_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingDependency, match=r"^--tokenizer=nope/x needs torch .*\n\(or take --tokenizer characters"):
        counter("nope/x")
    with pytest.raises(UserError, match=r"^--tokenizer=nope does not exist"):
        counter("nope")


def test_an_estimate_needs_no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def light(name: str, *rest: Any) -> Any:
        assert name.partition(".")[0] not in ("torch", "transformers"), name
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", light)
    length = counter("characters").count(TURNS)
    assert length == Estimate().count(TURNS) and 0 < length.trained < length.tokens
