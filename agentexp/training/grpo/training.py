"""The training itself: roll out, judge, learn, measure, save, step after step. Needs torch and accelerate.

    sync the sampler -> play this process' groups -> advantages -> one optimiser step -> numbers -> evaluation, checkpoint

Everything a step does follows from its number and the weights, so a training that is killed goes on from its last checkpoint as
if nothing had happened.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agentexp.capabilities import HasCheckpoints
from agentexp.core import Paradigm
from agentexp.errors import FatalError, UserError
from agentexp.hooks import Prepares
from agentexp.rollout import Budget, Limits
from agentexp.training.core import Interrupted, TrainRun
from agentexp.training.grpo import checkpoints, evaluation, records
from agentexp.training.grpo.draws import Draws, Group
from agentexp.training.grpo.harvest import NAMES, harvest, numbers
from agentexp.training.grpo.interleave import Kind
from agentexp.training.grpo.rewards import Coverage
from agentexp.training.grpo.rollouts import Played, Rollouts, Way
from agentexp.training.grpo.setup import Setup
from agentexp.training.grpo.watch import SignalWatch
from agentexp.training.grpo.world import world_of

if TYPE_CHECKING:
    from agentexp.training.grpo.trainer import GrpoTrainer


class Training:
    """One training in one process.

    Args:
        settings: the trainer.
        run: folder, config, seed, metrics.

    Raises:
        UserError: world, model and settings do not fit together.
    """

    def __init__(self, settings: GrpoTrainer, run: TrainRun) -> None:
        self.settings, self.run = settings, run
        self.world = world_of(run.config)
        if self.world.settings.limit is not None:  # it does not name the run folder, and would change what is trained on
            raise UserError("env.limit is for commands that evaluate. Set trainer.limit to train on the first N instances.")
        kinds = settings.ratio.kinds
        if (
            "explore" in kinds
            and isinstance(settings.explore_reward, Coverage)
            and not isinstance(self.world.env, HasCheckpoints)
        ):
            raise UserError(
                f"env={self.world.env.name} has no checkpoints, so exploration has no ECC to be rewarded with. Set "
                "trainer.ratio=1:0, or trainer.explore_reward."
            )
        tasks = self.world.tasks(self.world.settings.split, settings.limit)
        self.draws = Draws(tasks, settings.groups, settings.ratio, settings.schedule, run.seed)
        self.setup = Setup.of(settings)
        self.accelerator, self.learner = self.setup.accelerator, self.setup.learner
        self.engine = settings.rollout.open(self.learner, self.setup.tokenizer, self.setup.window, settings.base.name)
        self.pool = self.world.pool(min(settings.rollout.workers, settings.rollout.concurrency))
        self.held_out = settings.evaluation.groups(self.world, kinds) if settings.evaluation else []
        self.watch = SignalWatch(settings.no_signal_steps)
        self.rollouts = Rollouts(
            env=self.world.env,
            lease=self.pool.lease,
            ways=self._ways(),
            parsing=self.world.parsing,
            limits=Limits(attempts=settings.rollout.attempts, seconds=settings.rollout.seconds),
            cap=settings.max_rollout_tokens,
            concurrency=settings.rollout.concurrency,
        )

    def _ways(self) -> dict[Kind, Way]:
        settings, acting = self.settings, self.world.settings.budget.acting if self.world.settings.budget else 50
        task = Budget(settings.map_steps, settings.task_steps or acting)
        return {
            "task": Way(_ready(settings.task, "task"), task, settings.task_reward),
            "explore": Way(_ready(settings.explore, "explore"), Budget(0, 1, settings.explore_steps), settings.explore_reward),
        }

    # ----------------------------------------------------------------------------------------------------------- the loop

    def go(self) -> dict[str, Any]:
        """Train to the end; see `Trainer.train`."""
        with asyncio.Runner() as loop:
            try:
                loop.run(self.engine.start())
                return self._go(loop)
            finally:
                loop.run(self._close())

    async def _close(self) -> None:
        await self.pool.stop()
        await self.engine.close()

    def _go(self, loop: asyncio.Runner) -> dict[str, Any]:
        settings, run, folder = self.settings, self.run, self.run.folder
        run.planned_steps = settings.max_steps
        state = checkpoints.load(self.accelerator, folder / "checkpoints")
        start, result = int(state.get("step", 0)), dict(state.get("result", {}))
        if self.accelerator.is_main_process:
            records.rewind(folder / "rollouts.jsonl", start + 1)
            records.rewind(folder / "evaluation.jsonl", start + 1 if start else 0)
        if start:
            run.say(f"Going on from step {start} of {settings.max_steps}.")
        elif self.held_out:
            first = self._evaluate(loop, 0)
            run.metrics(0, first)
            result |= {f"before/{name}": value for name, value in first.items()}
        for step in range(start, settings.max_steps):
            found = self._step(loop, step)
            if settings.evaluation and settings.evaluation.due(step + 1, settings.max_steps) and self.held_out:
                held_out = self._evaluate(loop, step + 1)
                found |= held_out
                result |= {f"after/{name}": value for name, value in held_out.items()}
            run.metrics(step + 1, found)
            result = _counted(result, found)
            stop = self.learner.total([float(run.stopping())])[0] > 0
            if stop or (step + 1) % settings.save_every == 0 or step + 1 == settings.max_steps:
                checkpoints.save(self.accelerator, folder / "checkpoints", step + 1, {"result": result}, settings.keep)
            if stop and step + 1 < settings.max_steps:
                raise Interrupted
        self.setup.save(folder)
        return {"steps": settings.max_steps, "processes": self.accelerator.num_processes, **result}

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
        self._record(step, groups, played)
        self._look(step, made)
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

    def _mine(self, groups: Sequence[Group]) -> list[Group]:
        return list(groups[self.accelerator.process_index :: self.accelerator.num_processes])

    def _look(self, step: int, made: Mapping[str, float]) -> None:
        """Speak up when nothing is learnt (case R04), and when the loss is no number."""
        if not math.isfinite(made["loss"]):
            raise FatalError(
                f"The loss of step {step + 1} is {made['loss']}. Lower trainer.lr, or try trainer.precision=fp32. The last "
                "checkpoint is kept."
            )
        if made["skipped"]:
            self.run.say(f"Step {step + 1}: the gradient was not finite and was not used.")
        rewards = [made[f"{kind}/reward"] for kind in ("task", "explore") if f"{kind}/reward" in made]
        mean = sum(rewards) / len(rewards) if rewards else float("nan")
        warning = self.watch.look(made["frac_no_signal"], max(made["truncated"], made["cut_replies"]), mean)
        if warning and self.settings.on_no_signal == "stop":
            raise FatalError(f"{warning} Stopped, as trainer.on_no_signal=stop asks.")
        if warning:
            self.run.say(warning)

    # ----------------------------------------------------------------------------------------------------- what is written

    def _record(self, step: int, groups: Sequence[Group], played: Sequence[Sequence[Played]]) -> None:
        lines = [records.group_line(step + 1, group.number, some) for group, some in zip(groups, played, strict=True)]
        lines = self.setup.gather(lines)
        if self.accelerator.is_main_process:
            records.write(self.run.folder, step, lines, played, self.settings.sample_every, self.setup.tokenizer)

    def _evaluate(self, loop: asyncio.Runner, step: int) -> dict[str, float]:
        settings, began = self.settings.evaluation, time.perf_counter()
        assert settings is not None
        self.engine.sync()
        sampling = settings.sampling(self.settings.rollout.sampling.max_tokens)
        played = loop.run(self.rollouts.play(self.engine.sampler, sampling, self._mine(self.held_out), 1))
        ones = [one for group in played for one in group]
        lines = self.setup.gather([evaluation.line(step, one) for one in ones])
        if self.accelerator.is_main_process:
            records.append(self.run.folder / "evaluation.jsonl", lines)
        found = {"eval/harness_errors": float(sum("error" in line for line in lines))}
        for kind in self.settings.ratio.kinds:
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


def _counted(result: Mapping[str, Any], found: Mapping[str, float]) -> dict[str, Any]:
    """The running totals of the whole training, as they go into checkpoints and the summary."""
    totals = ("rollouts", "harness_errors", "sampled_tokens", "trained_tokens", "task/groups", "explore/groups")
    return {**result, **{name: int(result.get(name, 0) + found[name]) for name in totals}}
