"""Requests as bytes: conversations that grow are encoded piece by piece, with the same result."""

import json
from pathlib import Path
from typing import Any
from unittest.mock import patch

import yaml
from hypothesis import given
from hypothesis import strategies as st

from agentexp.core import Message, Sampling
from agentexp.models import openai_wire as wire

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
