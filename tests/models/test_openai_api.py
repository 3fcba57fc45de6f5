"""The model against the fake server: every way in which a real server fails."""

import asyncio
import time

import pytest
from fake_replies import CONTEXT_WORDINGS
from fake_server import FakeServer
from openai_helpers import Make, chat, free_port, model

from agentexp.core import Message, Sampling
from agentexp.errors import ContextOverflow, FatalError, ModelError

# -------------------------------------------------------------------------------------------------------------- the good case


def test_a_plain_reply(request_for: Make) -> None:
    server = FakeServer([{"content": "Action: look", "usage": {"prompt_tokens_details": {"cached_tokens": 2}}}])
    (reply,) = chat(server, request_for("one two"), price_in=1.0, price_out=10.0, price_cached=0.5)
    assert (reply.text, reply.reasoning, reply.finish_reason, reply.retries, reply.cached) == (
        "Action: look",
        "",
        "stop",
        0,
        False,
    )
    usage = reply.usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens, usage.calls) == (4, 2, 2, 1)
    assert usage.cost == pytest.approx((2 * 1.0 + 2 * 0.5 + 2 * 10) / 1e6)
    assert reply.info == {} and reply.seconds > 0


def test_the_request_on_the_wire(request_for: Make) -> None:
    messages = [Message("system", "Sei höflich."), Message("user", 'quote " and \n newline'), Message("assistant", "看 🚪")]
    sampling = Sampling(temperature=0.7, max_tokens=9, top_p=0.9, stop=("\n\n",), seed=11)
    server = FakeServer()
    chat(
        server,
        request_for(messages=messages, sampling=sampling),
        extra_body={"top_k": 20},
        max_tokens_field="max_completion_tokens",
    )
    assert server.requests[0]["body"] == {
        "model": "fake",
        "temperature": 0.7,
        "max_completion_tokens": 9,
        "top_p": 0.9,
        "stop": ["\n\n"],
        "seed": 11,
        "top_k": 20,
        "messages": [{"role": m.role, "content": m.content} for m in messages],
    }


def test_omitted_fields_are_not_sent(request_for: Make) -> None:
    server = FakeServer()
    chat(server, request_for(sampling=Sampling(temperature=1.0, seed=3)), omit=["temperature", "seed"])
    assert set(server.requests[0]["body"]) == {"model", "max_tokens", "messages"}


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_null_content_and_reasoning(request_for: Make, field: str) -> None:
    (reply,) = chat(FakeServer([{"do": "null", "reasoning_field": field}]), request_for())
    assert reply.text == "" and reply.finish_reason == "length" and reply.info["null_content"]
    assert reply.reasoning == "There are two desks. Action: go to desk 1 or"


def test_missing_usage_is_zero_and_flagged(request_for: Make) -> None:
    (reply,) = chat(FakeServer(["no_usage"]), request_for(), price_in=1.0, price_out=1.0)
    assert reply.usage.prompt_tokens == 0 and reply.usage.calls == 1 and reply.info == {"usage_missing": True}


def test_another_model_than_asked_for_is_recorded(request_for: Make) -> None:
    (reply,) = chat(FakeServer(["wrong_model"]), request_for())
    assert reply.info == {"served_model": "some-other-model"}


def test_a_very_long_reply(request_for: Make) -> None:
    (reply,) = chat(FakeServer(["long"]), request_for())
    assert len(reply.text.split()) == 20_000


def test_half_an_emoji_does_not_poison_the_next_request(request_for: Make) -> None:
    server = FakeServer([{"raw": '{"choices": [{"message": {"content": "hi \\ud83d"}, "finish_reason": "length"}]}'}])
    (reply,) = chat(server, request_for())
    assert reply.text.encode() == b"hi ?"


# ------------------------------------------------------------------------------------------------------- what is tried again


@pytest.mark.parametrize(
    "kind",
    ["rate_limit_bare", "server_error", "bad_gateway", "unavailable", "gateway_timeout", "error_in_200", "drop", "truncate",
     "invalid_json", "no_choice"],
)  # fmt: skip
def test_passing_failures_are_tried_again(request_for: Make, kind: str) -> None:
    server = FakeServer([kind, kind, {"content": "there"}])
    (reply,) = chat(server, request_for())
    assert reply.text == "there" and reply.retries == 2 and server.count == 3


@pytest.mark.parametrize("after", ["0.3", "header-ms"])
def test_retry_after_is_honoured(request_for: Make, after: str) -> None:
    headers = {"retry-after-ms": "300"} if after == "header-ms" else {}
    entry = {"do": "rate_limit", "retry_after": "" if headers else after, "headers": headers, "times": 2}
    started = time.monotonic()
    (reply,) = chat(FakeServer([entry]), request_for())
    assert reply.retries == 2 and time.monotonic() - started >= 0.6


def test_a_wait_longer_than_the_cap_ends_the_call_at_once(request_for: Make) -> None:
    started = time.monotonic()
    with pytest.raises(ModelError, match=r"total_timeout=60 s.*429"):
        chat(FakeServer([{"do": "rate_limit", "retry_after": "3600"}]), request_for())
    assert time.monotonic() - started < 60


def test_a_server_that_never_answers_costs_total_timeout_once(request_for: Make) -> None:
    server = FakeServer([{"do": "never", "every": 1}])
    started = time.monotonic()
    with pytest.raises(ModelError, match="request_timeout"):
        chat(server, request_for(), request_timeout=0.3, total_timeout=1.0)
    assert time.monotonic() - started < 60 and 1 <= server.count <= 4


def test_a_server_that_dies_and_comes_back(request_for: Make) -> None:
    (reply,) = chat(FakeServer([{"do": "die", "down": 0.4}, {"content": "back"}]), request_for())
    assert reply.text == "back" and reply.retries >= 1


def test_a_dead_server_names_itself(request_for: Make) -> None:
    async def run() -> None:
        m = model(f"http://127.0.0.1:{free_port()}/v1", max_retries=1)
        try:
            await m.chat(request_for())
        finally:
            await m.close()

    with pytest.raises(ModelError, match=r"the connection to http://127.0.0.1:\d+/v1 failed \(ConnectionRefused"):
        asyncio.run(run())


# --------------------------------------------------------------------------------------------------- what is not tried again


@pytest.mark.parametrize("kind", ["quota", "no_key", "forbidden", "no_model"])
def test_what_stops_the_whole_run(request_for: Make, kind: str) -> None:
    server = FakeServer([{"do": kind, "every": 1}])
    with pytest.raises(FatalError) as caught:
        chat(server, request_for())
    assert server.count == 1 and "\n" not in str(caught.value)


def test_a_wrong_request_is_not_repeated(request_for: Make) -> None:
    server = FakeServer([{"do": "bad_request", "every": 1}])
    with pytest.raises(ModelError, match="top_k"):
        chat(server, request_for())
    assert server.count == 1


@pytest.mark.parametrize("wording", sorted(CONTEXT_WORDINGS))
def test_full_contexts_in_every_wording(request_for: Make, wording: str) -> None:
    server = FakeServer(context_limit=80, wording=wording)
    with pytest.raises(ContextOverflow):
        chat(server, request_for("short"), request_for("long " * 100))
    assert server.count == 2


def grown(*words: int) -> list[list[Message]]:
    """The prompts of a conversation, to which so many words are added each time."""
    messages = [Message("user", "w " * n) for n in words]
    return [messages[: i + 1] for i in range(len(messages))]


def test_context_limit_of_a_server_that_says_nothing(request_for: Make) -> None:
    server = FakeServer()
    with pytest.raises(ContextOverflow, match=r"model.context_limit=100"):
        chat(server, *[request_for(messages=messages) for messages in grown(60, 1)], context_limit=100)
    assert server.count == 1, "the second prompt is known not to fit and is not sent"


def test_a_prompt_that_was_cut_silently_is_flagged(request_for: Make) -> None:
    server = FakeServer(["ok", {"usage": {"prompt_tokens": 10}}])
    _, second = chat(server, *[request_for(messages=messages) for messages in grown(60, 20)])
    assert second.info["prompt_shrank"] == [62, 10]


def test_a_conversation_that_begins_anew_or_was_shortened_may_be_shorter(request_for: Make) -> None:
    """A second attempt at an episode, and `limits.context=drop_oldest`, use the conversation's name again."""
    first, second, third = grown(20, 60, 1)
    left_out = [first[0], Message("user", "left out"), third[2]]
    replies = chat(
        FakeServer(), *[request_for(messages=m) for m in (first, second, first, second, left_out)], context_limit=150
    )
    assert [reply.info for reply in replies] == [{}] * 5
