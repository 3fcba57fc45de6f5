"""Where supervised fine-tuning takes its conversations from: what was saved, or a few episodes made on the spot."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, cast

from agentexp.core import Message
from agentexp.errors import MissingDependency, UserError

ROLES = ("system", "user", "assistant")


class Conversation(NamedTuple):
    """One conversation.

    Attributes:
        messages: oldest first.
        instance: what it is about; conversations of one instance are kept out of training together.
    """

    messages: list[Message]
    instance: str


class Data(Protocol):
    """`trainer.data` of `train-sft`."""

    def conversations(self) -> list[Conversation]:
        """All of them, in an order that never changes.

        Raises:
            UserError: there is nothing to read, or it is something else.
        """
        ...

    def versions(self) -> dict[str, str]:
        """A hash of the content, for the manifest."""
        ...


class Saved:
    """Conversations on disk: a data set of `datasets` (`save_to_disk`), or JSON lines; column `messages`.

    That is what the MAP-2K collection and `agentexp export --format hf` or `--format messages` write.

    Args:
        path: the folder or file; for a folder with several splits, the one named "train" is taken.
        where: take only rows whose columns have these values, for example {"env": "textcraft"}; a list: one of them.
        limit: take the first N.
    """

    def __init__(self, path: str, where: dict[str, Any] | None = None, limit: int | None = None) -> None:
        if limit is not None and limit < 1:
            raise UserError(f"trainer.data.limit must be at least 1, or null, not {limit}.")
        self.path, self.where, self.limit = Path(path).expanduser(), dict(where or {}), limit

    def conversations(self) -> list[Conversation]:
        """See `Data`."""
        found, columns = [], set[str]()
        for number, row in enumerate(self._rows()):
            columns.update(row)
            if all(_matches(row.get(key), value) for key, value in self.where.items()):
                found.append(Conversation(_messages(row, f"{self.path}, row {number}"), str(_instance(row, number))))
        for key in self.where:
            if columns and key not in columns:
                have = ", ".join(sorted(columns))
                raise UserError(f"trainer.data.where.{key}: {self.path} has no such column; it has {have}.")
        if not found:
            what = f" with {self.where}" if self.where and columns else ""
            raise UserError(f"trainer.data.path={self.path} holds no conversation{what}.")
        return found[: self.limit]

    def versions(self) -> dict[str, str]:
        """See `Data`."""
        digest = hashlib.blake2b(digest_size=12)
        for file in self._files():
            with file.open("rb") as stream:
                while block := stream.read(1 << 20):
                    digest.update(block)
        return {"data": digest.hexdigest()}

    def _files(self) -> list[Path]:
        """What is read, and nothing that `datasets` leaves beside it."""
        if not self.path.exists():
            raise UserError(f"trainer.data.path={self.path} does not exist. Give a data set's folder, or a file of JSON lines.")
        if self.path.is_file():
            return [self.path]
        folder = self.path / "train" if (self.path / "dataset_dict.json").is_file() else self.path
        arrow = sorted(file for file in folder.glob("*.arrow") if not file.name.startswith("cache-"))
        return arrow if (folder / "dataset_info.json").is_file() and arrow else [self._lines_file(folder)]

    def _lines_file(self, folder: Path) -> Path:
        lines = sorted(folder.glob("*.jsonl"))
        chosen = [file for file in lines if file.stem in ("messages", "train", "rows")] or lines
        if len(chosen) != 1:
            what = f"several ({', '.join(file.name for file in chosen)}); name one" if chosen else "none"
            raise UserError(
                f"trainer.data.path={folder} is no data set of `datasets`, and of files of JSON lines it has {what}."
            )
        return chosen[0]

    def _rows(self) -> Iterator[Mapping[str, Any]]:
        files = self._files()
        if files[0].suffix == ".arrow":
            try:
                from datasets import load_from_disk
            except ImportError as error:
                raise MissingDependency(f"{self.path} is a data set of `datasets`; pip install 'agentexp[train]'.") from error
            yield from cast(Iterable[Mapping[str, Any]], load_from_disk(str(files[0].parent)))
            return
        with files[0].open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if not line.strip():
                    continue
                try:
                    row = json.loads(line)
                except ValueError as error:
                    raise UserError(f"{files[0]}, line {number} is not JSON: {error}.") from error
                if not isinstance(row, dict):
                    raise UserError(f"{files[0]}, line {number} must be a JSON object with the key messages.")
                yield row


class Demo:
    """A few episodes of a world's scripted expert under ReAct, played when they are asked for.

    Args:
        episodes: of the train split.
        world: a world in pure Python.
        seed: of the instances.
    """

    def __init__(self, episodes: int = 16, world: Literal["toy", "textcraft"] = "toy", seed: int = 0) -> None:
        if episodes < 1:
            raise UserError(f"trainer.data.episodes must be at least 1, not {episodes}.")
        self.episodes, self.world, self.seed = episodes, world, seed

    def conversations(self) -> list[Conversation]:
        """See `Data`."""
        return asyncio.run(self._play())

    def versions(self) -> dict[str, str]:
        """See `Data`. The code says the rest."""
        return {"data": f"demo-{self.world}-{self.seed}-{self.episodes}"}

    async def _play(self) -> list[Conversation]:
        from dataclasses import replace

        from agentexp import targets
        from agentexp.envs.pool import EnvPool
        from agentexp.models.scripted import ScriptedModel
        from agentexp.paradigms.react import ReAct
        from agentexp.rollout import Budget, run_episode

        spec: dict[str, Any] = (
            {"_target_": "agentexp.envs.toy.ToyRooms", "n_tasks": self.episodes}
            if self.world == "toy"
            else {"_target_": "agentexp.envs.textcraft.TextCraft"}
        )
        env, expert, react = targets.build(spec), ScriptedModel(policy="oracle"), ReAct(style="compact")
        made = []
        async with EnvPool(spec, size=1, step_timeout=60, reset_timeout=180, in_process=True) as pool:
            for task in env.tasks("train")[: self.episodes]:
                seeded = replace(task, seed=self.seed)
                episode = await run_episode(seeded, env, pool.lease, {"actor": expert}, react, Budget(0, 30))
                if episode.status != "ok":
                    raise UserError(f"The demo episode {task.id} could not be played: {episode.error}")
                made.append(Conversation(list(episode.chats["acting"]), f"{task.env}/{task.split}/{task.id}"))
        return made


def _messages(row: Mapping[str, Any], where: str) -> list[Message]:
    listed = row.get("messages")
    if "messages" in row and not isinstance(listed, list):
        raise UserError(f"{where}: messages must be a list of {{role, content}}, not {_kind(listed)}.")
    if not isinstance(listed, list):
        hint = " `agentexp export --format messages` writes them." if "conversations" in row else ""
        raise UserError(f"{where} has no messages; it has {', '.join(sorted(row)) or 'nothing'}.{hint}")
    messages = []
    for message in listed:
        role, content = (message.get("role"), message.get("content")) if isinstance(message, Mapping) else (None, None)
        if role not in ROLES or not isinstance(content, str):
            raise UserError(f"{where}: every message needs a role ({', '.join(ROLES)}) and a content that is text.")
        messages.append(Message(role, content))
    return messages


def _kind(value: Any) -> str:
    """What a JSON value is, for messages."""
    names = {str: "text", dict: "an object", bool: "true or false", int: "a number", float: "a number"}
    return "null" if value is None else names.get(type(value), type(value).__name__)


def _instance(row: Mapping[str, Any], number: int) -> object:
    return row.get("instance") or row.get("key") or number


def _matches(found: Any, wanted: Any) -> bool:
    return found in wanted if isinstance(wanted, list) else found == wanted
