"""K_g between runs: where an explore run leaves it, and how a run that needs it finds it or makes it."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentexp.errors import UserError
from agentexp.manifest import git_state
from agentexp.store import read_json, write_json

if TYPE_CHECKING:
    from agentexp.run import Run

KNOWLEDGE_FILE = "kg.json"


def knowledge_path(output_root: Path, env: str, model_label: str) -> Path:
    """`<output_root>/kg/<env>/<model>.json`: the newest K_g of a world and a model, for people and for `paradigm.k_g=`."""
    return output_root / "kg" / env / (re.sub(r"[^\w.+-]+", "_", model_label) + ".json")


def save_knowledge(run: Run, document: Mapping[str, Any], episodes: int) -> dict[str, Any]:
    """Write what an explore run distilled into its run folder and copy it to `knowledge_path`, with its provenance."""
    label = run.models["actor"].label
    provenance = {
        "run": _relative(run.folder, run.output_root),
        "env": run.env.name,
        "model": label,
        "split": run.split,
        "episodes": episodes,
        "commit": git_state()["commit"],
    }
    saved = {**document, "provenance": {**document.get("provenance", {}), **provenance}}
    write_json(run.folder / KNOWLEDGE_FILE, saved)
    write_json(knowledge_path(run.output_root, run.env.name, label), saved)
    return saved


async def find_knowledge(run: Run, execute: Callable[[Run], Awaitable[Any]]) -> dict[str, Any]:
    """K_g for `run`: of its finished explore run, which is made or finished now where it is not.

    Raises:
        UserError: this run has no explore run, or that run did not finish.
    """
    if run.explore is None:
        raise UserError(
            "This run needs K_g. Run `agentexp explore` first and give its file, for example paradigm.k_g=outputs/kg/..."
        )
    explore = run.explore()
    # The same instances: started already, and closed by `run`. Roles that only `run` asks are no part of the explore run.
    explore.nested, explore.models = True, {role: run.models[role] for role in explore.models}
    explore.resume, explore.progress = run.resume, run.progress
    summary = await execute(explore)
    if not summary["finished"]:
        raise UserError(
            f"All {summary['harness_errors']} episodes of the explore run ended with a harness error, so there is no K_g. "
            f"The causes are in {explore.folder / 'episodes.jsonl'}."
        )
    if summary["stopped_by"] == "cap":
        raise UserError(
            "The explore run that makes K_g stopped at limits.run_tokens or limits.run_cost, which hold for it as well. Raise "
            "the cap to go on."
        )
    document = read_json(explore.folder / KNOWLEDGE_FILE)
    if document is None:
        raise UserError(
            f"The explore run in {explore.folder} did not finish, so there is no K_g. "
            "Issue the same command again, or see its episodes.jsonl."
        )
    return dict(document)


def _relative(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name
