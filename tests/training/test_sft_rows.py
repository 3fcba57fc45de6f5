import pytest

from agentexp.core import Message
from agentexp.errors import UserError
from agentexp.training.core import Row
from agentexp.training.sft_data import Conversation
from agentexp.training.sft_rows import Counts, check, fit, prepare


class Words:
    """A chat format whose tokens are characters: "u..." untrained, "a...E" trained."""

    end_of_turn = ord("E")

    def supervised(self, messages):
        if messages[0].role == "assistant":
            raise UserError("begins with an assistant")
        row = Row([], [])
        for message in messages:
            text = message.content + ("E" if message.role == "assistant" else "")
            row.ids += map(ord, text)
            row.trained += [message.role == "assistant"] * len(text)
        return row


def talk(*contents, instance="i"):
    roles = ("user", "assistant")
    return Conversation([Message(roles[i % 2], content) for i, content in enumerate(contents)], instance)


def text(row):
    return "".join(map(chr, row.ids))


def test_a_row_that_fits_is_left_alone():
    made = prepare([talk("uu", "aa", "u", "aaa")], Words(), max_len=20)
    assert [text(row) for row in made.rows] == ["uuaaEuaaaE"]
    assert made.counts.sentences() == []


@pytest.mark.parametrize("max_len", range(5, 10))
def test_cutting_ends_with_an_end_of_turn(max_len):  # R06: never in the middle of a turn
    made = prepare([talk("uu", "aa", "u", "aaa")], Words(), max_len=max_len)
    assert [text(row) for row in made.rows] == ["uuaaE"]
    assert made.rows[0].trained == [False, False, True, True, True]
    assert (made.counts.cut, made.counts.lost_tokens) == (1, 4)
    assert "1 of 1 conversations are cut" in made.counts.sentences()[0]
    assert "4 tokens" in made.counts.sentences()[0]


def test_a_row_with_nothing_left_is_refused_with_a_count():  # R06
    made = prepare([talk("u" * 30, "a"), talk("u", "a"), talk("u")], Words(), max_len=10)
    assert [text(row) for row in made.rows] == ["uaE"]
    assert made.counts.nothing_to_train == 2
    refused = "2 of 3 conversations are refused: no assistant turn that fits into max_len."
    assert made.counts.sentences() == [refused, "Not trained: i, i."]


def test_long_rows_can_be_dropped_instead():
    made = prepare([talk("uu", "aa", "u", "aaa"), talk("u", "a")], Words(), max_len=9, too_long="drop")
    assert ([text(row) for row in made.rows], made.counts.too_long) == (["uaE"], 1)


def test_a_template_refusal_is_counted_with_its_reason():
    odd = Conversation([Message("assistant", "a")], "i")
    made = prepare([odd, talk("u", "a")], Words(), max_len=9)
    refused = "1 of 2 conversations are refused by the chat template: begins with an assistant"
    assert made.counts.sentences() == [refused, "Not trained: i."]


def test_an_empty_reply_is_refused_with_a_count_and_its_place():
    talks = [talk("u", "a"), talk("u", "", "u", "a", instance="e/train/7"), talk("u", " \n", instance="e/train/9")]
    made = prepare(talks, Words(), max_len=20)
    assert [text(row) for row in made.rows] == ["uaE"]
    assert made.counts.sentences() == [
        "2 of 3 conversations are refused: a reply of the assistant is empty (the first: e/train/7).",
        "Not trained: e/train/7, e/train/9.",
    ]


def test_of_many_refused_rows_ten_are_named():
    made = prepare([*(talk("u" * 9, "a", instance=f"e{i}") for i in range(12)), talk("u", "a")], Words(), max_len=5)
    assert made.counts.sentences()[-1] == f"Not trained: {', '.join(f'e{i}' for i in range(10))} and 2 more."
    assert made.counts.unused == [f"e{i}" for i in range(12)]


def test_what_no_tokenizer_can_help_is_refused_without_one():
    check([talk("u", ""), talk("u", "a")])
    for given in ([], [talk("u")], [talk("u", "")]):
        with pytest.raises(UserError, match="There is nothing to train on"):
            check(given)


@pytest.mark.parametrize("given", [[], [talk("u" * 30, "a")], [talk("u")]])
def test_nothing_to_train_on_is_refused(given):
    with pytest.raises(UserError, match="There is nothing to train on"):
        prepare(given, Words(), max_len=10)


def test_held_out_instances_depend_on_their_names_alone():
    mapped = [talk("u", f"a{i}", instance=f"env/train/{i % 40}") for i in range(120)]
    acted = [talk("uuu", "b", instance=f"env/train/{i}") for i in range(40)]
    parts = [prepare(given, Words(), max_len=20, held_out=0.3) for given in (mapped, acted)]
    apart = [{row.tags["instance"] for row in part.held_out} for part in parts]
    assert apart[0] == apart[1] and 5 < len(apart[0]) < 20
    assert not apart[0] & {row.tags["instance"] for row in parts[0].rows}
    assert len(parts[0].rows) + len(parts[0].held_out) == 120


def test_fit_counts_into_what_it_is_given():
    counts = Counts()
    assert fit(Row([1, 2], [False, False]), 10, "cut", counts) is None
    assert counts.nothing_to_train == 1
