"""RL of the thinker: at every node of a step m thoughts are tried out, and GRPO compares them. Needs torch and accelerate.

Nodes whose thoughts all earned the same teach nothing and are skipped: they take no part in the mean, nor in the KL term. What
a step does follows from its number and the weights, so a training that was killed goes on as if nothing had happened.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from agentexp.core import Sampling, stable_seed
from agentexp.errors import UserError
from agentexp.training.core import TrainRun
from agentexp.training.grpo import records
from agentexp.training.grpo.harvest import NAMES, harvest, numbers
from agentexp.training.grpo.loop import PolicyLoop
from agentexp.training.grpo.rollouts import Played
from agentexp.training.thinker.nodes import Node
from agentexp.training.thinker.rollouts import Drawn, Order, play_groups
from agentexp.training.thinker.stage import Stage

if TYPE_CHECKING:
    from agentexp.training.thinker.trainer import ThinkerTrainer

_LEFT_OUT = ("explore/", "task/success", "task/groups")


class Learning(PolicyLoop):
    """RL in one process.

    Args:
        settings: with the model to start from as `base`.
        run: folder, config, seed, metrics.
        stage: world and actor.
        nodes: all, also the held-out ones.
        before: optimiser steps of the cold start: step numbers go on from there.

    Raises:
        UserError: no node is left to train on.
    """

    settings: ThinkerTrainer
    what = "RL step"
    totals = ("rollouts", "harness_errors", "mismatches", "nodes", "skipped_nodes", "trained_tokens")

    def __init__(self, settings: ThinkerTrainer, run: TrainRun, stage: Stage, nodes: Sequence[Node], before: int) -> None:
        self.stage = stage
        self.held_out = [node for node in nodes if _apart(node, settings.held_out)]
        trained = [node for node in nodes if not _apart(node, settings.held_out)]
        if not trained:
            raise UserError(f"trainer.held_out={settings.held_out} leaves none of {len(nodes)} nodes to train on. Lower it.")
        self.order = Order(trained, settings.nodes, run.seed)
        super().__init__(settings, run, before)

    async def _start(self) -> None:
        await self.stage.player.actor.start()
        await super()._start()

    async def _close(self) -> None:
        await self.stage.close()
        await super()._close()

    def _result(self, result: dict[str, Any]) -> dict[str, Any]:
        result["skipped_share"] = result.get("skipped_nodes", 0) / max(1, result.get("nodes", 0))
        return super()._result({f"rl/{name}": value for name, value in result.items()})

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
        lines = [
            {**records.group_line(step + 1, drawn.number, some), "kind": "thought", "node": drawn.node.name}
            for drawn, some in zip(groups, played, strict=True)
        ]
        self._record(step, lines, played)
        self._look(step, made, made["reward"] if made["rollouts"] > made["harness_errors"] else float("nan"))
        return made

    def _play(self, loop: asyncio.Runner, sampling: Sampling, groups: Sequence[Drawn], size: int) -> list[list[Played]]:
        self.engine.sync()
        cap = self.settings.max_rollout_tokens
        play = play_groups(self.stage.player, self.engine.sampler, sampling, groups, size, self.settings.reward, cap)
        return loop.run(play)

    def _worded(self, warning: str) -> str:
        return warning.replace("trainer.group_size", "trainer.thoughts").replace("Every rollout", "Every thought")

    def _due(self, step: int) -> bool:
        every, last = self.settings.eval_every, self.settings.max_steps
        return bool(self.held_out and (step in (0, last) or (every and step % every == 0)))

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
        lines = self._write_evaluation(lines)
        rewards = [float(line["reward"]) for line in lines if line["reward"] is not None]
        found = {"eval/harness_errors": float(len(lines) - len(rewards)), "eval/n": float(len(rewards))}
        if rewards:
            found["eval/reward"] = sum(rewards) / len(rewards)
        found["eval/alone"] = sum(bool(line["alone"]) for line in lines) / len(lines)
        return found | {"eval/seconds": time.perf_counter() - began}


def _apart(node: Node, share: float) -> bool:
    """Whether a node is held out: by its instance, with the rule of `train-sft`."""
    return stable_seed("held out", node.instance) < share * 2**31
