from __future__ import annotations

import pytest

from agentexp.scrub import REMOVED, scrub


@pytest.mark.parametrize(
    "name", ["api_key", "apikey", "x-api-key", "X-API-Key", "authorization", "token", "hf_token", "headers"]
)
def test_settings_named_like_secrets_are_removed(name: str) -> None:
    assert scrub({"extra_body": {name: "plain"}}) == {"extra_body": {name: REMOVED}}


@pytest.mark.parametrize("name", ["key", "api_key_env", "max_tokens", "api_key_file"])
def test_settings_that_only_sound_alike_stay(name: str) -> None:
    assert scrub({name: "masked"}) == {name: "masked"}
