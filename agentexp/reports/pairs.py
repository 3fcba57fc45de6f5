"""Two runs on the tasks they share: paired bootstrap over instances, exact McNemar for two single runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agentexp.errors import UserError
from agentexp.metrics.stats import Difference, mcnemar
from agentexp.reports.cells import measured_difference, paired_difference
from agentexp.reports.runs import RunData, differing, load_run

ECC = ("ecc", None)


@dataclass(frozen=True, slots=True)
class Comparison:
    """b against a.

    Attributes:
        a, b: the runs.
        n: task keys that both finished.
        instances: instances behind them (seeds and repeats of one instance count once).
        only_a, only_b: finished task keys that the other run does not have.
        excluded: task keys left out because either run ended with a harness error there.
        success_a, success_b: success rates on the shared keys.
        success, score, steps: paired differences b - a.
        ecc: the same of coverage; None unless both runs explored.
        discordant: (only a succeeded, only b succeeded, exact two-sided p of McNemar); None with several runs per instance.
        settings: settings in which the runs differ, of a and of b.
    """

    a: RunData
    b: RunData
    n: int
    instances: int
    only_a: int
    only_b: int
    excluded: int
    success_a: float
    success_b: float
    success: Difference
    score: Difference
    steps: Difference
    ecc: Difference | None
    discordant: tuple[int, int, float] | None
    settings: Sequence[str] = field(default=())


def compare_runs(a: Path, b: Path) -> Comparison:
    """Compare two run folders.

    Raises:
        UserError: a folder holds no run, or the runs share no finished task.
    """
    one, two = load_run(a, [ECC]), load_run(b, [ECC])
    left = {row.key: row for row in one.rows if row.finished}
    right = {row.key: row for row in two.rows if row.finished}
    keys = [key for key in left if key in right]
    if not keys:
        raise UserError(
            f"{a} and {b} share no finished task. Compare runs of the same world, split and seed (env=, env.split=, seed=)."
        )
    pairs_a, pairs_b = [left[key] for key in keys], [right[key] for key in keys]
    success, score, steps = (paired_difference(pairs_a, pairs_b, value) for value in ("success", "score", "steps"))
    assert success is not None and score is not None and steps is not None
    instances = len({row.instance for row in pairs_a})
    single = instances == len(keys)
    failed = {row.key for run in (one, two) for row in run.rows if not row.finished}
    shared = [key for key in one.settings if key in two.settings and not key.endswith("_target_")]
    return Comparison(
        a=one,
        b=two,
        n=len(keys),
        instances=instances,
        only_a=len(set(left) - {row.key for row in two.rows}),
        only_b=len(set(right) - {row.key for row in one.rows}),
        excluded=len(failed - set(keys)),
        success_a=sum(row.success for row in pairs_a) / len(keys),
        success_b=sum(row.success for row in pairs_b) / len(keys),
        success=success,
        score=score,
        steps=steps,
        ecc=measured_difference(pairs_a, pairs_b, ECC),
        discordant=mcnemar({r.key: r.success for r in pairs_a}, {r.key: r.success for r in pairs_b}) if single else None,
        settings=differing([{key: run.settings[key] for key in shared} for run in (one, two)]),
    )


def comparison_text(found: Comparison) -> str:
    """The comparison in words and numbers."""
    lines = [f"a: {_name(found.a)}", f"b: {_name(found.b)}"]
    what = f"{found.n} tasks" if found.n == found.instances else f"{found.n} episodes of {found.instances} instances"
    lines.append(f"{what} in both; only in a: {found.only_a}, only in b: {found.only_b}, harness errors: {found.excluded}")
    lines.append(f"success rate  a {100 * found.success_a:.1f} %  b {100 * found.success_b:.1f} %")
    lines.append(f"b - a         {_difference(found.success, 100, ' points')}")
    if found.discordant is not None:
        only_a, only_b, p = found.discordant
        lines.append(f"McNemar       only a succeeded: {only_a}, only b: {only_b}, exact p = {p:.3g}")
    else:
        lines.append("McNemar       left out: it is for one run per instance")
    if found.score.mean != found.success.mean:
        lines.append(f"score b - a   {_difference(found.score, 100, ' points')}")
    lines.append(f"steps b - a   {_difference(found.steps, 1, '')}")
    if found.ecc is not None:
        lines.append(f"ECC b - a     {_difference(found.ecc, 100, ' points')}, n = {found.ecc.n}")
    if not found.success.resolved:
        lines.append(
            "The difference in success is not resolved: its interval contains 0. More instances or seeds would be needed."
        )
    if any(found.settings):
        lines += ["Settings that differ:", f"  a: {found.settings[0]}", f"  b: {found.settings[1]}"]
    return "\n".join(lines)


def _name(run: RunData) -> str:
    return f"{run.env} {run.paradigm} {run.model} ({run.folder})"


def _difference(found: Difference, scale: float, unit: str) -> str:
    mark = "" if found.resolved else " (not resolved)"
    return f"{scale * found.mean:+.1f}{unit} [{scale * found.low:+.1f}, {scale * found.high:+.1f}]{mark}"
