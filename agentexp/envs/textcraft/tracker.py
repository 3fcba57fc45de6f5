"""Facts from TextCraft's texts (MAP, appendix B.1; fact kinds in the order of their usefulness).

    ("gettable", (item,), "yes" | "no")     "Got 2 oak log" | "Could not find planks"
    ("craft_ok", (command,), "4 oak planks") "Crafted 4 minecraft:oak_planks"
    ("needs_inputs", (item,))               "Could not find enough items to craft ..."
    ("bad_recipe", (command,))              "Could not find a valid recipe for ..."

The listed commands are given, not discovered: they are no facts. They do enter the map, as notes on the goal.
"""

from __future__ import annotations

import re
from collections.abc import Set
from typing import TypeAlias

from agentexp.core import CognitiveMap, Fact, Step

LISTED = re.compile(r"^craft (\d+) (.+?) using (.+)$", re.MULTILINE)
MASKS = (
    (re.compile(r"\[[^\]]*\] \(<n>\)(?: \[[^\]]*\] \(<n>\))*"), "<e>"),  # an inventory is one list
    (
        re.compile(r"^(got <n>|crafted <n>|could not find(?! enough| a valid)|could not execute|wrong item format:) .+$"),
        r"\1 <e>",
    ),
    (re.compile(r"^(could not find (?:enough items to craft|a valid recipe for)) .+$"), r"\1 <e>"),
    (re.compile(r"(?:craft <n> [^:]+? using (?:<n> [a-z ]+?(?:, )?)+(?= craft |$) ?)+"), "<e>"),
)

Commands: TypeAlias = dict[str, tuple[str, int, tuple[tuple[str, int], ...]]]


def parse_list(text: str) -> Commands:
    """The commands in a text: command -> (output, how many it gives, its ingredients with counts)."""
    found = {}
    for match in LISTED.finditer(text):
        parts = (part.strip().partition(" ") for part in match[3].split(","))
        inputs = tuple((name, int(count)) for count, _, name in parts if count.isdigit())
        found[match[0].strip()] = (match[2], int(match[1]), inputs)
    return found


class TextCraftTracker:
    """Reads one exploration of one TextCraft instance."""

    def __init__(self) -> None:
        self._facts: dict[tuple[str, tuple[str, ...]], Fact] = {}
        self._listed: Commands = {}

    def observe(self, action: str | None, step: Step) -> list[Fact]:
        """Facts that are new or changed."""
        if action is None:
            self._listed = parse_list(step.observation)
            return []
        fact = _read(" ".join(action.split()), step.observation.strip())
        if fact is None or self._facts.get(fact[:2]) == fact:
            return []
        self._facts[fact[:2]] = fact
        return [fact]

    def facts(self) -> list[Fact]:
        """Everything known, in the order of discovery."""
        return list(self._facts.values())

    def mask(self, observation: str) -> str:
        """Lower case, one blank, digits as <n>, item names and lists as <e>."""
        text = re.sub(r"\d+", "<n>", " ".join(observation.lower().split()))
        for pattern, replacement in MASKS:
            text = pattern.sub(replacement, text)
        return text

    def place(self) -> str:
        """TextCraft has no places."""
        return ""

    def map(self, goal: str) -> CognitiveMap:
        """Affordances for what was tried; the goal's recipe tree as notes; listed ingredients never tried as unknown."""
        chart = CognitiveMap()
        for kind, subject, value in self._facts.values():
            name = subject[0]
            if kind == "gettable":
                works = value == "yes"
                effect = "can be fetched" if works else "cannot be fetched, it must be crafted"
                entry = {"action": f"get 1 {name}", "target": name, "works": works, "effect": effect, "requires": None}
            elif kind == "craft_ok":
                target, _, inputs = name.removeprefix("craft ").partition(" using ")
                entry = {"action": name, "target": target, "works": True, "effect": f"gives {value}", "requires": inputs}
            elif kind == "needs_inputs":
                effect = "refused while ingredients are missing"
                entry = {
                    "action": f"craft {name}",
                    "target": name,
                    "works": False,
                    "effect": effect,
                    "requires": "its ingredients",
                }
            else:
                effect = "no such recipe"
                entry = {"action": name, "target": name, "works": False, "effect": effect, "requires": None}
            chart.affordances.append(entry)
        tree = self._tree(goal)
        chart.task_notes = [f"{self._role(command, goal)}: {command}" for command in tree]
        tried = {subject[0] for kind, subject, _ in self._facts.values() if kind == "gettable"}
        for command in tree or self._listed:
            for name, _ in self._listed[command][2]:
                if name not in tried and name not in chart.unknown:
                    chart.unknown.append(name)
        return chart

    def _role(self, command: str, goal: str) -> str:
        return "The target is made by" if self._listed[command][0] == _target(goal) else "A part is made by"

    def _tree(self, goal: str) -> list[str]:
        """Listed commands below the goal, the goal's own first. Generic ingredients match outputs that end with their words."""
        tree: list[str] = []
        wanted = [_target(goal)] if goal else []
        kinds = generic(self._listed)
        for name in wanted:  # grows while it is walked
            for command, (output, _, inputs) in self._listed.items():
                if makes(output, name, kinds) and command not in tree:
                    tree.append(command)
                    wanted += [part for part, _ in inputs if part not in wanted]
        return tree


def generic(commands: Commands) -> set[str]:
    """Ingredients that name no one item: nothing makes them by that name, several commands make a kind of them.

    One kind is not enough: a list with "mossy cobblestone" does not make "cobblestone" generic.
    """
    outputs = [output for output, _, _ in commands.values()]
    parts = {part for _, _, inputs in commands.values() for part, _ in inputs}
    return {part for part in parts - set(outputs) if sum(output.endswith(" " + part) for output in outputs) > 2}


def makes(output: str, slot: str, kinds: Set[str]) -> bool:
    """Whether an item fits an ingredient: the same name, or a special kind of a generic one ("oak planks" for "planks")."""
    return output == slot or (slot in kinds and output.endswith(" " + slot))


def _target(goal: str) -> str:
    return goal.strip().removeprefix("craft ").removesuffix(".")


def _read(action: str, text: str) -> Fact | None:
    if action.startswith("get "):
        if match := re.match(r"Got \d+ (.+)", text):
            return Fact("gettable", (match[1],), "yes")
        if match := re.match(r"Could not find (.+)", text):
            return Fact("gettable", (match[1],), "no")
    elif action.startswith("craft "):
        if match := re.match(r"Crafted (\d+) (?:minecraft:)?(.+)", text):
            return Fact("craft_ok", (action,), f"{match[1]} {match[2].replace('_', ' ')}")
        if match := re.match(r"Could not find enough items to craft (?:minecraft:)?(.+)", text):
            return Fact("needs_inputs", (match[1].replace("_", " "),))
        if text.startswith("Could not find a valid recipe"):
            return Fact("bad_recipe", (action,))
    return None
