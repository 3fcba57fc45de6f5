"""From played groups to samples for the loss, and to the numbers that say what a step was made of. No torch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from agentexp.training.core import Row
from agentexp.training.grpo.advantages import judge
from agentexp.training.grpo.batches import LossAgg, Sample, token_weights
from agentexp.training.grpo.interleave import Kind
from agentexp.training.grpo.rollouts import Played

KINDS: tuple[Kind, ...] = ("task", "explore")
PER_KIND = ("groups", "flat", "small", "rollouts", "rewarded", "reward", "reward2", "success", "steps")
OVERALL = (
    "usable",
    "truncated",
    "harness",
    "no_reward",
    "no_tokens",
    "cut_replies",
    "replies",
    "tokens",
    "sampled",
    "too_long",
)
NAMES = (*(f"{kind}/{name}" for kind in KINDS for name in PER_KIND), *OVERALL)
"""The sums of one step, in the order in which processes add them up."""


@dataclass(slots=True)
class Trajectory:
    """A rollout that takes part in a step.

    Attributes:
        rows: to train on.
        advantage: of the rollout.
        counts: 0 keeps it out of the loss (`mask_truncated`).
        kl: 0 keeps it out of the KL term.
    """

    rows: list[Row]
    advantage: float
    counts: float = 1.0
    kl: float = 1.0


@dataclass(slots=True)
class Harvest:
    """What the groups of one process gave.

    Attributes:
        trajectories: rollouts that take part; their number counts in the mean, also of those that are masked.
        sums: by name, see `NAMES`.
    """

    trajectories: list[Trajectory] = field(default_factory=list)
    sums: dict[str, float] = field(default_factory=lambda: dict.fromkeys(NAMES, 0.0))

    def samples(self, agg: LossAgg, n: float) -> list[Sample]:
        """Rows with their share of the loss.

        Args:
            agg: see `token_weights`.
            n: trajectories of all processes.
        """
        owners = [(i, row) for i, trajectory in enumerate(self.trajectories) for row in trajectory.rows]
        weights = token_weights([row.n_trained for _, row in owners], [i for i, _ in owners], agg, n or 1.0)
        made = []
        for (i, row), weight in zip(owners, weights, strict=True):
            trajectory = self.trajectories[i]
            made.append(Sample(row, trajectory.advantage, weight * trajectory.counts, trajectory.kl))
        return made


def harvest(
    groups: Sequence[Sequence[Played]],
    *,
    eps: float,
    mask_truncated: bool = False,
    kl_on_flat: bool = True,
    max_row_tokens: int | None = None,
) -> Harvest:
    """Advantages within every group, and counts of everything that takes no part.

    Args:
        groups: rollouts of one instance and one kind each.
        eps: of eq. 4.
        mask_truncated: truncated rollouts count in their group's mean, but are not trained on.
        kl_on_flat: groups with equal rewards, which have no advantage, still take part in the KL term.
        max_row_tokens: longer rows are left out of the loss; None: none is.
    """
    found = Harvest()
    sums = found.sums
    for group in groups:
        kind = group[0].kind
        judged = judge([played.reward if played.fate == "ok" else None for played in group], eps)
        sums[f"{kind}/groups"] += 1
        sums[f"{kind}/flat"] += judged.fate == "flat"
        sums[f"{kind}/small"] += judged.fate == "small"
        for played, advantage in zip(group, judged.values, strict=True):
            _count(sums, played)
            if advantage is None:
                continue
            kept = [row for row in played.rows if max_row_tokens is None or len(row.ids) <= max_row_tokens]
            sums["too_long"] += len(played.rows) - len(kept)
            sums["usable"] += 1
            counts = 0.0 if mask_truncated and played.truncated else 1.0
            found.trajectories.append(Trajectory(kept, advantage, counts, float(kl_on_flat or judged.fate != "flat")))
    return found


def _count(sums: dict[str, float], played: Played) -> None:
    kind, reward = played.kind, played.reward
    sums[f"{kind}/rollouts"] += 1
    sums[f"{kind}/success"] += played.success
    sums[f"{kind}/steps"] += played.steps
    if played.fate in ("ok", "no_tokens") and reward is not None:
        sums[f"{kind}/rewarded"] += 1
        sums[f"{kind}/reward"] += reward
        sums[f"{kind}/reward2"] += reward * reward
    if played.fate != "ok":
        sums[played.fate] += 1
    for name in ("truncated", "cut_replies", "replies", "tokens"):
        sums[name] += getattr(played, name)
    sums["sampled"] += sum(row.n_trained for row in played.rows)


def numbers(sums: Mapping[str, float]) -> dict[str, float]:
    """What is logged of a step's rollouts, from the sums over all processes. What there is none of is left out."""
    found: dict[str, float] = {}
    groups = flat = small = rollouts = 0.0
    for kind in KINDS:
        of = {name: sums[f"{kind}/{name}"] for name in PER_KIND}
        groups, flat, small = groups + of["groups"], flat + of["flat"], small + of["small"]
        rollouts += of["rollouts"]
        found[f"{kind}/groups"] = of["groups"]
        if of["rewarded"]:
            mean = of["reward"] / of["rewarded"]
            found[f"{kind}/reward"] = mean
            found[f"{kind}/reward_std"] = math.sqrt(max(0.0, of["reward2"] / of["rewarded"] - mean * mean))
        if of["rollouts"]:
            found[f"{kind}/steps"] = of["steps"] / of["rollouts"]
            found[f"{kind}/success"] = of["success"] / of["rollouts"]
    found["frac_zero_adv"] = flat / (groups - small) if groups > small else 0.0
    found["groups_too_small"] = small
    found["frac_no_signal"] = (flat + small) / groups if groups else 1.0
    found["rollouts"] = rollouts
    found["truncated"] = sums["truncated"] / rollouts if rollouts else 0.0
    found["cut_replies"] = sums["cut_replies"] / sums["replies"] if sums["replies"] else 0.0
    found["rollout_tokens"] = sums["tokens"] / rollouts if rollouts else 0.0
    found["sampled_tokens"] = sums["sampled"]
    found["harness_errors"], found["no_reward"] = sums["harness"], sums["no_reward"]
    found["no_tokens"], found["rows_too_long"] = sums["no_tokens"], sums["too_long"]
    return found
