"""Numbers of one table cell: a rate with its interval, or a paired difference. In percent, as the papers print them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from agentexp.metrics.stats import Difference, mean_and_std, paired_bootstrap, wilson
from agentexp.metrics.summary import ERROR_SHARE_WARNING
from agentexp.reports.runs import Group, Row

# Marks behind a number, and what the note below the table says about each.
MARKS = {
    "*": "small-scale, not comparable to the paper",
    "†": "partial: not all planned episodes have ended",
    "‡": f"more than {ERROR_SHARE_WARNING:.0%} of the episodes left out because of harness errors",
    "§": "less than half of the replies could be read as actions; the number says little",
    "≈": "not resolved: the interval of the paired difference contains 0",
}


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell. Rates and differences in percent; None where there is nothing.

    Attributes:
        published: the paper's value.
        measured: ours; a mean of per-seed rates, or a mean paired difference.
        low, high: 95 % interval of `measured`.
        n: episodes behind `measured`; for a difference, paired instances.
        planned: planned episodes.
        excluded: episodes left out because of harness errors.
        seeds: number of seeds.
        as_failures: the rate with excluded episodes counted as failures; None where none was excluded.
        std: standard deviation over seeds (ddof = 1).
        marks: keys of `MARKS`.
        difference: `measured` is a difference and is printed with its sign.
        runs: run folders behind the number, to trace it.
    """

    published: float | None = None
    measured: float | None = None
    low: float | None = None
    high: float | None = None
    n: int = 0
    planned: int = 0
    excluded: int = 0
    seeds: int = 0
    as_failures: float | None = None
    std: float | None = None
    marks: tuple[str, ...] = ()
    difference: bool = False
    runs: tuple[str, ...] = field(default=())


def rate_cell(group: Group | None, published: float | None = None, *, comparable: bool = False) -> Cell:
    """Success rate of a group: mean of the per-seed rates.

    One run per instance: Wilson interval. Several: bootstrap over instances, the runs of an instance kept together.

    Args:
        published: the paper's value for this cell.
        comparable: same model and same size as in the paper.
    """
    if group is None:
        return Cell(published)
    rows = group.finished
    cell = Cell(
        published,
        n=len(rows),
        planned=group.planned,
        excluded=group.excluded,
        marks=_marks(group, comparable),
        runs=tuple(str(run.folder) for run in group.runs),
    )
    if not rows:
        return cell
    by_seed: dict[int, list[bool]] = defaultdict(list)
    for row in rows:
        by_seed[row.seed].append(row.success)
    spread = mean_and_std([sum(values) / len(values) for values in by_seed.values()])
    assert spread is not None
    low, high = _interval(rows)
    return replace(
        cell,
        measured=100 * spread[0],
        low=100 * low,
        high=100 * high,
        seeds=len(by_seed),
        std=None if spread[1] is None else 100 * spread[1],
        as_failures=100 * sum(row.success for row in rows) / len(group.rows) if group.excluded else None,
    )


def _interval(rows: list[Row]) -> tuple[float, float]:
    instances = {row.instance for row in rows}
    won = sum(row.success for row in rows)
    if len(instances) == len(rows):
        return wilson(won, len(rows))
    if won in (0, len(rows)):  # every resample is the same; the instances are what was drawn independently
        return wilson(len(instances) if won else 0, len(instances))
    values = {row.key: float(row.success) for row in rows}
    found = paired_bootstrap(dict.fromkeys(values, 0.0), values, clusters={row.key: row.instance for row in rows})
    assert found is not None
    return found.low, found.high


def _marks(group: Group, comparable: bool) -> tuple[str, ...]:
    ended = len(group.rows)
    return tuple(
        mark
        for mark, applies in (
            ("*", not comparable),
            ("†", ended < group.planned),
            ("‡", ended > 0 and group.excluded / ended > ERROR_SHARE_WARNING),
            ("§", not group.readable),
        )
        if applies
    )


def difference_cell(a: Group | None, b: Group | None, published: float | None = None, *, comparable: bool = False) -> Cell:
    """b - a, paired over the instances in both (an instance's seeds and repeats are paired one by one and kept together)."""
    found = paired_difference(a.finished, b.finished) if a is not None and b is not None else None
    if found is None or a is None or b is None:
        return Cell(published, difference=True)
    marks = tuple(dict.fromkeys([*_marks(a, comparable), *_marks(b, comparable)]))
    return Cell(
        published,
        100 * found.mean,
        100 * found.low,
        100 * found.high,
        found.n,
        max(a.planned, b.planned),
        a.excluded + b.excluded,
        marks=marks if found.resolved else (*marks, "≈"),
        difference=True,
        runs=tuple(str(run.folder) for group in (a, b) for run in group.runs),
    )


def paired_difference(a: Iterable[Row], b: Iterable[Row], value: str = "success") -> Difference | None:
    """b - a over the task keys in both, with a bootstrap over instances.

    Args:
        value: attribute of `Row` to compare.
    """
    left = {row.key: float(getattr(row, value)) for row in a}
    both = list(b)
    right = {row.key: float(getattr(row, value)) for row in both}
    return paired_bootstrap(left, right, clusters={row.key: row.instance for row in both})
