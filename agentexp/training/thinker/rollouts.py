"""RL rollouts: m thoughts at every node, each tried out by the frozen actor in a world of its own. No torch.

A trajectory has exactly one call of the thinker, so the change of the score is due to that thought.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from agentexp.core import Sampling, stable_seed
from agentexp.errors import first_of
from agentexp.training.grpo.rollouts import Capped, Played, Sampler
from agentexp.training.thinker.nodes import Node
from agentexp.training.thinker.player import Outcome, Player

RewardKind = Literal["binary", "delta"]
_REPEAT = 10_000_000  # see `data`


@dataclass(frozen=True, slots=True)
class Drawn:
    """A node in a step.

    Attributes:
        number: of the group in the whole training, 0-based.
        node: where the thinker is asked.
    """

    number: int
    node: Node


class Order:
    """Which nodes a step takes: a function of the step, so that a resumed training goes on with the same order.

    Args:
        nodes: in frozen order.
        groups: nodes per step.
        seed: of the order; every pass over the nodes has a permutation of its own.
    """

    def __init__(self, nodes: Sequence[Node], groups: int, seed: int) -> None:
        self._nodes, self._groups, self._seed = list(nodes), groups, seed

    def step(self, step: int) -> list[Drawn]:
        """The nodes of step `step` (0-based)."""
        return [self._drawn(step * self._groups + i) for i in range(self._groups)]

    def _drawn(self, number: int) -> Drawn:
        epoch, place = divmod(number, len(self._nodes))
        order = list(range(len(self._nodes)))
        random.Random(stable_seed("thinker", self._seed, epoch)).shuffle(order)
        return Drawn(number, self._nodes[order[place]])


def reward(outcome: Outcome, kind: RewardKind) -> float | None:
    """What a thought is worth.

    Args:
        outcome: of its trajectory.
        kind: "binary": 1 if the process score rose above its value at the node (paper); "delta": by how much it rose.

    Returns:
        0 for a thought that could not be read; None where the harness failed, or the world could not be restored.
    """
    if outcome.fate != "ok":
        return None
    if not outcome.thought:
        return 0.0
    return float(outcome.reached) if kind == "binary" else max(0.0, outcome.best - outcome.score)


async def play_groups(
    player: Player,
    model: Sampler,
    sampling: Sampling,
    groups: Sequence[Drawn],
    size: int,
    kind: RewardKind,
    cap: int,
) -> list[list[Played]]:
    """`size` thoughts at every node.

    Args:
        player: plays, with the frozen actor at temperature 0.
        model: the thinker as it is now.
        sampling: of its thoughts.
        groups: nodes.
        size: m.
        kind: of the reward.
        cap: tokens of a thought and its prompt.

    Returns:
        Groups of rollouts as GRPO knows them; what the harness failed has the fate "harness" and no rows.

    Raises:
        FatalError, UserError: as `run_episode`.
    """
    thinker = Capped(model, sampling, cap)

    async def one(drawn: Drawn, i: int) -> Played:
        repeat = _REPEAT + drawn.number * size + i
        outcome = await player.from_node(drawn.node, repeat, thinker=thinker, until_rise=kind == "binary")
        return _played(drawn.node, repeat, outcome, thinker, kind, cap)

    try:
        async with asyncio.TaskGroup() as tasks:
            started = [[tasks.create_task(one(drawn, i)) for i in range(size)] for drawn in groups]
    except ExceptionGroup as errors:
        raise first_of(errors) from errors
    return [[task.result() for task in group] for group in started]


def _played(node: Node, repeat: int, outcome: Outcome, thinker: Capped, kind: RewardKind, cap: int) -> Played:
    task = replace(node.task, repeat=repeat)
    calls = thinker.take(task)
    played = Played("task", task, steps=max(0, len(outcome.moves) - len(node.moves)), success=outcome.reached)
    played.end_reason = outcome.status if outcome.fate == "ok" else outcome.fate
    if outcome.fate != "ok":
        played.fate, played.error = "harness", outcome.error
        return played
    played.reward = reward(outcome, kind)
    cut = played.fill(calls, cap, node=node.name)
    played.truncated = cut or bool(played.cut_replies)
    if not played.rows:  # the prompt did not fit
        played.fate = "no_tokens"
    return played
