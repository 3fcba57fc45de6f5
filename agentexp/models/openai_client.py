"""The connection to an OpenAI-compatible server: key, SDK client, slots and cache of one event loop.

Nothing here can be pickled, and nothing here is needed to make a model: `OpenAIModel` opens a session in the loop it runs in.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentexp.errors import FatalError, MissingDependency, ModelError, UserError
from agentexp.models import openai_wire as wire
from agentexp.models.cache import ResponseCache
from agentexp.models.limiter import Limiter, Transient
from agentexp.models.openai_errors import Endpoint, explain

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from openai._types import RequestOptions

OPENAI_URL = "https://api.openai.com/v1"

_TELEMETRY = tuple(f"X-Stainless-{x}" for x in ("Lang", "Package-Version", "OS", "Arch", "Runtime", "Runtime-Version", "Async"))
_PER_REQUEST = ("x-stainless-retry-count", "x-stainless-read-timeout")


@dataclass(frozen=True, slots=True)
class KeySource:
    """Where the API key is read from: an environment variable, or a file if one is named. Holds no key."""

    variable: str
    file: str | None

    def __str__(self) -> str:
        return f"file {self.file}" if self.file else f"environment variable {self.variable}"

    def read(self, base_url: str) -> str:
        """The key; empty where there is none and the server is not OpenAI's own.

        Raises:
            UserError: the file cannot be read, the key is malformed, or OpenAI's server would get none.
        """
        if self.file:
            try:
                secret = Path(self.file).expanduser().read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError) as error:
                raise UserError(f"The key file model.api_key_file={self.file} cannot be read.") from error
        else:
            secret = os.environ.get(self.variable, "").strip()
        if not secret and base_url == OPENAI_URL:
            raise UserError(f"OpenAI's server needs a key: put it into the {self}, or set model.base_url to another server.")
        if not secret.isascii() or any(c.isspace() for c in secret):
            raise UserError(f"The {self} holds no usable key: there are spaces, line breaks or non-ASCII characters in it.")
        return secret


class Session:
    """Client, slots and cache of one event loop."""

    def __init__(self, name: str, base_url: str, source: KeySource, concurrency: int, cache: str | None) -> None:
        secret = source.read(base_url)
        self.client, self._options = _client(secret, base_url)
        self.limiter = Limiter(concurrency)
        self.cache = ResponseCache(cache) if cache else None
        self.endpoint = Endpoint(name, base_url, str(source), bool(secret), key=secret)

    async def post(self, content: bytes, at: Endpoint) -> dict[str, Any]:
        """One attempt at /chat/completions. Every failure comes out as `Transient` or as one of our errors."""
        data = await self._guard(
            self.client.post("/chat/completions", cast_to=bytes, content=content, options=self._options), at
        )
        reply = wire.decode(data)
        if reply.get("error") and not reply.get("choices"):  # gateways wrap an upstream's error into HTTP 200
            code = reply["error"].get("code") if isinstance(reply["error"], dict) else None
            raise explain(code if isinstance(code, int) and code >= 400 else 502, {}, data, at)
        return reply

    async def models(self) -> list[str]:
        """Names that the server lists; empty where it has no list. One attempt.

        Raises:
            FatalError: the key is missing or refused.
            Transient: no connection.
        """
        try:
            data = await self._guard(self.client.get("/models", cast_to=bytes))
        except FatalError as error:
            if "HTTP 401" in str(error):
                raise
            return []
        except ModelError:
            return []
        listed = wire.decode(data).get("data") or []
        return [str(model.get("id")) for model in listed if isinstance(model, dict)]

    async def _guard(self, call: Awaitable[bytes], at: Endpoint | None = None) -> bytes:
        import openai

        at = at or self.endpoint
        try:
            return await call
        except openai.APIStatusError as error:
            raise explain(error.status_code, error.response.headers, error.response.content, at) from None
        except openai.APIConnectionError as error:  # timeouts included: aiohttp's transport mixes the two up
            raise Transient(f"the connection to {at.base_url} failed ({_root(error)})") from None

    async def close(self) -> None:
        """Close connections and cache."""
        await self.client.close()
        if self.cache is not None:
            self.cache.close()


def _client(secret: str, base_url: str) -> tuple[AsyncOpenAI, RequestOptions]:
    """The SDK's client, and the options of every request."""
    try:
        import openai

        # A plain http server needs no certificates, and loading them costs tens of milliseconds.
        transport = openai.DefaultAioHttpClient(timeout=None, verify=base_url.startswith("https:"))
    except (ImportError, RuntimeError) as error:
        raise MissingDependency("model=openai needs `pip install 'openai[aiohttp]'`.") from error
    # Time limits and retries are ours (limiter.py): two layers would multiply. The SDK insists on a key; servers that want none
    # ignore it. Headers about this machine are left out: they tell the server nothing it needs and cost CPU time on every call.
    quiet = dict.fromkeys(_TELEMETRY, openai.Omit())
    client = openai.AsyncOpenAI(
        api_key=secret or "none",
        base_url=base_url,
        max_retries=0,
        timeout=None,
        http_client=transport,
        default_headers=quiet,  # type: ignore[arg-type]  # Omit is allowed, but not by the annotation
    )
    return client, {"headers": dict.fromkeys(_PER_REQUEST, openai.Omit())}


def _root(error: BaseException) -> str:
    """The innermost cause, which names what happened; the SDK's own texts do not."""
    while error.__cause__ is not None:
        error = error.__cause__
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
