"""Sparse tasks as tasks of the runner: one task per seed; a worker plays an episode in pieces, with the agent beside the world.

Pieces let the runner show progress and notice a worker that hangs; requests to a vision model stay open between them.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from agentexp.core import EnvCard, Step, Task
from agentexp.errors import MissingDependency, UserError
from agentexp.wise.agent import WiseAgent
from agentexp.wise.core import VoxelWorld
from agentexp.wise.episode import Trial
from agentexp.wise.memory.labelled import LabelMemory
from agentexp.wise.seeded_env import SeededEnv
from agentexp.wise.tasks import SparseTask


class TaskEpisodes(SeededEnv):
    """A sparse task (paper 004, sections 4.3 and 4.4) played by one method in one world. An `Env` for `agentexp wise-run`.

    Args:
        world: where.
        task: what is asked for.
        agent: who does it.
        budget: ticks; null: the task's.
        save_memory: of how many episodes, from the first seed, the keyframes and the graph are saved.
        save_to: folder for that.
    """

    card = EnvCard(intro="A world in which things are to be found and collected.", actions="")

    def __init__(
        self,
        world: VoxelWorld,
        task: SparseTask,
        agent: WiseAgent,
        budget: int | None = None,
        save_memory: int = 0,
        save_to: str | None = None,
    ) -> None:
        if budget is not None and budget < 1:
            raise UserError("steps must be at least 1 step, or null for the paper's.")
        super().__init__(world, f"{task.name}-{world.name}-{world.size}")
        self.task, self.agent, self.budget = task, agent, budget
        self.save_memory, self.save_to = save_memory, save_to
        self._trial: Trial | None = None
        self._start_problem: str | None = None

    def reset(self, task: Task) -> Step:
        """Build the world of the seed.

        Raises:
            EngineError: from the world.
        """
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._start_problem = self._loop.run_until_complete(self._start())
        self._trial = Trial(self.world, self.task, self.agent, self.budget)
        self._trial.begin(int(task.spec["seed"]))
        return Step("", goal=self.task.goal)

    async def _start(self) -> str | None:
        """Open the connections of a vision model now: that takes longer than a control step may."""
        try:
            await self.check_vision(keep_open=True)
        except MissingDependency:
            raise
        except UserError as error:
            return str(error)  # the command has checked it once; an endpoint that is away now may come back
        return None

    async def check_vision(self, keep_open: bool = False) -> None:
        """Whether the vision model answers.

        Raises:
            UserError: it cannot work.
        """
        model = self._vision()
        if (start := getattr(model, "start", None)) is not None:
            await start()
            if not keep_open:
                await model.close()

    def advance(self, ticks: int) -> dict[str, Any]:
        """Play on. Runs in the worker.

        Returns:
            "ticks": how many were played; "over": whether the episode has ended; "done": completed subtasks.
        """
        loop, trial = self._playing()
        played = loop.run_until_complete(trial.advance(ticks))
        return {"ticks": played, "over": trial.over, "done": len(trial.progress.done)}

    def result(self) -> dict[str, Any]:
        """The record of the episode, `Trial.finish`, with the folder of the saved memory under "saved"."""
        loop, trial = self._playing()
        record = loop.run_until_complete(trial.finish())
        record["vision_start"] = self._start_problem
        record["saved"] = self._save(trial)
        self._trial = None
        return record

    def _playing(self) -> tuple[asyncio.AbstractEventLoop, Trial]:
        if self._loop is None or self._trial is None:
            raise UserError("No episode is being played: reset comes first.")
        return self._loop, self._trial

    def _save(self, trial: Trial) -> str | None:
        memory = trial.agent.memory
        if self.save_to is None or trial.seed >= self.save_memory or not isinstance(memory, LabelMemory):
            return None
        from agentexp.wise.memory.export import save_memory

        folder = f"{trial.seed:04d}"
        save_memory(memory, Path(self.save_to) / folder)
        return folder

    def _vision(self) -> Any:
        memory = self.agent.memory
        return memory.worker.model if isinstance(memory, LabelMemory) else None

    def close(self) -> None:
        """Stop the world and what is open."""
        if self._trial is not None:
            self._trial.agent.memory.close()
        super().close()
