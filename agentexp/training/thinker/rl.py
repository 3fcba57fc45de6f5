"""RL of the thinker: at every node of a step m thoughts are tried out, and GRPO compares them. Needs torch and accelerate.

Nodes whose thoughts all earned the same teach nothing and are skipped: they take no part in the mean, nor in the KL term. What
a step does follows from its number and the weights, so a training that was killed goes on as if nothing had happened.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agentexp.core import Sampling, stable_seed
from agentexp.errors import FatalError, UserError
from agentexp.training.core import Interrupted, TrainRun
from agentexp.training.grpo import checkpoints, records
from agentexp.training.grpo.harvest import NAMES, harvest, numbers
from agentexp.training.grpo.rollouts import Played
from agentexp.training.grpo.setup import Setup
from agentexp.training.grpo.watch import SignalWatch
from agentexp.training.thinker.nodes import Node
from agentexp.training.thinker.rollouts import Drawn, Order, play_groups
from agentexp.training.thinker.stage import Stage

if TYPE_CHECKING:
    from agentexp.training.thinker.trainer import ThinkerTrainer

_LEFT_OUT = ("explore/", "task/success", "task/groups")


class Learning:
    """RL in one process.

    Args:
        settings: with the model to start from as `base`.
        run: folder, config, seed, metrics.
        stage: world and actor.
        nodes: all, also the held-out ones.
        before: optimiser steps of the cold start: step numbers go on from there.
    """

    def __init__(self, settings: ThinkerTrainer, run: TrainRun, stage: Stage, nodes: Sequence[Node], before: int) -> None:
        self.settings, self.run, self.stage, self.before = settings, run, stage, before
        self.held_out = [node for node in nodes if _apart(node, settings.held_out)]
        trained = [node for node in nodes if not _apart(node, settings.held_out)]
        if not trained:
            raise UserError(f"trainer.held_out={settings.held_out} leaves none of {len(nodes)} nodes to train on. Lower it.")
        self.order = Order(trained, settings.nodes, run.seed)
        self.setup = Setup.of(settings)
        self.accelerator, self.learner = self.setup.accelerator, self.setup.learner
        self.engine = settings.rollout.open(self.learner, self.setup.tokenizer, self.setup.window, settings.base.name)
        self.watch = SignalWatch(settings.no_signal_steps)

    def go(self) -> dict[str, Any]:
        """Train to the end; see `Trainer.train`."""
        with asyncio.Runner() as loop:
            try:
                loop.run(self._start())
                return self._go(loop)
            finally:
                loop.run(self._close())

    async def _start(self) -> None:
        await self.stage.player.actor.start()
        await self.engine.start()

    async def _close(self) -> None:
        await self.stage.close()
        await self.engine.close()

    def _go(self, loop: asyncio.Runner) -> dict[str, Any]:
        settings, run, folder = self.settings, self.run, self.run.folder
        run.planned_steps = self.before + settings.max_steps
        state = checkpoints.load(self.accelerator, folder / "checkpoints")
        start, result = int(state.get("step", 0)), dict(state.get("result", {}))
        if self.accelerator.is_main_process:
            records.rewind(folder / "rollouts.jsonl", start + 1)
            records.rewind(folder / "evaluation.jsonl", start + 1 if start else 0)
        if start:
            run.say(f"Going on from RL step {start} of {settings.max_steps}.")
        elif self.held_out:
            first = self._evaluate(loop, 0)
            run.metrics(self.before, first)
            result |= {f"before/{name}": value for name, value in first.items()}
        for step in range(start, settings.max_steps):
            found = self._step(loop, step)
            last = step + 1 == settings.max_steps
            if self.held_out and (last or (settings.eval_every and (step + 1) % settings.eval_every == 0)):
                seen = self._evaluate(loop, step + 1)
                found |= seen
                result |= {f"after/{name}": value for name, value in seen.items()}
            run.metrics(self.before + step + 1, found)
            for name in ("rollouts", "harness_errors", "mismatches", "nodes", "skipped_nodes", "trained_tokens"):
                result[name] = int(result.get(name, 0) + found[name])
            stop = self.learner.total([float(run.stopping())])[0] > 0
            if stop or last or (step + 1) % settings.save_every == 0:
                checkpoints.save(self.accelerator, folder / "checkpoints", step + 1, {"result": result}, settings.keep)
            if stop and not last:
                raise Interrupted
        self.setup.save(folder)
        result["skipped_share"] = result.get("skipped_nodes", 0) / max(1, result.get("nodes", 0))
        counts = {f"rl/{name}": value for name, value in result.items()}
        return {"steps": self.before + settings.max_steps, "processes": self.accelerator.num_processes, **counts}

    def _step(self, loop: asyncio.Runner, step: int) -> dict[str, float]:
        settings, began = self.settings, time.perf_counter()
        groups = self._mine(self.order.step(step))
        played = self._play(loop, settings.rollout.sampling, groups, settings.thoughts)
        rolled = time.perf_counter()
        found = harvest(played, eps=settings.adv_eps, kl_on_flat=False)
        signal = sum(trajectory.kl for trajectory in found.trajectories)  # those of nodes that are not skipped
        mismatches = sum(one.end_reason == "mismatch" for group in played for one in group)
        unreadable = sum(one.end_reason in ("unreadable", "context_limit") for group in played for one in group)
        summed = self.learner.total([signal, float(mismatches), float(unreadable), *(found.sums[name] for name in NAMES)])
        sums = dict(zip(NAMES, summed[3:], strict=True))
        learnt = self.learner.step(step, found.samples(settings.loss_agg, summed[0]))
        told = {name: value for name, value in numbers(sums).items() if not name.startswith(_LEFT_OUT)}
        told = {name.removeprefix("task/"): value for name, value in told.items()}
        skipped = sums["task/flat"] + sums["task/small"]
        made = {
            "reward": told.pop("reward", 0.0),
            "frac_skipped": skipped / max(1.0, sums["task/groups"]),
            "nodes": sums["task/groups"],
            "skipped_nodes": skipped,
            "mismatches": summed[1],
            "unreadable": summed[2] / max(1.0, sums["task/rollouts"]),
            **told,
            **learnt,
            "rollout_seconds": rolled - began,
            "train_seconds": time.perf_counter() - rolled,
        }
        self._record(step, groups, played)
        self._look(step, made)
        return made

    def _play(self, loop: asyncio.Runner, sampling: Sampling, groups: Sequence[Drawn], size: int) -> list[list[Played]]:
        self.engine.sync()
        cap = self.settings.max_rollout_tokens
        play = play_groups(self.stage.player, self.engine.sampler, sampling, groups, size, self.settings.reward, cap)
        return loop.run(play)

    def _mine(self, groups: Sequence[Drawn]) -> list[Drawn]:
        return list(groups[self.accelerator.process_index :: self.accelerator.num_processes])

    def _look(self, step: int, made: Mapping[str, float]) -> None:
        """Speak up when nothing is learnt, and when the loss is no number."""
        if not math.isfinite(made["loss"]):
            raise FatalError(
                f"The loss of RL step {step + 1} is {made['loss']}. Lower trainer.lr. The last checkpoint is kept."
            )
        if made["skipped"]:
            self.run.say(f"RL step {step + 1}: the gradient was not finite and was not used.")
        mean = made["reward"] if made["rollouts"] > made["harness_errors"] else float("nan")
        warning = self.watch.look(made["frac_no_signal"], max(made["truncated"], made["cut_replies"]), mean)
        warning = warning.replace("trainer.group_size", "trainer.thoughts").replace("Every rollout", "Every thought")
        if warning and self.settings.on_no_signal == "stop":
            raise FatalError(f"{warning} Stopped, as trainer.on_no_signal=stop asks.")
        if warning:
            self.run.say(warning)

    # ----------------------------------------------------------------------------------------------------- what is written

    def _record(self, step: int, groups: Sequence[Drawn], played: Sequence[Sequence[Played]]) -> None:
        lines = []
        for drawn, some in zip(groups, played, strict=True):
            line = records.group_line(step + 1, drawn.number, some)
            lines.append({**line, "kind": "thought", "node": drawn.node.name})
        lines = self.setup.gather(lines)
        if self.accelerator.is_main_process:
            records.write(self.run.folder, step, lines, played, self.settings.sample_every, self.setup.tokenizer)

    def _evaluate(self, loop: asyncio.Runner, step: int) -> dict[str, float]:
        """One greedy thought at every held-out node."""
        began = time.perf_counter()
        groups = [Drawn(-1 - i, node) for i, node in enumerate(self.held_out)]
        played = self._play(loop, Sampling(0.0, self.settings.rollout.sampling.max_tokens), self._mine(groups), 1)
        lines = [
            {
                "step": step,
                "node": drawn.node.name,
                "alone": drawn.node.alone,
                "reward": None if one.fate == "harness" else one.reward,
                "end": one.end_reason,
                **({"error": one.error} if one.error else {}),
            }
            for drawn, (one,) in zip(self._mine(groups), played, strict=True)
        ]
        lines = self.setup.gather(lines)
        if self.accelerator.is_main_process:
            records.append(self.run.folder / "evaluation.jsonl", lines)
        rewards = [float(line["reward"]) for line in lines if line["reward"] is not None]
        found = {"eval/harness_errors": float(len(lines) - len(rewards)), "eval/n": float(len(rewards))}
        if rewards:
            found["eval/reward"] = sum(rewards) / len(rewards)
        found["eval/alone"] = sum(bool(line["alone"]) for line in lines) / len(lines)
        return found | {"eval/seconds": time.perf_counter() - began}


def _apart(node: Node, share: float) -> bool:
    """Whether a node is held out: by its instance, with the rule of `train-sft`."""
    return stable_seed("held out", node.instance) < share * 2**31
