"""Which draws make up the splits: `python -m agentexp.envs.pddl.freeze` writes `splits.json` anew.

The draws of a split and kind have the seeds `stable_seed("pddl", kind, split, n)` for n = 0, 1, ... In this order draws are
taken until there are enough. Left out are those for which the plan of our planner has fewer than `LEAST` or more than `MOST`
actions, and problems taken before (test comes first, then dev, then train); for gripper the names of balls make no difference.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from agentexp.core import stable_seed
from agentexp.envs.pddl.generators import LEAST, MOST, draw
from agentexp.envs.pddl.grounding import Ground
from agentexp.envs.pddl.language import Problem, read_problem
from agentexp.envs.pddl.search import Planner
from agentexp.envs.pddl.suite import own_domain

SIZES = {"gripper": 20, "blockworld": 10, "barman": 20, "tyreworld": 10}
SHARES = {"test": 1, "dev": 1, "train": 5}


def choose(kind: str, split: str, taken: set[Any], count: int) -> list[list[int]]:
    """[seed, plan length] of the problems of a split and kind; adds them to `taken`."""
    chosen: list[list[int]] = []
    n = 0
    while len(chosen) < count:
        seed = stable_seed("pddl", kind, split, n)
        n += 1
        problem = read_problem(draw(kind, seed), own_domain(kind), kind)
        if key(kind, problem) in taken:
            continue
        length = plan_length(kind, problem)
        if LEAST <= length <= MOST:
            taken.add(key(kind, problem))
            chosen.append([seed, length])
    return chosen


def plan_length(kind: str, problem: Problem) -> int:
    """Actions in the planner's plan."""
    ground = Ground(own_domain(kind), problem)
    return len(Planner(ground).plan(ground.init))


def key(kind: str, problem: Problem) -> Any:
    """What makes two problems the same."""
    if kind != "gripper":
        return problem.init, frozenset(problem.goal.positive)
    wanted = {ball: room for _, ball, room in problem.goal.positive}
    balls = Counter((room, wanted.get(ball)) for _, ball, room in (atom for atom in problem.init if atom[0] == "at"))
    return frozenset(balls.items()), next(atom[1] for atom in problem.init if atom[0] == "at-robby")


def main() -> None:
    """Write `splits.json`."""
    taken: dict[str, set[Any]] = {kind: set() for kind in SIZES}
    found = {
        split: {kind: choose(kind, split, taken[kind], size * share) for kind, size in SIZES.items()}
        for split, share in SHARES.items()
    }
    path = Path(__file__).parent / "splits.json"
    lines = [f'"{kind}": {json.dumps(rows)}' for kinds in found.values() for kind, rows in kinds.items()]
    blocks = [",\n  ".join(lines[i * len(SIZES) : (i + 1) * len(SIZES)]) for i in range(len(found))]
    text = ",\n ".join(f'"{split}": {{\n  {block}}}' for split, block in zip(found, blocks, strict=True))
    path.write_text("{\n " + text + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
