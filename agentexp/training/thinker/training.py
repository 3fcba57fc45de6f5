"""`train-thinker` from data to model: nodes and thoughts, cold start, RL. Needs torch.

data/                 nodes.jsonl, messages.jsonl, their cards
coldstart/            checkpoints and model of the fine-tuning
checkpoints/, model/  of RL
metrics.jsonl         the optimiser steps of both, numbered on
"""

from __future__ import annotations

import asyncio
import copy
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentexp.errors import UserError
from agentexp.store import read_json, write_json
from agentexp.training.base import Base
from agentexp.training.core import Evaluation, TrainRun
from agentexp.training.job import rank
from agentexp.training.sft import SftTrainer
from agentexp.training.sft_data import Saved
from agentexp.training.thinker.nodes import Node
from agentexp.training.thinker.stage import Stage

if TYPE_CHECKING:
    from agentexp.training.thinker.coldstart import ColdStart
    from agentexp.training.thinker.trainer import ThinkerTrainer


def train(settings: ThinkerTrainer, run: TrainRun) -> dict[str, Any]:
    """The whole training; see `Trainer.train`."""
    deepspeed = os.environ.get("ACCELERATE_USE_DEEPSPEED") == "true"
    if deepspeed and settings.coldstart and settings.max_steps and settings.stage == "all":
        raise UserError(
            "DeepSpeed serves one optimiser in a process. Train the cold start with trainer.max_steps=0, then launch RL with "
            "trainer.coldstart=null base.path=RUN/model."
        )
    stage = Stage.of(settings, run)
    try:
        nodes = stage.data()
    finally:
        asyncio.run(stage.pool.stop())
    result: dict[str, Any] = {"nodes": len(nodes)}
    result |= {f"coldstart/{name}": value for name, value in _facts(stage).items()}
    if settings.stage == "data":
        run.say(f"Nodes and thoughts are in {stage.folder}.")
        return {"steps": 0, **result}
    base, steps = settings.base, 0
    done: dict[str, Any] = {}
    if settings.coldstart is not None:
        base, done = _coldstart(settings, settings.coldstart, run, stage)
        steps = int(done.get("steps", 0))
        result |= {f"sft/{name}": value for name, value in done.items()}
    if not settings.max_steps:
        if not done:
            raise UserError("No thought helped the actor, so there is nothing to train on. Use another roles.thinker.")
        if rank() == 0:
            _copy(run.folder / "coldstart" / "model", run.folder / "model")
        return {"steps": steps, **result}
    return result | _rl(settings, run, base, nodes, steps)


def _rl(settings: ThinkerTrainer, run: TrainRun, base: Base, nodes: list[Node], steps: int) -> dict[str, Any]:
    from agentexp.training.thinker.rl import Learning

    _forget_accelerator()
    tuned = copy.copy(settings)
    tuned.base = base
    return Learning(tuned, run, Stage.of(settings, run), nodes, steps).go()


def _facts(stage: Stage) -> Mapping[str, Any]:
    from agentexp.training.thinker.coldstart import FACTS

    if stage.settings.coldstart is None:
        return {}
    found = read_json(stage.folder / FACTS) or {}
    return {name: found[name] for name in ("nodes_asked", "nodes_helped", "nodes_alone", "kept") if name in found}


# ------------------------------------------------------------------------------------------------------------ cold start


def _coldstart(settings: ThinkerTrainer, cold: ColdStart, run: TrainRun, stage: Stage) -> tuple[Base, dict[str, Any]]:
    """Fine-tune on the kept thoughts; the model to go on from, and the result, empty where there was nothing to learn from."""
    folder = run.folder / "coldstart"
    done = read_json(folder / "result.json")
    if done is None:
        if not stage.messages.stat().st_size:
            run.say("No thought helped the actor: RL starts without a cold start.")
            return settings.base, {}
        trainer = SftTrainer(
            base=settings.base,
            data=Saved(str(stage.messages)),
            lr=cold.lr,
            epochs=cold.epochs,
            global_batch=cold.global_batch,
            micro_batch=cold.micro_batch,
            schedule=cold.schedule,
            max_len=cold.max_len,
            too_long="drop",
            template=settings.rollout.template,
            full=settings.full,
            lora_rank=settings.lora_rank,
            lora_alpha=settings.lora_alpha,
            lora_dropout=settings.lora_dropout,
            lora_targets=settings.lora_targets,
            precision=settings.precision,
            gradient_checkpointing=settings.gradient_checkpointing,
            held_out=settings.held_out,
            save_every=cold.save_every,
            keep=settings.keep,
        )
        done = dict(trainer.train(Part(run, folder, settings.max_steps)))
        if rank() == 0:
            write_json(folder / "result.json", done)
    tuned = copy.copy(settings.base)
    tuned.path, tuned.revision = str(folder / "model"), None
    tuned._folder = None
    return tuned, done


class Part:
    """A `TrainRun` of the fine-tuning inside a longer training.

    Args:
        whole: the training.
        folder: of this part.
        more: optimiser steps that follow.
    """

    def __init__(self, whole: TrainRun, folder: Path, more: int) -> None:
        self.folder, self.config, self.seed = folder, whole.config, whole.seed
        self.evaluation: Evaluation | None = None  # thinkers are evaluated at held-out nodes
        self._whole, self._more = whole, more

    @property
    def planned_steps(self) -> int | None:
        """See `TrainRun`."""
        return self._whole.planned_steps

    @planned_steps.setter
    def planned_steps(self, steps: int | None) -> None:
        self._whole.planned_steps = None if steps is None else steps + self._more

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        """See `TrainRun`."""
        self._whole.metrics(step, {f"sft/{name}": value for name, value in values.items()})

    def say(self, text: str) -> None:
        """See `TrainRun`."""
        self._whole.say(text)

    def stopping(self) -> bool:
        """See `TrainRun`."""
        return self._whole.stopping()


def _forget_accelerator() -> None:
    """What the fine-tuning told accelerate about precision does not bind RL; devices and processes stay."""
    from accelerate.state import AcceleratorState, GradientState

    AcceleratorState._reset_state(False)
    GradientState._reset_state()


def _copy(source: Path, target: Path) -> None:
    parts = target.parent / ".model"
    shutil.rmtree(parts, ignore_errors=True)
    shutil.copytree(source, parts)
    shutil.rmtree(target, ignore_errors=True)
    parts.rename(target)
