import json

import pytest

from agentexp.errors import UserError
from agentexp.training.sft_data import Demo, Saved

TURNS = [{"role": "user", "content": "u"}, {"role": "assistant", "content": "a"}]
ENVS = ("toy", "textcraft", "toy")
ROWS = [{"messages": TURNS, "instance": f"e/train/{i}", "env": env} for i, env in enumerate(ENVS)]


def lines(path, rows=ROWS):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_json_lines(tmp_path):
    found = Saved(str(lines(tmp_path / "x.jsonl"))).conversations()
    assert [conversation.instance for conversation in found] == ["e/train/0", "e/train/1", "e/train/2"]
    assert [message.role for message in found[0].messages] == ["user", "assistant"]


def test_blank_lines_are_no_rows(tmp_path):
    file = lines(tmp_path / "x.jsonl")
    file.write_text(file.read_text().replace("\n", "\n\n") + " \n")
    assert len(Saved(str(file)).conversations()) == 3
    file.write_text("\n")
    with pytest.raises(UserError, match="holds no conversation"):
        Saved(str(file)).conversations()


def test_a_folder_of_an_export(tmp_path):
    lines(tmp_path / "messages.jsonl")
    (tmp_path / "other.jsonl").write_text("{}")
    assert len(Saved(str(tmp_path)).conversations()) == 3


def test_where_and_limit(tmp_path):
    path = str(lines(tmp_path / "x.jsonl"))
    assert [c.instance for c in Saved(path, where={"env": "toy"}).conversations()] == ["e/train/0", "e/train/2"]
    assert len(Saved(path, where={"env": ["toy", "textcraft"]}, limit=2).conversations()) == 2


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"where": {"env": "alfworld"}}, "holds no conversation with"),
        ({"where": {"envv": "toy"}}, "has no such column; it has env, instance, messages"),
    ],
)
def test_a_filter_that_leaves_nothing_is_refused(tmp_path, settings, message):
    with pytest.raises(UserError, match=message):
        Saved(str(lines(tmp_path / "x.jsonl")), **settings).conversations()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "holds no conversation"),
        ("no json\n", "line 1 is not JSON"),
        ("[]\n", "line 1 must be a JSON object"),
        ('{"conversations": []}\n', "agentexp export --format messages"),
        ('{"messages": "hi"}\n', r"row 0: messages must be a list of \{role, content\}, not text\."),
        ('{"messages": null}\n', "not null"),
        ('{"messages": [{"role": "tool", "content": "x"}]}\n', "row 0: every message needs a role"),
        ('{"messages": [{"role": "user", "content": null}]}\n', "a content that is text"),
    ],
)
def test_other_files_are_refused_in_a_sentence(tmp_path, content, message):
    path = tmp_path / "x.jsonl"
    path.write_text(content)
    with pytest.raises(UserError, match=message):
        Saved(str(path)).conversations()


def test_missing_and_ambiguous_places_are_refused(tmp_path):
    with pytest.raises(UserError, match="does not exist"):
        Saved(str(tmp_path / "none")).conversations()
    with pytest.raises(UserError, match="it has none"):
        Saved(str(tmp_path)).conversations()
    lines(tmp_path / "a.jsonl"), lines(tmp_path / "b.jsonl")
    with pytest.raises(UserError, match=r"several \(a.jsonl, b.jsonl\); name one"):
        Saved(str(tmp_path)).conversations()


def test_a_saved_data_set(tmp_path):
    datasets = pytest.importorskip("datasets", reason="needs datasets")
    rows = datasets.Dataset.from_list(ROWS)
    rows.save_to_disk(str(tmp_path / "flat"))
    datasets.DatasetDict({"train": rows, "dev": rows.select([0])}).save_to_disk(str(tmp_path / "split"))
    flat, split = Saved(str(tmp_path / "flat")), Saved(str(tmp_path / "split"))
    assert flat.conversations() == split.conversations() == Saved(str(lines(tmp_path / "x.jsonl"))).conversations()
    assert flat.versions() == Saved(str(tmp_path / "flat")).versions()


def test_the_version_is_the_content(tmp_path):
    before = Saved(str(lines(tmp_path / "x.jsonl"))).versions()
    assert Saved(str(lines(tmp_path / "y.jsonl"))).versions() == before
    assert Saved(str(lines(tmp_path / "y.jsonl", ROWS[:2]))).versions() != before


def test_demo_plays_the_expert_the_same_way_every_time():
    demo = Demo(episodes=3)
    found = demo.conversations()
    assert found == demo.conversations() and len(found) == 3
    assert all(c.messages[-1].role == "assistant" and c.messages[0].role == "system" for c in found)
    assert len({c.instance for c in found}) == 3
    assert Demo(episodes=3, seed=1).conversations() != found
