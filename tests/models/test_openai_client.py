"""What goes over the connection: headers, proxies, redirects, odd failures."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from openai_helpers import Make, model

from agentexp.core import Completion
from agentexp.errors import FatalError, ModelError, UserError
from agentexp.models.openai_client import proxy_for

OK = b'{"choices": [{"message": {"content": "Action: look"}, "finish_reason": "stop"}]}'
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


def answer(body: bytes, status: str = "200 OK", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", "Content-Type: application/json", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


def exchange(answers: list[bytes], use: Callable[[str], Awaitable[Any]]) -> list[str]:
    """Serve the answers, one per request, while `use` runs with the server's address; return the requests' heads."""
    heads: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while answers:
            try:
                head = await reader.readuntil(b"\r\n\r\n")
            except asyncio.IncompleteReadError:
                break
            heads.append(head.decode())
            length = [line.split(":")[1] for line in heads[-1].splitlines() if line.lower().startswith("content-length")]
            await reader.readexactly(int(length[0]) if length else 0)
            writer.write(answers.pop(0))
            await writer.drain()
        writer.close()

    async def run() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        async with server:
            await use(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")

    asyncio.run(run())
    return heads


def caller(request: Any, path: str = "/v1", **given: Any) -> Callable[[str], Awaitable[Completion]]:
    async def call(address: str) -> Completion:
        m = model(given.pop("base_url", address + path), **given)
        try:
            return await m.chat(request)
        finally:
            await m.close()

    return call


def test_the_headers_are_those_that_openai_wants(request_for: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-1")

    async def both(address: str) -> None:
        m = model(address + "/v1")
        await m.start()
        await m.chat(request_for())
        await m.close()

    get, post = exchange([answer(b'{"data": [{"id": "fake"}]}'), answer(OK)], both)
    assert get.startswith("GET /v1/models HTTP/1.1") and post.startswith("POST /v1/chat/completions HTTP/1.1")

    def fields(head: str) -> dict[str, str]:
        pairs = (line.split(": ", 1) for line in head.strip().splitlines()[1:])
        return {name.lower(): value for name, value in pairs if name.lower() not in ("content-length", "connection")}

    assert fields(post) == fields(get) and fields(post)["content-type"] == fields(post)["accept"] == "application/json"
    assert fields(post)["user-agent"].startswith("agentexp/")
    assert fields(post)["authorization"] == "Bearer sk-test-0123456789"
    assert (fields(post)["openai-organization"], fields(post)["openai-project"]) == ("org-1", "proj-1")


def test_a_proxy_of_the_environment_is_used(request_for: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    async def through(address: str) -> None:
        monkeypatch.setenv("HTTP_PROXY", address.replace("://", "://me:secret@"))
        m = model("http://far.example/v1")
        await m.start()
        assert (await m.chat(request_for())).text == "Action: look"
        await m.close()

    get, post = exchange([answer(b'{"data": [{"id": "fake"}]}'), answer(OK)], through)
    assert get.startswith("GET http://far.example/v1/models ")
    assert post.startswith("POST http://far.example/v1/chat/completions ")
    assert all("proxy-authorization: basic bWU6c2VjcmV0".lower() in head.lower() for head in (get, post))


def test_a_proxy_that_is_away_does_not_tell_its_password(request_for: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://me:s3cret@127.0.0.1:9")
    with pytest.raises(ModelError, match=r"the connection to http://far.example/v1 failed \(ConnectionRefused") as caught:
        exchange([], caller(request_for(), base_url="http://far.example/v1", max_retries=0))
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("environment", "url", "proxy"),
    [
        ({}, "http://h/v1", None),
        ({"HTTP_PROXY": "http://p:1"}, "http://h/v1", "http://p:1"),
        ({"HTTP_PROXY": "p:1"}, "http://h/v1", "http://p:1"),
        ({"HTTP_PROXY": "http://p:1"}, "https://h/v1", None),
        ({"HTTPS_PROXY": "http://p:1", "ALL_PROXY": "http://q:1"}, "https://h/v1", "http://p:1"),
        ({"ALL_PROXY": "http://q:1"}, "https://h/v1", "http://q:1"),
        ({"HTTP_PROXY": "http://p:1", "NO_PROXY": "x.org, 127.0.0.1,localhost"}, "http://127.0.0.1:8000/v1", None),
        ({"HTTP_PROXY": "http://p:1", "NO_PROXY": "example.com"}, "http://api.example.com/v1", None),
        ({"HTTP_PROXY": "http://p:1", "NO_PROXY": "example.com"}, "http://example.org/v1", "http://p:1"),
        ({"HTTP_PROXY": "http://p:1", "NO_PROXY": "a, *"}, "http://h/v1", None),
    ],
)
def test_which_proxy(environment: dict[str, str], url: str, proxy: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert proxy_for(url) == proxy


def test_a_proxy_of_another_kind_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5://me:s3cret@p:1")
    with pytest.raises(UserError, match=r"socks5 proxy.*ALL_PROXY") as caught:
        proxy_for("http://h/v1")
    assert "s3cret" not in str(caught.value)


def test_redirects_are_followed_with_the_body(request_for: Make) -> None:
    moved = answer(b"", "307 Temporary Redirect", "Location: /elsewhere/chat/completions")
    first, second = exchange([moved, answer(OK)], caller(request_for()))
    assert first.startswith("POST /v1/") and second.startswith("POST /elsewhere/chat/completions")


def test_answers_that_are_no_http_are_tried_again(request_for: Make) -> None:
    heads = exchange([b"SSH-2.0-OpenSSH\r\n\r\n", answer(OK)], caller(request_for()))
    assert len(heads) == 2


def test_a_status_without_meaning_is_no_reply(request_for: Make) -> None:
    with pytest.raises(ModelError, match="HTTP 304"):
        exchange([answer(b"", "304 Not Modified")], caller(request_for(), max_retries=0))


def test_an_error_in_a_compressed_body_is_read(request_for: Make) -> None:
    import gzip

    body = gzip.compress(b'{"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}')
    with pytest.raises(FatalError, match="no quota left"):
        exchange([answer(body, "429 Too Many Requests", "Content-Encoding: gzip")], caller(request_for()))


def test_a_host_that_cannot_be_looked_up_is_a_failed_connection(request_for: Make) -> None:
    for host in ("a" * 70 + ".example", "nowhere.invalid"):
        with pytest.raises(ModelError, match=r"the connection to .* failed \("):
            asyncio.run(caller(request_for(), base_url=f"http://{host}/v1", max_retries=0)(""))
