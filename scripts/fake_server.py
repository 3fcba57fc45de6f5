"""A scripted OpenAI-compatible server: deterministic replies, and every way in which a real server fails.

    python scripts/fake_server.py --policy first --delay 0.05
    python scripts/fake_server.py --script '["rate_limit", "server_error", {"do": "ok", "content": "Action: look"}]'
    python scripts/fake_server.py --script '[{"do": "drop", "every": 7}]'        # a soak test

The address is the first line printed. The script's entries are used up one per request, in order (`times` repeats one); an
entry with `every` = k stays and strikes at each k-th request. An entry is a name in `KINDS` or an object with keys of `Entry`
(fake_replies.py). Without an entry, the policy answers. `GET /log`, `DELETE /log`, `POST /script` inspect and steer the server.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import subprocess
import sys
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from aiohttp import web
from fake_replies import CONTEXT_WORDINGS, Entry, logprob, policy_reply, tokens


class FakeServer:
    """The server. `start` gives the address; `requests` is the log, `peak` the most requests in flight at once."""

    def __init__(
        self,
        script: Sequence[str | dict[str, Any]] = (),
        *,
        policy: str = "hash",
        delay: float = 0.0,
        model: str = "fake",
        api_key: str = "",
        context_limit: int | None = None,
        wording: str = "openai",
        prompt_logprobs: bool = True,
        strict_model: bool = False,
        always_stream: bool = False,
        log: bool = True,
    ) -> None:
        self.policy, self.delay, self.model, self.api_key = policy, delay, model, api_key
        self.context_limit, self.wording = context_limit, wording
        self.prompt_logprobs, self.strict_model, self.log = prompt_logprobs, strict_model, log
        self.always_stream = always_stream
        self.requests: list[dict[str, Any]] = []
        self.count = self.flying = self.peak = 0
        self.injected: Counter[str] = Counter()
        self.delivered = Counter(calls=0, prompt_tokens=0, completion_tokens=0)  # as far as the server knows
        self._connections: set[asyncio.Transport] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.load(script)

    def load(self, script: Sequence[str | dict[str, Any]]) -> None:
        """Replace the script."""
        entries = [Entry.of(value) for value in script]
        self._standing = [entry for entry in entries if entry.every]
        self._queue = deque(entry for entry in entries if not entry.every for _ in range(entry.times))

    # ------------------------------------------------------------------------------------------------------ life

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> str:
        """Listen; port 0 lets the system choose. Returns the base URL, ending in /v1."""
        app = web.Application(client_max_size=1 << 28)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_get("/v1/models", self._models)
        app.router.add_get("/log", self._log)
        app.router.add_delete("/log", self._clear)
        app.router.add_post("/script", self._script)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        self._host = host
        self._site = web.TCPSite(self._runner, host, port)
        await self._site.start()
        self.port: int = self._runner.addresses[0][1]
        self.url = f"http://{host}:{self.port}/v1"
        return self.url

    async def stop(self) -> None:
        """Close everything, also requests that are never answered."""
        for task in self._tasks:
            task.cancel()
        for transport in self._connections:
            transport.abort()
        await self._runner.cleanup()

    async def __aenter__(self) -> FakeServer:
        await self.start()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.stop()

    async def _die(self, seconds: float) -> None:
        await self._site.stop()
        for transport in self._connections:
            transport.abort()
        await asyncio.sleep(seconds)
        self._site = web.TCPSite(self._runner, self._host, self.port, reuse_address=True)
        await self._site.start()

    # ------------------------------------------------------------------------------------------------------ control

    async def _models(self, request: web.Request) -> web.Response:
        if self.api_key and request.headers.get("Authorization") != f"Bearer {self.api_key}":
            return _error(401, "Incorrect API key provided.", "invalid_api_key")
        return web.json_response({"object": "list", "data": [{"id": self.model, "object": "model", "owned_by": "fake"}]})

    async def _log(self, request: web.Request) -> web.Response:
        state = {"count": self.count, "peak": self.peak, "injected": self.injected, "delivered": self.delivered}
        return web.json_response({**state, "requests": self.requests})

    async def _clear(self, request: web.Request) -> web.Response:
        self.requests.clear()
        self.count = self.peak = 0
        return web.json_response({})

    async def _script(self, request: web.Request) -> web.Response:
        try:
            self.load(await request.json())
        except SystemExit as error:
            return _error(400, str(error))
        return web.json_response({})

    # ------------------------------------------------------------------------------------------------------ answers

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        transport = request.transport
        if transport is None:  # the client has gone already
            return web.Response()
        self._connections.add(transport)
        self.count += 1
        self.flying += 1
        self.peak = max(self.peak, self.flying)
        entry = self._next()
        self.injected[entry.kind] += 1
        key = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if self.log:
            self.requests.append({"time": time.time(), "has_key": key not in ("", "none"), "body": body})
        try:
            await asyncio.sleep(self.delay if entry.delay is None else entry.delay)
            if entry.fault == "never":
                await asyncio.Event().wait()
            if entry.fault == "drop":
                transport.abort()
            if entry.fault == "die":
                task = asyncio.create_task(self._die(entry.down))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
                await asyncio.sleep(entry.down)
            return await self._respond(request, body, entry, key)
        finally:
            self.flying -= 1
            if transport.is_closing():
                self._connections.discard(transport)

    def _next(self) -> Entry:
        for entry in self._standing:
            if self.count % entry.every == 0:
                return entry
        return self._queue.popleft() if self._queue else Entry()

    async def _respond(self, request: web.Request, body: dict[str, Any], entry: Entry, key: str) -> web.StreamResponse:
        if self.api_key and key != self.api_key:
            entry = replace(Entry.of("no_key"), delay=entry.delay)
        elif self.strict_model and body.get("model") != self.model:
            entry = Entry.of("no_model")
        headers = dict(entry.headers)
        if entry.retry_after:
            headers["Retry-After"] = entry.retry_after
        n = len(tokens(body["messages"]))
        wording = entry.context or (self.wording if self.context_limit is not None and n > self.context_limit else "")
        if wording:
            status, error = CONTEXT_WORDINGS[wording]
            limit = self.context_limit or 4096
            slots = {"limit": limit, "n": max(n, limit + 1), "asked": body.get("max_tokens")}
            text = json.dumps({"error": error})
            for name, value in slots.items():
                text = text.replace(f"{{{name}}}", str(value))
            return web.Response(text=text, status=status, content_type="application/json", headers=headers)
        streams = self.always_stream or bool(body.get("stream"))
        if entry.raw is not None and streams and entry.status == 200:
            return await _send(request, [f"data: {entry.raw}\n\n".encode(), _DONE], "text/event-stream", entry.fault)
        if entry.raw is not None:
            return web.Response(text=entry.raw, status=entry.status, content_type="application/json", headers=headers)
        if entry.status >= 400:
            message = entry.message.replace("{key}", key).replace("{model}", str(body.get("model")))
            return _error(entry.status, message, entry.code, headers)
        reply = self._completion(body, entry, n)
        kind = "text/event-stream" if streams else "application/json"
        if entry.fault in ("truncate", "stall"):
            return await _send(request, events(reply) if streams else [json.dumps(reply).encode()], kind, entry.fault)
        answer = await _send(request, events(reply), kind) if streams else web.json_response(reply, headers=headers)
        if request.transport is not None and not request.transport.is_closing():  # else nobody waits for it any more
            self.delivered["calls"] += 1
            usage = reply.get("usage") or {}
            self.delivered.update({name: usage.get(name, 0) for name in ("prompt_tokens", "completion_tokens")})
        return answer

    def _completion(self, body: dict[str, Any], entry: Entry, n: int) -> dict[str, Any]:
        content = entry.content
        if content == "":
            content = " ".join(f"w{i}" for i in range(entry.words)) if entry.words else policy_reply(
                self.policy, body["messages"], body.get("seed")
            )  # fmt: skip
        message: dict[str, Any] = {"role": "assistant", "content": content}
        if entry.reasoning:
            message[entry.reasoning_field] = entry.reasoning
        out = len((content or "").split()) + len(entry.reasoning.split())
        reply: dict[str, Any] = {
            "id": f"chatcmpl-{self.count}",
            "object": "chat.completion",
            "created": 0,
            "model": entry.model or body.get("model", self.model),
            "choices": [{"index": 0, "message": message, "finish_reason": entry.finish_reason}],
        }
        if entry.usage is not False:
            counts = {"prompt_tokens": n, "completion_tokens": out, "total_tokens": n + out}
            reply["usage"] = counts if entry.usage is True else {**counts, **entry.usage}
        if self.prompt_logprobs and body.get("prompt_logprobs") is not None:
            reply["prompt_logprobs"] = [{str(i): {"logprob": logprob(t)}} for i, t in enumerate(tokens(body["messages"]))]
            reply["prompt_logprobs"][0] = None
        return reply


def _error(status: int, message: str, code: str | None = None, headers: dict[str, str] | None = None) -> web.Response:
    error = {"message": message, "type": code or "error", "param": None, "code": code}
    return web.json_response({"error": error}, status=status, headers=headers)


_DONE = b"data: [DONE]\n\n"


async def _send(request: web.Request, pieces: list[bytes], kind: str, fault: str = "") -> web.StreamResponse:
    """Answer in pieces; with a fault half of the bytes, and then nothing more: the connection closes, or stays open."""
    payload = b"".join(pieces)
    response = web.StreamResponse(headers={"Content-Type": kind})
    if kind == "application/json":
        response.content_length = len(payload)
    with suppress(ConnectionResetError):  # the client has gone
        await response.prepare(request)
        if fault:
            await response.write(payload[: len(payload) // 2])
            if fault == "stall":
                await asyncio.Event().wait()
            if request.transport is not None:
                request.transport.close()
            return response
        for i in range(0, len(pieces), 50):
            await response.write(b"".join(pieces[i : i + 50]))
    return response


def events(reply: dict[str, Any]) -> list[bytes]:
    """The reply as server-sent events: role, reasoning, words, finish reason, token counts, end."""
    choice = reply["choices"][0]
    base = {name: reply[name] for name in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    deltas: list[tuple[dict[str, Any], str | None]] = [({"role": "assistant"}, None)]
    for field, text in choice["message"].items():
        if field != "role":
            deltas += [({field: piece}, None) for piece in re.findall(r"\S+\s*", text or "")]
    chunks = [
        {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
        for delta, finish in [*deltas, ({}, choice["finish_reason"])]
    ]
    if "usage" in reply:
        chunks.append({**base, "choices": [], "usage": reply["usage"]})
    return [*(f"data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks), _DONE]


@contextmanager
def spawn(*options: str) -> Iterator[str]:
    """Run the server with these command-line options in another process; yields its base URL."""
    process = subprocess.Popen([sys.executable, __file__, *options], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        if not url.startswith("http"):
            raise RuntimeError(f"The fake server did not start: {url or 'no output'}")
        yield url
    finally:
        process.terminate()
        process.wait(10)


async def _serve(server: FakeServer, host: str, port: int) -> None:
    print(await server.start(host, port), flush=True)
    try:
        await asyncio.Event().wait()
    finally:
        await server.stop()


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0: the system chooses")
    parser.add_argument("--script", default="[]", help="JSON list, or a file holding one")
    parser.add_argument("--policy", default="hash", help="first, hash, or the text of every reply")
    parser.add_argument("--delay", type=float, default=0.0, help="seconds before each reply")
    parser.add_argument("--model", default="fake")
    parser.add_argument("--api-key", default="", help="answer 401 to any other key")
    parser.add_argument("--context-limit", type=int, help="tokens (words) above which a prompt is refused")
    parser.add_argument("--wording", default="openai", choices=sorted(CONTEXT_WORDINGS))
    parser.add_argument("--always-stream", action="store_true", help="answer in events also where nobody asked for them")
    parser.add_argument("--no-log", action="store_true", help="keep no request bodies")
    args = parser.parse_args()
    text = args.script if args.script.lstrip().startswith("[") else Path(args.script).read_text(encoding="utf-8")
    server = FakeServer(
        json.loads(text),
        policy=args.policy,
        delay=args.delay,
        model=args.model,
        api_key=args.api_key,
        context_limit=args.context_limit,
        wording=args.wording,
        always_stream=args.always_stream,
        log=not args.no_log,
    )
    with suppress(KeyboardInterrupt):
        asyncio.run(_serve(server, args.host, args.port))


if __name__ == "__main__":
    main()
