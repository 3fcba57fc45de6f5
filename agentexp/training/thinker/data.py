"""From trajectories to thinking nodes: replay, divide, filter by what the weak actor can do, let it make its mistakes.

    trajectories.jsonl   one line per trajectory, as it was finished: what became of every sub-task; a resumed run skips these
    nodes.jsonl          the nodes, in the order of the trajectories
    collect.json, README.md   counts, for programs and for people

A sub-task is easy when the actor solves it in more than half of its tries; easy ones are left out (paper 003: "easy ones
removed"; the numbers are ours). Every node is restored once more before it counts.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agentexp.core import stable_seed
from agentexp.errors import UserError
from agentexp.store import write_json
from agentexp.training.core import Interrupted
from agentexp.training.thinker.lines import Lines, read_lines, replace_lines
from agentexp.training.thinker.nodes import Node, Trajectory
from agentexp.training.thinker.player import Outcome, Player, each
from agentexp.training.thinker.subtasks import Subtask, subtasks

_NODE_REPEAT = 1_000_000  # repeats of tries, nodes and thoughts never meet: each is sampled with random numbers of its own
_CHECK_REPEAT = 2_000_000


class Division:
    """How nodes are made.

    Args:
        tries: of the weak actor at every sub-task.
        easy_above: share of successful tries above which a sub-task is easy, and left out.
        temperature: of the weak actor while it tries and while it makes its mistakes.
        max_mistakes: k is drawn from 1 to this, and at most y - x.
        limit: nodes at most, the first ones; None = all.

    Raises:
        UserError: an impossible value.
    """

    def __init__(
        self,
        *,
        tries: int = 4,
        easy_above: float = 0.5,
        temperature: float = 0.7,
        max_mistakes: int = 6,
        limit: int | None = None,
    ) -> None:
        if min(tries, max_mistakes, 1 if limit is None else limit) < 1:
            raise UserError("trainer.division: tries, max_mistakes and limit must be at least 1.")
        if not 0 <= easy_above < 1 or temperature < 0:
            raise UserError("trainer.division: easy_above must be from 0 to below 1, and temperature at least 0.")
        self.tries, self.easy_above, self.temperature = tries, easy_above, temperature
        self.max_mistakes, self.limit = max_mistakes, limit


@dataclass(slots=True, kw_only=True)
class Builder:
    """Makes the nodes of a data folder.

    Attributes:
        folder: of the data.
        player: plays.
        division: settings.
        seed: of the mistakes' number, and of sampling.
        stopping: whether the user asked to stop.
        say: tells the user.
    """

    folder: Path
    player: Player
    division: Division
    seed: int = 0
    stopping: Callable[[], bool] = lambda: False
    say: Callable[[str], None] = lambda _: None

    async def build(self, strong: Sequence[Trajectory], before: Mapping[str, int]) -> list[Node]:
        """The nodes of these trajectories, going on from those that are done.

        Args:
            strong: in an order that never changes.
            before: what became of the episodes that they come from, for the counts.

        Raises:
            Interrupted: the user stopped it; what is done is kept.
            UserError: no node is left.
        """
        path = self.folder / "trajectories.jsonl"
        done = {line["key"]: line for line in read_lines(path) if not _failed(line)}
        todo = [one for one in strong if one.task.key not in done]
        if done and todo:
            self.say(f"Nodes: going on after {len(strong) - len(todo)} of {len(strong)} trajectories.")
        with Lines(path) as lines:

            async def one(trajectory: Trajectory) -> None:
                line = await self._trajectory(trajectory)
                done[trajectory.task.key] = line
                lines.append(line)

            await each(todo, one, self.player.concurrency, self.stopping)
        if any(one.task.key not in done for one in strong):
            raise Interrupted
        return self._finish([done[one.task.key] for one in strong], before)

    # -------------------------------------------------------------------------------------------------- one trajectory

    async def _trajectory(self, trajectory: Trajectory) -> dict[str, Any]:
        line: dict[str, Any] = {"key": trajectory.task.key, "steps": len(trajectory.moves)}
        whole = await self.player.play(trajectory.task, trajectory.moves, 0)
        if whole.fate != "ok":
            return {**line, "fate": whole.fate, "error": whole.error, "subtasks": []}
        # what was replayed is what later replays are compared with: the record has no answer to the reset
        replayed = replace(trajectory, moves=whole.moves)
        scores = [whole.start, *(move.score for move in whole.moves)]
        line |= {"fate": "ok", "scores": scores}
        made = [self._subtask(replayed, whole.first, part) for part in subtasks(scores)]
        return {**line, "subtasks": list(await asyncio.gather(*made))}

    async def _subtask(self, trajectory: Trajectory, first: str, part: Subtask) -> dict[str, Any]:
        task, settings, prefix = trajectory.task, self.division, trajectory.moves[: part.x]

        def play(repeat: int, horizon: int) -> Any:
            once = replace(task, repeat=repeat)
            return self.player.play(once, prefix, horizon, first=first, temperature=settings.temperature)

        stretch = part.x * 100  # repeats: sub-tasks of one trajectory draw differently
        tried: list[Outcome] = await asyncio.gather(*(play(stretch + i, part.horizon) for i in range(settings.tries)))
        usable = [outcome for outcome in tried if outcome.fate == "ok"]
        line: dict[str, Any] = {"x": part.x, "y": part.y, "tries": [o.reached if o.fate == "ok" else o.fate for o in tried]}
        if not usable:
            return {**line, "fate": _worst(tried), "error": tried[0].error}
        passes = sum(outcome.reached for outcome in usable) / len(usable)
        if passes > settings.easy_above:
            return {**line, "fate": "easy"}
        line["level"] = "medium" if passes else "hard"
        most = min(settings.max_mistakes, part.y - part.x)
        k = random.Random(stable_seed("node", self.seed, task.key, part.x)).randint(1, most)
        weak: Outcome = await play(_NODE_REPEAT + stretch, k)
        if weak.fate != "ok":
            return {**line, "fate": weak.fate, "error": weak.error}
        if weak.reached:
            return {**line, "fate": "solved by itself", "k": k}
        if weak.done or len(weak.moves) < part.x + k:
            return {**line, "fate": "ended before the node", "k": k}
        moves = (*prefix, *weak.moves[part.x :])
        node = Node(task, first, moves, part.x, part.y, part.horizon, weak.score, passes, alone=False)
        alone = await self.player.from_node(node, _CHECK_REPEAT + stretch)
        if alone.fate != "ok":
            return {**line, "fate": alone.fate, "error": alone.error, "k": k}
        return {**line, "fate": "node", "k": k, "node": replace(node, alone=alone.reached).to_json()}

    # ------------------------------------------------------------------------------------------------------ the data set

    def _finish(self, lines: Sequence[Mapping[str, Any]], before: Mapping[str, int]) -> list[Node]:
        parts = [part for line in lines for part in line["subtasks"]]
        nodes = [part["node"] for part in parts if part["fate"] == "node"][: self.division.limit]
        found = [Node.from_json(node) for node in nodes]
        facts = {
            "strong": dict(before),
            "trajectories": dict(Counter(str(line["fate"]) for line in lines)),
            "subtasks": dict(Counter(str(part["fate"]) for part in parts)),
            "levels": dict(Counter(node.level for node in found)),
            "nodes": len(found),
            "alone": sum(node.alone for node in found),
            "mean_mistakes": sum(node.mistakes for node in found) / max(1, len(found)),
            "mean_horizon": sum(node.horizon for node in found) / max(1, len(found)),
        }
        replace_lines(self.folder / "nodes.jsonl", nodes)
        (self.folder / "README.md").write_text(card(facts), encoding="utf-8")
        write_json(self.folder / "collect.json", facts)  # last: it says that the rest is there
        self.say(f"Nodes: {len(found)} of {len(parts)} sub-tasks of {len(lines)} trajectories ({_listed(facts['subtasks'])}).")
        if not found:
            raise UserError(
                f"No thinking node is left ({_listed(facts['subtasks']) or _listed(facts['trajectories'])}). Use harder tasks, "
                "a weaker actor (model=), or more trajectories (trainer.strong)."
            )
        return found


def load_nodes(folder: Path) -> list[Node] | None:
    """The nodes of a finished data folder; None where they are not finished."""
    if not (folder / "collect.json").is_file():
        return None
    return [Node.from_json(line) for line in read_lines(folder / "nodes.jsonl")]


def card(facts: Mapping[str, Any]) -> str:
    """The data set in words: what was kept, and what was not and why."""
    tables = [
        f"## {title}\n\n| | number |\n|---|---|\n" + "".join(f"| {name} | {n} |\n" for name, n in sorted(facts[key].items()))
        for key, title in (
            ("strong", "Episodes of the strong agent"),
            ("trajectories", "Trajectories, replayed and compared"),
            ("subtasks", "Sub-tasks"),
            ("levels", "Nodes by difficulty"),
        )
    ]
    return "\n".join(
        [
            "# Thinking nodes\n",
            f"{facts['nodes']} nodes: the instance, the actions that lead there, and every answer on the way. The weak actor "
            f"has made {facts['mean_mistakes']:.2f} steps of its own on average, and gets {facts['mean_horizon']:.2f} more. "
            f"Alone, at temperature 0, it reaches the sub-goal from {facts['alone']} of them.\n",
            *tables,
        ]
    )


def _failed(line: Mapping[str, Any]) -> bool:
    """The harness failed some of it: a resumed run tries again."""
    return any(part["fate"] == "harness" for part in (line, *line["subtasks"]))


def _worst(outcomes: Sequence[Outcome]) -> str:
    return "mismatch" if any(outcome.fate == "mismatch" for outcome in outcomes) else "harness"


def _listed(counts: Any) -> str:
    return ", ".join(f"{name}: {n}" for name, n in sorted(counts.items()))
