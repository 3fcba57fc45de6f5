"""From a specification and run folders to a table."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agentexp.reports.cells import TRAINED, Cell, difference_cell, ratio_cell, value_cell
from agentexp.reports.measures import MEASURES, Key
from agentexp.reports.published import published_value
from agentexp.reports.runs import Group, RunData, pooled
from agentexp.reports.spec import Axis, Conditions, Entry, Spec
from agentexp.reports.tables import Panel, Table

ABSENT = "(absent)"
Variant = Mapping[str, Any]
"""Settings that tell apart groups of runs which the specification does not: each gets a row (column, block) of its own."""


@dataclass(frozen=True, slots=True)
class _Item:
    """One row or column of one block.

    Attributes:
        entry: what it asks for.
        label: what is printed.
        variant: settings of its runs that the entry says nothing about.
        paper: the paper has it.
        found: bound to a label that runs have; False for the paper's models where there is no run.
    """

    entry: Entry
    label: str
    variant: Variant
    paper: bool = False
    found: bool = True


def build(spec: Spec, runs: Sequence[RunData]) -> Table:
    """The table of some runs; the paper's rows are always there, with a dash where nothing was measured.

    Args:
        spec: what to show.
        runs: any runs, read with `wanted(spec)`; those that no cell asks for are ignored.
    """
    panels: list[Panel] = []
    used: set[str] = set()
    for entry in spec.panels:
        if entry.average:
            panels.append(_average(spec, entry, panels))
        else:
            for panel, folders in _panels(spec, entry, runs):
                panels.append(panel)
                used |= folders
    notes = [*spec.notes, *_general(spec)]
    if not used:
        notes.append("No runs were found for this report; see the experiment files named above, or `make`.")
    return Table(spec.name, spec.title, panels, notes)


def wanted(spec: Spec) -> set[Key]:
    """The measures that the cells of a specification take."""
    return {_key(spec, *cell) for cell in _crossed(spec)}


def selected(runs: Iterable[RunData], where: Conditions, usual: Conditions) -> list[RunData]:
    """Runs that meet all conditions: `where` strictly; `usual` also where a run has no such setting."""

    def meets(run: RunData) -> bool:
        for key, value in where.items():
            if value is not None and not _is(run, key, value):
                return False
        return all(key in where or key not in run.labels or _is(run, key, value) for key, value in usual.items())

    return [run for run in runs if meets(run)]


def _is(run: RunData, key: str, value: Any) -> bool:
    """Whether a run's label is the wanted one: a value, one of a list, or "=KEY", what another label of the run says."""
    found = run.labels.get(key, ABSENT)
    if isinstance(value, str) and value.startswith("="):
        value = run.labels.get(value[1:], found)
    return found in value if isinstance(value, list | tuple) else bool(found == value)


def plain(name: str) -> str:
    """A model's name without differences of spelling: case, separators, the organisation before it."""
    return re.sub(r"[^a-z0-9:+]", "", name.rpartition("/")[2].casefold())


# ------------------------------------------------------------------------------------------------------------------ blocks


def _panels(spec: Spec, panel: Entry, runs: Sequence[RunData]) -> Iterable[tuple[Panel, set[str]]]:
    """The block, or one for each variant where neither rows nor columns can carry them."""
    across, down = panel.columns or spec.columns, spec.rows
    variants: list[Variant] = [{}]
    if not across.each and not down.each:
        crossed = [_where(spec, panel, row, column) for row in down.entries for column in across.entries]
        variants = _variants(spec, runs, crossed)
    for variant in variants:
        rows = _items(spec, down, panel, across.entries or [Entry()], runs)
        columns = _items(spec, across, panel, down.entries or [Entry()], runs)
        cells = [[_cell(spec, panel, row, column, variant, runs) for column in columns] for row in rows]
        title = _labelled(panel.title, variant)
        lines = [(row.label, line) for row, line in zip(rows, cells, strict=True)]
        yield (
            Panel(title, [column.label for column in columns], lines),
            {run for line in cells for cell in line for run in cell.runs},
        )


def _items(spec: Spec, axis: Axis, panel: Entry, across: Sequence[Entry], runs: Sequence[RunData]) -> list[_Item]:
    """The entries of an axis; with `each`, the paper's (in its order, as often as the runs have variants), then all others."""
    if not axis.each:
        return [_Item(entry, entry.title, {}) for entry in axis.entries]
    cells = [_where(spec, panel, other, Entry()) for other in across]
    found = {
        str(run.labels[axis.each])
        for cell in cells
        for run in selected(runs, cell[0], spec.usual)
        if run.labels.get(axis.each, "") != ""
    }
    items: list[_Item] = []
    matched: set[str] = set()
    for entry in axis.entries:
        own = sorted(value for value in found if any(plain(value) == plain(n) for n in (*entry.key, entry.title, *entry.names)))
        matched |= set(own)
        for value in own:
            items += _bound(spec, axis, panel, across, runs, entry, value, paper=True)
        if not own and not panel.ours:
            items.append(_Item(entry, entry.title, {}, paper=True, found=False))
    for value in sorted(found - matched) if axis.others else ():
        if axis.whole and not all(selected(runs, {**cell[0], axis.each: value}, spec.usual) for cell in cells):
            continue
        items += _bound(spec, axis, panel, across, runs, Entry(title=value, key=("",)), value)
    return items


def _bound(
    spec: Spec,
    axis: Axis,
    panel: Entry,
    across: Sequence[Entry],
    runs: Sequence[RunData],
    entry: Entry,
    value: str,
    *,
    paper: bool = False,
) -> list[_Item]:
    bound = replace(entry, where={axis.each: value, **entry.where})
    cells = [cell[0] for other in across if (cell := _where(spec, panel, bound, other))[0].get(axis.each) == value]
    mine = [run for cell in cells for run in selected(runs, cell, spec.usual)]
    companions = list(dict.fromkeys(tuple((key, run.labels.get(key)) for key in axis.same) for run in mine))
    items = []
    for same in companions:
        one = replace(bound, where={**bound.where, **dict(same)})
        title = _labelled(entry.title, dict(same)) if len(companions) > 1 else entry.title
        both = [_where(spec, panel, one, other) for other in across]
        items += [_Item(one, _labelled(title, v), v, paper) for v in _variants(spec, runs, both)]
    return items


def _labelled(title: str, variant: Variant) -> str:
    return f"{title} ({', '.join(f'{key}={value}' for key, value in variant.items())})" if variant else title


def _average(spec: Spec, entry: Entry, panels: Sequence[Panel]) -> Panel:
    """Means over the blocks before: of each row and column that all of them have measured."""
    labels = list(dict.fromkeys(label for panel in panels for label, _ in panel.rows))
    columns = list(dict.fromkeys(column for panel in panels for column in panel.columns))
    entries = {e.title: e for e in spec.rows.entries}, {e.title: e for e in spec.columns.entries}
    tables = [{label: dict(zip(panel.columns, cells, strict=True)) for label, cells in panel.rows} for panel in panels]
    rows: list[tuple[str, list[Cell]]] = []
    for label in labels:
        row, line = entries[0].get(label, Entry(title=label, key=("",))), []
        for name in columns:
            cells = [table.get(label, {}).get(name, Cell()) for table in tables]
            published = _published(spec, entry, row, entries[1].get(name, Entry(title=name, key=(name,))))
            values = [cell.measured for cell in cells if cell.measured is not None]
            first = cells[0]
            cell = Cell(published, difference=first.difference, digits=first.digits)
            if len(values) == len(panels):
                marks = tuple(dict.fromkeys(m for c in cells for m in c.marks if m != "≈"))
                runs = tuple(run for c in cells for run in c.runs)
                n, planned, excluded = (sum(getattr(c, name) for c in cells) for name in ("n", "planned", "excluded"))
                cell = replace(
                    cell,
                    measured=sum(values) / len(values),
                    n=n,
                    planned=planned,
                    excluded=excluded,
                    marks=marks,
                    runs=runs,
                )
            elif row.needs:
                cell = replace(cell, marks=(TRAINED,))
            line.append(cell)
        rows.append((label, line))
    return Panel(entry.title, columns, rows)


# ------------------------------------------------------------------------------------------------------------------- cells


def _cell(spec: Spec, panel: Entry, row: _Item, column: _Item, variant: Variant, runs: Sequence[RunData]) -> Cell:
    entries = panel, row.entry, column.entry
    where, versus = _where(spec, *entries)
    key, published = _key(spec, *entries), _published(spec, *entries)
    variant = {**variant, **row.variant, **column.variant}
    group = _group(spec, runs, where, variant) if row.found and column.found else None
    known = all(item.paper for axis, item in ((spec.rows, row), (panel.columns or spec.columns, column)) if axis.each)
    comparable = known and group is not None and len({r.instance for r in group.finished}) == panel.size
    if versus is None:
        cell = value_cell(group, key, published, comparable=comparable)
    else:
        base = _group(spec, runs, versus, variant) if group is not None else None
        compared = ratio_cell if any(entry.relative for entry in entries) else difference_cell
        cell = compared(base, group, published, comparable=comparable, key=key)
    needs = panel.needs or row.entry.needs or column.entry.needs
    return replace(cell, marks=(TRAINED,)) if cell.measured is None and not cell.marks and needs else cell


def _group(spec: Spec, runs: Sequence[RunData], where: Conditions, variant: Variant) -> Group | None:
    """The runs of a cell: those whose settings are the variant's. They all have the same settings."""
    for members in pooled(selected(runs, where, spec.usual), spec.pool):
        settings = members[0].settings
        if all(settings.get(key, value) == value for key, value in variant.items()):
            return Group(members, apart=spec.pool)
    return None


def _variants(spec: Spec, runs: Sequence[RunData], cells: Iterable[tuple[Conditions, Conditions | None]]) -> list[Variant]:
    """Settings in which runs of one and the same cell differ: one dict for each set; a single empty one if none do."""
    keys: set[str] = set()
    several: list[Mapping[str, Any]] = []
    for where in dict.fromkeys(_frozen(c) for cell in cells for c in cell if c is not None):
        groups = [members[0].settings for members in pooled(selected(runs, dict(where), spec.usual), spec.pool)]
        if len(groups) > 1:
            several += groups
            names = {key for settings in groups for key in settings if not key.endswith("_target_") and key not in spec.pool}
            keys |= {key for key in names if len({repr(settings.get(key, ABSENT)) for settings in groups}) > 1}
    found: list[Variant] = []
    for settings in several:
        one = {key: settings[key] for key in sorted(keys) if key in settings}
        if one not in found:
            found.append(one)
    return found or [{}]


def _frozen(conditions: Conditions) -> tuple[tuple[str, Any], ...]:
    return tuple((key, tuple(value) if isinstance(value, list) else value) for key, value in conditions.items())


def _crossed(spec: Spec) -> list[tuple[Entry, Entry, Entry]]:
    """Every cell as (block, row, column); an axis without entries of its own stands for one that asks for nothing."""
    return [
        (panel, row, column)
        for panel in spec.panels
        if not panel.average
        for row in spec.rows.entries or [Entry()]
        for column in (panel.columns or spec.columns).entries or [Entry()]
    ]


def _where(spec: Spec, *entries: Entry) -> tuple[Conditions, Conditions | None]:
    """The conditions of a cell, and of what it is compared with."""
    where: dict[str, Any] = dict(spec.where)
    for entry in entries:
        where |= entry.where
    others = [entry.versus for entry in entries if entry.versus is not None]
    if not others:
        return where, None
    versus = dict(where)
    for other in others:
        versus |= other
    return where, versus


def _key(spec: Spec, *entries: Entry) -> Key:
    metric = next((entry.metric for entry in reversed(entries) if entry.metric), spec.metric)
    at = next((entry.at for entry in reversed(entries) if entry.at is not None), spec.at)
    return metric, at


def _published(spec: Spec, panel: Entry, row: Entry, column: Entry) -> float | None:
    def look(path: Sequence[str]) -> float | None:
        keys = {"{panel}": panel.key, "{row}": row.key, "{column}": column.key}
        value = published_value(*spec.published, *(key for part in path for key in keys.get(part, (part,))))
        return float(value) if isinstance(value, int | float) else None

    path = next((entry.value for entry in (column, row, panel) if entry.value is not None), spec.value)
    if panel.ours or not spec.published or not path:
        return None
    minus = next((entry.minus for entry in (column, row, panel) if entry.minus is not None), None)
    value = look(path)
    if value is None or minus is None:
        return value
    other = look(minus)
    return None if other is None else value - other


# ------------------------------------------------------------------------------------------------------------------- notes


def _general(spec: Spec) -> list[str]:
    """What every number of the table means."""
    cells = _crossed(spec)
    keys = list(dict.fromkeys(_key(spec, *cell)[0] for cell in cells))
    what = list(dict.fromkeys(MEASURES[key].counts for key in keys))
    counts = (
        what[0] if len(what) == 1 else "; ".join(f"{', '.join(k for k in keys if MEASURES[k].counts == w)}: {w}" for w in what)
    )
    notes = [
        f"n counts {counts}. Episodes that ended with a harness error are left out and counted as excluded; what the agent "
        "caused (unreadable replies, limits) is a failure. 95 % intervals in brackets."
    ]
    if any(MEASURES[key].binary for key in keys):
        notes.append(
            "Rates over one run per instance: Wilson interval. Several seeds: mean of the per-seed rates ± standard deviation "
            "(ddof = 1), bootstrap over instances with an instance's seeds kept together."
        )
    if any(not MEASURES[key].binary and not MEASURES[key].total for key in keys):
        notes.append("Means and rates per step or error: bootstrap over instances (10,000), whole instances at a time.")
    if any(entry.versus is not None for cell in cells for entry in cell):
        notes.append(
            "Differences are paired over the episodes that both have, with a bootstrap over instances; with 134 instances and "
            "one run, differences in success below about 8-10 points are not resolved. n counts pairs."
        )
    return notes
