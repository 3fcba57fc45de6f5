"""Which instances a step rolls out: a pure function of the step, so that a resumed training goes on with the same order.

Task and exploration groups draw from the same list of instances (paper 001, section 4.3), each in an order of its own: a new
permutation for every pass over the list.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from agentexp.core import Task, stable_seed
from agentexp.errors import UserError
from agentexp.training.grpo.interleave import Kind, Ratio, Schedule, exploration_groups, explored_before


@dataclass(frozen=True, slots=True)
class Group:
    """One group: an instance, to be rolled out G times.

    Attributes:
        number: of the group in the whole training, 0-based.
        kind: task or explore.
        task: the instance.
    """

    number: int
    kind: Kind
    task: Task

    def tasks(self, size: int) -> list[Task]:
        """The rollouts: `Task.repeat` tells them apart, also from those of every other group of the training.

        Sampling seeds come from the key, so an instance that is drawn again is not sampled with the same random numbers.
        """
        return [replace(self.task, repeat=self.number * size + i) for i in range(size)]


class Draws:
    """The groups of every step.

    Args:
        tasks: the training instances in frozen order.
        groups: per step.
        ratio: of task to exploration groups.
        schedule: see `interleave`.
        seed: of the order.

    Raises:
        UserError: there are no instances.
    """

    def __init__(self, tasks: Sequence[Task], groups: int, ratio: Ratio, schedule: Schedule = "mixed", seed: int = 0) -> None:
        if not tasks:
            raise UserError("There is nothing to train on: trainer.split has no tasks, or trainer.limit is 0.")
        self.tasks, self.groups, self.ratio, self.schedule, self.seed = list(tasks), groups, ratio, schedule, seed
        self._orders: dict[tuple[Kind, int], list[int]] = {}

    def step(self, step: int) -> list[Group]:
        """The groups of step `step` (0-based): task groups first."""
        explored = explored_before(step, self.groups, self.ratio, self.schedule)
        exploring = exploration_groups(step, self.groups, self.ratio, self.schedule)
        first, kinds = step * self.groups, list[tuple[Kind, int]]()
        kinds += [("task", first - explored + i) for i in range(self.groups - exploring)]
        kinds += [("explore", explored + i) for i in range(exploring)]
        return [Group(first + i, kind, self._drawn(kind, position)) for i, (kind, position) in enumerate(kinds)]

    def _drawn(self, kind: Kind, position: int) -> Task:
        epoch, place = divmod(position, len(self.tasks))
        key = (kind, epoch)
        if key not in self._orders:
            self._orders = {known: order for known, order in self._orders.items() if known[0] != kind or known[1] >= epoch - 1}
            order = list(range(len(self.tasks)))
            random.Random(stable_seed("grpo", self.seed, kind, epoch)).shuffle(order)
            self._orders[key] = order
        return self.tasks[self._orders[key][place]]
