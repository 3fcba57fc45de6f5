"""The protocols of agentexp (Env, Model, Paradigm, Policy, FactTracker), beside its nouns (Task, Step, Episode; see `values`).

Everything else is written against this file. An environment knows nothing of language models; a model knows nothing of
environments, except through the `View` that scripted policies and likelihood ranking may look at; a paradigm is an ordinary
coroutine that drives both through a `Rollout`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from agentexp.values import (
    END_REASONS,
    SCHEMA_VERSION,
    Call,
    CognitiveMap,
    Completion,
    EnvCard,
    Episode,
    Fact,
    Message,
    Sampling,
    Step,
    StepRecord,
    Task,
    Usage,
    stable_seed,
)

if TYPE_CHECKING:
    from agentexp.rollout import Rollout

__all__ = [
    "END_REASONS",
    "SCHEMA_VERSION",
    "Call",
    "CognitiveMap",
    "Completion",
    "Env",
    "EnvCard",
    "Episode",
    "Fact",
    "FactTracker",
    "Message",
    "Model",
    "Paradigm",
    "Policy",
    "Request",
    "Sampling",
    "Step",
    "StepRecord",
    "Task",
    "Usage",
    "View",
    "stable_seed",
]

# ---------------------------------------------------------------------------------------------------------------- worlds


class FactTracker(Protocol):
    """Reads one exploration of one instance and counts knowledge without a model. Pure Python, lives in the parent process."""

    def observe(self, action: str | None, step: Step) -> list[Fact]:
        """Take in one step (action None for the reset) and return the facts that are new or changed by it."""
        ...

    def facts(self) -> list[Fact]:
        """Everything known now."""
        ...

    def mask(self, observation: str) -> str:
        """The observation with numbers, entity names and lists masked: the key for N(o_t) of the stop rule."""
        ...

    def place(self) -> str:
        """Where the agent is, with the state of that place ("fridge 1 open"); empty where the world has no places."""
        ...

    def map(self, goal: str) -> CognitiveMap:
        """The facts as a map: the rules extractor. `goal` may be empty."""
        ...


class Policy(Protocol):
    """A scripted agent for one episode; stateful, made anew for each episode."""

    def act(self, view: View) -> str:
        """The next action as plain text."""
        ...


@runtime_checkable
class Env(Protocol):
    """One world. Construction is cheap and starts no engine: the parent process uses `tasks`, `card` and the text-only
    capabilities, worker processes use `reset` and `step`. Synchronous, one episode at a time, one engine for its whole life.
    """

    name: str
    card: EnvCard

    def splits(self) -> Sequence[str]:
        """Names of the splits."""
        ...

    def tasks(self, split: str) -> list[Task]:
        """All instances of a split in their frozen order, seed 0. Raises `UserError` when data is missing or incomplete."""
        ...

    def reset(self, task: Task) -> Step:
        """Build the instance and return its first observation, with `goal` set."""
        ...

    def step(self, action: str) -> Step:
        """Carry out one action. Never raises because of the action's text."""
        ...

    def close(self) -> None:
        """Stop the engine. Safe to call twice."""
        ...

    def versions(self) -> dict[str, str]:
        """Versions of engine, data and logic, for the manifest. Must not start the engine."""
        ...


# ---------------------------------------------------------------------------------------------------------------- models


@dataclass(slots=True)
class View:
    """What scripted policies and likelihood ranking may see besides the messages. Language models get the messages only.

    Attributes:
        task: the instance.
        goal: the goal, empty while it is hidden.
        phase: "acting", "mapping", "exploring" ...
        step: the newest answer of the world.
        history: (action, answer) of this phase, oldest first.
        steps_left: environment steps left in this phase.
        map: M_t when acting on a map.
        knowledge: further knowledge by name ("k_g": dict of lists, "summary": str).
        tracker: reads the current exploration; None where the world has no facts.
        env: the parent-side world, for its card and policies (never steps it).
        oracle: expert actions from the current state (asks the worker); raises `UserError` where there is none.
        memory: a dict that lives as long as the episode; policies keep their state here.
    """

    task: Task
    goal: str
    phase: str
    step: Step
    history: Sequence[tuple[str, Step]]
    steps_left: int
    map: CognitiveMap | None
    knowledge: Mapping[str, Any]
    tracker: FactTracker | None
    env: Env
    oracle: Callable[[], Awaitable[list[str]]]
    memory: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Request:
    """One model call.

    Attributes:
        messages: the whole prompt.
        sampling: decoding settings.
        purpose: "act" for a reply that should be one action; otherwise the name of the prompt ("map_extractor" ...).
        form: the reply form of an action: "thought_action", "think_answer" or "map_think_act".
        view: see `View`.
        chat: name of the conversation within the episode; the same name with a longer prompt extends it (prefix caches).
    """

    messages: Sequence[Message]
    sampling: Sampling
    purpose: str
    form: str
    view: View
    chat: str


@runtime_checkable
class Model(Protocol):
    """A language model or a scripted stand-in. `start` and `close` bracket a run; both are idempotent."""

    label: str  # short name for folders and tables
    sampling: Sampling

    async def start(self) -> None:
        """Load weights, start a server, or check that the endpoint answers. Raises `UserError` when it cannot work."""
        ...

    async def chat(self, request: Request) -> Completion:
        """Answer. Raises `ModelError` after its own retries, `FatalError`, or `ContextOverflow`."""
        ...

    async def close(self) -> None:
        """Release everything."""
        ...

    def versions(self) -> dict[str, str]:
        """What produced the replies (package versions, weights' hash), for the manifest."""
        ...


# ------------------------------------------------------------------------------------------------------------- paradigms


class Paradigm(Protocol):
    """A way of running one episode. Control flow is ordinary Python over a `Rollout`."""

    name: str

    async def __call__(self, ro: Rollout) -> None:
        """Run the episode; `ro` records everything and raises `LimitReached` when a limit ends it."""
        ...
