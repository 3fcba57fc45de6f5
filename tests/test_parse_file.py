"""`agentexp parse`: the published samples and the errors of the file format."""

import json
import os
from pathlib import Path

import pytest

from agentexp.errors import UserError
from agentexp.parse_file import parse_lines

SHARED = Path(os.environ.get("AGENTEXP_SHARED", Path(__file__).resolve().parents[1].parent / "shared"))
SAMPLES = SHARED / "cases" / "action_parsing.jsonl"


def read(record):
    return next(parse_lines([json.dumps(record)]))


@pytest.mark.skipif(not SAMPLES.is_file(), reason="the case collection is not beside the checkout")
def test_every_collected_sample_gives_the_expected_result():
    lines = SAMPLES.read_text(encoding="utf-8").splitlines()
    results = list(parse_lines(lines))
    assert len(results) == len(lines) == 50
    for line, result in zip(lines, results, strict=True):
        sample = json.loads(line)
        assert result["id"] == sample["id"]
        allowed = sample["expect"].get("one_of", [sample["expect"]])
        assert any(
            result == {"id": sample["id"], "action": e["action"], "status": "ok"}
            if "action" in e
            else (result["action"], result["status"]) == (None, e["status"])
            for e in allowed
        ), (sample, result)


def test_defaults_blank_lines_and_byte_order_mark():
    lines = ["\ufeff" + json.dumps({"id": 1, "content": "Action: look"}), "", "  \n", json.dumps({"id": 2, "content": None})]
    assert list(parse_lines(lines)) == [
        {"id": 1, "action": "look", "status": "ok"},
        {"id": 2, "action": None, "status": "invalid"},
    ]


def test_both_wordings_of_the_put_command():
    new, old = ["move mug 1 to shelf 1"], ["put mug 1 in/on shelf 1"]
    for content in ("put mug 1 in/on shelf 1", "Put the mug 1 on the shelf 1.", "move mug 1 to shelf 1"):
        assert read({"content": content, "admissible": new, "env": "alfworld"})["action"] == new[0]
        assert read({"content": content, "admissible": old, "env": "alf"})["action"] == old[0]
    assert read({"content": "put mug 1 in/on shelf 1", "admissible": new, "env": "other"})["status"] == "invalid"


def test_scienceworlds_list_is_not_the_whole_truth():
    record = {"content": "Action: focus on orange", "admissible": ["look around"], "env": "sci"}
    assert read(record)["action"] == "focus on orange"


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("{", "Line 2 is not valid JSON"),
        ("[1]", "Line 2 is a JSON list"),
        ('{"id": 1}', 'Line 2 has no "content"'),
        ('{"content": 3}', 'Line 2: "content" must be text or null, not int'),
        ('{"content": "", "admissible": "look"}', 'Line 2: "admissible" must be a list'),
        ('{"content": "", "admissible": [1]}', 'Line 2: "admissible" must be a list'),
        ('{"content": "", "finish_reason": 1}', 'Line 2: "finish_reason" must be text'),
    ],
)
def test_malformed_lines_are_named(line, names):
    results = parse_lines(['{"id": 0, "content": "look"}', line])
    assert next(results)["action"] == "look"
    with pytest.raises(UserError, match=names.replace("(", r"\(")):
        next(results)
