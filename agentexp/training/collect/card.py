"""The card of a data set: MAP's table 6 beside ours, what was left out and why, and how to evaluate what is trained on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

from agentexp import __version__
from agentexp.reports.published import published_value
from agentexp.training.collect.dataset import COLUMNS, checksum

if TYPE_CHECKING:
    from agentexp.training.collect.build import Options
    from agentexp.training.collect.gather import Collected
    from agentexp.training.collect.tokens import Counter as TokenCounter

Facts = dict[str, Any]

PRINTED = {"alfworld": "ALFWorld", "textcraft": "TextCraft", "scienceworld": "ScienceWorld"}
PROMPT_SETTINGS = ("style", "form", "show_admissible", "show_steps_left", "goal_visible", "stage1", "extractor")
"""Settings of the collecting paradigm that an evaluation has to share: the model then meets the prompts of its training."""


def facts(found: Collected, options: Options, counts: TokenCounter) -> Facts:
    """Everything that the card says, as JSON values (`collect.json`)."""
    worlds = {env: _world(found, env) for env in found.episodes}
    return {
        "kind": found.kind,
        "agentexp": __version__,
        "form": options.form if found.kind == "map" else "react",
        "stages": sorted({str(row["stage"]) for row in found.rows}),
        "tokenizer": counts.name,
        "tokens_exact": counts.exact,
        "min_accuracy": options.thresholds.accuracy,
        "min_coverage": options.thresholds.coverage,
        "max_tokens": options.max_tokens,
        "match": options.match,
        "limit": options.limit,
        "worlds": worlds,
        "tokens": sum(row["tokens"] for row in found.rows),
        "trained_tokens": sum(row["trained_tokens"] for row in found.rows),
        "longest": max((row["tokens"] for row in found.rows), default=0),
        "sha256": checksum(found.rows),
        "held_out": {env: {"instances": h.counts, "missing": h.missing} for env, h in found.held_out.items()},
        "runs": [_run(source.name, source.manifest, source.partial) for source in found.sources],
    }


def _world(found: Collected, env: str) -> Facts:
    """One line of table 6, and what led to it. A trajectory is an instance, whatever number of samples it is cut into."""
    rows = [row for row in found.rows if row["env"] == env]
    first = [row for row in rows if row["repetition"] == 0]
    steps = {str(row["key"]): int(row["steps"]) for row in first}
    stages = sorted({str(row["stage"]) for row in first})
    maps = found.measured.get(env, [])
    return {
        "episodes": found.episodes[env],
        "trajectories": len(steps),
        "samples": len(rows),
        "mean_steps": fmean(steps.values()) if steps else None,
        "mean_tokens": sum(row["tokens"] for row in first) / len(steps) if steps else None,
        "mean_tokens_by_stage": {stage: fmean(row["tokens"] for row in first if row["stage"] == stage) for stage in stages},
        "trained_tokens": sum(row["trained_tokens"] for row in rows),
        "tokens": sum(row["tokens"] for row in rows),
        "mean_accuracy": _mean([quality.accuracy for quality in maps]),
        "mean_coverage": _mean([quality.coverage for quality in maps]),
        "maps_compared": len(maps),
        "rejected": dict(found.rejected.get(env, Counter[str]()).most_common()),
        "task_kinds": dict(sorted(Counter({str(row["key"]): str(row["task_kind"]) for row in first}.values()).items())),
    }


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _run(name: str, manifest: Mapping[str, Any], partial: bool | None) -> Facts:
    config = manifest.get("config", {})
    paradigm = config.get("paradigm", {})
    return {
        "name": name,
        "env": manifest.get("env"),
        "split": manifest.get("split"),
        "teacher": manifest.get("model"),
        "seeds": manifest.get("seeds"),
        "partial": partial,
        "budget": config.get("budget"),
        "mapping_steps": paradigm.get("mapping_steps"),
        "prompts": {key: paradigm[key] for key in PROMPT_SETTINGS if key in paradigm},
        "code": manifest.get("code", {}).get("commit"),
    }


def summary(known: Facts) -> list[str]:
    """One line per world for the terminal."""
    estimate = "" if known["tokens_exact"] else "about "
    lines = []
    for env, world in known["worlds"].items():
        left_out = ", ".join(f"{n} {reason}" for reason, n in world["rejected"].items())
        lines.append(
            f"{known['kind']} {env}: {world['trajectories']} of {world['episodes']} episodes kept, {world['samples']} samples, "
            f"{_number(world['mean_steps'])} steps and {estimate}{_number(world['mean_tokens'], 0)} tokens on average"
            + (f"; left out: {left_out}" if left_out else "")
        )
    return [*lines, f"{known['kind']}: {estimate}{known['tokens']} tokens in all, {known['trained_tokens']} of them trained."]


def text(known: Facts) -> str:
    """The card in Markdown."""
    title = "Map-then-act trajectories (MAP-2K)" if known["kind"] == "map" else "Execution traces (ACT)"
    parts = [
        "---\nlicense: apache-2.0\ntask_categories: [text-generation]\n---",
        f"# {title}",
        f"Made by agentexp {known['agentexp']} with `agentexp collect`; read it with `datasets.load_from_disk`. "
        f"sha256 of its rows: `{known['sha256']}`.",
        _table6(known),
        _kept(known),
        _left_out(known),
        _held_out(known),
        _settings(known),
        "## Columns\n\n" + _rows([("column", "meaning"), *COLUMNS.items()]),
    ]
    return "\n\n".join(parts) + "\n"


def _table6(known: Facts) -> str:
    rows: list[Sequence[Any]] = [("", "trajectories", "steps", "tokens (k)", "paper: trajectories", "steps", "tokens (k)")]
    for env, world in known["worlds"].items():
        printed = published_value("000_MAP", "tables", "table6", "rows", PRINTED.get(env, env)) or {}
        theirs = [printed.get(name, "-") for name in ("n_traj", "avg_steps", "avg_tokens_k")]
        tokens = None if world["mean_tokens"] is None else world["mean_tokens"] / 1000
        rows.append((env, world["trajectories"], _number(world["mean_steps"]), _number(tokens), *theirs))
    exact = "exact" if known["tokens_exact"] else "estimated from characters"
    note = (
        f"Means over trajectories (all stages together); tokens of `{known['tokenizer']}`, {exact}. The paper's are of another "
        "tokenizer, other prompts and another teacher, so the columns are not comparable number by number."
    )
    if known["kind"] == "act":
        note += " The paper's columns are those of MAP-2K; it prints none for its ACT traces."
    return f"## MAP, table 6\n\n{_rows(rows)}\n\n{note}"


def _kept(known: Facts) -> str:
    rows: list[Sequence[Any]] = [
        ("", "episodes", "kept", "samples", "tokens", "trained", "map accuracy", "map coverage", "tokens by stage")
    ]
    for env, world in known["worlds"].items():
        stages = ", ".join(f"{stage} {_number(n, 0)}" for stage, n in world["mean_tokens_by_stage"].items())
        rows.append(
            (
                env,
                world["episodes"],
                world["trajectories"],
                world["samples"],
                world["tokens"],
                world["trained_tokens"],
                _number(world["mean_accuracy"], 3),
                _number(world["mean_coverage"], 3),
                stages,
            )
        )
    about = (
        "Accuracy and coverage are means over all finished maps, before anything was deleted or left out. A map counts as "
        f"accurate from {known['min_accuracy']:g}, as covering from {known['min_coverage']:g}; its wrong entries are deleted."
        if known["kind"] == "map"
        else f"Made equal to the MAP data by {known['match']}, where both were collected together."
    )
    kinds = [
        f"{env}: " + ", ".join(f"{n} {kind}" for kind, n in world["task_kinds"].items())
        for env, world in known["worlds"].items()
        if any(world["task_kinds"])
    ]
    about = "\n\n".join([*(["Trajectories by task type. " + "; ".join(kinds) + "."] if kinds else []), about])
    return f"## What is in it\n\n{_rows(rows)}\n\n{about} Longest conversation: {known['longest']} tokens."


def _left_out(known: Facts) -> str:
    rows: list[Sequence[Any]] = [("", "reason", "episodes")]
    for env, world in known["worlds"].items():
        rows += [(env, reason, n) for reason, n in world["rejected"].items()]
    return "## Left out\n\n" + (_rows(rows) if len(rows) > 1 else "Nothing.")


def _held_out(known: Facts) -> str:
    rows: list[Sequence[Any]] = [("held out", "instances compared with")]
    for held in known["held_out"].values():
        rows += [(label, n) for label, n in held["instances"].items()]
        rows += [(label, f"could not be read: {why}") for label, why in held["missing"].items()]
    return "## Decontamination\n\nNo instance of these is in the data, by content.\n\n" + _rows(rows)


def _settings(known: Facts) -> str:
    lines = []
    for run in known["runs"]:
        prompts = " ".join(f"{key}={_plain(value)}" for key, value in run["prompts"].items())
        budget, drawn = run["budget"] or {}, " or ".join(map(str, run["mapping_steps"] or ()))
        lines.append(
            f"- `{run['name']}`: {run['env']}/{run['split']}, teacher {run['teacher']}, seeds {run['seeds']}, budget "
            f"{drawn or budget.get('mapping')}+{budget.get('acting')}, {prompts}" + (" (partial run)" if run["partial"] else "")
        )
    return "## Where it comes from\n\n" + "\n".join(lines) + f"\n\n{_advice(known)}"


def _advice(known: Facts) -> str:
    """The settings with which an evaluation shows the prompts of the data."""
    prompts = known["runs"][0]["prompts"] if known["runs"] else {}
    names = [name for name in PROMPT_SETTINGS if name in prompts and not (known["kind"] == "map" and name == "extractor")]
    flags = " ".join(f"paradigm.{name}={_plain(prompts[name])}" for name in names)
    paradigm = "map" if known["kind"] == "map" else "react"
    lines = ["A model trained on this meets the prompts of its training with:", f"`agentexp eval paradigm={paradigm} {flags}`"]
    if known["kind"] == "map" and known["form"] == "stages" and "map" not in known["stages"]:
        lines.append("It has not learnt to write maps (stage map is not in the data): add `paradigm.extractor=rules`.")
    if known["form"] == "conversation":
        lines.append("This form is MAP's eq. 9; `paradigm=map` shows each stage in a conversation of its own, so expect a gap.")
    return "\n\n".join(lines)


def _rows(rows: Sequence[Sequence[Any]]) -> str:
    head, *body = [[str(cell) for cell in row] for row in rows]
    return "\n".join(["| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *body)])


def _number(value: float | None, digits: int = 1) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _plain(value: Any) -> str:
    return {True: "true", False: "false", None: "null"}.get(value, str(value)) if isinstance(value, bool | None) else str(value)
