"""What the tests of the OpenAI-compatible model share."""

import asyncio
import socket
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from fake_server import FakeServer

from agentexp.core import Completion, Request
from agentexp.models.openai_api import OpenAIModel

Make = Callable[..., Request]


def model(url: str, **given: Any) -> OpenAIModel:
    settings = {"name": "fake", "base_url": url, "max_tokens": 64, "request_timeout": 30.0, "total_timeout": 60.0, **given}
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


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port: int = s.getsockname()[1]
        return port
