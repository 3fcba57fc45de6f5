"""Trajectories and thinking nodes: what has to be done to be there again, and what the world answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from agentexp.core import Task
from agentexp.paradigms.react import Form


@dataclass(frozen=True, slots=True)
class Move:
    """One step of a trajectory.

    Attributes:
        reply: of the actor, as its conversation keeps it.
        action: what was sent; None where the reply was no possible action and nothing was sent.
        observation: the answer.
        score: after it.
        loose: the recorded answer may have a remark of agentexp below it.
    """

    reply: str
    action: str | None
    observation: str
    score: float
    loose: bool = False


@dataclass(frozen=True, slots=True)
class Trajectory:
    """An episode of a strong agent that succeeded."""

    task: Task
    moves: tuple[Move, ...]


@dataclass(frozen=True, slots=True)
class Node:
    """A thinking node: where the thinker is asked, once.

    Attributes:
        task: the instance.
        first: answer to the reset.
        moves: the strong agent's up to step `x`, then `mistakes` of the weak actor's.
        x: step at which the sub-task begins.
        y: step at which the strong agent had solved it.
        horizon: steps that the actor gets after the thought.
        score: process score here; reaching more is reaching the sub-goal.
        passes: share of tries in which the weak actor solved the sub-task from its beginning.
        alone: it solves it from here without a thought, at temperature 0.
    """

    task: Task
    first: str
    moves: tuple[Move, ...]
    x: int
    y: int
    horizon: int
    score: float
    passes: float
    alone: bool

    @property
    def name(self) -> str:
        """Unique within a data set."""
        return f"{self.task.key}@{self.x}"

    @property
    def instance(self) -> str:
        """What is held out together, here and in `train-sft`."""
        return f"{self.task.env}/{self.task.split}/{self.task.id}"

    @property
    def mistakes(self) -> int:
        """Steps that the weak actor took."""
        return len(self.moves) - self.x

    @property
    def level(self) -> str:
        """medium: the actor solves it now and then; hard: it never did."""
        return "medium" if self.passes > 0 else "hard"

    def to_json(self) -> dict[str, Any]:
        """JSON values."""
        task = {field.name: getattr(self.task, field.name) for field in fields(Task)}
        own = {name: getattr(self, name) for name in ("first", "x", "y", "horizon", "score", "passes", "alone")}
        return {"name": self.name, "level": self.level, "task": task, **own, "moves": [asdict(move) for move in self.moves]}

    @staticmethod
    def from_json(saved: Mapping[str, Any]) -> Node:
        """The node of a line of `nodes.jsonl`."""
        own = {name: saved[name] for name in ("first", "x", "y", "horizon", "score", "passes", "alone")}
        return Node(task=Task(**saved["task"]), moves=tuple(Move(**move) for move in saved["moves"]), **own)


def reply_for(action: str, form: Form, said: str = "") -> str:
    """What the actor would have said to do `action`: the strong agent's own reply where it has the actor's form.

    Args:
        action: to be sent.
        form: of the actor's replies.
        said: by the strong agent.
    """
    if form == "think_answer":
        return said if "<answer>" in said else f"<answer>{action}</answer>"
    return said if "Action:" in said else f"Action: {action}"


def moves_of(record: Mapping[str, Any], form: Form) -> tuple[Move, ...]:
    """The steps of an episode's last phase that reached the world, from its record. Nothing else changes a world."""
    steps: Sequence[Mapping[str, Any]] = record["trajectory"]
    phase = steps[-1]["phase"] if steps else ""
    made = []
    for step in steps:
        if step["phase"] != phase or step["status"] != "ok" or step.get("action") is None:
            continue
        action = str(step["action"])
        loose = "n_actions>1" in step.get("flags", ())
        reply = reply_for(action, form, _said(record, step.get("call")))
        made.append(Move(reply, action, str(step["observation"]), float(step["score"]), loose))
    return tuple(made)


def _said(record: Mapping[str, Any], call: int | None) -> str:
    """The reply of a recorded call, as its conversation keeps it."""
    if call is None:
        return ""
    made = record["calls"][call]
    messages, upto = record["chats"].get(made["chat"], ()), made["upto"]
    return str(messages[upto]["content"]) if upto < len(messages) else ""
