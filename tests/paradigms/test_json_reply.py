"""Reading JSON out of replies: what is mended, what is refused, and that whole JSON survives any wrapping."""

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentexp.actions import ParseSettings
from agentexp.core import Completion
from agentexp.paradigms.json_reply import BadReply, ask_json, read_json
from agentexp.rollout import Chat

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=5), VALUES, min_size=1, max_size=4))
def test_whole_json_is_found_in_prose_and_fences(value: dict[str, Any]) -> None:
    text = json.dumps(value, ensure_ascii=False)
    fenced = f"Here it is:\n```json\n{text}\n```\nAs asked, {{sic}}."
    # the prompt of a thinking model may hold the open tag
    for reply in (text, fenced, f"<think>{{no}}</think>{text}", f'A draft: {{"a": "{"x" * 200}"}}\n</think>{text}'):
        assert read_json(reply) == (value, False)


@given(st.lists(st.fixed_dictionaries({"thing": st.text("ab 1", max_size=4)}), max_size=4), st.data())
def test_a_cut_reply_keeps_a_prefix_of_its_whole_items(items: list[dict[str, str]], data: st.DataObject) -> None:
    text = json.dumps({"spatial": items})
    cut = data.draw(st.integers(0, len(text) - 1))
    try:
        value, mended = read_json(text[:cut])
    except BadReply:
        return
    assert mended and value.get("spatial", []) == items[: len(value.get("spatial", []))]


@given(st.text(max_size=60))
def test_any_text_gives_json_or_a_bad_reply(text: str) -> None:
    try:
        read_json(text)
    except BadReply as problem:
        assert str(problem).endswith(".")


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ('{"a": [1, 2,],}', {"a": [1, 2]}),
        ("{'a': True, 'b': None}", {"a": True, "b": None}),
        ("{'a': true, 'b': null}", {"a": True, "b": None}),
        ('{"a": ["line\nbreak"]}', {"a": ["line\nbreak"]}),
        ('{"a": [{"b": 1}, {"b": 2}, {"b', {"a": [{"b": 1}, {"b": 2}]}),
        ('{"a": ["x", "y", "z', {"a": ["x", "y"]}),
        ('{"a": [], "b": [{"c": 1}], "d', {"a": [], "b": [{"c": 1}]}),
    ],
)
def test_mended(reply: str, expected: dict[str, Any]) -> None:
    assert read_json(reply) == (expected, True)


@pytest.mark.parametrize("reply", ["", "go to desk 1", "[1, 2]", '{"a": }', '{"a"', "{a: b}", "{]}"])
def test_refused(reply: str) -> None:
    with pytest.raises(BadReply):
        read_json(reply)


def check(value: dict[str, Any]) -> tuple[int, bool]:
    if "n" not in value:
        raise BadReply('it needs the key "n".')
    return value["n"], False


@pytest.mark.parametrize(
    ("replies", "result"),
    [(['{"n": 1}'], (1, "llm")), (['{"n": 1,}'], (1, "repaired")), (["what?", '{"n": 2}'], (2, "repaired"))],
)
def test_one_retry_with_the_problem_shown(replies: list[str], result: tuple[int, str]) -> None:
    chat, left = Chat("c").user("give n"), list(replies)

    async def ask(chat: Chat) -> Completion:
        return Completion(left.pop(0))

    assert asyncio.run(ask_json(ask, chat, check, ParseSettings())) == result
    assert len(chat.messages) == 2 * len(replies)
    if len(replies) > 1:
        assert "it contains no JSON object." in chat.messages[2].content


def test_two_bad_replies_are_enough() -> None:
    left = ["{}", '{"m": 1}', '{"n": 1}']

    async def ask(chat: Chat) -> Completion:
        return Completion(left.pop(0))

    with pytest.raises(BadReply, match='needs the key "n"'):
        asyncio.run(ask_json(ask, Chat("c").user("give n"), check, ParseSettings()))
    assert left == ['{"n": 1}']


def test_the_tags_of_the_run_are_what_is_left_out() -> None:
    reply = '[[hm]] maybe {"n": 1, "more": [1, 2, 3]} [[/hm]] {"n": 2}'
    parsing = ParseSettings(think_tags=[["[[hm]]", "[[/hm]]"]])
    assert read_json(reply, parsing) == ({"n": 2}, False)

    async def ask(chat: Chat) -> Completion:
        return Completion(reply)

    chat = Chat("c").user("give n")
    assert asyncio.run(ask_json(ask, chat, lambda value: (value["n"], False), parsing)) == (2, "llm")
