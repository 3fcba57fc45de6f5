"""The chat-completions format: settings and messages to bytes, reply bytes to a `Completion`.

Plain dicts and one fast encoder instead of the SDK's typed request: that one walks every message, so its CPU time grows with
the history.
"""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pydantic_core import to_json

from agentexp.core import Completion, Message, Sampling, Usage
from agentexp.models.limiter import Transient

_GIVEN_UP = frozenset({"error", "abort", "aborted", "insufficient_system_resource"})  # finish reasons of vLLM and of gateways
_PICTURE = re.compile(r"!\[[^\]\n]*\]\((data:image/[a-z]+;base64,[A-Za-z0-9+/=]+)\)")


def settings(
    name: str, sampling: Sampling, max_tokens_field: str, omit: Collection[str], extra: Mapping[str, Any]
) -> dict[str, Any]:
    """The request without its messages. Fields in `omit` are left out; `extra` is laid over the rest."""
    body: dict[str, Any] = {"model": name, "temperature": sampling.temperature, max_tokens_field: sampling.max_tokens}
    if sampling.top_p is not None:
        body["top_p"] = sampling.top_p
    if sampling.stop:
        body["stop"] = list(sampling.stop)
    if sampling.seed is not None:
        body["seed"] = sampling.seed
    for field in omit:
        body.pop(field, None)
    body.update(extra)
    return body


def encode(body: Mapping[str, Any], messages: Sequence[Message]) -> bytes:
    """The request as JSON."""
    return to_json({**body, "messages": [{"role": role, "content": parts(content)} for role, content in messages]})


def parts(content: str) -> str | list[dict[str, Any]]:
    """A message's content as it is sent: text, or text and pictures where it holds any as Markdown with a data URL."""
    if "](data:image/" not in content:
        return content
    found: list[dict[str, Any]] = []
    for i, piece in enumerate(_PICTURE.split(content)):
        if i % 2:
            found.append({"type": "image_url", "image_url": {"url": piece}})
        elif piece.strip():
            found.append({"type": "text", "text": piece.strip()})
    return found


class Conversations:
    """Encodes requests of conversations that grow: the JSON of what was sent before is kept, so only new messages are encoded.

    Args:
        most_bytes: kept at most, for all conversations together; the one that was used longest ago goes first.
    """

    def __init__(self, most_bytes: int = 64 << 20) -> None:
        self._most_bytes, self._bytes = most_bytes, 0
        self._kept: OrderedDict[str, tuple[list[Message], bytearray]] = OrderedDict()

    def encode(self, body: Mapping[str, Any], messages: Sequence[Message], chat: str) -> bytes:
        """The same bytes as `encode(body, messages)`.

        Args:
            body: the request without its messages.
            messages: the prompt.
            chat: name of the conversation. A prompt that does not begin like the one before is encoded anew, so a name that
                is used twice costs time and nothing else.
        """
        if not messages:
            return encode(body, messages)
        # The last message stays out of what is kept: `decode=rank` sends many prompts that differ in the last one only.
        *before, last = messages
        known, text = self._kept.pop(chat, ([], bytearray()))
        self._bytes -= len(text)
        if before[: len(known)] != known:  # identical strings are compared by address
            known, text = [], bytearray()
        for role, content in before[len(known) :]:
            text += to_json({"role": role, "content": parts(content)}) + b","
        self._kept[chat] = (before, text)
        self._bytes += len(text)
        while self._bytes > self._most_bytes:
            _, (_, dropped) = self._kept.popitem(last=False)
            self._bytes -= len(dropped)
        start = to_json({**body, "messages": []}).removesuffix(b"]}")
        return b"".join((start, text, to_json({"role": last[0], "content": parts(last[1])}), b"]}"))


def decode(payload: bytes) -> dict[str, Any]:
    """The reply as a dict. Raises `Transient` where it is no complete JSON object: a proxy's page or a cut connection."""
    try:
        data = json.loads(payload)
    except (ValueError, RecursionError) as error:
        raise Transient(f"the reply is no valid JSON ({len(payload)} bytes)") from error
    if not isinstance(data, dict):
        raise Transient(f"the reply is a JSON {type(data).__name__} instead of an object")
    return data


def read_completion(data: Mapping[str, Any], asked: str) -> Completion:
    """Read a reply of /chat/completions.

    Args:
        data: the decoded reply, without an "error".
        asked: the model name that was sent; another one in the reply is kept in `info["served_model"]`.

    Numbers that are missing or are no numbers count as unknown: a gateway's mistake in them must not cost the reply.

    Raises:
        Transient: there is no choice in it, or the server gave up in the middle of it.
    """
    choices = data.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise Transient("the reply holds no choice")
    choice = choices[0]
    message = choice.get("message")
    if not isinstance(message, dict):
        raise Transient("the reply holds no message")
    ended = str(choice.get("finish_reason") or "unknown")
    if choice.get("error") or ended.casefold() in _GIVEN_UP:
        # What is there of the reply may look like an action; it is the server's failure, not the model's.
        raise Transient(f"the server gave up in the middle of the reply (finish_reason {ended})", overload="resource" in ended)
    info: dict[str, Any] = {}
    content = message.get("content")
    if content is None:
        info["null_content"] = True
    if isinstance(message.get("refusal"), str):
        info["refusal"] = _clean(message["refusal"])
    if message.get("tool_calls"):
        info["tool_calls"] = len(message["tool_calls"]) if isinstance(message["tool_calls"], list) else 1
    served = data.get("model")
    if isinstance(served, str) and served != asked:
        info["served_model"] = served
    if isinstance(data.get("system_fingerprint"), str):
        info["fingerprint"] = data["system_fingerprint"]
    if isinstance(data.get("prompt_logprobs"), list) and all(isinstance(e, dict | None) for e in data["prompt_logprobs"]):
        # vLLM: per prompt token a dict of token id -> {"logprob"}, the token itself first; null for the very first token.
        info["prompt_logprobs"] = [next(iter(e.values()))["logprob"] if e else 0.0 for e in data["prompt_logprobs"]]
    if isinstance(data.get("prompt_token_ids"), list):
        info["prompt_token_ids"] = data["prompt_token_ids"]  # vLLM, with `return_token_ids`
    return Completion(
        text=_text(content),
        reasoning=_text(message.get("reasoning_content") or message.get("reasoning")),
        finish_reason=ended,
        usage=read_usage(data.get("usage"), info),
        token_ids=choice.get("token_ids") or None,
        logprobs=_logprobs(choice.get("logprobs")),
        info=info,
    )


def read_usage(usage: object, info: dict[str, Any]) -> Usage:
    """Token counts of one call. Missing ones count as zero and set `info["usage_missing"]`; reasoning tokens go to `info`."""
    prompt = _count(usage, "prompt_tokens")
    if not isinstance(usage, dict) or prompt is None:
        info["usage_missing"] = True
        return Usage(calls=1)
    cached = _count(usage.get("prompt_tokens_details"), "cached_tokens") or _count(usage, "prompt_cache_hit_tokens") or 0
    if reasoning := _count(usage.get("completion_tokens_details"), "reasoning_tokens"):
        info["reasoning_tokens"] = reasoning
    return Usage(prompt, _count(usage, "completion_tokens") or 0, cached, calls=1)


def _count(counts: object, name: str) -> int | None:
    """A number of tokens, None where there is none."""
    value = counts.get(name) if isinstance(counts, dict) else None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e12:
        return None
    return int(value)


def _text(content: object) -> str:
    if isinstance(content, str):
        return _clean(content)
    if isinstance(content, list):  # content parts; only text parts carry text
        return _clean("".join(part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str)))
    return ""


def _clean(text: str) -> str:
    # A reply cut inside an emoji may end in half a surrogate pair, which no later request and no record file could encode.
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _logprobs(logprobs: object) -> list[float] | None:
    if not isinstance(logprobs, dict) or not isinstance(logprobs.get("content"), list):
        return None
    found: list[Any] = [token.get("logprob") if isinstance(token, dict) else None for token in logprobs["content"]]
    return found if all(isinstance(value, (int, float)) for value in found) else None
