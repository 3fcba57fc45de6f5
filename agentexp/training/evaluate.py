"""Evaluation in the loop: a few tasks played with the weights as they are, by the same runner as `agentexp eval`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentexp.config import Overrides, checked_dataclass
from agentexp.errors import UserError

# What `conf/run.yaml` gives the commands that play; a training has no such settings of its own.
_RUN: Mapping[str, Any] = {"repeats": 1, "concurrency": None, "workers": None, "limits": {}, "roles": {}, "resume": "ignore"}


@dataclass(frozen=True, slots=True)
class EvaluationSettings:
    """`evaluation` of a training command.

    Attributes:
        tasks: the first N of the split.
        split: never one that results are reported on.
        max_steps: cap on the environment steps of an episode; None: the budget.
    """

    tasks: int = 20
    split: str = "dev"
    max_steps: int | None = None


class Evaluation:
    """Plays tasks of one world under one paradigm with a model that a trainer owns.

    The episodes lie in `<run folder>/evaluations/step-N`, an ordinary run folder: `agentexp view` shows it. A K_g that the
    paradigm needs is made at the first evaluation, with the weights of then, and serves all.

    Args:
        config: the training's config, with env, paradigm, model (its sampling settings), budget and parsing.
        overrides: as typed.

    Attributes:
        config: what is played, for the manifest.

    Raises:
        UserError: a wrong setting.
    """

    def __init__(self, config: Mapping[str, Any], overrides: Overrides) -> None:
        self.settings: EvaluationSettings = checked_dataclass(
            EvaluationSettings, config.get("evaluation") or {}, "evaluation", overrides
        )
        if self.settings.tasks < 1:
            raise UserError(f"evaluation.tasks must be at least 1, or 0 for no evaluation, not {self.settings.tasks}.")
        groups = ("env", "model", "paradigm", "stopping", "parsing", "budget", "explore")
        self.config: Mapping[str, Any] = {
            **_RUN,
            "seed": config.get("seed", 0),
            **{key: config[key] for key in groups if config.get(key) is not None},
            "command": "eval",
            "progress": "off",
            "logger": {"_target_": "agentexp.tracking.NoLogger"},
            "max_steps": self.settings.max_steps,
            "env": {**config["env"], "split": self.settings.split, "limit": self.settings.tasks},
        }
        self._overrides = overrides
        self._run(Path("."), 0)  # the settings are checked before anything is trained

    def play(self, folder: Path, step: int, model: Any, tokenizer: Any) -> dict[str, float]:
        """Play all tasks with these weights; the model is put into evaluation mode.

        Args:
            folder: the training's run folder.
            step: optimiser steps so far.
            model: the trainer's model, on its device, not wrapped.
            tokenizer: with the chat template.

        Returns:
            `eval/success_rate`, `eval/score`, `eval/steps`, `eval/invalid_rate` where there are any, and `eval/harness_errors`.
        """
        return asyncio.run(self._play(self._run(folder, step), step, model, tokenizer))

    async def _play(self, run: Any, step: int, model: Any, tokenizer: Any) -> dict[str, float]:
        from agentexp.models.transformers import TransformersModel
        from agentexp.runner import execute

        fixed = ("_target_", "path", "adapter", "dtype", "device", "revision", "label", "style", "show_admissible")
        settings = {key: value for key, value in self.config["model"].items() if key not in fixed}
        live = TransformersModel.of(model, tokenizer, **settings, label=f"step-{step}")
        run.models = {"actor": live}
        try:
            summary = await execute(run)
        finally:
            await live.close()
        names = {"success_rate": "success_rate", "mean_score": "score", "mean_steps": "steps", "invalid_rate": "invalid_rate"}
        found = {f"eval/{ours}": summary.get(theirs) for theirs, ours in names.items()}
        numbers = {key: float(value) for key, value in found.items() if value is not None}
        return numbers | {"eval/harness_errors": float(summary["harness_errors"])}

    def _run(self, folder: Path, step: int) -> Any:
        from agentexp.commands import make_run

        # what a run shares with others (K_g) stays here: other runs would take it for that of a finished model
        run = make_run({**self.config, "output_root": str(folder / "evaluations")}, self._overrides)
        run.folder, run.nested = folder / "evaluations" / f"step-{step}", True
        return run
