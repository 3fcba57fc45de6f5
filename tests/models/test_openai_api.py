"""The model against the fake server: every way in which a real server fails."""

import asyncio
import pickle
import socket
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake_replies import CONTEXT_WORDINGS
from fake_server import FakeServer

from agentexp.core import Completion, Message, Model, Request, Sampling
from agentexp.errors import ContextOverflow, FatalError, ModelError, UserError
from agentexp.models.openai_api import OpenAIModel

Make = Callable[..., Request]


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def model(url: str, **given: Any) -> OpenAIModel:
    settings = {"name": "fake", "base_url": url, "max_tokens": 64, "request_timeout": 2.0, "total_timeout": 5.0, **given}
    m = OpenAIModel(**settings)
    m.retry = replace(m.retry, base=0.02)
    return m


def chat(server: FakeServer, *requests: Request, **given: Any) -> list[Completion]:
    """Send the requests one after the other to a freshly started `server`."""

    async def run() -> list[Completion]:
        async with server:
            m = model(server.url, **given)
            try:
                return [await m.chat(request) for request in requests]
            finally:
                await m.close()

    return asyncio.run(run())


# -------------------------------------------------------------------------------------------------------------- the good case


def test_a_plain_reply(request_for: Make) -> None:
    server = FakeServer([{"content": "Action: look", "usage": {"prompt_tokens_details": {"cached_tokens": 2}}}])
    (reply,) = chat(server, request_for("one two"), price_in=1.0, price_out=10.0, price_cached=0.5)
    assert (reply.text, reply.reasoning, reply.finish_reason, reply.retries, reply.cached) == (
        "Action: look",
        "",
        "stop",
        0,
        False,
    )
    usage = reply.usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens, usage.calls) == (4, 2, 2, 1)
    assert usage.cost == pytest.approx((2 * 1.0 + 2 * 0.5 + 2 * 10) / 1e6)
    assert reply.info == {} and reply.seconds > 0


def test_the_request_on_the_wire(request_for: Make) -> None:
    messages = [Message("system", "Sei höflich."), Message("user", 'quote " and \n newline'), Message("assistant", "看 🚪")]
    sampling = Sampling(temperature=0.7, max_tokens=9, top_p=0.9, stop=("\n\n",), seed=11)
    server = FakeServer()
    chat(
        server,
        request_for(messages=messages, sampling=sampling),
        extra_body={"top_k": 20},
        max_tokens_field="max_completion_tokens",
    )
    assert server.requests[0]["body"] == {
        "model": "fake",
        "temperature": 0.7,
        "max_completion_tokens": 9,
        "top_p": 0.9,
        "stop": ["\n\n"],
        "seed": 11,
        "top_k": 20,
        "messages": [{"role": m.role, "content": m.content} for m in messages],
    }


def test_omitted_fields_are_not_sent(request_for: Make) -> None:
    server = FakeServer()
    chat(server, request_for(sampling=Sampling(temperature=1.0, seed=3)), omit=["temperature", "seed"])
    assert set(server.requests[0]["body"]) == {"model", "max_tokens", "messages"}


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_null_content_and_reasoning(request_for: Make, field: str) -> None:
    (reply,) = chat(FakeServer([{"do": "null", "reasoning_field": field}]), request_for())
    assert reply.text == "" and reply.finish_reason == "length" and reply.info["null_content"]
    assert reply.reasoning == "There are two desks. Action: go to desk 1 or"


def test_missing_usage_is_zero_and_flagged(request_for: Make) -> None:
    (reply,) = chat(FakeServer(["no_usage"]), request_for(), price_in=1.0, price_out=1.0)
    assert reply.usage.prompt_tokens == 0 and reply.usage.calls == 1 and reply.info == {"usage_missing": True}


def test_another_model_than_asked_for_is_recorded(request_for: Make) -> None:
    (reply,) = chat(FakeServer(["wrong_model"]), request_for())
    assert reply.info == {"served_model": "some-other-model"}


def test_a_very_long_reply(request_for: Make) -> None:
    (reply,) = chat(FakeServer(["long"]), request_for())
    assert len(reply.text.split()) == 20_000


def test_half_an_emoji_does_not_poison_the_next_request(request_for: Make) -> None:
    server = FakeServer([{"raw": '{"choices": [{"message": {"content": "hi \\ud83d"}, "finish_reason": "length"}]}'}])
    (reply,) = chat(server, request_for())
    assert reply.text.encode() == b"hi ?"


# ------------------------------------------------------------------------------------------------------- what is tried again


@pytest.mark.parametrize(
    "kind",
    ["rate_limit_bare", "server_error", "bad_gateway", "unavailable", "gateway_timeout", "error_in_200", "drop", "truncate",
     "invalid_json", "no_choice"],
)  # fmt: skip
def test_passing_failures_are_tried_again(request_for: Make, kind: str) -> None:
    server = FakeServer([kind, kind, {"content": "there"}])
    (reply,) = chat(server, request_for())
    assert reply.text == "there" and reply.retries == 2 and server.count == 3


@pytest.mark.parametrize("after", ["0.3", "header-ms"])
def test_retry_after_is_honoured(request_for: Make, after: str) -> None:
    headers = {"retry-after-ms": "300"} if after == "header-ms" else {}
    entry = {"do": "rate_limit", "retry_after": "" if headers else after, "headers": headers, "times": 2}
    started = time.monotonic()
    (reply,) = chat(FakeServer([entry]), request_for())
    assert reply.retries == 2 and 0.6 <= time.monotonic() - started < 1.5


def test_a_wait_longer_than_the_cap_ends_the_call_at_once(request_for: Make) -> None:
    started = time.monotonic()
    with pytest.raises(ModelError, match=r"total_timeout=5 s.*429"):
        chat(FakeServer([{"do": "rate_limit", "retry_after": "3600"}]), request_for())
    assert time.monotonic() - started < 1


def test_a_server_that_never_answers_costs_total_timeout_once(request_for: Make) -> None:
    server = FakeServer([{"do": "never", "every": 1}])
    started = time.monotonic()
    with pytest.raises(ModelError, match="request_timeout"):
        chat(server, request_for(), request_timeout=0.3, total_timeout=1.0)
    assert time.monotonic() - started < 2 and 2 <= server.count <= 4


def test_a_server_that_dies_and_comes_back(request_for: Make) -> None:
    (reply,) = chat(FakeServer([{"do": "die", "down": 0.4}, {"content": "back"}]), request_for())
    assert reply.text == "back" and reply.retries >= 1


def test_a_dead_server_names_itself(request_for: Make) -> None:
    async def run() -> None:
        m = model(f"http://127.0.0.1:{free_port()}/v1", max_retries=1)
        try:
            await m.chat(request_for())
        finally:
            await m.close()

    with pytest.raises(ModelError, match=r"the connection to http://127.0.0.1:\d+/v1 failed \(ConnectionRefused"):
        asyncio.run(run())


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port: int = s.getsockname()[1]
        return port


# --------------------------------------------------------------------------------------------------- what is not tried again


@pytest.mark.parametrize("kind", ["quota", "no_key", "forbidden", "no_model"])
def test_what_stops_the_whole_run(request_for: Make, kind: str) -> None:
    server = FakeServer([{"do": kind, "every": 1}])
    with pytest.raises(FatalError) as caught:
        chat(server, request_for())
    assert server.count == 1 and "\n" not in str(caught.value)


def test_a_wrong_request_is_not_repeated(request_for: Make) -> None:
    server = FakeServer([{"do": "bad_request", "every": 1}])
    with pytest.raises(ModelError, match="top_k"):
        chat(server, request_for())
    assert server.count == 1


@pytest.mark.parametrize("wording", sorted(CONTEXT_WORDINGS))
def test_full_contexts_in_every_wording(request_for: Make, wording: str) -> None:
    server = FakeServer(context_limit=80, wording=wording)
    with pytest.raises(ContextOverflow):
        chat(server, request_for("short"), request_for("long " * 100))
    assert server.count == 2


def test_context_limit_of_a_server_that_says_nothing(request_for: Make) -> None:
    server = FakeServer()
    with pytest.raises(ContextOverflow, match=r"model.context_limit=100"):
        chat(server, request_for("w " * 60), request_for("w " * 61), context_limit=100)
    assert server.count == 1, "the second prompt is known not to fit and is not sent"


def test_a_prompt_that_was_cut_silently_is_flagged(request_for: Make) -> None:
    server = FakeServer(["ok", {"usage": {"prompt_tokens": 10}}])
    _, second = chat(server, request_for("w " * 60), request_for("w " * 80))
    assert second.info["prompt_shrank"] == [62, 10]


# ------------------------------------------------------------------------------------------------------------------- keys


def test_keys_come_from_the_environment_or_a_file_and_never_show(
    request_for: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    secret = "sk-test-0123456789abcdef"
    monkeypatch.setenv("SOME_KEY", secret)
    (tmp_path / "key").write_text(secret + "\n")
    for given in ({"api_key_env": "SOME_KEY"}, {"api_key_file": str(tmp_path / "key")}):
        server = FakeServer(api_key=secret)
        chat(server, request_for(), **given)
        assert server.requests[0]["has_key"]
        m = model("http://127.0.0.1:1/v1", **given)
        assert secret not in repr(m) + str(m.__dict__) + str(m.versions()) and secret.encode() not in pickle.dumps(m)
    monkeypatch.setenv("SOME_KEY", secret + "x")
    with pytest.raises(FatalError, match=r"refused the key from the environment variable SOME_KEY \(HTTP 401\)") as caught:
        chat(FakeServer(api_key=secret), request_for(), api_key_env="SOME_KEY")
    assert secret not in str(caught.value) and secret not in caplog.text


def test_local_servers_need_no_key_and_openai_does(request_for: Make, tmp_path: Path) -> None:
    server = FakeServer()
    chat(server, request_for())
    assert not server.requests[0]["has_key"]
    with pytest.raises(UserError, match="OPENAI_API_KEY"):
        asyncio.run(OpenAIModel(name="gpt-x").start())
    with pytest.raises(UserError, match=r"model.api_key_file"):
        asyncio.run(OpenAIModel(name="x", api_key_file=str(tmp_path / "none")).start())


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"base_url": "127.0.0.1:8000"}, "model.base_url"),
        ({"base_url": "http://me:secret@host/v1"}, "must not hold a user or password"),
        ({"extra_body": {"model": "y"}}, "model.extra_body"),
        ({"omit": ["messages"]}, "model.omit"),
        ({"concurrency": 0}, "model.concurrency"),
        ({"total_timeout": 0}, "model.total_timeout"),
        ({"price_in": 1.0}, "model.price_out"),
        ({"decode": "beam"}, "generate, rank"),
        ({"max_tokens_field": "tokens"}, "max_completion_tokens"),
    ],
)
def test_wrong_settings_are_refused_at_once(given: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words) as caught:
        OpenAIModel(**{"name": "x", "base_url": "http://h/v1", **given})
    assert "secret" not in str(caught.value)


# ------------------------------------------------------------------------------------------------------------ start and life


def start(server: FakeServer | None, **given: Any) -> None:
    async def run() -> None:
        m = model(server.url if server else f"http://127.0.0.1:{free_port()}/v1", **given)
        try:
            await m.start()
            await m.start()
        finally:
            await m.close()
            await m.close()

    async def with_server() -> None:
        async with server or nullcontext():
            await run()

    asyncio.run(with_server())


def test_start_checks_the_server(caplog: pytest.LogCaptureFixture) -> None:
    start(FakeServer())
    assert not caplog.records
    start(FakeServer(), name="typo")
    assert "does not list model.name=typo; it lists: fake" in caplog.text
    with pytest.raises(UserError, match=r"No model server answers at model.base_url=.*start_timeout=0.5"):
        start(None, start_timeout=0.5)
    with pytest.raises(UserError, match=r"wants a key.*OPENAI_API_KEY"):
        start(FakeServer(api_key="k"))


def test_start_waits_for_a_server_that_comes_up(request_for: Make) -> None:
    async def run() -> str:
        port = free_port()
        server, m = FakeServer(policy="late"), model(f"http://127.0.0.1:{port}/v1")

        async def later() -> None:
            await asyncio.sleep(0.4)
            await server.start(port=port)

        task = asyncio.create_task(later())
        await m.start()
        reply = await m.chat(request_for())
        await m.close()
        await task
        await server.stop()
        return reply.text

    assert asyncio.run(run()) == "late"


def test_is_a_model_and_survives_pickling_and_several_loops(request_for: Make) -> None:
    m = OpenAIModel(name="org/some-model", base_url="http://127.0.0.1:1/v1/", stop=["x"])
    assert isinstance(m, Model) and m.label == "some-model" and m.sampling.stop == ("x",)
    copy = pickle.loads(pickle.dumps(m))
    assert copy.base_url == m.base_url == "http://127.0.0.1:1/v1"

    async def run(m: OpenAIModel) -> None:
        async with FakeServer() as server:
            m.base_url = server.url
            await m.chat(request_for())
            again = pickle.loads(pickle.dumps(m))  # an open client stays behind
            await again.chat(request_for())
            await again.close()
            await m.close()

    for _ in range(2):
        asyncio.run(run(copy))


def test_concurrency_is_a_bound(request_for: Make) -> None:
    async def run() -> int:
        async with FakeServer(delay=0.02) as server:
            m = model(server.url, concurrency=3)
            await asyncio.gather(*(m.chat(request_for(str(i))) for i in range(12)))
            await m.close()
            return server.peak

    assert asyncio.run(run()) == 3


def test_cancelling_a_call_leaves_the_model_usable(request_for: Make) -> None:
    async def run() -> str:
        async with FakeServer(["never", {"content": "fine"}]) as server:
            m = model(server.url, concurrency=1)
            task = asyncio.create_task(m.chat(request_for()))
            await asyncio.sleep(0.1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            reply = await m.chat(request_for())
            await m.close()
            return reply.text

    assert asyncio.run(run()) == "fine"


# ------------------------------------------------------------------------------------------------------------------ cache


def test_cached_replies_need_no_server(request_for: Make, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = str(tmp_path / "cache.sqlite")
    server = FakeServer()

    async def run() -> None:
        await server.start()
        m = model(server.url, cache=path, price_in=1.0, price_out=1.0, start_timeout=0.3)
        first = await m.chat(request_for())
        again = await m.chat(request_for())
        assert not first.cached and again.cached and again.text == first.text and again.usage == first.usage
        await server.stop()
        await m.start()
        assert (await m.chat(request_for())).cached
        await m.close()

    asyncio.run(run())
    assert server.count == 1 and "only replies kept in model.cache" in caplog.text


def test_everything_that_changes_a_reply_has_its_own_slot(request_for: Make, tmp_path: Path) -> None:
    path = str(tmp_path / "cache.sqlite")
    server = FakeServer()
    variants: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({}, {}),
        ({"name": "other"}, {}),
        ({"extra_body": {"top_k": 1}}, {}),
        ({"max_tokens_field": "max_completion_tokens"}, {}),
        ({}, {"text": "other"}),
        ({}, {"seed": 1}),
        ({}, {"repeat": 1}),
        ({}, {"sampling": Sampling(temperature=0.5, max_tokens=64, seed=1)}),
        ({}, {"sampling": Sampling(temperature=0.5, max_tokens=64, seed=2)}),
        ({"omit": ["seed"]}, {"sampling": Sampling(temperature=0.5, max_tokens=64, seed=3)}),
        ({"omit": ["seed"]}, {"sampling": Sampling(temperature=0.5, max_tokens=64, seed=4)}),
        ({}, {"sampling": Sampling(max_tokens=65)}),
        ({}, {"sampling": Sampling(max_tokens=64, stop=("x",))}),
        ({}, {"messages": [Message("system", "hello")]}),
    ]

    async def run(cached: bool) -> None:
        for settings, given in variants:
            m = model(server.url, cache=path, **settings)
            assert (await m.chat(request_for(**given))).cached is cached
            await m.close()

    async def twice() -> None:
        async with server:
            await run(False)
            await run(True)

    asyncio.run(twice())
    assert server.count == len(variants)


def test_failures_are_not_cached(request_for: Make, tmp_path: Path) -> None:
    server = FakeServer(["bad_request", {"content": "good"}])

    async def run() -> Completion:
        async with server:
            m = model(server.url, cache=str(tmp_path / "c"))
            with pytest.raises(ModelError):
                await m.chat(request_for())
            reply = await m.chat(request_for())
            await m.close()
            return reply

    reply = asyncio.run(run())
    assert reply.text == "good" and not reply.cached


# ------------------------------------------------------------------------------------------------------------------- rank


def test_rank_takes_the_likeliest_action(request_for: Make) -> None:
    from fake_replies import logprob

    actions = ("go to desk 1", "go to desk 10", "open drawer 2", "look", "take mug 1 from desk 1")

    def score(action: str) -> float:
        words = ["<assistant>", "Action:", *action.split(), "<end>"]
        return sum(map(logprob, words)) / len(words)

    best = max(actions, key=score)
    server = FakeServer()
    (reply,) = chat(server, request_for("w " * 9, admissible=actions), decode="rank")
    assert reply.text == f"Action: {best}"
    assert reply.info["scores"][0] == [best, round(score(best), 4)]
    assert reply.usage.calls == server.count == len(actions) + 1
    (reply,) = chat(FakeServer(), request_for(admissible=("look",), form="think_answer"), decode="rank")
    assert reply.text == "<answer> look </answer>"


def test_rank_needs_a_server_that_can() -> None:
    start(FakeServer(), decode="rank")
    with pytest.raises(UserError, match=r"model.decode=rank needs a server that returns `prompt_logprobs`"):
        start(FakeServer(prompt_logprobs=False), decode="rank")


def test_rank_without_a_list_lets_the_model_write(request_for: Make) -> None:
    (reply,) = chat(FakeServer(policy="Action: look"), request_for(), decode="rank")
    assert reply.text == "Action: look" and reply.usage.calls == 1
