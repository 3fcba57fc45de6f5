"""The cold start: thoughts of a large model (or any other), kept where the frozen actor then reaches the sub-goal.

    thoughts.jsonl   one line per node, as it was finished: every thought, and whether it helped; a resumed run skips these
    messages.jsonl   the kept ones as conversations, prompt of the thinker -> <deepthink> text, for `train-sft`

Rejection sampling is ours; the paper only says that a large model writes the thoughts. A thought that says nothing of use
can be kept where the actor would have succeeded anyway: `alone` of the node tells, and the counts say for how many.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from agentexp.core import Model
from agentexp.errors import UserError
from agentexp.store import write_json
from agentexp.training.core import Interrupted
from agentexp.training.thinker.lines import Lines, read_lines, replace_lines
from agentexp.training.thinker.nodes import Node
from agentexp.training.thinker.player import Player, each

_REPEAT = 3_000_000  # see `data`

MESSAGES = "messages.jsonl"
FACTS = "coldstart.json"


class ColdStart:
    """Settings of the cold start.

    Args:
        thoughts: written at every node until `keep` of them helped.
        keep: kept of a node at most.
        skip_alone: leave out nodes from which the actor reaches the sub-goal without a thought.
        lr: learning rate of the fine-tuning.
        epochs: passes over the kept conversations.
        global_batch: conversations per optimiser step.
        micro_batch: conversations per forward pass.
        schedule: of the learning rate.
        max_len: longest conversation in tokens; longer ones are left out.
        save_every: steps between checkpoints.

    Raises:
        UserError: an impossible value.
    """

    def __init__(
        self,
        *,
        thoughts: int = 4,
        keep: int = 1,
        skip_alone: bool = False,
        lr: float = 1e-5,
        epochs: int = 3,
        global_batch: int = 16,
        micro_batch: int = 1,
        schedule: Literal["cosine", "constant"] = "cosine",
        max_len: int = 16384,
        save_every: int = 50,
    ) -> None:
        if not 1 <= keep <= thoughts:
            raise UserError("trainer.coldstart: thoughts must be at least 1, and keep from 1 to thoughts.")
        self.thoughts, self.keep, self.skip_alone = thoughts, keep, skip_alone
        self.lr, self.epochs, self.global_batch, self.micro_batch = lr, epochs, global_batch, micro_batch
        self.schedule, self.max_len, self.save_every = schedule, max_len, save_every


@dataclass(slots=True, kw_only=True)
class Collector:
    """Collects thoughts for a data folder.

    Attributes:
        folder: of the data.
        player: plays.
        teacher: writes the thoughts.
        settings: see `ColdStart`.
        stopping: whether the user asked to stop.
        say: tells the user.
    """

    folder: Path
    player: Player
    teacher: Model
    settings: ColdStart
    stopping: Callable[[], bool] = lambda: False
    say: Callable[[str], None] = lambda _: None

    async def collect(self, nodes: Sequence[Node]) -> int:
        """Write `messages.jsonl`; the number of conversations in it.

        Raises:
            Interrupted: the user stopped it; what is done is kept.
        """
        path = self.folder / "thoughts.jsonl"
        done = {line["node"]: line for line in read_lines(path) if not _failed(line)}
        wanted = [node for node in nodes if not (self.settings.skip_alone and node.alone)]
        todo = [node for node in wanted if node.name not in done]
        if done and todo:
            self.say(f"Thoughts: going on after {len(wanted) - len(todo)} of {len(wanted)} nodes.")
        with Lines(path) as lines:

            async def one(node: Node) -> None:
                done[node.name] = await self._node(node)
                lines.append(done[node.name])

            await each(todo, one, self.player.concurrency, self.stopping)
        if any(node.name not in done for node in wanted):
            raise Interrupted
        return self._finish(nodes, [(node, done[node.name]) for node in wanted])

    async def _node(self, node: Node) -> dict[str, Any]:
        tried: list[dict[str, Any]] = []
        for i in range(self.settings.thoughts):
            outcome = await self.player.from_node(node, _REPEAT + node.x * 100 + i, thinker=self.teacher)
            entry: dict[str, Any] = {"fate": outcome.fate, "status": outcome.status, "helped": outcome.reached}
            if outcome.status == "cut":  # the thinker would learn to end in the middle of a sentence
                entry["helped"] = False
            elif outcome.fate == "ok" and outcome.thought:
                prompt = [message._asdict() for message in outcome.prompt]
                said = {"role": "assistant", "content": f"<deepthink>\n{outcome.thought}\n</deepthink>"}
                entry["messages"] = [*prompt, said]
            if outcome.error:
                entry["error"] = outcome.error
            tried.append(entry)
            if sum(entry["helped"] for entry in tried) >= self.settings.keep:
                break
        return {"node": node.name, "thoughts": tried}

    def _finish(self, nodes: Sequence[Node], lines: Sequence[tuple[Node, dict[str, Any]]]) -> int:
        kept, counts, helped_nodes = list[dict[str, Any]](), Counter[str](), 0
        for node, line in lines:
            helped = [entry for entry in line["thoughts"] if entry["helped"]]
            helped_nodes += bool(helped)
            for entry in line["thoughts"]:
                counts[_fate(entry)] += 1
            kept += [
                {
                    "messages": entry["messages"],
                    "instance": node.instance,
                    "env": node.task.env,
                    "node": node.name,
                    "level": node.level,
                    "alone": node.alone,
                    "teacher": self.teacher.label,
                }
                for entry in helped
            ]
        facts = {
            "nodes": len(nodes),
            "nodes_asked": len(lines),
            "nodes_helped": helped_nodes,
            "nodes_alone": sum(node.alone for node, _ in lines),
            "thoughts": dict(counts),
            "kept": len(kept),
            "kept_where_alone": sum(row["alone"] for row in kept),
            "teacher": self.teacher.label,
        }
        replace_lines(self.folder / MESSAGES, kept)
        write_json(self.folder / FACTS, facts)
        self.say(
            f"Thoughts of {self.teacher.label}: the actor reaches the sub-goal from {helped_nodes} of {len(lines)} nodes with "
            f"one, alone from {facts['nodes_alone']}; {len(kept)} conversations are kept."
        )
        return len(kept)


def _fate(entry: dict[str, Any]) -> str:
    if entry["fate"] != "ok":
        return str(entry["fate"])
    if entry["status"] == "cut":
        return "cut"
    return "helped" if entry["helped"] else "did not help" if "messages" in entry else "unreadable"


def _failed(line: dict[str, Any]) -> bool:
    """The harness failed some of it and nothing was kept: a resumed run tries again."""
    entries = line["thoughts"]
    return any(entry["fate"] == "harness" for entry in entries) and not any(entry["helped"] for entry in entries)
