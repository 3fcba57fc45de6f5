import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from agentexp.core import Env, Message, Request, Sampling, Step, Task, View

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))  # fake_server.py


async def no_oracle() -> list[str]:
    return []


@pytest.fixture
def request_for() -> Callable[..., Request]:
    """Makes requests; keyword arguments: text or messages, sampling, chat, seed, repeat, admissible, form."""

    def make(text: str = "hello", **given: Any) -> Request:
        task = Task("t", "fake", "test", seed=given.get("seed", 0), repeat=given.get("repeat", 0))
        step = Step("o", admissible=given.get("admissible"))
        view = View(task, "g", "acting", step, [], 9, None, {}, None, cast(Env, None), no_oracle, {})
        messages = given.get("messages") or [Message("user", text)]
        sampling = given.get("sampling") or Sampling(max_tokens=64)
        return Request(messages, sampling, "act", given.get("form", "thought_action"), view, given.get("chat", "c"))

    return make


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
