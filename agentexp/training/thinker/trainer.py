"""`ThinkerTrainer`, what `agentexp train-thinker` runs. Only the settings are here; `training` needs torch, this does not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from agentexp.errors import UserError
from agentexp.training.core import TrainRun
from agentexp.training.grpo.settings import PolicySettings
from agentexp.training.thinker.coldstart import ColdStart
from agentexp.training.thinker.data import Division
from agentexp.training.thinker.rollouts import RewardKind


@dataclass(kw_only=True, eq=False)
class ThinkerTrainer(PolicySettings):
    """A thinker for a frozen actor: nodes, cold start, RL (TTExplore, paper 003).

    World (`env`), actor (`model`), prompts (`paradigm`, a `TTExplore`) and the writer of the cold start's thoughts
    (`roles.thinker`) are those of the command. Of `rollout`, `max_tokens` is that of a thought, and `concurrency` also that of
    all other episodes.

    Attributes:
        strong: successful trajectories, see `agentexp.training.thinker.strong.Strong`.
        division: how nodes are made of them.
        coldstart: None = none: RL starts from `base`.
        data: folder of nodes and thoughts; made where they are missing, else used; None = `data` in the run folder.
        stage: "data" = nodes and thoughts only; "all" = training as well.
        held_out: share of the instances whose nodes are not trained on, but tell how good the thinker is.
        eval_every: RL steps between two looks at the held-out nodes, besides before the first and after the last; 0 = no more.
        reward: "binary": did the process score rise; "delta": by how much.
        nodes: per RL step, over all processes.
        thoughts: m, sampled at every node: its group.
        max_steps: RL steps; 0 = the cold start alone.

    All others are those of `PolicySettings`; what they say of a training holds for its RL, and of adapters, `precision` and
    `gradient_checkpointing` for the cold start as well.

    Raises:
        UserError: a setting has an impossible value.
    """

    requires = ("torch", "transformers", "accelerate", "trl", "datasets")

    strong: Any
    division: Division
    coldstart: ColdStart | None = None
    data: str | None = None
    stage: Literal["all", "data"] = "all"
    held_out: float = 0.1
    eval_every: int = 20
    reward: RewardKind = "binary"
    nodes: int = 16
    thoughts: int = 8
    max_steps: int = 200
    max_rollout_tokens: int = 8192

    def __post_init__(self) -> None:
        super().__post_init__()
        self._at_least(1, "nodes")
        self._at_least(0, "max_steps", "eval_every")
        if self.thoughts < 2:
            raise UserError(f"trainer.thoughts={self.thoughts} leaves nothing to compare: a node needs at least 2 thoughts.")
        if not 0 <= self.held_out < 1:
            raise UserError(f"trainer.held_out must be from 0 to below 1, not {self.held_out}.")
        if not self.max_steps and self.coldstart is None and self.stage == "all":
            raise UserError("trainer.max_steps=0 with trainer.coldstart=null leaves nothing to train.")

    def train(self, run: TrainRun) -> Mapping[str, Any]:
        """See `Trainer.train`."""
        from agentexp.training.thinker.training import train

        return train(self, run)

    def plan(self) -> list[str]:
        """What would be done, for `--dry-run`."""
        lines = [f"Nodes: {self.division.tries} tries of the actor at every sub-task of the trajectories."]
        if self.coldstart:
            lines.append(f"Cold start: up to {self.coldstart.thoughts} thoughts at every node, then fine-tuning.")
        if self.stage == "all" and self.max_steps:
            every = self.nodes * self.thoughts
            lines.append(f"RL: {self.max_steps} steps of {self.nodes} nodes x {self.thoughts} thoughts: {every} per step.")
        return lines
