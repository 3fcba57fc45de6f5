"""The nouns of agentexp: what worlds and models are given and answer, and the record of an episode. Plain values, no behaviour.

They are imported from `agentexp.core`, which has the protocols as well.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

# ---------------------------------------------------------------------------------------------------------------- worlds


@dataclass(frozen=True, slots=True)
class Task:
    """One instance of one world. Frozen and serialisable; together with the code it determines the episode.

    Attributes:
        id: stable name of the instance inside its split (a game path, an item, "task/variation").
        env: name of the world, as in `env=`.
        split: name of the split.
        seed: the run's seed. Paradigms are compared on equal (id, seed).
        repeat: 0-based repetition of the same (id, seed), for sampled models.
        kind: task type, for grouping in tables ("pick_and_place_simple"); empty where the world has none.
        spec: what the world needs to build the instance; JSON values only, no absolute paths.
    """

    id: str
    env: str
    split: str
    seed: int = 0
    repeat: int = 0
    kind: str = ""
    spec: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Unique within a run: one finished episode per key."""
        return f"{self.env}/{self.split}/{self.id}#seed{self.seed}.{self.repeat}"

    @property
    def instance_seed(self) -> int:
        """Seed of the engine: a hash of (env, id, seed), equal for all paradigms and repeats, in [0, 2**31)."""
        return stable_seed(self.env, self.id, self.seed)


def stable_seed(*parts: object) -> int:
    """Hash of the parts' text in [0, 2**31), equal in every process (unlike `hash`)."""
    digest = hashlib.blake2b("\x1f".join(map(str, parts)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % 2**31


@dataclass(frozen=True, slots=True)
class Step:
    """What a world answers to `reset` or to one action.

    Attributes:
        observation: text shown to the agent, without the goal.
        done: the world has ended (won or lost for good).
        success: the task is solved by the world's own test. Never implied by `done`.
        score: the world's score so far, scaled to [0, 1].
        error: the world refused the action or did not understand it.
        admissible: actions that the world lists now; None where it lists none. Whether the list is complete is said by
            `EnvCard.complete_admissible`.
        goal: the task instruction; set by `reset` only.
        info: anything else worth recording (JSON values).
    """

    observation: str
    done: bool = False
    success: bool = False
    score: float = 0.0
    error: bool = False
    admissible: tuple[str, ...] | None = None
    goal: str = ""
    info: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EnvCard:
    """What every acting or exploring prompt says about a world: facts only, no strategy.

    Attributes:
        intro: one or two sentences about the world.
        actions: the action forms, separated by " | ".
        notes: conventions a newcomer must know.
        complete_admissible: `Step.admissible` holds every action that works, so a reply may be refused for not being in it.
        refusal: what the world answers to an action that is not possible ("Nothing happens."). Where the list is complete, such
            an action is not sent and the agent sees this text. Empty: the parser's own sentence.
        aliases: declared rewrites (regular expression, replacement) tried when a reply is not admissible as written,
            for example ALFWorld's old "put X in/on Y" to "move X to Y". Matched against the whole lower-cased reply.
        info_actions: regular expression for actions that only gather information (diagnostics, paper 001 table 3).
        forbidden: regular expression for commands that the engine knows but an agent must never send ("reset task").
        goal_commands: regular expression for commands whose answer is the goal (ScienceWorld's "task"); goal-free exploration
            answers them itself.
        plays_on: after `done` the engine goes on answering as if nothing had happened, so goal-free exploration may go on.
    """

    intro: str
    actions: str
    notes: str = ""
    complete_admissible: bool = False
    refusal: str = ""
    aliases: tuple[tuple[str, str], ...] = ()
    info_actions: str = r"^(look|examine|inventory|read|check valid actions|task)\b"
    forbidden: str = ""
    goal_commands: str = ""
    plays_on: bool = False


class Fact(NamedTuple):
    """One knowledge entry of |M_t| (MAP, section 3.2.2): `value` is what is known about `(kind, subject)`.

    A newer value for the same (kind, subject) replaces the older one.
    """

    kind: str
    subject: tuple[str, ...]
    value: str = ""


@dataclass(slots=True)
class CognitiveMap:
    """M_t of MAP, eq. 6: what was learnt about one instance, describing its state at reset.

    Attributes:
        spatial: {"thing", "relation" (in|on|at|connects|contains|is), "place"}; "is" holds states (drawer 1 is closed).
        absent: {"place", "what"}; what = "anything" for a place seen empty.
        affordances: {"action", "target", "works" (bool), "effect", "requires" (str or None)}.
        task_notes: sentences about the task.
        unknown: places or things that were not looked into.
    """

    spatial: list[dict[str, Any]] = field(default_factory=list)
    absent: list[dict[str, Any]] = field(default_factory=list)
    affordances: list[dict[str, Any]] = field(default_factory=list)
    task_notes: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)

    def is_empty(self) -> bool:
        """True if there is nothing to show."""
        return not (self.spatial or self.absent or self.affordances or self.task_notes or self.unknown)


# ---------------------------------------------------------------------------------------------------------------- models


class Message(NamedTuple):
    """One chat message."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class Sampling:
    """How to decode. None means: the backend's default."""

    temperature: float = 0.0
    max_tokens: int = 256
    top_p: float | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and money of one call or of many (they add up). `cost` is in US dollars, None where no price is known."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    calls: int = 0
    cost: float | None = None

    def __add__(self, other: Usage) -> Usage:
        cost = None if self.cost is None and other.cost is None else (self.cost or 0.0) + (other.cost or 0.0)
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.cached_tokens + other.cached_tokens,
            self.calls + other.calls,
            cost,
        )


@dataclass(slots=True)
class Completion:
    """One reply. `text` is the content alone; `reasoning` is what the server split off. `finish_reason` "length" = cut."""

    text: str
    reasoning: str = ""
    finish_reason: str = "stop"
    usage: Usage = field(default_factory=lambda: Usage(calls=1))
    seconds: float = 0.0
    retries: int = 0
    cached: bool = False
    token_ids: list[int] | None = None
    logprobs: list[float] | None = None
    info: dict[str, Any] = field(default_factory=dict)


# --------------------------------------------------------------------------------------------------------------- records

SCHEMA_VERSION = 1

END_REASONS = (
    "won",  # the world says the task is solved
    "lost",  # the world ended without success
    "step_limit",  # the acting budget is used up
    "invalid_limit",  # too many unreadable replies in a row
    "token_limit",  # the episode's token or money cap
    "context_limit",  # the history no longer fits
    "completed",  # a phase without success criterion ended (explore, map)
    "env_error",  # below: harness errors, status "error"
    "model_error",
    "fatal_error",
    "timeout",
    "harness_error",
)


@dataclass(slots=True)
class Call:
    """One model call in an episode. The prompt is `chats[chat][:upto]`, the reply as kept is `chats[chat][upto]`."""

    chat: str
    upto: int
    role: str
    purpose: str
    phase: str
    usage: Usage
    seconds: float
    finish_reason: str
    retries: int = 0
    cached: bool = False
    raw: str | None = None  # the reply as received, where it differs from what the chat keeps
    reasoning: str = ""
    token_ids: list[int] | None = None
    logprobs: list[float] | None = None
    info: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class StepRecord:
    """One environment step: a reply that should have been an action, and what the world (or agentexp) answered."""

    phase: str
    action: str | None  # what was sent; None when nothing was sent
    status: str  # ok | invalid | truncated | ambiguous
    observation: str
    score: float
    done: bool
    success: bool
    error: bool
    call: int | None = None  # index into Episode.calls
    rewrite: str = ""  # the action as the model wrote it, where parsing changed or refused it
    flags: list[str] = field(default_factory=list)
    seconds: float = 0.0
    info: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Episode:
    """Everything about one run of one task; one line of `episodes.jsonl`."""

    task: Task
    paradigm: str
    model: str
    status: Literal["ok", "error"] = "ok"
    end_reason: str = ""
    success: bool = False
    score: float = 0.0
    goal: str = ""
    steps: int = 0  # environment steps of all phases
    steps_by_phase: dict[str, int] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    usage_by_role: dict[str, Usage] = field(default_factory=dict)
    wasted: Usage = field(default_factory=Usage)  # of earlier attempts that the harness failed; in no other number
    error: str = ""
    attempts: int = 1
    seconds: float = 0.0
    trajectory: list[StepRecord] = field(default_factory=list)
    chats: dict[str, list[Message]] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    notes: dict[str, Any] = field(default_factory=dict)
    schema: int = SCHEMA_VERSION
