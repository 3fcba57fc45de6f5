import json

import pytest
from fake_replies import CONTEXT_WORDINGS

from agentexp.errors import ContextOverflow, FatalError, ModelError
from agentexp.models.limiter import Transient
from agentexp.models.openai_errors import Endpoint, explain

AT = Endpoint("m", "http://h/v1", "environment variable KEY", True, max_tokens=100, key="s3cret-value")


def wrapped(message: str, **more: object) -> bytes:
    return json.dumps({"error": {"message": message, **more}}).encode()


@pytest.mark.parametrize("wording", sorted(CONTEXT_WORDINGS))
def test_context_wordings(wording: str) -> None:
    status, error = CONTEXT_WORDINGS[wording]
    text = json.dumps({"error": error}).replace("{limit}", "4096").replace("{n}", "5000").replace("{asked}", "100")
    assert isinstance(explain(status, {}, text.encode(), AT), ContextOverflow)


@pytest.mark.parametrize(
    "message",
    [
        "prompt is too long: 210000 tokens > 200000 maximum",
        "The input token count (1100000) exceeds the maximum number of tokens allowed (1048576).",
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
        "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 `inputs` tokens and 256 `max_new_tokens`",
        "This model's maximum context length is 200 tokens. However, your request has 203 input tokens.",
        "Input is too long for requested model.",
        "Input validation error: `inputs` must have less than 4096 tokens. Given: 5000",
        "The prompt (5000 tokens) is longer than max_model_len 4096",
        "Please reduce the length of the messages or completion.",
        "Range of input length should be [1, 30720]",
        "Total tokens of image and text exceed max message tokens",
        "tokens in prompt exceeds max sequence length",
        "string too long. Expected a string with maximum length 1048576",
        "too many tokens: 5000 > 4096",
        "Your request exceeded model token limit: 131072",
        "invalid params, context window exceeds limit",
        "The number of tokens to keep from the initial prompt is greater than the context length.",
        "max_tokens must be at least 1, got -300.",
        "Prompt length 5000 exceeds the maximum length 4096",
    ],
)
def test_further_context_wordings(message: str) -> None:
    assert isinstance(explain(400, {}, wrapped(message), AT), ContextOverflow)


def test_a_reply_budget_larger_than_the_window_is_a_wrong_setting() -> None:
    message = "This model's maximum context length is 100 tokens. However, you requested 120 tokens."
    error = explain(400, {}, wrapped(message), AT)
    assert isinstance(error, FatalError) and "model.max_tokens=100" in str(error)


@pytest.mark.parametrize(
    "message",
    ["Unknown parameter: 'top_k'.", "Invalid value for temperature.", "messages.1.content must be a string", "context is odd"],
)
def test_other_400_is_a_model_error(message: str) -> None:
    error = explain(400, {}, wrapped(message), AT)
    assert type(error) is ModelError and message[:10] in str(error)


@pytest.mark.parametrize(
    ("status", "payload", "kind"),
    [
        (401, wrapped("Incorrect API key provided: sk-abcdef123456"), FatalError),
        (402, wrapped("Insufficient Balance"), FatalError),
        (403, wrapped("no"), FatalError),
        (404, wrapped("The model `m` does not exist"), FatalError),
        (404, b"404 page not found", FatalError),
        (429, wrapped("You exceeded your current quota", code="insufficient_quota"), FatalError),
        (429, wrapped("Rate limit reached"), Transient),
        (429, wrapped("You exceeded your current quota of requests per minute. Please retry in 20.5s."), Transient),
        (429, wrapped("You exceeded your current quota, retry in 5s", code="insufficient_quota"), FatalError),
        (400, wrapped("API key not valid. Please pass a valid API key."), FatalError),
        (403, wrapped("Invalid API key"), FatalError),
        (403, wrapped("Your input was flagged by moderation"), ModelError),
        (413, b"<html>Payload Too Large</html>", ContextOverflow),
        (429, wrapped("Request too large for m on tokens per min (TPM): Limit 100, Requested 200"), ModelError),
        (408, b"", Transient),
        (500, b"", Transient),
        (502, b"<html>", Transient),
        (503, b'{"detail": "loading"}', Transient),
        (504, b"[]", Transient),
        (529, wrapped("Overloaded"), Transient),
        (501, b"", ModelError),
        (405, b"", ModelError),
        (422, b'{"detail": [{"loc": ["body"]}]}', ModelError),
    ],
)
def test_statuses(status: int, payload: bytes, kind: type[Exception]) -> None:
    assert type(explain(status, {}, payload, AT)) is kind


def test_retry_after_is_taken_over() -> None:
    error = explain(503, {"retry-after": "7"}, b"", AT)
    assert isinstance(error, Transient) and error.wait == 7
    error = explain(429, {}, wrapped("quota of requests per minute. Please retry in 20.5s."), AT)
    assert isinstance(error, Transient) and (error.wait, error.overload) == (20.5, True)


@pytest.mark.parametrize("leak", ["s3cret-value", "sk-abc***************wxyz", "sk-proj-ABCDEFGH12345678", "Bearer abcdef"])
@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500])
def test_no_key_in_any_text(leak: str, status: int) -> None:
    error = explain(status, {}, wrapped(f"Your key {leak} is wrong"), AT)
    assert leak not in str(error) and leak.split()[-1] not in str(error)
    assert "s3cret" not in repr(AT)


def test_texts_are_one_short_line() -> None:
    text = str(explain(400, {}, b"line\n" * 1000, AT))
    assert "\n" not in text and len(text) < 420
