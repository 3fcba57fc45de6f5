"""Recovery from a change in mid-episode (MAP, appendix C.4 and table 3).

The note "perturbation" of an episode's record says what happened to it: {"step": t, "origins": [place, ...]}, where t is the
0-based index, within the acting phase, of the step before which the target was moved, and the origins are the places it was
moved from. A rollout in which the change never came about has no such note (or null) and does not belong to R.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from agentexp.metrics.behaviour import behaviour
from agentexp.metrics.resample import Estimate, ratio
from agentexp.metrics.stats import Difference, paired_bootstrap, wilson
from agentexp.records import Record

NOTE = "perturbation"
_GO = re.compile(r"^go to (.+)$")


@dataclass(frozen=True, slots=True)
class Perturbation:
    """The row of table 3. Rates in [0, 1].

    Attributes:
        pass_1: success rate without the change.
        pass_1_perturb: success rate of the runs with it, over all instances, also those in which it never came about.
        pass_1_interval: Wilson, 95 %.
        pass_1_perturb_interval: Wilson, 95 %.
        drop: pass_1_perturb - pass_1, paired by instance; None without common instances.
        re_exploration: share of R that goes to another place after the change.
        re_exploration_interval: Wilson, 95 %.
        delta_steps: eq. 10, with a bootstrap over rollouts; n = |R|.
        n: instances without, with the change, and rollouts in R.
        excluded: harness errors left out, without and with the change.
    """

    pass_1: float | None
    pass_1_perturb: float | None
    pass_1_interval: tuple[float, float] | None
    pass_1_perturb_interval: tuple[float, float] | None
    drop: Difference | None
    re_exploration: float | None
    re_exploration_interval: tuple[float, float] | None
    delta_steps: Estimate
    n: tuple[int, int, int]
    excluded: tuple[int, int]


def delta_steps(rollouts: Sequence[tuple[int, int]]) -> float | None:
    """Eq. 10: mean of L - t - 1 over (L, t); L = length of the rollout, t = 0-based step of the change. None for an empty R."""
    return sum(length - t - 1 for length, t in rollouts) / len(rollouts) if rollouts else None


def reexplored(
    actions: Sequence[str | None], t: int, origins: str | Collection[str], errors: Sequence[bool] | None = None
) -> bool:
    """Whether from step t on the agent goes to a place that is not where the target was.

    Args:
        actions: all actions of the rollout, normalised; None for unreadable replies.
        t: 0-based index of the first action after the change.
        origins: the place or places that the target was moved from.
        errors: which actions were refused; a refused "go to" leads nowhere and does not count.
    """
    left = {origins} if isinstance(origins, str) else set(origins)
    for i in range(t, len(actions)):
        match = _GO.match(actions[i] or "")
        if match and match[1] not in left and not (errors and errors[i]):
            return True
    return False


def perturbation(plain: Iterable[Record], changed: Iterable[Record]) -> Perturbation:
    """Table 3 from the records of two runs over the same instances, the second with changes.

    Several repeats of an instance count one by one in the rates; for `drop` they are averaged first.
    """
    before, lost_before = _finished(plain)
    after, lost_after = _finished(changed)
    moved = [record for record in after if record.get("notes", {}).get(NOTE)]
    lengths: list[tuple[int, int]] = []
    again = 0
    for record in moved:
        note, steps = record["notes"][NOTE], behaviour(record)
        lengths.append((len(steps.actions), int(note["step"])))
        again += reexplored(steps.actions, int(note["step"]), list(note["origins"]), steps.errors)
    won_before, won_after = (sum(bool(r["success"]) for r in records) for records in (before, after))
    return Perturbation(
        pass_1=won_before / len(before) if before else None,
        pass_1_perturb=won_after / len(after) if after else None,
        pass_1_interval=wilson(won_before, len(before)) if before else None,
        pass_1_perturb_interval=wilson(won_after, len(after)) if after else None,
        drop=paired_bootstrap(_by_instance(before), _by_instance(after)),
        re_exploration=again / len(moved) if moved else None,
        re_exploration_interval=wilson(again, len(moved)) if moved else None,
        delta_steps=ratio([length - t - 1 for length, t in lengths], [1.0] * len(lengths)),
        n=(len(before), len(after), len(moved)),
        excluded=(lost_before, lost_after),
    )


def _finished(records: Iterable[Record]) -> tuple[list[Record], int]:
    everything = list(records)
    finished = [record for record in everything if record["status"] == "ok"]
    return finished, len(everything) - len(finished)


def _by_instance(records: Iterable[Record]) -> Mapping[Hashable, float]:
    groups: dict[Hashable, list[float]] = {}
    for record in records:
        task = record["task"]
        groups.setdefault((task["id"], task["seed"]), []).append(float(record["success"]))
    return {key: sum(values) / len(values) for key, values in groups.items()}
