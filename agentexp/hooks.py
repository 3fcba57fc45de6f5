"""What a paradigm may use outside its episodes: the hooks that the runner calls and the `Context` it hands to them.

An ordinary paradigm is only a coroutine over a `Rollout`. One that needs more has one of these methods, found by type:

* `plan(env, seed)` - the paradigm chooses its own tasks (`explore`); the runner then ignores `env.split` and `env.limit`.
* `prepare(ctx)` - awaited once before the first episode, also on resume. What it returns (JSON values) is recorded in
  `ARTEFACTS_FILE` and becomes `Rollout.artefacts` of every episode. It must return the same when a run is resumed, so
  what a model said is read from that file rather than asked again.
* `finalise(ctx, episodes)` - awaited once after the last episode, with all finished episodes of the run (also those of
  earlier, interrupted processes), in the order of the plan. What it returns (JSON values) is recorded as the run's result;
  K_g of an explore run is saved as `kg.json`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from agentexp.actions import ParseSettings
from agentexp.core import Completion, Env, Episode, Message, Model, Task, Usage
from agentexp.rollout import World

ARTEFACTS_FILE = "artefacts.json"  # in the run folder: what `prepare` returned, kept by the runner


class Context(Protocol):
    """One run as its paradigm sees it outside the episodes. Implemented by the runner.

    Attributes:
        env: the parent-side world: tasks, card, fact trackers. Never stepped.
        models: by role, with at least "actor"; started.
        folder: the run folder; exists.
        tasks: the plan of this run, repeats included.
        config: the resolved config of this run.
        parsing: how replies are read.
        output_root: the folder above all run folders, for what runs share.
        artefacts: what `prepare` returned; empty while `prepare` runs.
        usage: tokens and money of all `ask` calls of this context so far.
    """

    env: Env
    models: Mapping[str, Model]
    folder: Path
    tasks: Sequence[Task]
    config: Mapping[str, Any]
    parsing: ParseSettings
    output_root: Path
    artefacts: Mapping[str, Any]
    usage: Usage

    async def ask(
        self, messages: Sequence[Message], *, purpose: str, role: str = "actor", max_tokens: int | None = None
    ) -> Completion:
        """One model call outside any episode. Adds to `usage` and is recorded with the run.

        Args:
            messages: the whole prompt.
            purpose: name of the prompt ("map_distiller" ...); becomes `Request.purpose`.
            role: a role that is missing falls back to "actor", as in episodes.
            max_tokens: replaces the model's own setting.

        Raises:
            ContextOverflow: the prompt does not fit.
            ModelError: the call failed for good after the model's own retries.
        """
        ...

    def lease(self) -> AbstractAsyncContextManager[World]:
        """An engine of `env` for the time of the `async with` block (demonstrations, checks)."""
        ...

    async def knowledge(self) -> dict[str, Any]:
        """K_g of this world and model: the document that `GlobalExploration.finalise` returned, made now if need be.

        The runner looks for a finished explore run of the same env, model and code under the output root, or runs one.
        """
        ...


@runtime_checkable
class Plans(Protocol):
    """The paradigm chooses the tasks."""

    def plan(self, env: Env, seed: int) -> list[Task]:
        """Tasks to run, with `seed` set. Raises `UserError` when the world cannot provide them."""
        ...


@runtime_checkable
class Prepares(Protocol):
    """The paradigm needs something before the first episode."""

    async def prepare(self, ctx: Context) -> dict[str, Any]:
        """Check the settings against the world and return the artefacts for the episodes; raises `UserError`."""
        ...


@runtime_checkable
class Finalises(Protocol):
    """The paradigm makes something out of all episodes."""

    async def finalise(self, ctx: Context, episodes: Sequence[Episode]) -> dict[str, Any]:
        """The run's result (JSON values)."""
        ...
