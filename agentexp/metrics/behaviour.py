"""Behaviour on failed episodes (paper 001, table 3; the paper names the four rates, the definitions are ours).

    repeated action   share of steps t >= 2 whose action equals the action before
    loop              share of steps that lie in the second copy of a block of 2 to 4 actions, at least two of them different
    info-seeking      share of steps with an action that only gathers information (the world card's `info_actions`)
    error recovery    share of errors after which a different action, not an info-seeking one, is accepted within k steps

Rates are pooled over steps (micro) with a bootstrap over episodes. Actions are compared in normalised form. A reply that could
not be read is a step and an error, but no action: it equals nothing, also not another unreadable reply.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from agentexp.core import EnvCard
from agentexp.metrics.resample import Estimate, ratio
from agentexp.records import Record

BLOCKS = (2, 3, 4)
INFO_ACTIONS = EnvCard("", "").info_actions


@dataclass(frozen=True, slots=True)
class Behaviour:
    """One episode's steps: normalised actions (None = unreadable) and which of them were refused."""

    actions: tuple[str | None, ...]
    errors: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class Diagnostics:
    """The row of table 3.

    Attributes:
        repeated_action_rate: n counts steps that have a predecessor.
        loop_rate: n counts steps.
        info_seeking_rate: n counts steps.
        error_recovery_rate: within 3 steps; n counts errors.
        error_recovery_rate_1: in the very next step.
        n_episodes: failed episodes.
    """

    repeated_action_rate: Estimate
    loop_rate: Estimate
    info_seeking_rate: Estimate
    error_recovery_rate: Estimate
    error_recovery_rate_1: Estimate
    n_episodes: int


@lru_cache(maxsize=16_384)  # agents repeat their actions
def normalised(action: str | None) -> str | None:
    """An action for comparison: lower case, single blanks, without a full stop at the end."""
    return " ".join(action.lower().split()).rstrip(".").rstrip() if action is not None else None


def behaviour(record: Record, phase: str = "acting") -> Behaviour:
    """The steps of one phase of a record. An unreadable reply counts as an error."""
    steps = [step for step in record.get("trajectory", ()) if step.get("phase") == phase]
    return Behaviour(
        tuple(normalised(step["action"]) for step in steps),
        tuple(bool(step["error"]) or step["status"] != "ok" for step in steps),
    )


def failed(records: Iterable[Record], phase: str = "acting") -> list[Behaviour]:
    """Behaviour of the episodes that ended without success. Harness errors are no failures of the agent and are left out."""
    return [behaviour(record, phase) for record in records if record["status"] == "ok" and not record["success"]]


def diagnose(episodes: Sequence[Behaviour], info_actions: str = INFO_ACTIONS) -> Diagnostics:
    """The four rates over (failed) episodes.

    Args:
        info_actions: regular expression, as in `EnvCard.info_actions`; matched against normalised actions.
    """
    info = re.compile(info_actions)
    steps = [float(len(e.actions)) for e in episodes]
    errors = [float(sum(e.errors)) for e in episodes]
    return Diagnostics(
        repeated_action_rate=ratio([repeated(e.actions) for e in episodes], [max(n - 1, 0) for n in steps]),
        loop_rate=ratio([len(looping(e.actions)) for e in episodes], steps),
        info_seeking_rate=ratio([sum(_is_info(a, info) for a in e.actions) for e in episodes], steps),
        error_recovery_rate=ratio([recovered(e, 3, info) for e in episodes], errors),
        error_recovery_rate_1=ratio([recovered(e, 1, info) for e in episodes], errors),
        n_episodes=len(episodes),
    )


def repeated(actions: Sequence[str | None]) -> int:
    """Steps whose action equals the action before."""
    return sum(a is not None and a == b for a, b in pairwise(actions))


def looping(actions: Sequence[str | None]) -> set[int]:
    """0-based steps in the second copy of a block. One action over and over is no loop: `repeated` counts that."""
    found: set[int] = set()
    for size in BLOCKS:
        for start in range(size, len(actions) - size + 1):
            block = actions[start : start + size]
            if None not in block and len(set(block)) > 1 and actions[start - size : start] == block:
                found.update(range(start, start + size))
    return found


def recovered(episode: Behaviour, within: int, info: re.Pattern[str]) -> int:
    """Errors after which something else works within so many steps."""
    steps = list(zip(episode.actions, episode.errors, strict=True))
    return sum(
        any(not bad and a is not None and a != action and not _is_info(a, info) for a, bad in steps[t + 1 : t + 1 + within])
        for t, (action, error) in enumerate(steps)
        if error
    )


def _is_info(action: str | None, info: re.Pattern[str]) -> bool:
    return action is not None and info.search(action) is not None
