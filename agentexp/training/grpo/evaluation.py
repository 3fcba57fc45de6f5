"""Held-out episodes in the middle of a training."""

from __future__ import annotations

from collections.abc import Sequence

from agentexp.core import Sampling
from agentexp.errors import UserError
from agentexp.training.grpo.draws import Group
from agentexp.training.grpo.interleave import Kind
from agentexp.training.grpo.rollouts import Played
from agentexp.training.grpo.world import TrainingWorld


class HeldOut:
    """Which held-out episodes to play, before the first step, every few steps and after the last.

    Args:
        split: of the world; None = its "dev", or the official "valid_seen". Never the training split.
        tasks: first N instances under the task paradigm.
        explorations: first N instances under the exploration paradigm.
        every: steps between two evaluations; 0 = before the first step and after the last only.
        repeats: episodes of every instance; more than 1 only makes sense with a temperature.
        temperature: 0 = greedy.
    """

    def __init__(
        self,
        *,
        split: str | None = None,
        tasks: int = 50,
        explorations: int = 50,
        every: int = 50,
        repeats: int = 1,
        temperature: float = 0.0,
    ) -> None:
        if min(tasks, explorations, every, temperature) < 0 or repeats < 1:
            raise UserError(
                "trainer.evaluation: tasks, explorations, every and temperature must be 0 or more, repeats 1 or more."
            )
        self.split, self.counts = split, {"task": tasks, "explore": explorations}
        self.every, self.repeats, self.temperature = every, repeats, temperature

    def due(self, step: int, last: int) -> bool:
        """Whether to evaluate after `step` of `last` steps."""
        return step in (0, last) or bool(self.every and step % self.every == 0)

    def groups(self, world: TrainingWorld, kinds: Sequence[Kind]) -> list[Group]:
        """One group per episode, for `Rollouts.play` with size 1.

        Raises:
            UserError: the split is that of the training, or there is none.
        """
        known = [name for name in ("dev", "valid_seen") if name in world.env.splits()]
        split = self.split or (known[0] if known else "")
        if not split or split == world.settings.split:
            raise UserError(
                f"trainer.evaluation.split={split or 'null'} must be a split of env={world.env.name} other than env.split="
                f"{world.settings.split}. Choices: {', '.join(world.env.splits())}; or trainer.evaluation=null for none."
            )
        found = []
        for kind in kinds:
            tasks = world.tasks(split, self.counts[kind]) if self.counts[kind] else []
            found += [Group(repeat, kind, task) for repeat in range(self.repeats) for task in tasks]
        return found

    def sampling(self, max_tokens: int) -> Sampling:
        """How replies are decoded."""
        return Sampling(self.temperature, max_tokens)


def line(step: int, played: Played) -> dict[str, object]:
    """One line of `evaluation.jsonl`."""
    return {
        "step": step,
        "kind": played.kind,
        "task": played.task.id,
        "repeat": played.task.repeat,
        "reward": played.reward if played.fate in ("ok", "no_tokens") else None,
        "success": played.success,
        "steps": played.steps,
        "end": played.end_reason,
        **({"error": played.error} if played.error else {}),
    }
