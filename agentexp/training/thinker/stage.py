"""What all parts of a thinker's training share: world, actor, teacher and prompts from the config; and the data folder."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentexp.commands import ChecksEnv
from agentexp.config import Overrides, build, fingerprint, split_model
from agentexp.core import Model
from agentexp.envs.pool import EnvPool
from agentexp.errors import UserError
from agentexp.paradigms.ttexplore import TTExplore
from agentexp.plan import identity
from agentexp.scrub import scrub
from agentexp.store import read_json, write_json
from agentexp.training.core import TrainRun
from agentexp.training.grpo.world import TrainingWorld, world_of
from agentexp.training.thinker.coldstart import FACTS, MESSAGES, Collector
from agentexp.training.thinker.data import Builder, load_nodes
from agentexp.training.thinker.nodes import Node
from agentexp.training.thinker.player import Player

if TYPE_CHECKING:
    from agentexp.training.thinker.trainer import ThinkerTrainer

_ACTOR_PROMPTS = ("style", "form", "show_admissible", "show_steps_left", "examples")


@dataclass(slots=True)
class Stage:
    """Everything constructed, nothing started.

    Attributes:
        folder: of the data.
        teacher: writes the thoughts of the cold start; None: there is none.
    """

    settings: ThinkerTrainer
    run: TrainRun
    world: TrainingWorld
    pool: EnvPool
    player: Player
    teacher: Model | None
    folder: Path

    @staticmethod
    def of(settings: ThinkerTrainer, run: TrainRun) -> Stage:
        """Raises `UserError` where world, models and settings do not fit together."""
        config = run.config
        world = world_of(config)
        if world.settings.limit is not None:
            raise UserError("env.limit is for commands that evaluate. Set trainer.strong.limit or trainer.division.limit.")
        if world.settings.split.startswith(("test", "valid")):
            raise UserError(f"env.split={world.settings.split} is no split to train on. Set env.split=train.")
        ttx = build(config["paradigm"], "paradigm", Overrides())
        if not isinstance(ttx, TTExplore):
            raise UserError("paradigm must be ttexplore: it holds the prompts of actor and thinker.")
        if settings.rollout.sampling.max_tokens < ttx.thinker_tokens:
            raise UserError(
                f"trainer.rollout.max_tokens={settings.rollout.sampling.max_tokens} is below paradigm.thinker_tokens="
                f"{ttx.thinker_tokens}, which counts: thoughts in training are as long as later ones. Lower that."
            )
        actor = _model(config.get("model"), "model", world)
        node = (config.get("roles") or {}).get("thinker")
        teacher = None if node is None else _model(node, "roles.thinker", world)
        if settings.coldstart and teacher is None:
            raise UserError(
                "roles.thinker has no value: it writes the thoughts of the cold start. Set +model@roles.thinker=openai "
                "roles.thinker.name=..., or trainer.coldstart=null."
            )
        rollout = settings.rollout
        pool = world.pool(min(rollout.workers, rollout.concurrency))
        player = Player(
            env=world.env,
            lease=pool.lease,
            ttx=ttx,
            actor=actor,
            parsing=world.parsing,
            attempts=rollout.attempts,
            seconds=rollout.seconds,
            concurrency=rollout.concurrency,
        )
        folder = Path(settings.data).expanduser() if settings.data else run.folder / "data"
        return Stage(settings, run, world, pool, player, teacher, folder)

    async def close(self) -> None:
        """Stop the engines and the models."""
        await self.pool.stop()
        await self.player.actor.close()
        if self.teacher is not None:
            await self.teacher.close()

    # ------------------------------------------------------------------------------------------------------------- data

    def data(self) -> list[Node]:
        """The nodes, and with a cold start the thoughts; made where they are missing.

        Raises:
            Interrupted: the user stopped it.
            UserError: the folder was made with other settings, no node is left, or several processes would make it.
        """
        nodes = load_nodes(self.folder)
        thoughts = self.settings.coldstart is None or (self.folder / FACTS).is_file()
        if nodes is None or not thoughts:
            if int(os.environ.get("WORLD_SIZE", "1") or 1) > 1:
                raise UserError(
                    "Nodes and thoughts are made by one process. Make them first, without a launcher: the same command with "
                    "trainer.stage=data trainer.data=FOLDER; then launch it with trainer.data=FOLDER."
                )
            self._own()
            nodes = asyncio.run(self._make(nodes))
        else:
            self._own()
        return nodes

    async def _make(self, nodes: list[Node] | None) -> list[Node]:
        try:
            await self.player.actor.start()
            if nodes is None:
                nodes = await self._nodes()
            if self.settings.coldstart and self.teacher is not None and not (self.folder / FACTS).is_file():
                await self.teacher.start()
                collector = Collector(
                    folder=self.folder,
                    player=self.player,
                    teacher=self.teacher,
                    settings=self.settings.coldstart,
                    stopping=self.run.stopping,
                    say=self.run.say,
                )
                await collector.collect(nodes)
            return nodes
        finally:
            if self.teacher is not None:
                await self.teacher.close()
            await self.player.actor.close()

    async def _nodes(self) -> list[Node]:
        counts = Counter[str]()
        strong = await self.settings.strong.trajectories(self.world, self.pool.lease, self.player.ttx.actor.form, counts)
        builder = Builder(
            folder=self.folder,
            player=self.player,
            division=self.settings.division,
            seed=self.run.seed,
            stopping=self.run.stopping,
            say=self.run.say,
        )
        return await builder.build(strong, counts)

    @property
    def messages(self) -> Path:
        """The conversations of the cold start."""
        return self.folder / MESSAGES

    def _own(self) -> None:
        """Refuse a folder that was made with other settings; mark a new one."""
        config, trainer = self.run.config, self.run.config.get("trainer", {})
        paradigm: Mapping[str, Any] = config["paradigm"]
        chosen: dict[str, Any] = {key: config.get(key) for key in ("env", "model", "parsing")}
        chosen |= {key: trainer.get(key) for key in ("strong", "division")} | {"seed": self.run.seed}
        chosen["paradigm"] = {key: paradigm.get(key) for key in _ACTOR_PROMPTS}
        self._claim("settings.json", chosen)
        cold: Mapping[str, Any] = trainer.get("coldstart") or {}
        if self.settings.coldstart is not None:
            thoughts = {"paradigm": paradigm, "thinker": (config.get("roles") or {}).get("thinker")}
            self._claim("thoughts.json", thoughts | {key: cold.get(key) for key in ("thoughts", "keep", "skip_alone")})

    def _claim(self, name: str, chosen: Mapping[str, Any]) -> None:
        wanted = identity(scrub(chosen))
        found = read_json(self.folder / name)
        if found is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_json(self.folder / name, wanted)
        elif fingerprint(found) != fingerprint(wanted):
            changed = sorted(key for key in {*found, *wanted} if found.get(key) != wanted.get(key))
            raise UserError(
                f"{self.folder} holds data of other settings ({', '.join(changed)}). Choose another trainer.data=, "
                "or remove it."
            )


def _model(node: Any, path: str, world: TrainingWorld) -> Model:
    made: Model = build(split_model(node, path, Overrides()), path, Overrides(), Model)
    if isinstance(made, ChecksEnv):
        made.check(world.env)
    return made
