"""A streamed reply (server-sent events) read as a whole one.

agentexp never asks for a stream, but some gateways answer with one all the same. The danger is a stream that breaks off: what
arrived looks like a short reply, so only one with its end in it counts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from agentexp.models.limiter import Transient

_TEXTS = ("content", "reasoning_content", "reasoning", "refusal")


def join(payload: bytes) -> dict[str, Any]:
    """The reply that the events of one choice add up to, in the form of a reply that was not streamed.

    Returns:
        {"choices", "model", "usage", ...}, or {"error": ...} where the server failed after it had begun to answer. `content` is
        None if no event had any.

    Raises:
        Transient: an event is no JSON object, or the end is missing.
    """
    reply: dict[str, Any] = {}
    message: dict[str, Any] = {"content": None}
    finish: object = None
    calls: set[int] = set()
    answered = done = False
    for data in _events(payload):
        if data.strip() == "[DONE]":
            done = True
            break
        chunk = _object(data)
        if chunk.get("error"):
            return {"error": chunk["error"]}
        reply.update({name: chunk[name] for name in ("id", "model", "usage", "system_fingerprint") if chunk.get(name)})
        choices = chunk.get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
            continue  # token counts come in an event without a choice
        answered = True
        finish = choices[0].get("finish_reason") or finish
        delta = choices[0].get("delta")
        if isinstance(delta, dict):
            for name in _TEXTS:
                if isinstance(delta.get(name), str):
                    message[name] = (message.get(name) or "") + delta[name]
            calls.update(call.get("index", 0) for call in delta.get("tool_calls") or () if isinstance(call, dict))
    if not done and finish is None:
        raise Transient(f"the streamed reply breaks off ({len(payload)} bytes)")
    if calls:
        message["tool_calls"] = sorted(calls)
    return {**reply, "choices": [{"message": message, "finish_reason": finish}] if answered else []}


def _events(payload: bytes) -> Iterator[str]:
    """The data of every complete event; comments and other fields are left out. An event without its blank line is cut."""
    lines: list[str] = []
    for line in payload.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        if not line and lines:
            yield "\n".join(lines)
            lines = []
        elif line.startswith("data:"):
            lines.append(line[5:].removeprefix(" "))


def _object(data: str) -> dict[str, Any]:
    try:
        chunk = json.loads(data)
    except ValueError as error:
        raise Transient(f"an event of the streamed reply is no valid JSON ({len(data)} characters)") from error
    if not isinstance(chunk, dict):
        raise Transient(f"an event of the streamed reply is a JSON {type(chunk).__name__} instead of an object")
    return chunk
