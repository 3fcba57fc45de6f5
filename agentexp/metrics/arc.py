"""ARC-AGI-3's numbers of one recorded episode: RHAE, levels completed (MAP, tables 2 and 7).

Only acting is scored; what was spent on a map or on exploring counts as actions of level 1 (specification of MAP, section 9).
The score is that of the official scorecard otherwise, see `agentexp.metrics.rhae`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentexp.metrics.rhae import rhae_game
from agentexp.records import Record

PROGRESS = "progress"
"""Name of the entry in `Step.info` that counts actions and levels; goal-free exploration hides it."""


def rhae(progress: Mapping[str, Any], *, completion_cap: bool = True, mapping_actions: int = 0) -> float | None:
    """RHAE in percent from a count of actions and levels: that of the best play. None without a human baseline.

    A baseline for a level that the game does not have (CN04-65d47d14 has one too many) counts as a level that was not
    completed, as in the official scorecard.

    Args:
        progress: {"levels", "baseline", "plays": [{"used", "completed"}]}, see `agentexp.envs.arc_agi3.tally`.
        completion_cap: see `rhae_game`.
        mapping_actions: see `rhae_game`.
    """
    human = list(progress["baseline"])
    if len(human) < int(progress["levels"]):
        return None
    scores = []
    for play in progress["plays"]:
        used = [*play["used"], *[0] * (len(human) - len(play["used"]))]
        done = [i < play["completed"] for i in range(len(human))]
        scores.append(rhae_game(human, used, done, completion_cap=completion_cap, mapping_actions=mapping_actions))
    return max(scores)


def rhae_of_episode(record: Record, *, completion_cap: bool = True, count_mapping: bool = True) -> float | None:
    """RHAE of an episode in percent; None where the game has no human baseline or the world is another.

    Args:
        record: one line of `episodes.jsonl`.
        completion_cap: cap at the weight share of the completed levels, as the official scorecard does.
        count_mapping: count the actions of earlier phases for level 1.
    """
    acting = _progress(record, "acting")
    if acting is None:
        return None
    before = sum(actions_of_phase(record, phase) for phase in ("mapping", "exploring")) if count_mapping else 0
    return rhae(acting, completion_cap=completion_cap, mapping_actions=before)


def levels_of_episode(record: Record) -> tuple[int, int] | None:
    """Levels completed while acting and levels of the game; None in other worlds."""
    found = _progress(record, "acting")
    return (int(found["completed"]), int(found["levels"])) if found else None


def actions_of_phase(record: Record, phase: str) -> int:
    """Actions that the game counted in a phase.

    Where exploration was goal-free, the record lacks the count: then every step that was not refused is one.
    """
    found = _progress(record, phase)
    if found is not None:
        return sum(sum(play["used"]) for play in found["plays"])
    steps = (step for step in record.get("trajectory", ()) if step["phase"] == phase)
    return sum(step.get("action") is not None and not step.get("error") for step in steps)


def _progress(record: Record, phase: str) -> Mapping[str, Any] | None:
    for step in reversed(record.get("trajectory", ())):
        found = (step.get("info") or {}).get(PROGRESS)
        if step["phase"] == phase and found:
            return dict(found)
    return None
