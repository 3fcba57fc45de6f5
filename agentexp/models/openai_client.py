"""The connection to an OpenAI-compatible server: key, client, slots and cache of one event loop.

Requests are made with aiohttp, over which the SDK of OpenAI can run too: importing that SDK takes longer than all the rest of a
start, and each of its requests costs a millisecond of CPU time and more.

Nothing here can be pickled, and nothing here is needed to make a model: `OpenAIModel` opens a session in the loop it runs in.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from agentexp import __version__
from agentexp.errors import FatalError, MissingDependency, ModelError, UserError
from agentexp.models import openai_events
from agentexp.models import openai_wire as wire
from agentexp.models.cache import ResponseCache
from agentexp.models.limiter import Limiter, Transient
from agentexp.models.openai_errors import Endpoint, explain
from agentexp.scrub import remember

if TYPE_CHECKING:
    import ssl

    import aiohttp

OPENAI_URL = "https://api.openai.com/v1"

_OF_OPENAI = {
    "OpenAI-Organization": "OPENAI_ORG_ID",
    "OpenAI-Project": "OPENAI_PROJECT_ID",
}  # the SDK reads these variables too
_CONNECTIONS = 1000  # most at once; `concurrency` usually is the narrower bound


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
        remember(secret)
        return secret


class Session:
    """Client, slots and cache of the running event loop."""

    def __init__(self, name: str, base_url: str, source: KeySource, concurrency: int, cache: str | None) -> None:
        secret = source.read(base_url)
        self._proxy = proxy_for(base_url)
        self._http = _client(secret, base_url)
        self._url = f"{base_url}/chat/completions"
        self.limiter = Limiter(concurrency)
        self.conversations = wire.Conversations()
        self.cache = ResponseCache(cache) if cache else None
        self.endpoint = Endpoint(name, base_url, str(source), bool(secret), key=secret)

    async def post(self, content: bytes, at: Endpoint) -> dict[str, Any]:
        """One attempt at /chat/completions. Every failure comes out as `Transient` or as one of our errors."""
        response, data = await self._request("POST", self._url, content, at)
        reply = openai_events.join(data) if response.content_type == "text/event-stream" else wire.decode(data)
        if reply.get("error") and not reply.get("choices"):  # gateways wrap an upstream's error into HTTP 200
            code = reply["error"].get("code") if isinstance(reply["error"], dict) else None
            raise explain(code if isinstance(code, int) and code >= 400 else 500, {}, data, at)
        return reply

    async def models(self) -> list[str]:
        """Names that the server lists; empty where it has no list. One attempt.

        Raises:
            FatalError: the key is missing or refused.
            Transient: no connection.
        """
        try:
            _, data = await self._request("GET", f"{self.endpoint.base_url}/models", None, self.endpoint)
        except FatalError as error:
            if "HTTP 401" in str(error):
                raise
            return []
        except ModelError:
            return []
        listed = wire.decode(data).get("data") or []
        return [str(model.get("id")) for model in listed if isinstance(model, dict)]

    async def _request(
        self, method: str, url: str, content: bytes | None, at: Endpoint
    ) -> tuple[aiohttp.ClientResponse, bytes]:
        import aiohttp

        try:
            async with self._http.request(method, url, data=content, proxy=self._proxy) as response:
                data = await response.read()
        except (aiohttp.ClientError, OSError, UnicodeError) as error:  # the last: a host name that cannot be looked up
            raise self._no_connection(error) from None
        if not 200 <= response.status < 300:
            raise explain(response.status, response.headers, data, at)
        return response, data

    def _no_connection(self, error: BaseException) -> Transient:
        return Transient(f"the connection to {self.endpoint.base_url} failed ({self.endpoint.scrub(_root(error))})")

    async def close(self) -> None:
        """Close connections and cache."""
        await self._http.close()
        if self.cache is not None:
            self.cache.close()


def _client(secret: str, base_url: str) -> aiohttp.ClientSession:
    """aiohttp's client with OpenAI's headers. Time limits and retries are ours (limiter.py): two layers would multiply."""
    try:
        import aiohttp

        trust: ssl.SSLContext | bool = True
        if base_url.startswith("https:"):  # a plain http server needs no certificates, and loading them takes a while
            import httpx2

            trust = httpx2.create_ssl_context()
    except ImportError as error:
        raise MissingDependency("model=openai needs `pip install aiohttp httpx2`.") from error
    headers = {
        "Accept": "application/json",
        "Content-Type": "application/json",
        "User-Agent": f"agentexp/{__version__}",
        "Authorization": f"Bearer {secret or 'none'}",  # servers that want none ignore it
    }
    headers |= {name: value for name, variable in _OF_OPENAI.items() if (value := os.environ.get(variable))}
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=_CONNECTIONS, ssl=trust),
        headers=headers,
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
    )


def proxy_for(base_url: str) -> str | None:
    """The proxy that the environment names for `base_url` (HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY), or None.

    Looked up once and not for every request as aiohttp does, which asks another thread each time.

    Raises:
        UserError: it is no http proxy.
    """
    parts = urlsplit(base_url)
    known = getproxies()
    proxy = known.get(parts.scheme) or known.get("all")
    direct = "*" in (host.strip() for host in known.get("no", "").split(","))
    if not proxy or direct or proxy_bypass(parts.netloc):
        return None
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    if urlsplit(proxy).scheme not in ("http", "https"):
        raise UserError(
            f"{base_url} would be reached through a {urlsplit(proxy).scheme} proxy, and only http proxies are possible: change "
            "HTTP_PROXY, HTTPS_PROXY or ALL_PROXY, or list the host in NO_PROXY."
        )
    return proxy


def _root(error: BaseException) -> str:
    """The innermost cause, which names what happened; the SDK's own texts do not."""
    while error.__cause__ is not None:
        error = error.__cause__
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
