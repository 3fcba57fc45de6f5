from typing import Any

import pytest

from agentexp.envs.check import Finding, check_env
from agentexp.envs.toy import ToyRooms

HERE = f"{__name__.rpartition('.')[0]}.check_worlds".lstrip(".")


def problems(how: str, **kwargs: Any) -> dict[str, Finding]:
    found = check_env({"_target_": f"{HERE}.Wrong", "how": how, **kwargs}, n_tasks=1, steps=8, seed=1)
    return {finding.name: finding for finding in found if finding.level != "ok"}


def test_a_good_world_passes() -> None:
    for found in (check_env({"_target_": "agentexp.envs.toy.ToyRooms"}), check_env(ToyRooms())):
        assert [str(f) for f in found if f.level != "ok"] == []
        assert len(found) > 40
        assert len({f.name for f in found}) == len(found)
    assert problems("") == {}


@pytest.mark.parametrize(
    ("how", "name", "level"),
    [
        ("twice", "UniqueIds", "fail"),
        ("shared", "DisjointSplits", "fail"),
        ("drawn order", "FrozenOrder", "fail"),
        ("hash order", "SameTasksElsewhere", "fail"),
        ("path", "NoPaths", "warn"),
        ("no json", "JsonSpec", "fail"),
        ("wrong split", "TaskFields", "fail"),
        ("any split", "UnknownSplit", "fail"),
        ("no goal", "Goal", "fail"),
        ("goal leak", "GoalApart", "fail"),
        ("draws", "SecondReset", "fail"),
        ("hash", "ReplayElsewhere", "fail"),
        ("state stays", "Replay", "fail"),
        ("prints", "Quiet", "warn"),
        ("brittle", "OddTexts", "fail"),
        ("dies", "OddTexts", "fail"),
        ("no error", "ErrorFlag", "fail"),
        ("percent", "ScoreRange", "fail"),
        ("int", "StepTypes", "fail"),
        ("list", "AdmissibleType", "fail"),
        ("info", "StepInfo", "fail"),
        ("goal again", "GoalOnce", "fail"),
        ("oracle moves", "OracleIsPure", "fail"),
        ("short oracle", "Oracle", "fail"),
        ("loses facts", "FactsStay", "fail"),
        ("silent", "FactsReturned", "fail"),
        ("raising", "Facts", "fail"),
        ("formless", "Map", "fail"),
        ("versions", "Versions", "fail"),
        ("close", "CloseTwice", "fail"),
    ],
)
def test_each_mistake_has_its_name(how: str, name: str, level: str) -> None:
    found = problems(how)
    assert found[name].level == level
    assert len(found[name].text) > 20


def test_declared_nondeterminism_is_a_warning() -> None:
    found = problems("draws", deterministic=False)
    assert found["SecondReset"].level == "warn"
    assert {finding.level for finding in found.values()} == {"warn"}


def test_what_cannot_be_checked_ends_early() -> None:
    (start,) = [f for f in check_env({"_target_": f"{HERE}.Wrong", "hwo": "x"}) if f.level != "ok"]
    assert (start.name, start.level) == ("Start", "fail") and "it knows: how, deterministic" in start.text
    found = check_env({"_target_": f"{HERE}.NotAnEnv"})
    assert found[-1].name == "Protocol" and "card, splits, tasks" in found[-1].text
