"""The world that a training plays in: `env` and `parsing` of its config, as the running commands read them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from agentexp import targets
from agentexp.actions import ParseSettings
from agentexp.config import EnvSettings, Overrides, build, checked, split_env
from agentexp.core import Env, Task
from agentexp.envs.pool import EnvPool
from agentexp.errors import UserError
from agentexp.kinds import check_component


@dataclass(slots=True)
class TrainingWorld:
    """A world with everything checked and nothing started.

    Attributes:
        env: the parent-side world.
        spec: what builds the same world in a worker.
        settings: the runner's keys of `env`.
        parsing: how replies are read.
    """

    env: Env
    spec: Mapping[str, Any]
    settings: EnvSettings
    parsing: ParseSettings

    def tasks(self, split: str, limit: int | None = None) -> list[Task]:
        """The first `limit` instances of a split, with the run's seed.

        Raises:
            UserError: there is no such split, or its data is missing.
        """
        if split not in self.env.splits():
            raise UserError(f"{split} is not a split of env={self.env.name}. Choices: {', '.join(self.env.splits())}.")
        return [replace(task, seed=self.settings.seed) for task in self.env.tasks(split)[:limit]]

    def pool(self, size: int) -> EnvPool:
        """Engines, started when they are needed."""
        return EnvPool(
            self.spec,
            size=size,
            step_timeout=self.settings.step_timeout,
            reset_timeout=self.settings.reset_timeout,
            in_process=self.settings.in_process,
            max_episodes_per_worker=self.settings.max_episodes_per_worker,
        )


def world_of(config: Mapping[str, Any]) -> TrainingWorld:
    """The world of a training's config.

    Raises:
        UserError: a wrong setting, or no world.
    """
    if "env" not in config:
        raise UserError("env has no value. Choose a world to train in, for example env=textcraft.")
    overrides = Overrides()
    settings, node = split_env(config["env"], overrides)
    spec = checked(node, "env", overrides, Env)
    env = targets.build(spec)
    check_component(env, Env, "env", spec["_target_"])
    parsing = build(config["parsing"], "parsing", overrides, ParseSettings) if "parsing" in config else ParseSettings()
    return TrainingWorld(env, spec, settings, parsing)
