"""Specifications of tables and figures: one YAML file each, read into `Spec`.

A cell is described by its block (panel), its row and its column together: each of the three may state conditions on runs
(`where`), a second set of runs to compare with (`versus`), a metric with its parameter (`at`), and its name in the published
values. What a column says goes before what a row says, and that before the block. `agentexp/reports/specs/README.md` is the
reference of the format.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from importlib import resources
from pathlib import Path
from typing import Any, Literal

import yaml

from agentexp.config import nearest
from agentexp.errors import UserError

Conditions = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Entry:
    """One block, row or column.

    Attributes:
        title: what is printed.
        key: its part of the path into the published values; by default the title.
        where: conditions on runs: setting or manifest key -> value, a list of values, or null for no condition.
        versus: the cell is a paired difference to the runs with these conditions in place of those of the cell.
        relative: the cell is the ratio to the runs of `versus`, not the difference.
        metric: name of a measure (`agentexp.reports.measures`).
        at: parameter of the metric.
        value: path of the published value below the table's; "{panel}", "{row}" and "{column}" stand for the keys.
        minus: path of a published value that is subtracted (where the paper prints no difference).
        needs: what has to exist before this can be measured ("a trained model").
        names: other names of a model (axis with `each`).
        size: number of instances in the paper.
        average: a block with the mean over the blocks before it.
        columns: a block's own columns, in place of the table's.
        ours: a block that the paper does not have: no published values, and no rows without runs.
    """

    title: str = ""
    key: tuple[str, ...] = ()
    where: Conditions = field(default_factory=dict)
    versus: Conditions | None = None
    relative: bool = False
    metric: str = ""
    at: Any = None
    value: tuple[str, ...] | None = None
    minus: tuple[str, ...] | None = None
    needs: str = ""
    names: tuple[str, ...] = ()
    size: int | None = None
    average: bool = False
    columns: Axis | None = None
    ours: bool = False


@dataclass(frozen=True, slots=True)
class Axis:
    """Rows or columns.

    Attributes:
        entries: as written; with `each`, those that the paper has.
        each: a run's label ("model", "explorer" ...): one entry for every value that the runs have, the paper's first.
        others: with `each`, also show values that the paper does not have.
        same: with `each`, labels that agree in all cells of one row: where a cell has no condition on `each` (direct acting has
            no explorer), it still belongs to the same model.
        whole: with `each`, show a value that the paper does not have only where every cell has runs.
    """

    entries: Sequence[Entry] = ()
    each: str = ""
    others: bool = True
    same: tuple[str, ...] = ()
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Chart:
    """How a figure is drawn: a subplot per block, a series per row, an x position per column.

    Attributes:
        kind: lines (columns are numbers) or bars.
        x: label of the x axis.
        y: label of the y axis; a block's `at` does not change it.
        wide: subplots side by side.
    """

    kind: Literal["lines", "bars"] = "lines"
    x: str = ""
    y: str = ""
    wide: int = 3


@dataclass(frozen=True, slots=True)
class Spec:
    """A table, or a figure where `chart` is set.

    Attributes:
        name: file name; also the name on the command line.
        title: heading.
        panels: blocks.
        rows, columns: axes.
        published: path of the table in `published.yaml`.
        where: conditions for all cells.
        usual: conditions that runs without such a setting meet as well; `where` of an entry replaces them.
        pool: settings in which runs of one cell may differ (splits that make up one test set).
        metric, at, value: see `Entry`; for cells that state none.
        notes: below the table.
        chart: see `Chart`.
    """

    name: str
    title: str
    panels: Sequence[Entry]
    rows: Axis
    columns: Axis
    published: tuple[str, ...] = ()
    where: Conditions = field(default_factory=dict)
    usual: Conditions = field(default_factory=dict)
    pool: tuple[str, ...] = ()
    metric: str = "success"
    at: Any = None
    value: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    chart: Chart | None = None


def names() -> list[str]:
    """The tables and figures that come with agentexp."""
    folder = resources.files("agentexp.reports").joinpath("specs")
    found = [item.name.removesuffix(".yaml") for item in folder.iterdir() if item.name.endswith(".yaml")]
    return sorted(found, key=lambda name: ("fig" in name, name.startswith(("ecc", "ttx")), name))


def load_spec(name: str) -> Spec:
    """Read a specification.

    Args:
        name: one of `names()`, or the path of a YAML file of your own.

    Raises:
        UserError: there is no such file, or it has an unknown key or value.
    """
    own = name.endswith((".yaml", ".yml"))
    try:
        if own:
            text = Path(name).read_text(encoding="utf-8")
        else:
            text = resources.files("agentexp.reports").joinpath("specs", f"{name}.yaml").read_text(encoding="utf-8")
    except OSError as error:
        known = ", ".join(["runs", *names()])
        raise UserError(
            f"There is no report {name!r}.{nearest(name, names())} Choose one of: {known}; or give a YAML file."
        ) from error
    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise UserError(f"{name} is not valid YAML: {str(error).splitlines()[0]}.") from error
    return parse_spec(Path(name).stem if own else name, data)


def parse_spec(name: str, data: Any) -> Spec:
    """The specification of a parsed YAML file."""
    values = _checked(Spec, data, name)
    missing = [key for key in ("title", "panels", "rows", "columns") if key not in values]
    if missing:
        raise UserError(f"The report {name} has no {missing[0]!r}.")
    values |= {"name": name, "panels": tuple(_entry(item, f"{name}.panels") for item in values["panels"])}
    for key in ("rows", "columns"):
        values[key] = _axis(values[key], f"{name}.{key}")
    if "chart" in values:
        values["chart"] = Chart(**_checked(Chart, values["chart"], f"{name}.chart"))
    for key in ("published", "pool", "value", "notes"):
        values[key] = tuple(values.get(key, ()))
    return Spec(**values)


def _axis(data: Any, where: str) -> Axis:
    if isinstance(data, list):
        return Axis(tuple(_entry(item, where) for item in data))
    values = _checked(Axis, data, where)
    values["same"] = tuple(values.get("same", ()))
    return Axis(**{**values, "entries": tuple(_entry(item, where) for item in values.get("entries", ()))})


def _entry(data: Any, where: str) -> Entry:
    values = _checked(Entry, {"title": data} if isinstance(data, str) else data, where)
    title = str(values.get("title", values.get("key", "")))
    key = values.get("key", title)
    values |= {"title": title, "key": tuple(map(str, key if isinstance(key, list) else [key]))}
    if "columns" in values:
        values["columns"] = _axis(values["columns"], f"{where}.columns")
    for name in ("value", "minus", "names"):
        if name in values:
            values[name] = tuple(values[name])
    return Entry(**values)


def _checked(cls: type[Any], data: Any, where: str) -> dict[str, Any]:
    if not isinstance(data, Mapping):
        raise UserError(f"{where} must be a mapping in a report's specification, not {data!r}.")
    known = [f.name for f in fields(cls)]
    for key in data:
        if key not in known:
            raise UserError(f"{where}.{key} is unknown in a report's specification.{nearest(str(key), known)}")
    return dict(data)
