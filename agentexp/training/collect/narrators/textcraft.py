"""Thoughts over crafting commands: the listed commands from the target down to what is fetched or crafted next."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from agentexp.core import EnvCard, View
from agentexp.envs.textcraft.policies import Curious
from agentexp.envs.textcraft.tracker import makes, parse_list
from agentexp.training.collect.narrators import PlainNarrator, action_forms, outcome

_GET = re.compile(r"get (\d+) (.+)")


class CraftNarrator(PlainNarrator):
    """See `Narrator`."""

    actor = "mapuser"

    def __init__(self) -> None:
        super().__init__(idle="inventory")

    def rules(self, card: EnvCard) -> dict[str, Any]:
        """What the card's intro says: what a command makes cannot be fetched."""
        return {"action_syntax": action_forms(card), "environment_facts": [card.intro]}

    def seen_all(self, view: View, action: str) -> bool:
        """It is known of every listed ingredient whether it can be fetched."""
        reader = _reader(view)
        parts = {part for _, _, inputs in reader.commands.values() for part, _ in inputs}
        return action == self.idle or all(part in reader.fetch for part in parts)

    def exploring(self, view: View, action: str) -> str:
        """What the last fetch showed, and what is tried next."""
        reader, told = _reader(view), ""
        if view.history and (last := _GET.fullmatch(view.history[-1][0])):
            told = f"{last[2]} can be fetched. " if reader.fetch.get(last[2]) else f"{last[2]} must be crafted. "
        if tried := _GET.fullmatch(action):
            return f"{told}Next is {tried[2]}." if told else f"I try to fetch {tried[2]}."
        if action.startswith("craft "):
            return f"{told}I have all parts of this, so I test it."
        return f"{told}I look at what I have."

    def acting(self, view: View, action: str, ahead: Sequence[str]) -> str:
        """The commands between the target and this action."""
        reader = _reader(view)
        target = view.goal.removeprefix("craft ").removesuffix(".")
        if fetch := _GET.fullmatch(action):
            return outcome(view) + _needs(reader, target, fetch[2]) + f"I fetch {fetch[1]} {fetch[2]}."
        crafted = next(iter(parse_list(action).values()), None)
        if crafted is None:
            return f"{outcome(view)}I look at what I have."
        output, _, inputs = crafted
        held = ", ".join(f"{reader.inventory.get(part, 0)} {part}" for part, _ in inputs)
        return f"{outcome(view)}{_needs(reader, target, output)}I have {held}. I craft {output}."


def _reader(view: View) -> Curious:
    """What the agent has read in this phase so far."""
    key = f"narrator|{view.phase}"
    reader: Curious = view.memory.setdefault(key, Curious(0))
    reader.look(view)
    return reader


def _listed(reader: Curious, inputs: Sequence[tuple[str, int]]) -> str:
    """Ingredients with their counts, and what is there of those that are not complete: "6 pink wool (have 2), 1 stick"."""
    parts = []
    for part, count in inputs:
        have = sum(n for item, n in reader.inventory.items() if makes(item, part, reader.kinds))
        parts.append(f"{count} {part}" + (f" (have {have})" if have else ""))
    return ", ".join(parts)


def _needs(reader: Curious, target: str, item: str) -> str:
    """One sentence for each listed command on the shortest way from the target to an ingredient; empty if there is none."""
    waiting: list[tuple[str, tuple[str, ...]]] = [(target, ())]
    seen = {target}
    for slot, way in waiting:  # grows while it is walked: breadth first
        for output, _, inputs in reader.commands.values():
            if not makes(output, slot, reader.kinds):
                continue
            longer = (*way, f"{output} needs {_listed(reader, inputs)}. ")
            for part, _ in inputs:
                if makes(item, part, reader.kinds):
                    return "".join(longer)
                if part not in seen:
                    seen.add(part)
                    waiting.append((part, longer))
    return ""
