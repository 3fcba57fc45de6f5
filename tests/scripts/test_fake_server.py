import asyncio
import json
import subprocess
import sys
import urllib.error
import urllib.request
from typing import Any

import openai
import pytest
from fake_replies import KINDS, Entry, logprob, policy_reply, tokens
from fake_server import FakeServer, spawn

ASK = [
    {"role": "system", "content": "Act."},
    {"role": "user", "content": "You see:\nAllowed now: look; go to desk 1; open box 2"},
]


def call(method: str, url: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
    with urllib.request.urlopen(request, timeout=60) as reply:
        return json.load(reply)


def test_runs_as_a_program_with_log_and_script() -> None:
    with spawn("--policy", "first", "--model", "m1", "--script", '["ok", {"do": "quota"}]') as url:
        assert url.startswith("http://127.0.0.1:") and url.endswith("/v1")
        root = url.removesuffix("/v1")
        assert [m["id"] for m in call("GET", url + "/models")["data"]] == ["m1"]
        body = {"model": "m1", "messages": ASK}
        assert call("POST", url + "/chat/completions", body)["choices"][0]["message"]["content"].endswith("Action: look")
        with pytest.raises(urllib.error.HTTPError, match="429"):
            call("POST", url + "/chat/completions", body)
        log = call("GET", root + "/log")
        assert log["count"] == 2 and log["requests"][0]["body"] == body
        call("DELETE", root + "/log")
        call("POST", root + "/script", [{"content": "scripted"}])
        assert call("POST", url + "/chat/completions", body)["choices"][0]["message"]["content"] == "scripted"
        assert call("GET", root + "/log")["count"] == 1
        with pytest.raises(urllib.error.HTTPError, match="400"):
            call("POST", root + "/script", ["no such kind"])


def test_a_wrong_script_ends_the_program() -> None:
    done = subprocess.run(
        [sys.executable, sys.modules["fake_server"].__file__ or "", "--script", '["typo"]'],
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode != 0 and "choose one of: ok, rate_limit" in done.stderr


def test_streaming_is_what_the_sdk_expects() -> None:
    async def run() -> tuple[str, list[Any]]:
        async with FakeServer(policy="Action: go to desk 1") as server:
            client = openai.AsyncOpenAI(api_key="x", base_url=server.url, http_client=openai.DefaultAioHttpClient())
            async with client:
                chunks = [c async for c in await client.chat.completions.create(model="m", messages=ASK, stream=True)]  # type: ignore[call-overload]
                return "".join(c.choices[0].delta.content or "" for c in chunks if c.choices), chunks

    text, chunks = asyncio.run(run())
    assert (
        text == "Action: go to desk 1"
        and chunks[-2].choices[0].finish_reason == "stop"
        and chunks[-1].usage.completion_tokens == 5
    )


def test_policies_are_functions_of_the_prompt() -> None:
    assert policy_reply("first", ASK).endswith("\nAction: look")
    assert policy_reply("hash", ASK) == policy_reply("hash", ASK)
    assert len({policy_reply("hash", ASK, seed) for seed in range(20)}) > 3
    assert policy_reply("Action: x", ASK) == "Action: x"
    assert policy_reply("first", [{"role": "user", "content": "nothing listed"}]).endswith("Action: look")
    form = {"role": "system", "content": "<think> one </think> <answer> one single action </answer>"}
    assert policy_reply("first", [form, ASK[1]]).endswith("<answer> look </answer>")
    long = [{"role": "user", "content": "Allowed now: a; b; and 70 more"}]
    assert {policy_reply("hash", long, seed).rsplit(" ", 1)[-1] for seed in range(40)} == {"a", "b"}


def test_every_kind_is_a_valid_entry() -> None:
    assert all(isinstance(Entry.of(kind), Entry) for kind in KINDS)
    with pytest.raises(SystemExit, match="Unknown keys"):
        Entry.of({"statsu": 500})


def test_standing_entries_strike_at_every_kth_request() -> None:
    async def run() -> list[int]:
        async with FakeServer([{"do": "server_error", "every": 3}]) as server:
            results = []
            client = openai.AsyncOpenAI(api_key="x", base_url=server.url, max_retries=0)
            for _ in range(7):
                try:
                    await client.post("/chat/completions", cast_to=bytes, body={"messages": ASK})
                    results.append(200)
                except openai.APIStatusError as error:
                    results.append(error.status_code)
            await client.close()
            return results

    assert asyncio.run(run()) == [200, 200, 500, 200, 200, 500, 200]


def test_the_fake_language_model() -> None:
    assert tokens(ASK[:1]) == ["<system>", "Act.", "<end>"]
    assert -9 <= logprob("desk") <= -1 and logprob("desk") == logprob("desk")
