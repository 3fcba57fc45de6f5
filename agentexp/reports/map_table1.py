"""MAP, table 1: success rate of models x {ReAct, CoMAP, MAP} in three worlds, beside the printed values."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from agentexp.reports.cells import Cell, difference_cell, rate_cell
from agentexp.reports.published import published_value
from agentexp.reports.runs import Group, RunData, group_runs
from agentexp.reports.tables import Panel, Table

PARADIGMS = {"react": "ReAct", "comap": "CoMAP", "map": "MAP"}
# world -> (name in the paper's table, heading)
WORLDS = {
    "alfworld": ("alfworld", "ALFWorld"),
    "textcraft": ("textcraft", "TextCraft"),
    "scienceworld": ("sciworld", "SciWorld"),
}
# Names under which the paper's models are served.
MODEL_NAMES = {
    "gpt-4o-2024-08-06": "GPT-4o-0806",
    "gpt-4o-2024-11-20": "GPT-4o-1120",
    "gpt-4o-mini-2024-07-18": "GPT-4o-mini",
    "Qwen3-4B-Instruct-2507": "Qwen3-4B-Instruct",
    "Qwen3-30B-A3B-Instruct-2507": "Qwen3-30B-A3B-Instruct",
    "Qwen3-4B-Thinking-2507": "Qwen3-4B-Thinking",
}
_TABLE = ("000_MAP", "tables", "table1")

NOTES = (
    "Success rate in percent (micro: over episodes), 95 % interval in brackets. Episodes that ended with a harness error are "
    "left out and counted as excluded; what the agent caused (unreadable replies, limits) is a failure.",
    "One run per instance: Wilson interval. Several seeds: mean of the per-seed rates ± standard deviation (ddof = 1), "
    "bootstrap over instances with an instance's seeds kept together.",
    "MAP − ReAct: paired difference over the instances that both ran, bootstrap over instances (10,000). With 134 instances "
    "and one run, differences below about 8-10 points are not resolved.",
    "Baselines act for as many steps as MAP maps and acts (section 4.1).",
)


def build_table1(runs: Sequence[RunData]) -> Table:
    """The table of some runs; the paper's rows are always there.

    Args:
        runs: any runs; those of other worlds, paradigms or commands are ignored.
    """
    usable = [run for run in runs if run.env in WORLDS and run.paradigm in PARADIGMS and run.manifest.get("command") == "eval"]
    groups = group_runs(usable)
    panels = []
    for world, (paper_name, title) in WORLDS.items():
        size = published_value(*_TABLE, "n_test", paper_name)
        rows = [
            (label, _row(cells, paper_model, world, size))
            for label, paper_model, cells in _labelled_rows({k: v for k, v in groups.items() if k[1] == world})
        ]
        columns = (*PARADIGMS.values(), "MAP − ReAct")
        panels.append(Panel(f"{title} (paper: {size} test instances)", columns, rows))
    notes = (
        NOTES if usable else (*NOTES, "No runs were found; make some with agentexp eval -m paradigm=react,comap,map env=...")
    )
    return Table("table1", "Success rate with and without a mapping phase (MAP, table 1)", panels, notes)


def _labelled_rows(
    groups: Mapping[tuple[str, str, str], Sequence[Group]],
) -> list[tuple[str, str | None, dict[str, Group]]]:
    """(label, name in the paper, group by paradigm): the paper's models in its order, then all others."""
    rows: dict[tuple[str, str], dict[str, Group]] = {}
    for (model, _, paradigm), variants in groups.items():
        for group in variants:
            rows.setdefault((model, group.variant), {})[paradigm] = group
    for (model, variant), cells in rows.items():
        if variant:  # a paradigm without variants stands beside all variants of another
            for paradigm, group in rows.get((model, ""), {}).items():
                cells.setdefault(paradigm, group)
    result: list[tuple[str, str | None, dict[str, Group]]] = []
    papers = list(published_value(*_TABLE, "rows") or ())
    for name in papers:
        mine = [(key, cells) for key, cells in rows.items() if paper_name(key[0]) == name]
        result += [(_label(name, key[1]), name, cells) for key, cells in mine] or [(name, name, {})]
    others = sorted(key for key in rows if paper_name(key[0]) is None)
    return result + [(_label(model, variant), None, rows[model, variant]) for model, variant in others]


def _label(model: str, variant: str) -> str:
    return f"{model} ({variant})" if variant else model


def paper_name(model: str) -> str | None:
    """The paper's name of a model; None if the paper doesn't have it. Only spelling may differ."""
    wanted = _plain(MODEL_NAMES.get(model, model))
    return next((name for name in published_value(*_TABLE, "rows") or () if _plain(name) == wanted), None)


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.casefold())


def _row(cells: Mapping[str, Group], paper_model: str | None, world: str, size: int | None) -> list[Cell]:
    row = (*_TABLE, "rows", paper_model or "", WORLDS[world][0])
    printed = {paradigm: published_value(*row, paradigm) for paradigm in PARADIGMS}
    rates = [
        rate_cell(cells.get(paradigm), printed[paradigm], comparable=_comparable(cells.get(paradigm), paper_model, size))
        for paradigm in PARADIGMS
    ]
    react, mapped = cells.get("react"), cells.get("map")
    high, low = printed["map"], printed["react"]
    gain = high - low if high is not None and low is not None else None
    comparable = _comparable(react, paper_model, size) and _comparable(mapped, paper_model, size)
    difference = difference_cell(react, mapped, gain, comparable=comparable)
    return [*rates, difference]


def _comparable(group: Group | None, paper_model: str | None, size: int | None) -> bool:
    """The paper's model on as many instances as in the paper."""
    return group is not None and paper_model is not None and len({row.instance for row in group.finished}) == size
