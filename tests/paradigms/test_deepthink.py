"""The reader of a thinker's reply."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentexp.paradigms.deepthink import Thought, read_thought

CASES = {
    "plain": ("<deepthink>rule: A</deepthink>", "rule: A", "ok"),
    "lines": ("<deepthink>\n(1) a\n\ngo to desk 1\n</deepthink>", "(1) a\n\ngo to desk 1", "ok"),
    "case and spelling": ("<Deep_Think > A </DEEP-THINK>", "A", "ok"),
    "brackets": ("[deepthink]A[/deepthink]", "A", "ok"),
    "entities": ("&lt;deepthink&gt;A&lt;/deepthink&gt;", "A", "ok"),
    "attributes": ('<deepthink lang="en">A</deepthink>', "A", "ok"),
    "text around it": ("Let me see.\n<deepthink>A</deepthink>\nThat is all.", "A", "ok"),
    "reasoning before it": ("<think>the marks are <deepthink></think><deepthink>A</deepthink>", "A", "ok"),
    "inside the reasoning": ("<think>hm <deepthink>A</deepthink></think>", "A", "ok"),
    "never closed": ("<deepthink>A", "A", "ok"),
    "opened by the template": ("A\n</deepthink>", "A", "ok"),
    "the form, repeated": ("<deepthink> ... </deepthink>\n<deepthink>A</deepthink>", "A", "ok"),
    "two thoughts": ("<deepthink>A</deepthink><deepthink>B</deepthink>", "B", "ok"),
    "opened twice": ("<deepthink>A\n<deepthink>B</deepthink>", "B", "ok"),
    "mentioned afterwards": ("<deepthink>A</deepthink> I used <deepthink> as asked.", "A", "ok"),
    "chat template": ("<deepthink>A<|im_end|>", "A", "ok"),
    "names in angles": ("<deepthink>take <mug 1> out</deepthink>", "take <mug 1> out", "ok"),
    "no mark": ("The drawer is full.", "The drawer is full.", "untagged"),
    "reasoning and no mark": ("<think>x</think> A", "A", "untagged"),
    "nothing": ("", "", "unreadable"),
    "null": (None, "", "unreadable"),
    "empty marks": ("<deepthink> </deepthink>", "", "unreadable"),
    "dots": ("...", "", "unreadable"),
    "reasoning alone": ("<think>I never came to an end", "", "unreadable"),
}


@pytest.mark.parametrize("name", CASES)
def test_cases(name: str) -> None:
    reply, text, status = CASES[name]
    assert read_thought(reply) == Thought(text, status)  # type: ignore[arg-type]


def test_what_the_token_limit_cut_says_so() -> None:
    assert read_thought("<deepthink>A b", "length") == Thought("A b", "cut")
    assert read_thought("A b", "length") == Thought("A b", "cut")
    assert read_thought("<deepthink>A</deepthink> and", "length") == Thought("A", "ok")
    assert read_thought("<deepthink>", "length") == Thought("", "unreadable")


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    for reply in (text, f"<deepthink>{text}", f"<deepthink>{text}</deepthink>{text}"):
        thought = read_thought(reply)
        assert bool(thought.text) == (thought.status != "unreadable")
