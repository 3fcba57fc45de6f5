"""Keys, start-up, cache and ranking of the OpenAI-compatible model."""

import asyncio
import pickle
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from fake_server import FakeServer
from openai_helpers import Make, chat, free_port, model

from agentexp.core import Completion, Message, Model, Sampling
from agentexp.errors import FatalError, ModelError, UserError
from agentexp.models.openai_api import OpenAIModel

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
        ({"base_url": "http://host/v1?api_key=secret"}, "without a query"),
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
