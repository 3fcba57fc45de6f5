"""`agentexp envs variants`: every variant of every test game, solved by the expert on paper, and counted. No engine."""

from __future__ import annotations

from pathlib import Path

from agentexp.core import Task
from agentexp.envs.alfworld import AlfWorld
from agentexp.envs.alfworld.variants import DISTRACTORS, VARIANTS, DistractorKind, Varied
from agentexp.errors import UserError

OFFICIAL = ("valid_seen", "valid_unseen")
"""The 274 test games of paper 001."""

COLUMNS = (
    "variant",
    "split",
    "games",
    "solvable",
    "redrawn",
    "old plan fails",
    "steps",
    "moved",
    "closed",
    "occupied",
    "added",
)


def rows(data: str | None, seed: int = 0, allow_partial: bool = False) -> list[tuple[str, ...]]:
    """One row per variant and split, and one with their sum where there are several splits.

    Columns (`COLUMNS`): games; games with a plan; draws beyond the first; games whose original best plan no longer works; mean
    length of the plans; games in which things moved, doors were closed, places were occupied; things added.

    Args:
        data: folder of official games, whose test splits are counted; None counts the generated test split.
        seed: `env.variant_seed`.
        allow_partial: count what is there of an incomplete split.
    """
    found: list[tuple[str, ...]] = []
    for variant in VARIANTS:
        kinds: tuple[DistractorKind, ...] = DISTRACTORS if variant == "distractors" else ("similar",)
        for kind in kinds:
            env = AlfWorld(data=data, variant=variant, distractor_kind=kind, variant_seed=seed, allow_partial=allow_partial)
            name = f"{variant} ({kind})" if variant == "distractors" else variant
            total: list[Varied | None] = []
            splits = OFFICIAL if data else ("test",)
            for split in splits:
                some = [_tried(env, task) for task in env.tasks(split)]
                found.append((name, split, *_counts(some)))
                total += some
            if len(splits) > 1:
                found.append((name, "all", *_counts(total)))
    return found


def _tried(env: AlfWorld, task: Task) -> Varied | None:
    """The changed game; None if no draw could be solved."""
    try:
        return env.varied(task)
    except UserError:
        return None


def _counts(games: list[Varied | None]) -> tuple[str, ...]:
    solved = [game for game in games if game]
    changes = [game.change for game in solved]
    steps = sum(len(game.plan) for game in solved) / len(solved) if solved else 0.0
    return (
        str(len(games)),
        str(len(solved)),
        str(sum(change.draws - 1 for change in changes)),
        str(sum(change.harder for change in changes)),
        f"{steps:.2f}",
        str(sum(bool(change.moved) for change in changes)),
        str(sum(bool(change.closed) for change in changes)),
        str(sum(bool(change.occupied) for change in changes)),
        str(sum(len(change.added) for change in changes)),
    )


def show(data: Path | None, seed: int = 0) -> None:
    """Print the table."""
    from rich.console import Console
    from rich.table import Table

    where = f"games in {data.name}" if data else "generated games"
    table = Table(title=f"ALFWorld variants (env.variant=...) of {where}, env.variant_seed={seed}", title_justify="left")
    for i, column in enumerate(COLUMNS):
        table.add_column(column, justify="left" if i < 2 else "right")
    for row in rows(str(data) if data else None, seed):
        table.add_row(*row)
    Console().print(table, markup=False)
