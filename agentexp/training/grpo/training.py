"""The training itself: roll out, judge, learn, measure. Needs torch and accelerate.

sync the sampler -> play this process' groups -> advantages -> one optimiser step -> numbers; `loop` does the rest
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from agentexp.capabilities import HasCheckpoints
from agentexp.core import Paradigm
from agentexp.errors import UserError
from agentexp.hooks import Prepares
from agentexp.rollout import Budget, Limits
from agentexp.training.core import TrainRun
from agentexp.training.grpo import evaluation, records
from agentexp.training.grpo.draws import Draws
from agentexp.training.grpo.harvest import NAMES, harvest, numbers
from agentexp.training.grpo.interleave import Kind
from agentexp.training.grpo.loop import PolicyLoop
from agentexp.training.grpo.rewards import Coverage, Success
from agentexp.training.grpo.rollouts import Rollouts, Way
from agentexp.training.grpo.world import world_of

if TYPE_CHECKING:
    from agentexp.training.grpo.trainer import GrpoTrainer


class Training(PolicyLoop):
    """GRPO over episodes, in one process.

    Args:
        settings: the trainer.
        run: folder, config, seed, metrics.

    Raises:
        UserError: world, model and settings do not fit together.
    """

    settings: GrpoTrainer
    totals = ("rollouts", "harness_errors", "sampled_tokens", "trained_tokens", "task/groups", "explore/groups")

    def __init__(self, settings: GrpoTrainer, run: TrainRun) -> None:
        self.settings = settings
        self.world = world_of(run.config)
        if self.world.settings.limit is not None:  # it does not name the run folder, and would change what is trained on
            raise UserError("env.limit is for commands that evaluate. Set trainer.limit to train on the first N instances.")
        kinds = settings.shares.kinds
        ways = self._ways()
        if (
            "explore" in kinds
            and isinstance(ways["explore"].reward, Coverage)
            and not isinstance(self.world.env, HasCheckpoints)
        ):
            raise UserError(
                f"env={self.world.env.name} has no checkpoints, so exploration has no ECC to be rewarded with. Set "
                "trainer.ratio=1:0, or trainer.explore_reward."
            )
        tasks = self.world.tasks(self.world.settings.split, settings.limit)
        self.draws = Draws(tasks, settings.groups, settings.shares, settings.schedule, run.seed)
        super().__init__(settings, run)
        self.pool = self.world.pool(min(settings.rollout.workers, settings.rollout.concurrency))
        self.held_out = settings.evaluation.groups(self.world, kinds) if settings.evaluation else []
        self.rollouts = Rollouts(
            env=self.world.env,
            lease=self.pool.lease,
            ways=ways,
            parsing=self.world.parsing,
            limits=Limits(attempts=settings.rollout.attempts, seconds=settings.rollout.seconds),
            cap=settings.max_rollout_tokens,
            concurrency=settings.rollout.concurrency,
        )

    def _ways(self) -> Mapping[Kind, Way]:
        settings, acting = self.settings, self.world.settings.budget.acting if self.world.settings.budget else 50
        task, explore = _ready(settings.task, "task"), _ready(settings.explore, "explore")
        return {
            "task": Way(task, Budget(settings.map_steps, settings.task_steps or acting), settings.task_reward or Success()),
            "explore": Way(explore, Budget(0, 1, settings.explore_steps), settings.explore_reward or Coverage()),
        }

    async def _close(self) -> None:
        await self.pool.stop()
        await super()._close()

    def _step(self, loop: asyncio.Runner, step: int) -> dict[str, float]:
        settings, began = self.settings, time.perf_counter()
        self.engine.sync()
        synced = time.perf_counter()
        groups = self._mine(self.draws.step(step))
        play = self.rollouts.play(self.engine.sampler, settings.rollout.sampling, groups, settings.group_size)
        played = loop.run(play)
        rolled = time.perf_counter()
        found = harvest(
            played,
            eps=settings.adv_eps,
            mask_truncated=settings.mask_truncated,
            kl_on_flat=settings.kl_on_flat,
            max_row_tokens=settings.max_row_tokens,
        )
        sums = dict(zip(NAMES, self.learner.total([found.sums[name] for name in NAMES]), strict=True))
        made = numbers(sums)
        made |= self.learner.step(step, found.samples(settings.loss_agg, sums["usable"]))
        learnt = time.perf_counter()
        lines = [records.group_line(step + 1, group.number, some) for group, some in zip(groups, played, strict=True)]
        self._record(step, lines, played)
        rewards = [made[f"{kind}/reward"] for kind in ("task", "explore") if f"{kind}/reward" in made]
        self._look(step, made, sum(rewards) / len(rewards) if rewards else float("nan"))
        first = ("task/reward", "explore/reward", "frac_zero_adv", "kl", "grad_norm", "rollout_seconds", "train_seconds")
        made |= {
            "sync_seconds": synced - began,
            "rollout_seconds": rolled - synced,
            "train_seconds": learnt - rolled,
            "tokens_per_s": sums["tokens"] / (learnt - began),
            "sampled_per_s": sums["sampled"] / max(rolled - synced, 1e-9),
            "trained_per_s": made["trained_tokens"] * settings.inner_epochs / max(learnt - rolled, 1e-9),
        }
        return {name: made[name] for name in first if name in made} | made  # the progress display shows the first ones

    def _due(self, step: int) -> bool:
        settings = self.settings.evaluation
        return bool(settings and self.held_out and settings.due(step, self.settings.max_steps))

    def _evaluate(self, loop: asyncio.Runner, step: int) -> dict[str, float]:
        settings, began = self.settings.evaluation, time.perf_counter()
        assert settings is not None
        self.engine.sync()
        sampling = settings.sampling(self.settings.rollout.sampling.max_tokens)
        played = loop.run(self.rollouts.play(self.engine.sampler, sampling, self._mine(self.held_out), 1))
        lines = self._write_evaluation([evaluation.line(step, one) for group in played for one in group])
        found = {"eval/harness_errors": float(sum("error" in line for line in lines))}
        for kind in self.settings.shares.kinds:
            rewards = [float(line["reward"]) for line in lines if line["kind"] == kind and line["reward"] is not None]
            if rewards:
                found[f"eval/{kind}/reward"] = sum(rewards) / len(rewards)
                found[f"eval/{kind}/n"] = float(len(rewards))
        return found | {"eval/seconds": time.perf_counter() - began}


def _ready(paradigm: Paradigm, name: str) -> Paradigm:
    """Refuse a paradigm that wants something made beforehand by the model that is being trained."""
    if isinstance(paradigm, Prepares) and getattr(paradigm, "stage1", False):
        raise UserError(f"trainer.{name}.stage1 must be false: K_g would be that of another policy than the trained one.")
    return paradigm
