"""What a world may offer beyond `Env`: small protocols, found by type.

An oracle, facts, scripted agents, checkpoints (ECC), questions and alignment (maps), changes in mid-episode.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from agentexp.core import CognitiveMap, FactTracker, Policy, Step, View


@runtime_checkable
class HasOracle(Protocol):
    """The world can solve itself."""

    def oracle(self) -> list[str]:
        """Expert actions from the current state to success. Runs in the worker; must not change the state."""
        ...


@runtime_checkable
class HasFacts(Protocol):
    """The world's texts can be read into facts."""

    def fact_tracker(self) -> FactTracker:
        """A fresh tracker for one exploration."""
        ...


@runtime_checkable
class HasPolicies(Protocol):
    """The world brings scripted agents of its own (myopic, curious, mapuser)."""

    def policy(self, name: str, seed: int) -> Policy:
        """A fresh policy; raises `UserError` for an unknown name, listing the known ones."""
        ...


@runtime_checkable
class Thinks(Protocol):
    """A scripted agent that can be TTExplore's thinker."""

    def think(self, view: View) -> str:
        """The reply to the thinker's prompt, from the view's texts and history alone: no oracle, no engine."""
        ...


class Checkpoint(NamedTuple):
    """One thing that an exploration can come to know (paper 001, Algorithm 1). Two with the same kind and name are the same."""

    kind: Literal["location", "object", "affordance"]
    name: str


class CheckpointMatcher(Protocol):
    """Reads one exploration and says which checkpoints each step proves. Pure Python, lives in the parent process."""

    def observe(self, action: str | None, step: Step) -> Collection[Checkpoint]:
        """What this step proves (action None for the reset, which proves nothing): the checkpoint set need not hold all of it.

        Only an answer that is no error proves anything, and a name that merely echoes the action never does.
        """
        ...


@runtime_checkable
class HasCheckpoints(Protocol):
    """The coverage of an exploration can be measured (ECC, paper 001, section 3.2)."""

    def checkpoints(self, relevance: str) -> list[Checkpoint]:
        """The instance's checkpoints, sorted, from the engine's own state. Runs in the worker, right after `reset`.

        Args:
            relevance: "task_closure": what the hidden task can need; "all": whatever can be reached.
        """
        ...

    def checkpoint_matcher(self) -> CheckpointMatcher:
        """A fresh matcher for one exploration."""
        ...


Category = Literal["object_location", "affordance", "negative", "task_reasoning"]


@dataclass(frozen=True, slots=True)
class Question:
    """A question about an instance as it is at reset, to be answered from a map alone (Map QA; MAP, appendix C.3).

    Attributes:
        category: which of the paper's four kinds.
        text: the question.
        answers: every right answer.
        choices: what the reader may choose from; empty for a free answer.
        names: for a free answer, the names that could be one, so that a sentence can be graded.
        entity: what is asked about.
        evidence: regular expressions. An exploration has seen what the question is about once each of them is found in one of
            its turns, written as "> action" and the answer below it; the reset has no action.
        query: the question in the form that the world's `look_up` reads.
    """

    category: Category
    text: str
    answers: tuple[str, ...]
    choices: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    entity: str = ""
    evidence: tuple[str, ...] = ()
    query: tuple[str, ...] = ()


@runtime_checkable
class HasQuestions(Protocol):
    """What a map of an instance is worth can be asked (Map QA)."""

    def questions(self, seed: int) -> list[Question]:
        """All questions of the instance in an order drawn from `seed`, with answers from the engine's own state.

        Runs in the worker, right after `reset`.
        """
        ...

    def look_up(self, question: Question, known: CognitiveMap) -> str:
        """What a map of the form that `FactTracker.map` writes says, or "unknown". Runs in the parent process."""
        ...


class Alignment(NamedTuple):
    """A map beside the engine's state at reset (MAP, appendix B.2).

    Attributes:
        right: entries of spatial, absent and affordances that hold.
        wrong: (list, index) of those that do not.
        unjudged: entries that the state does not decide.
        found: places that the map knows from inside.
        places: places that there are.
    """

    right: int
    wrong: tuple[tuple[str, int], ...]
    unjudged: int
    found: int
    places: int


@runtime_checkable
class HasAlignment(Protocol):
    """A map can be checked against the engine."""

    def align(self, known: CognitiveMap) -> Alignment:
        """Compare a map with the engine's own state. Runs in the worker, right after `reset`."""
        ...


@runtime_checkable
class HasPerturbation(Protocol):
    """The world can change while an episode goes on, without a word to the agent (MAP, appendix C.4).

    Attributes:
        perturbs: whether this run asks for it.
    """

    perturbs: bool

    def perturb(self, seed: int) -> Mapping[str, Any] | None:
        """Change the state now, determined by state and seed. Runs in the worker; what the agent has at hand must not change.

        Returns:
            {"moved": {thing: [[old place, ...], new place]}, "admissible": as in `Step`}; None if it is not possible now.
        """
        ...
