"""The short cut for plain replies gives what the long way gives, to the last field."""

from collections.abc import Sequence
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentexp.actions import Parsed, ParseSettings, parse
from agentexp.actions import settings as known
from agentexp.actions.claims import explicit_claims
from agentexp.actions.plain import _PLAIN, are_known, plain
from agentexp.actions.text import _fold, _undecorate, fold, normalise, undecorate
from agentexp.actions.turns import said
from agentexp.core import EnvCard

LISTED = ["go to desk 1", "go to desk 2", "take mug 1 from desk 1", "look", "open drawer 1", "2", "say the word", "Look"]
CARDS = [
    None,
    EnvCard("", ""),
    EnvCard("", "", complete_admissible=True, aliases=((r"put (.+) on (.+)", r"move \1 to \2"),), forbidden=r"^open"),
]
# Words that mean something to the parser, alone or as labels, and the characters that plain replies may hold.
LABELS = [
    "action",
    "Action",
    "command",
    "answer",
    "observation",
    "Observation",
    "env",
    "thought",
    "plan",
    "map",
    "user",
    "system",
]
WORDS = st.one_of(
    st.sampled_from([*LISTED, *ParseSettings().no_action, "finish mapping", "go to desk", "the", "put mug 1 on desk 1"]),
    st.builds(str.format, st.sampled_from(["{}", "{}:", "{}\n", "\n{}:", "\n{}\n", ". {}: ", "\n{} - ", "'{}'", '"{}": "']),
              st.sampled_from(LABELS)),
    st.sampled_from(
        [w for words in (known.ACTION_LABELS, known.OBSERVATION_LABELS, known.THOUGHT_LABELS) for w in words if w.isascii()]
    ),
    st.sampled_from(
        [*("and then", ", then ", "or", "I'm sorry", "I cannot", "as an AI", "here is", "my", "so the next", "is", "1.", "2)"),
         *("- ", "-", "--", " - ", "’", "“", "–", ". ", "?", "!", "/", "$", "%", "+", '"', "'", "act(", "act('look')", ")"),
         *("(1)", ";", ",", "tool_response", "1", "  ", "\n", ":", "=", "\n\n", "[", "<", "{", "`", "**", "&amp;", "\\n")]
    ),
)  # fmt: skip
TEXT = st.lists(WORDS, max_size=6).map(" ".join) | st.lists(WORDS, max_size=6).map("".join)
FORMS = st.sampled_from(
    [
        *("Thought: {}\nAction: {}", "Thought: {}\n\nAction:{}\n", "Action: {}{}", "Map: {}\nThought: x\nAction: {}"),
        *("<think> {} </think> <answer> {} </answer>", "<think>{}</think>\n<answer>{}</answer>\n\n", "<answer>{}{}</answer>"),
    ]
)
REPLIES = st.one_of(
    st.builds(str.format, FORMS, TEXT, TEXT),
    # Near misses: one thing that the long way would see.
    st.builds(str.format, FORMS, st.builds(" {} ".format, WORDS) | WORDS, st.sampled_from(LISTED)),
    st.builds(
        str.format, FORMS, st.sampled_from(["x", "", " I look. "]), WORDS | st.builds("{} {}".format, st.just("look"), WORDS)
    ),
    st.from_regex(_PLAIN, fullmatch=True),
)


def both_ways(reply: str, **given: object) -> tuple[Parsed, Parsed]:
    """The reply read with and without the short cut, and without anything remembered."""
    short = parse(reply, **given)
    with (
        patch("agentexp.actions.parser.are_known", lambda settings: False),
        patch("agentexp.actions.text._undecorate_kept", _undecorate),
        patch("agentexp.actions.text._fold_kept", _fold),
    ):
        return short, parse(reply, **given)


@settings(max_examples=1500, deadline=None)
@given(REPLIES, st.booleans(), st.booleans())
def test_the_stages_that_are_skipped_find_the_same(reply: str, has_action: bool, whole: bool) -> None:
    short = plain(reply)
    if short is not None:
        patterns, text = ParseSettings().patterns(), normalise(reply)
        assert (text.norm, list(text.index)) == (reply, list(range(len(reply) + 1)))
        part = said(text.norm, patterns, lambda before: has_action, whole=whole)
        assert short == (part, explicit_claims(part.visible, patterns))


@settings(max_examples=1000, deadline=None)
@given(REPLIES, st.sampled_from([LISTED, None]), st.sampled_from(CARDS), st.sampled_from(["stop", "length"]), st.booleans())
def test_both_ways_give_the_same(
    reply: str, admissible: Sequence[str] | None, card: EnvCard | None, finish_reason: str, stop: bool
) -> None:
    short, long = both_ways(
        reply,
        admissible=admissible,
        card=card,
        finish_reason=finish_reason,
        stop_word="finish mapping" if stop else "",
        settings=ParseSettings(fill_number=stop),
    )
    assert short == long


@pytest.mark.parametrize(
    "reply",
    [
        "Thought: I'm here, so I'll look.\nAction: look",
        "Action: take mug 1 from desk 1\n",
        "Map: no change\nThought: It’s on the desk.\nAction: go to desk 1",
        "<think> It is 5:30.\nA desk. </think> <answer> go to desk 1 </answer>",
        "<answer>look</answer>",
    ],
)
def test_the_forms_of_our_prompts_are_plain(reply: str) -> None:
    assert plain(reply) is not None
    short, long = both_ways(reply, admissible=LISTED, card=CARDS[2])
    assert short == long and short.status == "ok"


@pytest.mark.parametrize(
    "reply",
    [
        "Thought: x\nAction: look\nAction: look",
        "Thought: x\nAction: look\nObservation: y",
        "Thought: the action: look\nAction: look",
        "Thought: x\nAction: **look**",
        "Action: {}",
        "<think>[/INST]</think><answer>look</answer>",
        "look",
        "",
    ],
)
def test_everything_else_is_not(reply: str) -> None:
    assert plain(reply) is None


def test_settings_with_other_words_go_the_long_way() -> None:
    assert are_known(ParseSettings(grounding=False, no_action=["x"], several=""))
    assert not are_known(ParseSettings(observation_labels=["thought"]))
    other = ParseSettings(action_labels=["move"])
    assert not are_known(other)
    assert parse("Thought: x\nAction: look", settings=other).action is None


@settings(max_examples=500, deadline=None)
@given(TEXT | st.text(max_size=20) | st.from_regex(r"[a-z0-9 /.'-]{0,20}", fullmatch=True))
def test_what_is_remembered_is_what_is_computed(text: str) -> None:
    assert (fold(text), undecorate(text)) == (_fold(text), _undecorate(text))
    assert (fold(text), undecorate(text)) == (_fold(text), _undecorate(text))


def test_a_listed_command_as_written_needs_no_index() -> None:
    with patch("agentexp.actions.grounding.without_articles", side_effect=AssertionError("the whole list was folded")):
        assert parse("Thought: x\nAction: look", admissible=LISTED, card=CARDS[2]).action == "look"
