"""How the official training houses look, as counts: where things lie, how many there are, which goals are asked for.

`priors.json` was made by `measure` from the 3,553 official training games (json_2.1.1, MIT licence). The generator draws from
it, so that its houses resemble the official ones; scripted agents use it as their common sense of where to look first.
"""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Iterable
from importlib import resources
from typing import Any

from agentexp.envs.alfworld import wheel
from agentexp.envs.alfworld.games import Game
from agentexp.envs.alfworld.goals import parse_goal
from agentexp.envs.alfworld.oracle import Household
from agentexp.envs.alfworld.problem import Problem

_MAX_NUMBER = 4
_MIN_SEEN = 20


@functools.cache
def load() -> dict[str, Any]:
    """The shipped counts, in type words ("soapbar").

    Keys: `placement` {thing: {place: n}}; `number` {wing: {thing: [games with 0, 1, .. 4 of it]}} over the games whose floor
    plan lists the thing, wing = hundreds of the plan number; `goals` {task type: {"thing-place": games}}; `targets`
    {task type: [games with 1, .. 4 things of the goal's type]}.
    """
    text = resources.files("agentexp.envs.alfworld").joinpath("priors.json").read_text(encoding="utf-8")
    counts: dict[str, Any] = json.loads(text)
    return counts


def likely_places(thing: str) -> dict[str, float]:
    """Share of the things of this type that lie in each type of place; empty for an unknown thing."""
    counts = load()["placement"].get(thing, {})
    total = sum(counts.values())
    return {place: n / total for place, n in counts.items()}


def measure(games: Iterable[Game]) -> dict[str, Any]:
    """Count official games (see `load`). Needs the layouts of the alfworld wheel, not its engine."""
    placement: dict[str, Counter[str]] = {}
    number: dict[str, dict[str, list[int]]] = {}
    goals: dict[str, Counter[str]] = {}
    targets: dict[str, list[int]] = {}
    for game in games:
        home = Household(Problem.parse(game.problem).init)
        seen: dict[str, set[str]] = {}
        for place, things in home.contents.items():
            for thing in things:
                if thing in home.type_of:
                    kind = home.type_of[thing]
                    seen.setdefault(kind, set()).add(thing)
                    placement.setdefault(kind, Counter())[home.type_of[place]] += 1
        wing = number.setdefault(str(game.plan // 100), {})
        for listed in wheel.layout(game.plan).things:
            kind = listed.lower()
            histogram = wing.setdefault(kind, [0] * (_MAX_NUMBER + 1))
            histogram[min(len(seen.get(kind, ())), _MAX_NUMBER)] += 1
        goal = parse_goal(game.task)
        if goal is None:
            raise ValueError(f"unknown wording: {game.task}")
        goals.setdefault(goal.kind, Counter())[f"{goal.thing}-{goal.place or goal.lamp}"] += 1
        number_of_targets = min(max(len(seen.get(goal.thing, ())), 1), _MAX_NUMBER)
        targets.setdefault(goal.kind, [0] * _MAX_NUMBER)[number_of_targets - 1] += 1
    kept = {thing: counts for thing, counts in placement.items() if counts.total() >= _MIN_SEEN}
    return {
        "placement": {thing: dict(counts.most_common()) for thing, counts in sorted(kept.items())},
        "number": {
            wing: {thing: histogram for thing, histogram in sorted(kinds.items()) if thing in kept and any(histogram[1:])}
            for wing, kinds in sorted(number.items())
        },
        "goals": {kind: dict(sorted(counts.items())) for kind, counts in sorted(goals.items())},
        "targets": dict(sorted(targets.items())),
    }
