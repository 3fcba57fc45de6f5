"""Streamed replies: whole ones are read, broken ones never pass for a short reply."""

import json
from typing import Any

import pytest
from fake_server import FakeServer, events
from hypothesis import given
from hypothesis import strategies as st
from openai_helpers import Make, chat

from agentexp.errors import ContextOverflow, FatalError, ModelError
from agentexp.models.limiter import Transient
from agentexp.models.openai_events import join
from agentexp.models.openai_wire import read_completion


def stream(*chunks: Any) -> bytes:
    return b"".join(f"data: {c if isinstance(c, str) else json.dumps(c)}\n\n".encode() for c in chunks)


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"model": "m", "choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def test_a_stream_is_read_like_the_same_reply_in_one_piece(request_for: Make) -> None:
    script = [{"content": "Thought: höflich 🚪.\nAction: look", "reasoning": "one two"}, "null", "wrong_model", "no_usage"]
    plain = chat(FakeServer(script), *[request_for()] * 4)
    streamed = chat(FakeServer(script, always_stream=True), *[request_for()] * 4)
    for a, b in zip(plain, streamed, strict=True):
        b.seconds = a.seconds
        assert a == b


@pytest.mark.parametrize("kind", ["truncate", "drop", "stall", "invalid_json", "no_choice", "error_in_200"])
def test_a_stream_that_fails_is_asked_for_again(request_for: Make, kind: str) -> None:
    server = FakeServer([kind, {"content": "there"}], always_stream=True)
    (reply,) = chat(server, request_for(), request_timeout=1.0)
    assert reply.text == "there" and reply.retries == 1


@given(st.integers(min_value=0))
def test_no_part_of_a_stream_passes_for_the_whole(cut: int) -> None:
    choice = {"message": {"role": "assistant", "content": "a b c d"}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 3, "completion_tokens": 4}
    whole = b"".join(events({"id": "i", "created": 0, "model": "m", "choices": [choice], "usage": usage}))
    assert read_completion(join(whole), "m").text == "a b c d"
    try:
        reply = read_completion(join(whole[: cut % len(whole)]), "m")
    except Transient:
        return
    assert reply.text == "a b c d" and reply.finish_reason == "stop"


def test_the_format_of_events() -> None:
    data = stream(delta(content="a"), delta("stop", content="b")).replace(b"\n", b"\r\n")
    reply = read_completion(join(b": keep-alive\r\n\r\nevent: x\r\nid: 7\r\n" + data), "m")
    assert (reply.text, reply.finish_reason) == ("ab", "stop")  # without [DONE], but with a finish reason
    assert read_completion(join(stream(delta(content="a"), "[DONE]")), "m").finish_reason == "unknown"
    assert join(b'data: {"choices": [{"delta":\ndata: {"content": "x"}}]}\n\ndata: [DONE]\n\n')["choices"][0]["message"] == {
        "content": "x"
    }
    called = join(stream(delta(tool_calls=[{"index": 0}]), delta("tool_calls", tool_calls=[{"index": 0}, {"index": 1}])))
    assert read_completion(called, "m").info["tool_calls"] == 2
    for bad in (b"", b"data: 7\n\n", b"data: {\n\n", stream(delta(content="a"))):
        with pytest.raises(Transient):
            join(bad)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ({"message": "This model's maximum context length is 90 tokens.", "code": "context_length_exceeded"}, ContextOverflow),
        ({"message": "This model's maximum context length is 90 tokens.", "code": 400}, ContextOverflow),
        ({"message": "You exceeded your current quota", "code": "insufficient_quota"}, FatalError),
        ({"message": "Unknown parameter", "code": 400}, ModelError),
    ],
)
def test_an_error_inside_a_stream_means_what_it_says(
    request_for: Make, error: dict[str, Any], expected: type[Exception]
) -> None:
    server = FakeServer([{"raw": json.dumps({"error": error})}], always_stream=True)
    with pytest.raises(expected):
        chat(server, request_for())
    assert server.count == 1
