"""What the fake server can answer: kinds of failures, wordings of full contexts, a deterministic policy, a fake tokeniser."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal

# Status and error for a prompt that is too long. {n}: its tokens, {limit}: the window, {asked}: max_tokens of the request.
CONTEXT_WORDINGS: dict[str, tuple[int, str | dict[str, Any]]] = {
    "openai": (
        400,
        {
            "message": "This model's maximum context length is {limit} tokens. However, your messages resulted in {n} tokens.",
            "code": "context_length_exceeded",
        },
    ),
    "openai_input": (
        400,
        {"message": "Input tokens exceed the configured limit of {limit} tokens. Your messages resulted in {n} tokens."},
    ),
    "vllm": (
        400,
        {
            "message": "This model's maximum context length is {limit} tokens. However, you requested {n} tokens "
            "({n} in the messages, {asked} in the completion). Please reduce the length of the messages or completion.",
            "code": 400,
        },
    ),
    "vllm_passed": (
        400,
        {
            "message": "You passed {n} input tokens and requested {asked} output tokens. However, the model's context length "
            "is only {limit} tokens.",
            "code": 400,
        },
    ),
    "vllm_decoder": (
        400,
        {"message": "The decoder prompt (length {n}) is longer than the maximum model length of {limit}.", "code": 400},
    ),
    "vllm_max_tokens": (
        400,
        {
            "message": "'max_tokens' or 'max_completion_tokens' is too large: {asked}. This model's maximum context length is "
            "{limit} tokens and your request has {n} input tokens ({asked} > {limit} - {n}).",
            "code": 400,
        },
    ),
    "llama.cpp": (
        400,
        {
            "message": "request ({n} tokens) exceeds the available context size ({limit} tokens), try increasing it",
            "type": "exceed_context_size_error",
            "code": 400,
            "n_ctx": "{limit}",
        },
    ),
    "llama.cpp_old": (
        500,
        {"message": "the request exceeds the available context size. try increasing the context size", "code": 500},
    ),
    "ollama": (400, "the input length exceeds the context length"),
    "sglang": (
        400,
        {"message": "The input ({n} tokens) is longer than the model's context length ({limit} tokens).", "code": 400},
    ),
}

_QUOTA = "You exceeded your current quota, please check your plan and billing details."

KINDS: dict[str, dict[str, Any]] = {
    "ok": {},
    "rate_limit": {"status": 429, "retry_after": "1", "message": "Rate limit reached.", "code": "rate_limit_exceeded"},
    "rate_limit_bare": {"status": 429, "message": "Rate limit reached.", "code": "rate_limit_exceeded"},
    "quota": {"status": 429, "message": _QUOTA, "code": "insufficient_quota"},
    "no_key": {"status": 401, "message": "Incorrect API key provided: {key}.", "code": "invalid_api_key"},
    "forbidden": {"status": 403, "message": "You are not allowed to use this model.", "code": "model_not_allowed"},
    "no_model": {"status": 404, "message": "The model `{model}` does not exist.", "code": "model_not_found"},
    "bad_request": {"status": 400, "message": "Unknown parameter: 'top_k'.", "code": "unknown_parameter"},
    "server_error": {"status": 500, "message": "The server had an error."},
    "bad_gateway": {"status": 502, "raw": "<html><body>502 Bad Gateway</body></html>"},
    "unavailable": {"status": 503, "message": "The engine is overloaded."},
    "gateway_timeout": {"status": 504, "raw": "upstream request timeout"},
    "error_in_200": {"raw": '{"error": {"message": "upstream failed", "code": 502}}'},
    "drop": {"fault": "drop"},
    "truncate": {"fault": "truncate"},
    "never": {"fault": "never"},
    "stall": {"fault": "stall"},
    "die": {"fault": "die", "down": 0.5},
    "null": {"content": None, "finish_reason": "length", "reasoning": "There are two desks. Action: go to desk 1 or"},
    "wrong_model": {"model": "some-other-model"},
    "invalid_json": {"raw": '{"choices": [{"message": {"content": "Action'},
    "no_choice": {"raw": '{"id": "x", "object": "chat.completion", "choices": []}'},
    "no_usage": {"usage": False},
    "long": {"words": 20_000},
    "slow": {"delay": 1.0},
    "context": {"context": "openai"},
    **{f"context_{wording}": {"context": wording} for wording in CONTEXT_WORDINGS},
}


@dataclass(frozen=True)
class Entry:
    """One scripted answer. What is not set is left to the policy.

    `fault` strikes after `delay`: "drop" closes the connection without a byte, "truncate" in the middle of the body, "never"
    keeps it open in silence, "stall" does so in the middle of the body, "die" closes all connections and the port for `down`
    seconds. In a streamed reply `raw` with status 200 is one event, as where a server fails after it began to answer.
    """

    delay: float | None = None
    fault: Literal["", "drop", "truncate", "never", "stall", "die"] = ""
    down: float = 0.5
    status: int = 200
    retry_after: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    message: str = ""
    code: str | None = None
    context: str = ""
    raw: str | None = None
    content: str | None = ""
    reasoning: str = ""
    reasoning_field: str = "reasoning_content"
    finish_reason: str = "stop"
    model: str = ""
    usage: bool | dict[str, Any] = True
    words: int = 0
    times: int = 1
    every: int = 0
    kind: str = "ok"

    @classmethod
    def of(cls, value: str | dict[str, Any]) -> Entry:
        """Read a kind's name or an object, which may start from a kind ("do")."""
        given = {"do": value} if isinstance(value, str) else dict(value)
        kind = given.pop("do", "ok")
        if kind not in KINDS:
            raise SystemExit(f"Unknown kind {kind!r}; choose one of: {', '.join(KINDS)}.")
        if unknown := set(given) - {f.name for f in fields(cls)}:
            raise SystemExit(f"Unknown keys {sorted(unknown)}; choose from: {', '.join(f.name for f in fields(cls))}.")
        return cls(**{**KINDS[kind], "kind": kind, **given})


def policy_reply(policy: str, messages: Sequence[dict[str, Any]], seed: object = None) -> str:
    """A reply in the form that the prompt asks for, a function of the prompt (and the seed) alone.

    Args:
        policy: "first" takes the first of the actions listed in the last message ("Allowed now: a; b; c"), "hash" one by the
            hash of that message, anything else is the text of every reply. Where nothing is listed the action is "look".
    """
    if policy not in ("first", "hash"):
        return policy
    last = str(messages[-1].get("content") or "") if messages else ""
    if "JSON" in last or (messages and "JSON" in str(messages[0].get("content"))):
        return "{}"
    listed = re.search(r"^Allowed now:\s*(.+)$", last, re.MULTILINE)
    allowed = [a for a in re.split(r";\s*", listed[1]) if a and not re.fullmatch(r"and \d+ more", a)] if listed else ["look"]
    digest = int.from_bytes(hashlib.blake2b(f"{last}|{seed}".encode(errors="replace"), digest_size=8).digest(), "big")
    action = allowed[0 if policy == "first" else digest % len(allowed)]
    prompt = str(messages[0].get("content")) if messages else ""
    if "<answer>" in prompt:
        return f"<think> {digest % 1000} </think> <answer> {action} </answer>"
    start = "Map: no change\n" if re.search(r"^Map:", prompt, re.MULTILINE) else ""
    return f"{start}Thought: choice {digest % 1000}.\nAction: {action}"


def tokens(messages: Sequence[dict[str, Any]]) -> list[str]:
    """The fake tokeniser: words, and one token for each message's start and end."""
    return [t for m in messages for t in (f"<{m.get('role')}>", *str(m.get("content") or "").split(), "<end>")]


def logprob(token: str) -> float:
    """The fake language model: every token has its own log-probability, whatever comes before it."""
    return -1 - hashlib.blake2b(token.encode(errors="replace"), digest_size=1).digest()[0] / 32
