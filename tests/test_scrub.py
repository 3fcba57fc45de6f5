from __future__ import annotations

import logging
from typing import Any

import pytest

from agentexp import scrub as module
from agentexp.scrub import REMOVED, clean, clean_line, clean_logging, remember, remember_environment, scrub

SECRET = "zq7-Planted-41f"
NAMES = [
    *("api_key", "apikey", "apiKey", "x-api-key", "X-API-Key", "authorization", "Authorization", "token", "hf_token"),
    *(
        "headers",
        "key",
        "secret",
        "client_secret",
        "password",
        "cookie",
        "auth",
        "credentials",
        "access_token",
        "accessToken",
        "sub-key",
    ),
]


@pytest.fixture(autouse=True)
def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_known", set())


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("place", ["extra_body", "extra_headers", "anything"])
def test_entries_named_like_secrets_are_removed_wherever_they_are_nested(name: str, place: str) -> None:
    for config in (
        {place: {name: "plain"}},
        {"_target_": "a.B", place: {"deeper": [{name: "plain"}]}},
        {"_target_": "a.B", place: [[{name: ["plain", {"x": "plain"}]}]]},
        {"_target_": "a.B", name: SECRET},
    ):
        text = str(scrub(config))
        assert REMOVED in text and "plain" not in text and SECRET not in text


@pytest.mark.parametrize("name", ["api_key_env", "max_tokens", "api_key_file", "eos_token", "stop_token", "monkey", "tokens"])
def test_settings_that_only_sound_alike_stay(name: str) -> None:
    assert scrub({"extra_body": {name: "masked"}}) == {"extra_body": {name: "masked"}}


def test_a_components_own_key_stays_while_it_is_a_word() -> None:
    assert scrub({"_target_": "a.B", "key": "masked"}) == {"_target_": "a.B", "key": "masked"}
    assert scrub({"_target_": "a.B", "key": SECRET}) == {"_target_": "a.B", "key": REMOVED}


@pytest.mark.parametrize("value", [None, True, False, ""])
def test_what_cannot_be_a_secret_stays(value: Any) -> None:
    assert scrub({"use_auth_token": value}) == {"use_auth_token": value}


def test_flags_and_texts_inside_lists() -> None:
    assert scrub(["--api-key", "x", "--port", "5", "--hf-token=x"]) == [
        "--api-key",
        REMOVED,
        "--port",
        "5",
        f"--hf-token={REMOVED}",
    ]
    assert scrub(["Authorization: Bearer abc"]) == [f"Authorization: {REMOVED}"]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (f"http://me:{SECRET}@host/v1", "http://[removed]@host/v1"),
        (f"https://{SECRET}@host", "https://[removed]@host"),
        (f"GET /x?key={SECRET}&n=1", "GET /x?key=[removed]&n=1"),
        (f'{{"token": "{SECRET}", "n": 1}}', '{"token": "[removed]", "n": 1}'),
        (f"{{'x-api-key': '{SECRET}'}}", "{'x-api-key': '[removed]'}"),
        (f"model.extra_body.token={SECRET} is", "model.extra_body.token=[removed] is"),
        (f"vllm serve --api-key {SECRET} --port 1", "vllm serve --api-key [removed] --port 1"),
        ("Bearer abcdefgh", "[removed]"),
        ("sk-proj-abcdefghijkl", "[removed]"),
    ],
)
def test_texts_in_the_form_of_secrets_are_cleaned(text: str, kept: str) -> None:
    assert clean(text) == kept


@pytest.mark.parametrize(
    "text",
    [
        *("take the key: it is brass", "stopping.key=nothing is not possible", "max_tokens=5", "Basic commands are few"),
        *("a 5-token answer", "http://host:80/v1", "open the secret door", "the author: me", "the password is long"),
    ],
)
def test_ordinary_texts_stay(text: str) -> None:
    assert clean(text) == text


def test_what_a_config_or_the_environment_held_is_cut_out_of_every_text(monkeypatch: pytest.MonkeyPatch) -> None:
    odd = 'q"uo\\te1'
    remember({"model": {"extra_body": {"key": SECRET, "token": odd}, "extra_headers": {"x": "Bearer heldBy3"}}})
    monkeypatch.setenv("SOME_VENDOR_KEY", "from-env-1234")
    remember_environment()
    for secret in (SECRET, odd, "from-env-1234", "heldBy3x"[:7]):
        if len(secret) >= 8:
            assert secret not in clean(f"the server says {secret}!")
    line = module.json.dumps({"a": f"x{SECRET}x", "b": odd}).encode()
    assert module.json.loads(clean_line(line)) == {"a": f"x{REMOVED}x", "b": REMOVED}


@pytest.mark.parametrize("word", ["key", "EMPTY", "password", "none", "a long text with 1 number in it"])
def test_words_are_never_cut_out_of_what_the_world_says(word: str) -> None:
    remember({"token": word})
    assert clean(f"you see {word} here") == f"you see {word} here"


def test_log_records_are_cleaned_at_their_source(caplog: pytest.LogCaptureFixture) -> None:
    before = logging.getLogRecordFactory()
    try:
        clean_logging()
        clean_logging()
        remember({"token": SECRET})
        logging.getLogger("somebody.elses").warning("said %s at %s", SECRET, f"http://u:{SECRET}@h")
    finally:
        logging.setLogRecordFactory(before)
    assert SECRET not in caplog.text and REMOVED in caplog.text
