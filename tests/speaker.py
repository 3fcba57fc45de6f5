"""A model that says what it was told to."""

from __future__ import annotations

from agentexp.core import Completion, Request, Sampling, Usage


class Speaker:
    """A model that says the lines it was given, then the last one for ever."""

    label = "speaker"
    sampling = Sampling()

    def __init__(self, *lines: str | Completion | Exception) -> None:
        self.lines = list(lines)
        self.requests: list[Request] = []

    async def start(self) -> None: ...
    async def close(self) -> None: ...

    def versions(self) -> dict[str, str]:
        return {}

    async def chat(self, request: Request) -> Completion:
        line = self.lines[min(len(self.requests), len(self.lines) - 1)]
        self.requests.append(request)
        if isinstance(line, Exception):
            raise line
        return line if isinstance(line, Completion) else Completion(line, usage=Usage(10, 5, 0, 1, 0.01))
