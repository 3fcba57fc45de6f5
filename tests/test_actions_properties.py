"""Properties of the parser over generated replies."""

import time

from hypothesis import example, given, settings
from hypothesis import strategies as st

from agentexp.actions import ParseSettings, parse
from agentexp.actions.text import fold, normalise, undecorate
from agentexp.core import EnvCard

LISTED = [
    "go to desk 1",
    "go to desk 2",
    "go to bed 1",
    "take mug 1 from desk 1",
    "move mug 1 to shelf 1",
    "look",
    "open drawer 1",
]
CARD = EnvCard("", "", complete_admissible=True, aliases=((r"put (.+) on (.+)", r"move \1 to \2"),))
PIECES = st.sampled_from(
    [
        *(
            "<think>",
            "</think>",
            "<answer>",
            "</answer>",
            "Action:",
            "Thought:",
            "Observation:",
            "\n",
            " ",
            "**",
            "`",
            "```",
            "```json\n",
        ),
        *(
            '{"action": "',
            '"}',
            "\\boxed{",
            "}",
            "<|im_end|>",
            "<|im_start|>user\n",
            "Human:",
            "> ",
            "- ",
            "1. ",
            "动作：",
            "\r\n",
            "\\n",
        ),
        *(
            "&lt;",
            "&amp;",
            "\u200b",
            "\u00a0",
            "🙂",
            "”",
            "１",
            "[",
            "]",
            "(",
            ")",
            "go to desk",
            "go to desk 1",
            "look",
            "take mug 2",
            " and ",
        ),
        *(", then ", "put mug 1 on shelf 1", "I'm sorry", "finish mapping", "\ud800", "е\u0301", "\x00"),
    ]
)
REPLIES = st.one_of(st.text(max_size=200), st.lists(PIECES, max_size=25).map("".join))
FINISH = st.sampled_from(["stop", "length", "tool_calls", ""])


@settings(max_examples=400, deadline=None)
@given(REPLIES, FINISH, st.text(max_size=30), st.booleans(), st.booleans())
def test_never_raises_and_only_sends_what_is_admissible(content, finish_reason, reasoning, with_card, stop):
    parsed = parse(
        content,
        reasoning=reasoning,
        finish_reason=finish_reason,
        admissible=LISTED,
        card=CARD if with_card else None,
        stop_word="finish mapping" if stop else "",
    )
    assert parsed.status in ("ok", "invalid", "truncated", "ambiguous")
    assert (parsed.action is None) == (parsed.status != "ok")
    assert parsed.action is None or parsed.action in [*LISTED, *(["finish mapping"] if stop else [])]
    assert parsed.status != "truncated" or finish_reason == "length"
    assert content.startswith(parsed.kept)
    assert parsed.written in content


@settings(max_examples=300, deadline=None)
@given(REPLIES, FINISH)
def test_without_a_list_what_is_sent_is_one_short_line_of_the_reply(content, finish_reason):
    parsed = parse(content, finish_reason=finish_reason)
    if parsed.action is not None:
        assert parsed.action.strip() == parsed.action != ""
        assert "\n" not in parsed.action
        assert len(parsed.action) <= ParseSettings().max_action_chars
        parsed.action.encode()


@settings(max_examples=200, deadline=None)
@given(REPLIES)
def test_reading_what_is_kept_gives_the_same_action(content):
    first = parse(content, admissible=LISTED, card=CARD)
    again = parse(first.kept, admissible=LISTED, card=CARD)
    assert (again.action, again.status, again.kept) == (first.action, first.status, first.kept)


DRESSES = st.lists(
    st.sampled_from(
        ["**{}**", "`{}`", '"{}"', "“{}”", "{}.", " {} ", "- {}", "{} 🙂", "*{}*", "{}\u200b", "[{}]", "\\text{{{}}}", "「{}」"]
    ),
    max_size=4,
)
FORMS = st.sampled_from(
    [
        "Action: {}",
        "Thought: x.\nAction: {}",
        "<answer>{}</answer>",
        "<think>look</think>{}",
        "动作：{}",
        "**Action:** {}",
        "### Action\n{}",
        "{}",
    ]
)


@settings(max_examples=300, deadline=None)
@example(command="go to desk 1", dresses=["「{}」", "「{}」", '"{}"', '"{}"'], form="动作：{}")
@given(st.sampled_from(LISTED), DRESSES, FORMS)
def test_decoration_changes_nothing(command, dresses, form):
    text = command
    for dress in dresses:
        text = dress.format(text)
    assert parse(form.format(text), admissible=LISTED, card=CARD).action == command
    assert undecorate(undecorate(text)) == undecorate(text)
    assert fold(normalise(text).norm) == command


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=100))
def test_normalising_and_folding_are_idempotent(text):
    assert undecorate(undecorate(text)) == undecorate(text)
    norm = normalise(text)
    assert len(norm.index) == len(norm.norm) + 1
    assert list(norm.index) == sorted(norm.index)
    assert fold(fold(norm.norm)) == fold(norm.norm)


def test_long_and_hostile_replies_take_no_time():
    hostile = [
        "{" * 20000,
        " " * 20000 + "a",
        "<think><think></think>" * 900,
        "Action: x\n" * 1000,
        '"action": "' + "\\" * 9000,
        "> " * 9000,
    ]
    hostile += [
        "go and " * 3000,
        "<answer>" * 2000,
        "\\boxed{" * 2000,
        "Observation: x\n" * 1000,
        "思考：a" * 5000,
        "\n" * 20000 + "a",
    ]
    started = time.process_time()
    for text in hostile:
        parse(text, admissible=LISTED, card=CARD)
        parse(text)
    assert time.process_time() - started < 20
