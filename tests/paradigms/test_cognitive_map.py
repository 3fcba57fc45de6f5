"""Reading a model's map strictly, and its text form."""

import json
import os
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentexp.core import CognitiveMap
from agentexp.paradigms.json_reply import BadReply
from agentexp.paradigms.map.cognitive_map import CAPS, RELATIONS, dropped, map_texts, read_map, to_record

NAME = st.text("abc 12", min_size=1, max_size=6).map(str.strip).filter(bool)
SPATIAL = st.fixed_dictionaries({"thing": NAME, "relation": st.sampled_from(RELATIONS), "place": NAME})
ABSENT = st.fixed_dictionaries({"place": NAME, "what": NAME | st.just("anything")})
AFFORDANCE = st.fixed_dictionaries(
    {"action": NAME, "target": NAME, "works": st.booleans(), "effect": NAME, "requires": st.none() | NAME}
)
MAPS = st.fixed_dictionaries(
    {
        "spatial": st.lists(SPATIAL, max_size=5),
        "absent": st.lists(ABSENT, max_size=3),
        "affordances": st.lists(AFFORDANCE, max_size=4),
        "task_notes": st.lists(NAME, max_size=3),
        "unknown": st.lists(NAME, max_size=3),
    }
)


def squeezed(value: Any) -> Any:
    return json.loads(
        json.dumps(value), object_hook=lambda d: {k: " ".join(v.split()) if isinstance(v, str) else v for k, v in d.items()}
    )


@given(MAPS)
def test_a_right_map_is_read_without_change(value: dict[str, Any]) -> None:
    value = squeezed(value)
    value["task_notes"], value["unknown"] = ([" ".join(t.split()) for t in value[key]] for key in ("task_notes", "unknown"))
    read, mended = read_map(value)
    unique = {key: [e for i, e in enumerate(entries) if e not in entries[:i]] for key, entries in value.items()}
    assert to_record(read) == unique and not mended
    assert read_map(to_record(read)) == (read, False)


@given(MAPS)
def test_nothing_of_the_map_is_lost_in_its_text(value: dict[str, Any]) -> None:
    read, _ = read_map(value)
    text = "\n".join(map_texts(read).values())
    for entry in [*read.spatial, *read.absent, *read.affordances]:
        assert all(
            str(part) in text
            for key, part in entry.items()
            if key in ("thing", "place", "action", "target", "requires") and part
        )
    assert all(sentence in text for sentence in [*read.task_notes, *read.unknown])


def test_caps_cut_from_the_end() -> None:
    many: dict[str, Any] = {
        "spatial": [{"thing": f"t {i}", "relation": "in", "place": "p"} for i in range(99)],
        "absent": [{"place": f"p {i}", "what": "anything"} for i in range(99)],
        "affordances": [{"action": "a", "target": f"t {i}", "works": True, "effect": "", "requires": None} for i in range(99)],
        "task_notes": [f"n {i}" for i in range(99)],
        "unknown": [f"u {i}" for i in range(99)],
    }
    read, _ = read_map(many)
    record = to_record(read)
    assert {key: len(record[key]) for key in CAPS} == {
        "spatial": 60,
        "absent": 30,
        "affordances": 40,
        "task_notes": 10,
        "unknown": 20,
    }
    assert all(record[key] == many[key][: CAPS[key]] for key in CAPS)


def test_single_bad_entries_are_left_out_and_that_is_said() -> None:
    good = {"thing": "mug 1", "relation": "on", "place": "desk 1"}
    read, mended = read_map({"spatial": [good, {"thing": "mug 2"}, good], "absent": [], "unknown": ["shelf 1"]})
    assert read == CognitiveMap(spatial=[good], unknown=["shelf 1"]) and mended


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"places": []},
        {"spatial": "mug 1 on desk 1"},
        {"spatial": ["mug 1 on desk 1"]},
        {"affordances": [{"action": "open", "target": "x", "works": "yes"}]},
    ],
)
def test_what_is_no_map_is_refused(value: dict[str, Any]) -> None:
    with pytest.raises(BadReply):
        read_map(value)


@given(MAPS)
def test_ablations_split_the_map(value: dict[str, Any]) -> None:
    read, _ = read_map(value)
    without_spatial, without_affordances = dropped(read, "spatial"), dropped(read, "affordances")
    assert dropped(read, "none") == read
    assert without_spatial == CognitiveMap(affordances=read.affordances, task_notes=read.task_notes)
    assert without_affordances.affordances == [] and without_affordances.spatial == read.spatial


def test_things_are_grouped_by_place() -> None:
    spatial = [{"thing": t, "relation": "on", "place": "desk 1"} for t in ("mug 1", "pen 2")]
    spatial.append({"thing": "drawer 1", "relation": "is", "place": "closed"})
    spatial.append({"thing": "hall", "relation": "connects", "place": "kitchen"})
    lines = map_texts(CognitiveMap(spatial=spatial))["spatial"].split(os.linesep)
    assert lines == ["- on desk 1: mug 1, pen 2", "- closed: drawer 1", "- hall connects to kitchen"]
