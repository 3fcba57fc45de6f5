import json
from importlib.util import find_spec

import pytest

from agentexp.errors import UserError
from agentexp.wise.knowledge import KnowledgeBase
from agentexp.wise.knowledge.base import HERE, RELATIONS
from agentexp.wise.knowledge.names import generic, singular

OLD, NEW = KnowledgeBase("1.11.2"), KnowledgeBase("1.16.5")
both = pytest.mark.parametrize("base", [OLD, NEW], ids=["1.11.2", "1.16.5"])


@both
@pytest.mark.parametrize(
    ("source", "relation", "target", "action"),
    [
        ("cow", "CAN_OBTAIN", "beef", "kill"),  # the paper's own examples, section 3.1.2
        ("cow", "CAN_OBTAIN", "leather", "kill"),
        ("tree", "CAN_OBTAIN", "logs", "mine"),
        ("pond", "CAN_OBTAIN", "water", "use"),
        ("water", "CAN_OBTAIN", "water_bucket", "use"),
        ("sheep", "CAN_OBTAIN", "wool", "use"),
        ("log", "CAN_CRAFT", "planks", "craft"),
        ("iron ore", "CAN_SMELT", "iron ingot", "smelt"),
        ("beef", "CAN_SMELT", "steak", "smelt"),
        ("oak_log", "CAN_SMELT", "charcoal", "smelt"),
        ("grass", "CAN_OBTAIN", "dirt", "mine"),
    ],
)
def test_known_facts(base: KnowledgeBase, source: str, relation: str, target: str, action: str) -> None:
    fact = base.fact(source, relation, target)
    assert fact is not None and fact.action == action


@both
@pytest.mark.parametrize(
    ("source", "relation", "target"),
    [
        ("cow", "CAN_OBTAIN", "wool"),
        ("cow", "CAN_CRAFT", "beef"),
        ("tree", "CAN_OBTAIN", "beef"),
        ("ufo", "CAN_OBTAIN", "beef"),
    ],
)
def test_what_the_game_does_not_know(base: KnowledgeBase, source: str, relation: str, target: str) -> None:
    assert not base.valid(source, relation, target)


@both
@pytest.mark.parametrize(
    ("said", "name", "kind"),
    [
        ("Trees", "log", "block"),
        ("oak_log", "log", "block"),
        ("minecraft:birch_log", "log", "block"),
        ("birch trees", "log", "block"),
        ("a pond", "water", "block"),
        ("cattle", "cow", "entity"),
        ("brown cow", "cow", "entity"),
        ("some chickens", "chicken", "entity"),
        ("cobblestne", "cobblestone", "block"),
        ("raw beef", "beef", "item"),
        ("desert", "desert", "environment"),
        ("Raining", "rain", "environment"),
    ],
)
def test_names_are_grounded(base: KnowledgeBase, said: str, name: str, kind: str) -> None:
    assert base.source(said) == name
    assert base.kind(name) == kind


@both
@pytest.mark.parametrize("said", ["skyscraper", "player", "", "!?", "sky"])
def test_other_names_are_not(base: KnowledgeBase, said: str) -> None:
    assert base.source(said) is None
    assert base.outcomes(said) == [] and base.sources(said) == []


def test_either_versions_names_are_understood() -> None:
    assert OLD.source("sugar cane") == OLD.source("reeds") == "reeds"
    assert NEW.source("sugar cane") == NEW.source("reeds") == "sugar_cane"


def test_the_threshold_decides_about_misspelt_names() -> None:
    assert KnowledgeBase(grounding=0.99).source("cobblestne") is None


@both
def test_names_are_their_own_names(base: KnowledgeBase) -> None:
    strange = [name for name in base.names() if base.source(name) not in (name, base.source(base.source(name) or ""))]
    assert strange == []


@both
def test_both_directions_say_the_same(base: KnowledgeBase) -> None:
    out = {fact for name in base.names() for fact in base.outcomes(name)}
    into = {fact for name in base.names() for fact in base.sources(name)}
    # "water" as an outcome means the bucket, so facts that make the block are found from their source only.
    assert {fact for fact in out if base.outcome(fact.target) == fact.target} - into == set()
    assert {fact.relation for fact in out} == set(RELATIONS)
    assert all(base.valid(*fact[:3]) for fact in out if base.outcome(fact.target) == fact.target)


@both
def test_counts_are_those_of_the_rows(base: KnowledgeBase) -> None:
    data = json.loads((HERE / f"{base.version}.json").read_text())
    for kind, table in data["rows"].items():
        rows = [(source, json.dumps(target)) for source, targets in table.items() for target in targets]
        assert len(set(rows)) == len(rows) == base.counts[kind]
    assert base.counts["total"] == sum(base.counts[kind] for kind in data["rows"])


@pytest.mark.skipif(find_spec("minecraft_data") is None, reason="needs the package minecraft-data")
def test_the_files_are_what_the_build_makes(capsys: pytest.CaptureFixture[str]) -> None:
    from agentexp.wise.knowledge.build import main

    main(["--check"])
    assert f"total {NEW.counts['total']:,}" in capsys.readouterr().out


def test_an_unknown_version_is_the_users_error() -> None:
    with pytest.raises(UserError, match=r"1\.11\.2, 1\.16\.5"):
        KnowledgeBase("1.7.10")


def test_generic_names() -> None:
    assert generic("dark_oak_wood") == "log" and generic("light_blue_wool") == "wool" and generic("iron_door") == "iron_door"
    assert generic("stripped_oak_log") == "stripped_log" and generic("log2") == "log"
    assert singular("bodies") == ["body", "bodie"] and singular("grass") == [] and singular("wolves") == ["wolf", "wolve"]
