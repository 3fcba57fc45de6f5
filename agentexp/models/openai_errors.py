"""What an HTTP error of an OpenAI-compatible server means for the episode and the run.

The wordings are those of OpenAI, vLLM, SGLang, llama.cpp, Ollama, TGI, Anthropic's and Google's compatible endpoints. Status
codes alone do not decide: 429 is either "slower" or "no money left", 400 is either a full context or a wrong request.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from agentexp.errors import ContextOverflow, FatalError, ModelError
from agentexp.models.limiter import Transient, retry_after
from agentexp.scrub import clean

_CONTEXT = re.compile(
    r"maximum context length|context_length_exceeded|context[ _]length is only|exceed_context_size|"
    r"exceeds? (?:the )?(?:model'?s? )?(?:available |maximum |max )?context|context (?:window|size|length)[^.]{0,20}exceeded|"
    r"longer than the (?:maximum model length|model'?s context length)|input length exceeds|"
    r"input tokens exceed the configured limit|input token count[^.]{0,80}exceeds|prompt is too long|"
    r"prompt too long|inputs` tokens \+ `max_new_tokens|exceeds? (?:the )?maximum (?:(?:allowed )?(?:input|prompt) )?length|"
    r"input is too long|must have less than \d+ tokens|longer than max_model_len|reduce the length of the|"
    r"range of input length should be|exceeds? max(?:imum)?[ _](?:message tokens|sequence length|seq_len)|too many tokens|"
    r"exceeded model token limit|prompt tokens? limit exceeded|context window exceeds|greater than the context length|"
    r"loaded with context length of only|max_tokens must be at least 1, got -\d|max_new_tokens[^.]{0,20}must be <=|"
    r"string too long\. expected a string with maximum length",
    re.IGNORECASE,
)
_WINDOW = re.compile(
    r"(?:maximum context length is|context length is only|maximum model length of|context length \(|available context size \(|"
    r"n_ctx\W+|must be <= )\s*(\d+)",
    re.IGNORECASE,
)
_QUOTA = re.compile(
    r"insufficient_quota|exceeded your current quota|insufficient (?:balance|credits|funds)|"
    r"billing_(?:not_active|hard_limit_reached)|credit balance is too low|requires more credits",
    re.IGNORECASE,
)
# Gemini says "exceeded your current quota" of a limit per minute, and when it is over.
_AGAIN = re.compile(r"retry in (\d+(?:\.\d+)?) ?s", re.IGNORECASE)
_BAD_KEY = re.compile(
    r"(?:api key (?:is )?(?:not valid|invalid)|(?:invalid|incorrect) (?:api|x-api)[ -]key|invalid_api_key)", re.IGNORECASE
)
_MODERATED = re.compile(r"flagged|moderation|content[ _](?:policy|filter|management)", re.IGNORECASE)
_TOO_LARGE = re.compile(r"request too large", re.IGNORECASE)
# Some servers repeat (a part of) the key in their message.
_KEYLIKE = re.compile(r"\b(?:sk|pk|gsk|hf|nvapi|AIza)[-_][\w*.\-]{6,}|Bearer\s+\S+", re.IGNORECASE)

TRANSIENT_STATUS = frozenset({408, 409, 425, 429})
OVERLOAD_STATUS = frozenset({429, 503, 504, 529})
"""The server has more requests than it serves: fewer calls may be in flight for a while."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """What error texts may say about a model: never the key, only where it comes from.

    Attributes:
        name: model name as sent.
        base_url: address of the server.
        key_source: "environment variable OPENAI_API_KEY" or "file PATH".
        has_key: a key was found there.
        max_tokens: reply budget of the request.
        key: the key itself, only to cut it out of texts.
    """

    name: str
    base_url: str
    key_source: str
    has_key: bool
    max_tokens: int = 0
    key: str = ""

    def __repr__(self) -> str:
        return f"Endpoint({self.name!r}, {self.base_url!r})"

    def scrub(self, text: str) -> str:
        """`text` in one line of at most 300 characters, without anything that looks like a key."""
        if self.key:
            text = text.replace(self.key, "[key]")
        text = " ".join(clean(_KEYLIKE.sub("[key]", text)).split())
        return text if len(text) <= 300 else text[:297] + "..."


def read_error(payload: bytes) -> tuple[str, str]:
    """(message, code and type) of an error reply in any of the usual shapes; the plain text where it is no JSON."""
    text = payload.decode("utf-8", "replace")
    try:
        data = json.loads(text)
    except ValueError:
        return text, ""
    if isinstance(data, dict):
        inner = data.get("error", data)
        if isinstance(inner, dict):
            message = inner.get("message") or inner.get("detail") or json.dumps(inner)
            kinds = f"{inner.get('code') or ''} {inner.get('type') or ''}"
            if "n_ctx" in inner:
                message = f"{message} (n_ctx {inner['n_ctx']})"
            return str(message), kinds
        return str(inner), str(data.get("code") or "")
    return text, ""


def explain(status: int, headers: Mapping[str, str], payload: bytes, at: Endpoint) -> Exception:
    """The exception to raise for an error reply: `Transient`, `FatalError`, `ContextOverflow` or `ModelError`."""
    message, kinds = read_error(payload)
    said = at.scrub(message)
    everything = f"{kinds} {message}"
    again = _AGAIN.search(message) if status == 429 and "insufficient_quota" not in kinds else None
    if again:
        return Transient(f"HTTP 429: {said}", retry_after(headers) or float(again[1]), overload=True)
    if status == 401 or (status in (400, 403) and _BAD_KEY.search(everything)):
        what = "refused the key from" if at.has_key else "wants a key, and there is none in"
        return FatalError(
            f"{at.base_url} {what} the {at.key_source} (HTTP {status}); see model.api_key_env and model.api_key_file."
        )
    if status == 402 or _QUOTA.search(everything):
        return FatalError(f"The account behind the {at.key_source} has no quota left at {at.base_url} (HTTP {status}): {said}")
    if status == 403 and _MODERATED.search(everything):
        return ModelError(f"{at.base_url} does not answer this conversation (HTTP 403): {said}")
    if status == 403:
        return FatalError(f"{at.base_url} forbids model.name={at.name} to this key (HTTP 403): {said}")
    if status == 404:
        return FatalError(
            f"{at.base_url} knows no model.name={at.name}, or model.base_url is wrong (it ends in /v1) (HTTP 404): {said}"
        )
    if status == 413 or (status in (400, 422, 500) and _CONTEXT.search(everything)):
        window = _WINDOW.search(everything)
        if window and int(window[1]) <= at.max_tokens:
            return FatalError(
                f"model.max_tokens={at.max_tokens} leaves no room for a prompt in the context of {at.name}, {window[1]} tokens."
            )
        return ContextOverflow(f"The prompt no longer fits into the context of {at.name}: {said}")
    if status == 429 and _TOO_LARGE.search(everything):
        return ModelError(f"{at.name} will never take a request of this size (HTTP 429): {said}")
    if status in TRANSIENT_STATUS or (status >= 500 and status != 501):
        return Transient(f"HTTP {status}: {said}", retry_after(headers), overload=status in OVERLOAD_STATUS)
    return ModelError(f"{at.base_url} refused the request (HTTP {status}): {said}")
