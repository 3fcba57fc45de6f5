"""What the page of two runs shows: only tasks with a record in both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agentexp.errors import UserError
from agentexp.store import index
from agentexp.view.data import Blocks, Row, read_run


def comparison(a: Path, b: Path) -> tuple[dict[str, Any], list[Blocks]]:
    """Description and blocks of a comparison.

    Rows keep their run's order (A's); `runs[1]["rows"][i]` is the same task as `runs[0]["rows"][i]`.

    Raises:
        UserError: a folder is not a run folder, or the two share no task.
    """
    keys_a, keys_b = set(index(a)), set(index(b))
    shared = keys_a & keys_b
    read = [read_run(folder, number, shared) for number, folder in enumerate((a, b))]
    (blocks_a, run_a), (blocks_b, run_b) = read
    other = {row["key"]: row for row in run_b["rows"]}
    run_a["rows"] = [row for row in run_a["rows"] if row["key"] in other]
    run_b["rows"] = [other[row["key"]] for row in run_a["rows"]]
    if not run_a["rows"]:
        raise UserError(
            f"{a} and {b} have no task in common. Compare runs of the same env, env.split, env.seed and repeats; "
            "a task counts once it has a record in both."
        )
    meta = {
        "mode": "compare",
        "runs": [run_a, run_b],
        "only": [len(keys_a - keys_b), len(keys_b - keys_a)],
        "paired": paired(run_a["rows"], run_b["rows"]),
        "differences": differing_settings(run_a["settings"], run_b["settings"]),
    }
    return meta, [blocks_a, blocks_b]


def paired(a: list[Row], b: list[Row]) -> dict[str, Any]:
    """The two runs on the tasks that both finished with a win or a failure; harness errors are in no number.

    Rates with Wilson intervals, their difference B - A with a bootstrap interval over instances (seeds and repeats of an
    instance stay together), and McNemar's exact p (None where no task was decided differently).
    """
    from agentexp.metrics.stats import mcnemar, paired_bootstrap, wilson

    pairs = [(x, y) for x, y in zip(a, b, strict=True) if {x["outcome"], y["outcome"]} <= {"won", "failed"}]
    won_a = {x["key"]: x["outcome"] == "won" for x, _ in pairs}
    won_b = {y["key"]: y["outcome"] == "won" for _, y in pairs}
    n, won = len(pairs), [sum(won_a.values()), sum(won_b.values())]
    only_a, only_b, p = mcnemar(won_a, won_b)
    difference = paired_bootstrap(won_a, won_b, clusters={x["key"]: x["id"] for x, _ in pairs})
    return {
        "n": n,
        "won": won,
        "rates": [w / n if n else None for w in won],
        "intervals": [list(wilson(w, n)) if n else None for w in won],
        "difference": [difference.mean, difference.low, difference.high] if difference else None,
        "p": p if only_a + only_b else None,
    }


def differing_settings(a: dict[str, Any], b: dict[str, Any], prefix: str = "") -> list[list[Any]]:
    """[dotted name, value of A, value of B] for every setting that differs."""
    found: list[list[Any]] = []
    for name in sorted({*a, *b}):
        x, y = a.get(name), b.get(name)
        if isinstance(x, dict) and isinstance(y, dict):
            found += differing_settings(x, y, f"{prefix}{name}.")
        elif x != y:
            found.append([prefix + name, x, y])
    return found
