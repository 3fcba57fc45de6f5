"""RHAE, the score of ARC-AGI-3: how few actions a player needs, relative to a human (scorecard of arc-agi 0.9.9)."""

from __future__ import annotations

from collections.abc import Sequence

LEVEL_CAP = 1.15


def rhae_game(
    human: Sequence[int],
    used: Sequence[int],
    completed: Sequence[bool],
    *,
    completion_cap: bool = True,
    mapping_actions: int = 0,
) -> float:
    """Score of one game in percent.

    A completed level scores min(1.15, (human / used)^2), an uncompleted one 0. Level i (from 1) has weight i; the game's score
    is the weighted mean.

    Args:
        human: actions of the human baseline, by level.
        used: actions of the player, by level (level resets count as actions).
        completed: which levels were completed.
        completion_cap: cap the score at the weight share of the completed levels, as the official scorecard does. MAP's table 7
            holds values above that cap (CN04 with one level: 4.89), so its authors left it out.
        mapping_actions: actions spent on a map before playing; they count as actions of level 1 (SPEC 000, section 9).

    Raises:
        ValueError: the lengths differ, there is no level, or a completed level took no action.
    """
    if not len(human) == len(used) == len(completed) or not human:
        raise ValueError(f"A game needs one entry per level: {len(human)} human, {len(used)} used, {len(completed)} completed.")
    spent = [used[0] + mapping_actions, *used[1:]]
    if any(done and (actions <= 0 or baseline <= 0) for done, actions, baseline in zip(completed, spent, human, strict=True)):
        raise ValueError("A completed level needs at least one action, of the player and of the baseline.")
    weights = range(1, len(human) + 1)
    levels = [
        min(LEVEL_CAP, (baseline / actions) ** 2) if done else 0.0
        for done, actions, baseline in zip(completed, spent, human, strict=True)
    ]
    score = 100 * sum(w * level for w, level in zip(weights, levels, strict=True)) / sum(weights)
    cap = 100 * sum(w for w, done in zip(weights, completed, strict=True) if done) / sum(weights)
    return min(score, cap) if completion_cap else score
