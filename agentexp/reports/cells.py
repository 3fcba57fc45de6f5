"""Numbers of one table cell: a value with its interval, or a paired difference. Rates in percent, as the papers print them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from agentexp.metrics.resample import ratio
from agentexp.metrics.stats import Difference, mean_and_std, paired_bootstrap, wilson
from agentexp.metrics.summary import ERROR_SHARE_WARNING
from agentexp.reports.measures import MEASURES, Key, Measure, Part
from agentexp.reports.runs import Group, Row

# Marks behind a number, and what the note below the table says about each.
MARKS = {
    "*": "small-scale, not comparable to the paper",
    "†": "partial: not all planned episodes have ended",
    "‡": f"more than {ERROR_SHARE_WARNING:.0%} of the episodes left out because of harness errors",
    "§": "less than half of the replies could be read as actions; the number says little",
    "≈": "not resolved: the interval of the paired difference contains 0",
    "◇": "needs a trained model",
}
TRAINED = "◇"


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell. None where there is nothing.

    Attributes:
        published: the paper's value.
        measured: ours; a mean of per-seed values, or a mean paired difference.
        low, high: 95 % interval of `measured`.
        n: what is behind `measured`: episodes, or what the measure counts (steps, errors); for a difference, pairs.
        planned: planned episodes.
        excluded: episodes left out because of harness errors.
        seeds: number of seeds.
        as_failures: the rate with excluded episodes counted as failures; None where none was excluded.
        std: standard deviation over seeds (ddof = 1).
        marks: keys of `MARKS`.
        difference: `measured` is a difference and is printed with its sign.
        runs: run folders behind the number, to trace it.
        digits: decimals.
        episodes: episodes behind `measured`, where n counts something else; otherwise 0.
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
    digits: int = 1
    episodes: int = 0


SUCCESS: Key = ("success", None)


def parts(group: Group, key: Key) -> list[tuple[Row, Part]]:
    """The finished episodes that belong to the population of a measure, with their (part, whole).

    Success needs no measure to have been taken: every row knows it.
    """
    if key == SUCCESS:
        return [(row, (float(row.success), 1.0)) for row in group.finished]
    return [(row, row.values[key]) for row in group.finished if key in row.values]


def value_cell(group: Group | None, key: Key, published: float | None = None, *, comparable: bool = False) -> Cell:
    """The value of a measure for a group: mean of the per-seed values.

    A rate with one run per instance has a Wilson interval. Otherwise bootstrap over instances, their runs kept together.

    Args:
        group: the runs; None where there are none.
        key: the measure and its parameter.
        published: the paper's value for this cell.
        comparable: same model and same size as in the paper.
    """
    measure = MEASURES[key[0]]
    if group is None:
        return Cell(published, digits=measure.digits)
    found = parts(group, key)
    whole = sum(part[1] for _, part in found)
    cell = Cell(
        published,
        n=round(whole),
        planned=group.planned,
        excluded=group.excluded,
        marks=_marks(group, comparable),
        runs=tuple(str(run.folder) for run in group.runs),
        digits=measure.digits,
        episodes=len(found) if measure.pooled else 0,
    )
    if not whole:
        return cell
    scale = 100.0 if measure.percent else 1.0
    if measure.total:
        return replace(cell, measured=sum(part[0] for _, part in found))
    by_seed: dict[int, list[Part]] = defaultdict(list)
    for row, part in found:
        by_seed[row.seed].append(part)
    spread = mean_and_std([sum(a for a, _ in some) / total for some in by_seed.values() if (total := sum(b for _, b in some))])
    assert spread is not None
    low, high = _interval(measure, found)
    return replace(
        cell,
        measured=scale * spread[0],
        low=scale * low,
        high=scale * high,
        seeds=len(by_seed),
        std=None if spread[1] is None else scale * spread[1],
        as_failures=scale * sum(part[0] for _, part in found) / len(group.rows) if group.excluded and key == SUCCESS else None,
    )


def rate_cell(group: Group | None, published: float | None = None, *, comparable: bool = False) -> Cell:
    """Success rate of a group, see `value_cell`."""
    return value_cell(group, SUCCESS, published, comparable=comparable)


def _interval(measure: Measure, found: list[tuple[Row, Part]]) -> tuple[float, float]:
    tops: dict[str, float] = defaultdict(float)
    bottoms: dict[str, float] = defaultdict(float)
    for row, (part, whole) in found:
        tops[row.instance] += part
        bottoms[row.instance] += whole
    if measure.binary:
        won = round(sum(tops.values()))
        if len(tops) == len(found):
            return wilson(won, len(found))
        if won in (0, len(found)):  # every resample is the same; the instances are what was drawn independently
            return wilson(len(tops) if won else 0, len(tops))
    estimate = ratio(list(tops.values()), list(bottoms.values()))
    assert estimate.low is not None and estimate.high is not None
    return estimate.low, estimate.high


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


def difference_cell(
    a: Group | None, b: Group | None, published: float | None = None, *, comparable: bool = False, key: Key = SUCCESS
) -> Cell:
    """b - a, paired over the episodes in both (an instance's seeds and repeats are paired one by one and kept together)."""
    measure = MEASURES[key[0]]
    nothing = Cell(published, difference=True, digits=measure.digits)
    if a is None or b is None:
        return nothing
    left, right = parts(a, key), parts(b, key)
    found = _paired(_means(left), _means(right), {row.key: row.instance for row, _ in right})
    if found is None:
        return nothing
    marks = tuple(dict.fromkeys([*_marks(a, comparable), *_marks(b, comparable)]))
    scale = 100.0 if measure.percent else 1.0
    return Cell(
        published,
        scale * found.mean,
        scale * found.low,
        scale * found.high,
        found.n,
        max(a.planned, b.planned),
        a.excluded + b.excluded,
        marks=marks if found.resolved else (*marks, "≈"),
        difference=True,
        runs=tuple(str(run.folder) for group in (a, b) for run in group.runs),
        digits=measure.digits,
    )


def ratio_cell(
    a: Group | None, b: Group | None, published: float | None = None, *, comparable: bool = False, key: Key = SUCCESS
) -> Cell:
    """b / a: mean over mean, over the episodes in both; bootstrap over instances, whose seeds and repeats are kept together."""
    nothing = Cell(published, digits=2)
    if a is None or b is None:
        return nothing
    left, right = _means(parts(a, key)), parts(b, key)
    tops: dict[str, float] = defaultdict(float)
    bottoms: dict[str, float] = defaultdict(float)
    pairs = [(row, part) for row, part in right if row.key in left and part[1]]
    for row, part in pairs:
        tops[row.instance] += part[0] / part[1]
        bottoms[row.instance] += left[row.key]
    estimate = ratio(list(tops.values()), list(bottoms.values()))
    if estimate.value is None:
        return nothing
    return replace(
        nothing,
        measured=estimate.value,
        low=estimate.low,
        high=estimate.high,
        n=len(pairs),
        planned=max(a.planned, b.planned),
        excluded=a.excluded + b.excluded,
        marks=tuple(dict.fromkeys([*_marks(a, comparable), *_marks(b, comparable)])),
        runs=tuple(str(run.folder) for group in (a, b) for run in group.runs),
    )


def paired_difference(a: Iterable[Row], b: Iterable[Row], value: str = "success") -> Difference | None:
    """b - a over the task keys in both, with a bootstrap over instances.

    Args:
        a, b: rows of two runs.
        value: attribute of `Row` to compare.
    """
    both = list(b)
    left, right = ({row.key: float(getattr(row, value)) for row in rows} for rows in (a, both))
    return _paired(left, right, {row.key: row.instance for row in both})


def measured_difference(a: Iterable[Row], b: Iterable[Row], key: Key) -> Difference | None:
    """The same for a measure; None unless it was taken in both for at least one common task key."""
    both = list(b)
    left, right = (_means([(row, row.values[key]) for row in rows if key in row.values]) for rows in (a, both))
    return _paired(left, right, {row.key: row.instance for row in both})


def _means(found: list[tuple[Row, Part]]) -> dict[str, float]:
    return {row.key: part / whole for row, (part, whole) in found if whole}


def _paired(left: Mapping[str, float], right: Mapping[str, float], clusters: Mapping[str, str]) -> Difference | None:
    return paired_bootstrap(left, right, clusters=clusters)
