"""What scripted agents take from maps and rules that anybody may have written."""

from __future__ import annotations

import pytest

from agentexp.core import CognitiveMap, Step
from agentexp.envs.alfworld.card import PUT
from agentexp.envs.alfworld.facts import HouseFacts
from agentexp.envs.alfworld.told import Known, Remembered, Rules


def house() -> HouseFacts:
    tracker = HouseFacts()
    tracker.observe(None, Step("You are in the middle of a room. Looking quickly around you, you see a desk 1, and a safe 1."))
    return tracker


def test_odd_map_entries_are_skipped() -> None:
    known = Known(
        CognitiveMap(
            spatial=[
                {"thing": "CD 1", "relation": "in", "place": "Safe 1"},
                {"thing": "desk 1", "relation": "contains", "place": "cd 2"},
                {"thing": "cd 3", "relation": "in", "place": "attic 1"},
                {"thing": None, "relation": "in", "place": 4},
                {"relation": "is"},
            ],
            absent=[{"place": "desk 1", "what": "mug"}, {}],
            unknown=["safe 1"],
        )
    )
    assert known.where("cd", house()) == [("cd 1", "safe 1"), ("cd 2", "desk 1")]
    assert known.was_seen("desk 1") and not known.was_seen("safe 1")


def test_what_the_agent_sees_overrules_the_map() -> None:
    known = Known(CognitiveMap(spatial=[{"thing": "cd 1", "relation": "on", "place": "desk 1"}]))
    tracker = house()
    tracker.observe("go to desk 1", Step("You arrive at desk 1. On the desk 1, you see nothing."))
    assert known.where("cd", tracker) == []


def test_a_map_overrules_what_is_remembered() -> None:
    by_heart = [("cd 1", "desk 1"), ("cd 2", "safe 1"), ("mug 1", "desk 1")]
    assert Remembered(None, by_heart).where("cd", house()) == by_heart[:2]
    known = Remembered(CognitiveMap(spatial=[{"thing": "mug 1", "relation": "on", "place": "desk 1"}]), by_heart)
    assert known.where("cd", house()) == [("cd 2", "safe 1")], "the map has seen the desk: no cd there"
    elsewhere = Remembered(CognitiveMap(spatial=[{"thing": "cd 2", "relation": "on", "place": "desk 1"}]), by_heart)
    assert elsewhere.where("cd", house()) == [("cd 2", "desk 1")]
    assert Remembered(None, by_heart).was_seen("desk 1") is False, "memory is no reason to search elsewhere first"


@pytest.mark.parametrize(
    ("k_g", "put", "closed"),
    [
        (None, "old", False),
        ({}, "old", False),
        ({"action_syntax": ["Use move {thing} to {place}; put ... in/on is refused"]}, "new", False),
        ({"action_syntax": ["put {thing} in/on {place}"]}, "old", False),
        ({"interaction_rules": ["You can heat things without opening the microwave."]}, "old", True),
        ({"interaction_rules": [{"action": "heat", "requires": ["carrying it"], "effect": "hot"}]}, "old", True),
        ({"interaction_rules": [{"action": "heat", "requires": ["open place"]}, 3, None]}, "old", False),
    ],
)
def test_rules_answer_two_questions(k_g: object, put: str, closed: bool) -> None:
    rules = Rules({"k_g": k_g})
    assert rules.put_forms[0] == PUT[put] and rules.treats_closed is closed
