"""The schema of a component is its constructor's signature."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentexp.config import Overrides, build, check_root, check_value, fingerprint, parse_shard, split_env
from agentexp.errors import UserError


class Inner:
    def __init__(self, steps: int = 3) -> None:
        self.steps = steps


class Part:
    def __init__(
        self,
        name: str,
        mode: Literal["a", "b"] = "a",
        rate: float = 0.5,
        limit: int | None = None,
        tags: tuple[str, ...] = (),
        inner: Inner | None = None,
        extra: dict[str, Any] | None = None,
    ) -> None:
        self.name, self.mode, self.rate, self.limit, self.tags = name, mode, rate, limit, tags
        self.inner, self.extra = inner, extra


PART = f"{__name__}.Part"
INNER = f"{__name__}.Inner"


def make(**values: Any) -> Part:
    part = build({"_target_": PART, **values}, "part", Overrides())
    assert isinstance(part, Part)
    return part


def test_values_reach_the_constructor() -> None:
    part = make(name="x", mode="b", rate=1, limit=4, extra={"k": [1, 2]}, inner={"_target_": INNER, "steps": 7})
    assert (part.name, part.mode, part.rate, part.limit, part.extra) == ("x", "b", 1, 4, {"k": [1, 2]})
    assert isinstance(part.inner, Inner)
    assert part.inner.steps == 7


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"name": "x", "lmit": 3}, ["part.lmit", "Did you mean limit?", "Valid keys"]),
        ({"name": "x", "limit": "many"}, ["part.limit=many"]),
        ({"name": "x", "limit": 2.5}, ["part.limit=2.5"]),
        ({"name": "x", "limit": True}, ["part.limit=true"]),
        ({"name": "x", "mode": "c"}, ["part.mode=c", "'a' or 'b'"]),
        ({"name": 3}, ["part.name=3", "text"]),
        ({"name": "???"}, ["part.name has no value"]),
        ({}, ["part.name has no value"]),
        ({"name": "x", "inner": {"_target_": INNER, "stps": 1}}, ["part.inner.stps", "steps"]),
        ({"name": "x", "_target_": "nowhere.Thing"}, ["nowhere.Thing", "cannot be imported"]),
    ],
)
def test_wrong_settings_are_refused_in_a_sentence(values: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(UserError) as error:
        build({"_target_": PART, **values}, "part", Overrides())
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize("typed", ["1e5", "007", "true", "3", "1_000", "nan"])
def test_text_settings_keep_the_text_that_was_typed(typed: str) -> None:
    from hydra.core.override_parser.overrides_parser import OverridesParser

    line = f"part.name={typed}"
    parsed = OverridesParser.create().parse_override(line).value()
    assert check_value(parsed, str, "part.name", Overrides.of([line])) == typed


@given(st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.booleans(), st.none()))
def test_only_text_is_text(value: Any) -> None:
    with pytest.raises(UserError):
        check_value(value, str, "x", Overrides())


ROOT = {
    "command": "eval",
    "output_root": "outputs",
    "seed": 0,
    "repeats": 1,
    "concurrency": None,
    "workers": None,
    "max_steps": None,
    "resume": "refuse",
    "progress": "auto",
    "limits": {"attempts": 2},
    "budget": {"mapping": 10, "acting": 50},
    **{key: {} for key in ("paradigm", "env", "model", "parsing", "logger")},
}


def test_root_settings() -> None:
    settings = check_root({**ROOT, "env": {}, "roles": {}}, Overrides())
    assert settings.budget.acting == 50
    assert settings.limits.tokens is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"max_stpes": 3}, ["max_stpes", "max_steps"]),
        ({"seed": "abc"}, ["seed=abc", "whole number"]),
        ({"limits": {"atempts": 2}}, ["limits.atempts", "attempts"]),
        ({"resume": "maybe"}, ["resume=maybe"]),
        ({"repeats": 0}, ["repeats"]),
        ({"budget": {"mapping": 10, "acting": 0}}, ["budget.acting"]),
        ({"budget": {"mapping": 10}}, ["budget.acting"]),
        ({"concurrency": -3}, ["concurrency", "greater than 0, or null", "-3"]),
        ({"workers": 0}, ["workers", "greater than 0"]),
        ({"limits": {"attempts": 0}}, ["limits.attempts", "greater than 0, not 0"]),
        ({"limits": {"seconds": -1.0}}, ["limits.seconds", "greater than 0, or null"]),
    ],
)
def test_wrong_root_settings(change: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(UserError) as error:
        check_root({**ROOT, **change}, Overrides())
    for word in words:
        assert word in str(error.value)


def test_env_keys_of_the_runner_do_not_reach_the_world() -> None:
    settings, spec = split_env({"_target_": "a.B", "split": "test", "limit": 3, "data": None}, Overrides())
    assert (settings.split, settings.limit) == ("test", 3)
    assert spec == {"_target_": "a.B", "data": None}
    with pytest.raises(UserError, match=r"env\.limit"):
        split_env({"split": "test", "limit": 0}, Overrides())


def test_fingerprint_ignores_key_order() -> None:
    assert fingerprint({"a": 1, "b": [2]}) == fingerprint({"b": [2], "a": 1})
    assert fingerprint({"a": 1}) != fingerprint({"a": 2})


def test_shards_count_from_one() -> None:
    assert parse_shard(None) is None
    assert [parse_shard(f"{i}/3") for i in (1, 2, 3)] == [(0, 3), (1, 3), (2, 3)]


@pytest.mark.parametrize("text", ["0/3", "4/3", "1", "1/0", "-1/3", "1/3/2", "a/b", ""])
def test_impossible_shards_are_refused(text: str) -> None:
    with pytest.raises(UserError, match="shard=i/n"):
        parse_shard(text)
