"""`GrpoTrainer`, what `agentexp train-grpo` runs. Only the settings are here; `training` needs torch, this does not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agentexp.core import Paradigm
from agentexp.errors import UserError
from agentexp.training.core import TrainRun
from agentexp.training.grpo.evaluation import HeldOut
from agentexp.training.grpo.interleave import Ratio, Schedule, exploration_groups
from agentexp.training.grpo.rewards import Reward
from agentexp.training.grpo.settings import PolicySettings


@dataclass(kw_only=True, eq=False)
class GrpoTrainer(PolicySettings):
    """GRPO over multi-turn episodes, task and exploration groups interleaved (paper 001, section 3.3).

    The policy is trained on the tokens it sampled, all turns of an episode, and on nothing else.

    Attributes:
        task: paradigm of task rollouts; a react loop in the paper, but map or explore_then_act work as well.
        explore: paradigm of exploration rollouts: goal-free exploration alone (`explore_then_act` with act=false).
        evaluation: held-out episodes in between; None = none.
        task_reward: reward of task rollouts; None = success.
        explore_reward: reward of exploration rollouts; None = ECC.
        limit: first N training instances of `env.split`; None = all.
        ratio: task groups to exploration groups.
        schedule: "mixed" = both kinds in every step (appendix C), "alternate" = whole steps (section 3.3).
        groups: per step, over all processes.
        group_size: G, rollouts of one group.
        task_steps: environment steps of a task rollout; None = those of the world (`env.budget.acting`).
        map_steps: environment steps of mapping, for a paradigm that maps.
        explore_steps: environment steps of an exploration rollout.
        mask_truncated: truncated rollouts count in their group's mean, but are not trained on.
        max_row_tokens: leave longer rows out of the loss, for memory; None = none.
        kl_on_flat: groups with equal rewards, which have no advantage, still take part in the KL term.
        shares: `ratio`, read.

    All others are those of `PolicySettings`.

    Raises:
        UserError: a setting has an impossible value.
    """

    requires = ("torch", "transformers", "accelerate")

    task: Paradigm
    explore: Paradigm
    evaluation: HeldOut | None = None
    task_reward: Reward | None = None
    explore_reward: Reward | None = None
    limit: int | None = None
    ratio: str = "5:1"
    schedule: Schedule = "mixed"
    groups: int = 16
    group_size: int = 8
    max_steps: int = 300
    task_steps: int | None = None
    map_steps: int = 0
    explore_steps: int = 50
    max_rollout_tokens: int = 32768
    mask_truncated: bool = False
    max_row_tokens: int | None = None
    kl_on_flat: bool = True
    shares: Ratio = field(init=False)

    def __post_init__(self) -> None:
        self.shares = Ratio.of(self.ratio)
        super().__post_init__()
        self._at_least(1, "groups", "max_steps", "explore_steps", "limit", "task_steps", "max_row_tokens")
        self._at_least(0, "map_steps")
        if self.group_size < 2:
            raise UserError(
                f"trainer.group_size={self.group_size} leaves nothing to compare: a group needs at least 2 rollouts."
            )
        for name in ("task", "explore"):
            if getattr(getattr(self, name), "cache", False):
                raise UserError(f"trainer.{name}.cache must be false: what another policy explored cannot train this one.")

    def train(self, run: TrainRun) -> Mapping[str, Any]:
        """See `Trainer.train`."""
        from agentexp.training.grpo.training import Training

        return Training(self, run).go()

    def plan(self) -> list[str]:
        """What would be rolled out, for `--dry-run`."""
        mixes = [exploration_groups(step, self.groups, self.shares, self.schedule) for step in range(self.max_steps)]
        first = ", ".join(map(str, mixes[:12])) + (" ..." if len(mixes) > 12 else "")
        every = self.groups * self.group_size
        return [
            f"{self.max_steps} steps of {self.groups} groups x {self.group_size} rollouts: {every} per step, "
            f"{every * self.max_steps} in all.",
            f"Exploration groups per step: {first} - {sum(mixes)} of {self.groups * self.max_steps}.",
        ]
