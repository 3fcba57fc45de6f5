"""Requests as bytes: conversations that grow are encoded piece by piece, with the same result."""

import json
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from agentexp.core import Message, Sampling
from agentexp.models import openai_wire as wire
from agentexp.models.limiter import Transient

MESSAGES = st.lists(st.builds(Message, st.sampled_from(["system", "user", "assistant"]), st.text(max_size=20)), max_size=6)
# (name, messages kept of the conversation so far, new messages): growing, cut back, rewritten, mixed up
MOVES = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 12), MESSAGES), max_size=12)
BODY = {"model": "mödel", "stop": ["\n"], "temperature": 0.0}


@given(MOVES, st.sampled_from([0, 40, 1 << 20]))
def test_the_same_bytes_as_encoding_everything(moves: list[tuple[str, int, list[Message]]], most_bytes: int) -> None:
    conversations = wire.Conversations(most_bytes)
    chats: dict[str, list[Message]] = {}
    for name, keep, new in moves:
        chats[name] = chats.get(name, [])[:keep] + new
        content = conversations.encode(BODY, chats[name], name)
        assert content == wire.encode(BODY, chats[name])
        assert json.loads(content)["messages"] == [m._asdict() for m in chats[name]]
        assert conversations._bytes == sum(len(text) for _, text in conversations._kept.values()) <= most_bytes


def test_tuples_and_ranking() -> None:
    conversations = wire.Conversations()
    start = (Message("user", "a"), Message("assistant", "b"), Message("user", "c"))
    assert conversations.encode(BODY, start, "x") == wire.encode(BODY, start)
    encoded: list[Any] = []
    with patch.object(wire, "to_json", side_effect=lambda value: encoded.append(value) or json.dumps(value).encode()):
        for reply in "defg":
            conversations.encode({}, [*start, Message("assistant", reply)], "x")
    # Per candidate the fields and the candidate; the end of the shared prompt once.
    assert len(encoded) == 4 * 2 + 1


def test_work_does_not_grow_with_the_conversation() -> None:
    conversations, messages = wire.Conversations(), [Message("system", "s")]
    with patch.object(wire, "to_json", wraps=wire.to_json) as encoder:
        counts = []
        for turn in range(200):
            messages += [Message("assistant", f"reply {turn}"), Message("user", f"answer {turn}")]
            encoder.reset_mock()
            conversations.encode(BODY, messages, "x")
            counts.append(encoder.call_count)
    assert set(counts[1:]) == {4}, "the fields and three messages"


def test_no_stop_string_is_sent_by_default() -> None:
    """It would end reasoning and JSON that quote an observation; models that play on may get one."""
    for name in ("openai", "vllm"):
        text = (Path(__file__).parents[2] / "conf" / "model" / f"{name}.yaml").read_text(encoding="utf-8")
        assert yaml.safe_load(text)["stop"] is None
    assert "stop" not in wire.settings("m", Sampling(), "max_tokens", (), {})
    assert wire.settings("m", Sampling(stop=("\nObservation:",)), "max_tokens", (), {})["stop"] == ["\nObservation:"]


def reply(choice: dict[str, Any] | None = None, usage: Any = None, **message: Any) -> dict[str, Any]:
    said = {"message": {"content": "Action: look", **message}, "finish_reason": "stop", **(choice or {})}
    return {"choices": [said], "usage": usage or {"prompt_tokens": 5, "completion_tokens": 2}}


@pytest.mark.parametrize(
    "given",
    [
        *(
            reply(usage={"prompt_tokens": 5, "completion_tokens": 2, "prompt_tokens_details": odd})
            for odd in ([1], 5, "x", None)
        ),
        *(reply(usage={"prompt_tokens": 5.0, "completion_tokens": 2, "completion_tokens_details": odd}) for odd in ([1], "x")),
        *(reply({"logprobs": {"content": odd}}) for odd in ([None], [{"token": "a"}], [{"logprob": "x"}])),
        *(reply(tool_calls=odd) for odd in (True, 5, {"a": 1})),
        {**reply(), "prompt_logprobs": ["x"]},
    ],
)
def test_odd_numbers_beside_a_reply_do_not_cost_the_reply(given: dict[str, Any]) -> None:
    read = wire.read_completion(given, "x")
    assert (read.text, read.finish_reason, read.logprobs) == ("Action: look", "stop", None)
    assert (read.usage.prompt_tokens, read.usage.completion_tokens, read.usage.cached_tokens) == (5, 2, 0)


@pytest.mark.parametrize(
    "usage", [{"prompt_tokens": odd, "completion_tokens": "2"} for odd in (None, "5", True, -1, float("nan"))]
)
def test_token_counts_that_are_none_are_missing(usage: dict[str, Any]) -> None:
    read = wire.read_completion(reply(usage=usage), "x")
    assert read.info["usage_missing"]
    assert (read.usage.prompt_tokens, read.usage.completion_tokens, read.usage.calls) == (0, 0, 1)


@pytest.mark.parametrize(
    "choice", [*({"finish_reason": r} for r in ("error", "ABORT", "insufficient_system_resource")), {"error": {"code": 5}}]
)
def test_a_reply_in_which_the_server_gave_up_is_no_reply_of_the_model(choice: dict[str, Any]) -> None:
    """T01: a server's failure must not count as the agent's."""
    with pytest.raises(Transient, match="gave up in the middle"):
        wire.read_completion(reply(choice), "x")


def test_json_without_end_is_no_reply() -> None:
    with pytest.raises(Transient, match="no valid JSON"):
        wire.decode(b"[" * 200_000)
