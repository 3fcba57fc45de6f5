"""What a paradigm may use outside its episodes: `RunContext` implements `agentexp.hooks.Context` for the runner."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

from agentexp.actions import ParseSettings
from agentexp.core import Completion, Env, Message, Model, Request, Step, Task, Usage, View, stable_seed
from agentexp.errors import UserError
from agentexp.rollout import World
from agentexp.store import RunFolder

SETUP_FILE = "setup.jsonl"


class RunContext:
    """See `agentexp.hooks.Context`. Every `ask` is one line of `setup.jsonl` in the run folder.

    Args:
        config: the run's resolved config.
        parsing: how replies are read.
        output_root: the folder above all run folders.
        open_lease: opens an engine.
        find_knowledge: finds or makes K_g.
        key: prefix of the conversations' names; unique per run.
    """

    def __init__(
        self,
        env: Env,
        models: Mapping[str, Model],
        run_folder: RunFolder,
        tasks: Sequence[Task],
        config: Mapping[str, Any],
        parsing: ParseSettings,
        output_root: Path,
        open_lease: Callable[[], AbstractAsyncContextManager[World]],
        find_knowledge: Callable[[], Awaitable[dict[str, Any]]],
        key: str,
    ) -> None:
        self.env, self.models, self.tasks = env, models, tasks
        self.folder: Path = run_folder.path
        self.config, self.parsing, self.output_root = config, parsing, output_root
        self.artefacts: Mapping[str, Any] = {}
        self.usage = Usage()
        self._run_folder, self._open_lease, self._find_knowledge, self._key = run_folder, open_lease, find_knowledge, key
        self._asked = 0

    async def ask(
        self, messages: Sequence[Message], *, purpose: str, role: str = "actor", max_tokens: int | None = None
    ) -> Completion:
        """One model call outside any episode; recorded with its prompt, reply and usage."""
        model = self.models.get(role) or self.models["actor"]
        self._asked += 1
        number = self._asked
        sampling = model.sampling if max_tokens is None else replace(model.sampling, max_tokens=max_tokens)
        if sampling.temperature > 0 and sampling.seed is None:
            sampling = replace(sampling, seed=stable_seed(self._key, purpose, number))
        request = Request(messages, sampling, purpose, "", self._view(), f"{self._key}|setup.{number}")
        completion = await model.chat(request)
        self.usage += completion.usage
        self._run_folder.append_to(
            SETUP_FILE,
            {
                "purpose": purpose,
                "role": role,
                "model": model.label,
                "messages": [message._asdict() for message in messages],
                "text": completion.text,
                "reasoning": completion.reasoning,
                "finish_reason": completion.finish_reason,
                "usage": completion.usage,
                "seconds": round(completion.seconds, 6),
                "retries": completion.retries,
                "cached": completion.cached,
            },
        )
        return completion

    def lease(self) -> AbstractAsyncContextManager[World]:
        """An engine for the time of the `async with` block."""
        return self._open_lease()

    async def knowledge(self) -> dict[str, Any]:
        """K_g of this world and model; explores now where no finished explore run exists."""
        return await self._find_knowledge()

    def _view(self) -> View:
        return View(
            task=self.tasks[0],
            goal="",
            phase="setup",
            step=Step(""),
            history=(),
            steps_left=0,
            map=None,
            knowledge=dict(self.artefacts),
            tracker=None,
            env=self.env,
            oracle=_no_oracle,
            memory={},
        )


async def _no_oracle() -> list[str]:
    raise UserError("A model call outside the episodes asked for expert actions. Use another model.policy for this role.")
