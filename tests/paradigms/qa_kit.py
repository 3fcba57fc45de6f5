"""Map QA by scripted explorers in one process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from paradigm_kit import InProcess

from agentexp.core import Env, Episode, Model, Task
from agentexp.models.scripted import ScriptedModel
from agentexp.paradigms.map import MapQa, NoStopping
from agentexp.rollout import Budget, Limits, World, run_episode


def ask(
    env: Env,
    task: Task,
    *,
    steps: int,
    policy: str = "curious",
    reader: Model | None = None,
    reader_kind: str = "rules",
    budget: Budget | None = None,
    limits: Limits = Limits(attempts=1),
    **settings: Any,
) -> Episode:
    """One Map QA episode: map for so many steps with a scripted explorer, then ask."""
    given: dict[str, Any] = {"stage1": False, "extractor": "rules", "stopping": NoStopping(t_min=None)}
    paradigm = MapQa(reader=reader_kind, **given | settings)  # type: ignore[arg-type]
    models: Mapping[str, Model] = {"actor": ScriptedModel(policy), **({"reader": reader} if reader else {})}

    @asynccontextmanager
    async def lease() -> AsyncIterator[World]:
        yield InProcess(env)

    return asyncio.run(run_episode(task, env, lease, models, paradigm, budget or Budget(steps, 1), limits))
