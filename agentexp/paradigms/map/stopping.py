"""When to stop mapping: the dual-convergence rule of MAP (section 3.2.2, eq. 5, and appendix B.1) and two controls.

A stopping component holds settings only and is shared by all episodes; `start` gives each episode a `Watch` with the counts.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, Protocol

from agentexp.core import Fact, FactTracker
from agentexp.errors import UserError
from agentexp.paradigms.checks import require_choice

Novelty = Literal["window_mean", "consecutive"]
Key = Literal["masked", "exact", "place"]


@dataclass(frozen=True, slots=True)
class StopRecord:
    """The rule's view of one mapping step; a line of the stop trace.

    Attributes:
        t: mapping step, from 1.
        known: |M_t|, distinct (kind, subject, value) ever seen.
        delta_k: |M_t| - |M_{t-1}|, never negative.
        novelty: r(o_t) = 1 / sqrt(N(o_t)).
        window_mean: mean of r over the last W_n steps (fewer at the start).
        cond_a: nothing new was learnt in the last W_k steps.
        cond_b: what is seen is no longer new.
        reason: "" to go on, else converged | fixed | t_max.
    """

    t: int
    known: int
    delta_k: int
    novelty: float
    window_mean: float
    cond_a: bool
    cond_b: bool
    reason: str = ""


class Stopping(Protocol):
    """Settings of a rule.

    Attributes:
        listens_from: steps after which the model may say that it is finished; None = never.
        needs_facts: works only in worlds with a fact tracker.
        key: what counts as the same observation, see `DualConvergence`.
    """

    listens_from: int | None
    needs_facts: bool
    key: Key

    def start(self, budget: int) -> Watch:
        """Counts for one episode with `budget` mapping steps."""
        ...

    def decide(self, trace: list[StopRecord]) -> tuple[bool, bool, str]:
        """(Cond_A, Cond_B, reason) after the last step of `trace`; an empty reason means to go on."""
        ...


@dataclass(slots=True)
class Watch:
    """Counts of one episode. Feed `update` after every mapping step; `trace` keeps what it said.

    Attributes:
        rule: decides after each step, from the trace so far.
        t_max: steps after which mapping ends in any case.
        w_n: length of the novelty window.
    """

    rule: Stopping
    t_max: int
    w_n: int = 5
    trace: list[StopRecord] = field(default_factory=list)
    _seen: set[Fact] = field(default_factory=set)
    _visits: Counter[str] = field(default_factory=Counter)

    def begin(self, facts: Iterable[Fact]) -> None:
        """Facts known from the initial observation: |M_0|. That observation itself is not counted in N."""
        self._seen |= set(facts)

    def update(self, key: str, facts: Iterable[Fact]) -> StopRecord:
        """Take in one step: the key of its observation and all facts known now (or only the new ones)."""
        before = len(self._seen)
        self._seen |= set(facts)
        self._visits[key] += 1
        novelty = 1 / math.sqrt(self._visits[key])
        window = [*(r.novelty for r in self.trace), novelty][-self.w_n :]
        delta, t = len(self._seen) - before, len(self.trace) + 1
        mean = sum(window) / len(window)
        draft = StopRecord(t, len(self._seen), delta, novelty, mean, False, False)
        cond_a, cond_b, reason = self.rule.decide([*self.trace, draft])
        record = StopRecord(
            t, len(self._seen), delta, novelty, mean, cond_a, cond_b, reason or ("t_max" if t >= self.t_max else "")
        )
        self.trace.append(record)
        return record

    @property
    def t(self) -> int:
        """Mapping steps taken so far."""
        return len(self.trace)

    @property
    def reason(self) -> str:
        """Why mapping has to end now; empty to go on."""
        if self.t_max <= 0:
            return "t_max"
        return self.trace[-1].reason if self.trace else ""


class DualConvergence:
    """Stop once nothing new is learnt *and* what is seen is no longer new.

    Cond_A: delta |M| = 0 in each of the last `w_k` steps. Cond_B: the mean of r(o) over the last `w_n` steps is below
    `epsilon` (B.1), or r(o) itself was below it in each of the last `w_k` steps (`novelty="consecutive"`, section 3.2.2).

    Args:
        w_k: window of the knowledge increment (paper: 3).
        w_n: window of the novelty mean (paper: 5).
        epsilon: novelty threshold (paper: 0.5).
        t_min: earliest stop, also for the model's own word (paper: 3).
        t_max: latest stop; None or more than the mapping budget means the mapping budget (paper: 15 for TextCraft).
        novelty: see above.
        key: what counts as the same observation in N(o): the text with names and numbers masked, the exact text, or the
            place with its state.
    """

    needs_facts = True

    def __init__(
        self,
        w_k: int = 3,
        w_n: int = 5,
        epsilon: float = 0.5,
        t_min: int = 3,
        t_max: int | None = None,
        novelty: Novelty = "window_mean",
        key: Key = "masked",
    ) -> None:
        require_choice("stopping.novelty", novelty, ("window_mean", "consecutive"))
        require_choice("stopping.key", key, ("masked", "exact", "place"))
        for setting, value in (("w_k", w_k), ("w_n", w_n)):
            if value < 1:
                raise UserError(f"stopping.{setting}={value} must be at least 1.")
        self.w_k, self.w_n, self.epsilon, self.t_min, self.t_max = w_k, w_n, epsilon, t_min, t_max
        self.novelty, self.key = novelty, key
        self.listens_from: int | None = t_min

    def start(self, budget: int) -> Watch:
        """Fresh counts."""
        return Watch(self, budget if self.t_max is None else min(self.t_max, budget), self.w_n)

    def decide(self, trace: list[StopRecord]) -> tuple[bool, bool, str]:
        """(Cond_A, Cond_B, reason) after the last step of `trace`."""
        t, now = len(trace), trace[-1]
        cond_a = t >= self.w_k and all(r.delta_k == 0 for r in trace[-self.w_k :])
        if self.novelty == "consecutive":
            cond_b = t >= self.w_k and all(r.novelty < self.epsilon for r in trace[-self.w_k :])
        else:
            cond_b = t >= self.w_n and now.window_mean < self.epsilon
        return cond_a, cond_b, "converged" if t >= self.t_min and cond_a and cond_b else ""


class FixedSteps:
    """Map for exactly `steps` steps (at most the mapping budget), whatever is learnt and whatever the model says."""

    needs_facts = False
    key: Key = "masked"

    def __init__(self, steps: int) -> None:
        if steps < 0:
            raise UserError(f"stopping.steps={steps} must not be negative.")
        self.steps = steps
        self.listens_from: int | None = None

    def start(self, budget: int) -> Watch:
        """Fresh counts."""
        return Watch(self, min(self.steps, budget))

    def decide(self, trace: list[StopRecord]) -> tuple[bool, bool, str]:
        """Only the count decides; the conditions are not looked at."""
        return False, False, "fixed" if len(trace) >= self.steps else ""


class NoStopping:
    """No rule: mapping ends with the budget, or when the model says that it is finished.

    Args:
        t_min: steps after which the model may say so; None = never.
    """

    needs_facts = False
    key: Key = "masked"

    def __init__(self, t_min: int | None = 3) -> None:
        self.listens_from: int | None = t_min

    def start(self, budget: int) -> Watch:
        """Fresh counts."""
        return Watch(self, budget)

    def decide(self, trace: list[StopRecord]) -> tuple[bool, bool, str]:
        """Never stops."""
        return False, False, ""


def observation_key(key: Key, observation: str, tracker: FactTracker | None) -> str:
    """The key of N(o): see `DualConvergence`. Without a tracker only the text, blanks and case apart, is left."""
    if key == "exact":
        return observation
    if tracker is None:
        return " ".join(observation.lower().split())
    return tracker.place() if key == "place" else tracker.mask(observation)
