"""Scripted agents for TextCraft. They read what a language model reads: the texts, the map and the general rules.

* `curious` explores without a goal: fetches each listed ingredient once, then crafts whatever the inventory allows.
* `myopic` works backwards from the goal but plans no further than the newest answer: amounts are forgotten (it fetches one at a
  time), and with probability 0.3 it repeats what has just been refused.
* `mapuser` explores like `curious` while mapping. While acting it plans; what the map or K_g tells it need not be tried:
  with K_g it knows that listed things must be crafted, with a map which fetches work. Without either it tries to fetch first.
"""

from __future__ import annotations

import math
import random
import re

from agentexp.core import Policy, View
from agentexp.envs.agents import fresh_agent
from agentexp.envs.textcraft.tracker import Commands, generic, makes, parse_list

REPEAT = 0.3


def make(name: str, seed: int) -> Policy:
    """A fresh policy by name."""
    return fresh_agent({"curious": Curious, "mapuser": MapUser, "myopic": Myopic}, name, "textcraft", seed)


class _Reader:
    """What all three remember: the listed commands, the inventory, what can and cannot be fetched."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.commands: Commands = {}
        self.kinds: set[str] = set()
        self.inventory: dict[str, int] = {}
        self.fetch: dict[str, bool] = {}
        self.tried: set[str] = set()
        self._read = 0

    def look(self, view: View) -> None:
        """Take in everything that is new since the last call; a fresh phase starts over, what was learnt stays."""
        if not view.history:
            self.commands = parse_list(view.step.observation) or self.commands
            self.kinds = generic(self.commands)
            self.inventory, self.tried, self._read = {}, set(), 0
        for action, step in view.history[self._read :]:
            self._take_in(action, step.observation)
        self._read = len(view.history)

    def _take_in(self, action: str, answer: str) -> None:
        self.tried.add(action)
        if match := re.match(r"Got (\d+) (.+)", answer):
            self.inventory[match[2]] = self.inventory.get(match[2], 0) + int(match[1])
            self.fetch[match[2]] = True
        elif match := re.match(r"Crafted (\d+) minecraft:(.+)", answer):
            name = match[2].replace("_", " ")
            for _, _, inputs in parse_list(action).values():
                for part, count in inputs:
                    self.inventory[part] = self.inventory.get(part, 0) - count
            self.inventory[name] = self.inventory.get(name, 0) + int(match[1])
        elif action.startswith("get ") and answer.startswith("Could not find "):
            self.fetch[answer.removeprefix("Could not find ").strip()] = False

    def holding(self, slot: str, count: int) -> str | None:
        """A held item that fits a slot in the needed number."""
        return next((item for item, have in self.inventory.items() if have >= count and makes(item, slot, self.kinds)), None)

    def filled(self, command: str) -> str | None:
        """The command with held items in its slots; None while something is missing."""
        output, gives, inputs = self.commands[command]
        items = [(self.holding(slot, count), count) for slot, count in inputs]
        if any(item is None for item, _ in items):
            return None
        return f"craft {gives} {output} using " + ", ".join(f"{count} {item}" for item, count in items)


class Curious(_Reader):
    """Systematic explorer; knows no goal."""

    def act(self, view: View) -> str:
        """An untried fetch, else an untried craft that is possible, else more of what a craft lacks, else the inventory."""
        self.look(view)
        parts = dict.fromkeys(part for _, _, inputs in self.commands.values() for part, _ in inputs)
        for part in parts:
            if part not in self.fetch:
                return f"get 1 {part}"
        for command in self.commands:
            if (ready := self.filled(command)) and ready not in self.tried:
                return ready
        for _, _, inputs in self.commands.values():
            for part, count in inputs:
                if self.fetch.get(part) and self.inventory.get(part, 0) < count:
                    return f"get {count} {part}"
        return "inventory"


class Myopic(_Reader):
    """Goes straight for the goal and learns little from a refusal."""

    def act(self, view: View) -> str:
        """The command of the goal as listed; then whatever its missing part suggests, one at a time."""
        self.look(view)
        if view.history and view.step.error and self.rng.random() < REPEAT:
            return view.history[-1][0] or "inventory"
        wanted = view.goal.removeprefix("craft ").removesuffix(".")
        for _ in range(len(self.commands)):
            command = next((c for c, (output, _, _) in self.commands.items() if makes(output, wanted, self.kinds)), None)
            if command is None:
                return f"get 1 {wanted}" if wanted else "inventory"
            if ready := self.filled(command):
                return ready
            if command not in self.tried:
                return command
            missing = [part for part, count in self.commands[command][2] if self.holding(part, count) is None]
            wanted = self.rng.choice(missing)
            if self.fetch.get(wanted, True):
                return f"get 1 {wanted}"
        return "inventory"


class MapUser(Curious):
    """Explores while mapping, plans while acting."""

    def act(self, view: View) -> str:
        """The next command of the plan; fetches come right before they are needed."""
        if view.phase.startswith(("map", "explor")) or not view.goal:
            return super().act(view)
        self.look(view)
        if not view.history:
            self.fetch = {}  # the actor knows what the map tells, nothing else
            for entry in view.map.affordances if view.map else ():
                if str(entry.get("action", "")).startswith("get"):
                    target = re.sub(r"^(get )?(\d+ )?", "", str(entry.get("target") or entry["action"]))
                    self.fetch[target] = bool(entry.get("works"))
        must_craft = bool(view.knowledge.get("k_g"))
        target = view.goal.removeprefix("craft ").removesuffix(".")
        return self._make(target, 1, must_craft, frozenset({target})) or "inventory"

    def _make(self, slot: str, count: int, must_craft: bool, busy: frozenset[str]) -> str | None:
        """First command towards `count` of `slot`; None if it leads into a circle."""
        ways = [c for c, (output, _, _) in self.commands.items() if makes(output, slot, self.kinds)]
        ways.sort(key=lambda c: self._unknown(c))
        for command in ways:
            output, gives, inputs = self.commands[command]
            crafts = math.ceil((count - self.inventory.get(output, 0)) / gives)
            if any(part in busy for part, _ in inputs) or crafts <= 0:
                continue
            if ready := self.filled(command):
                return ready
            for part, each in inputs:
                if self.holding(part, each) is None:
                    step = self._obtain(part, each, crafts, must_craft, busy | {output})
                    if step:
                        return step
                    break
        return None

    def _obtain(self, part: str, each: int, crafts: int, must_craft: bool, busy: frozenset[str]) -> str | None:
        listed = any(makes(output, part, self.kinds) for output, _, _ in self.commands.values())
        known = self.fetch.get(part)
        fetch = f"get {max(each * crafts - self.inventory.get(part, 0), 1)} {part}"
        if known or (known is None and not (must_craft and listed)):
            return fetch
        return self._make(part, each, must_craft, busy | {part}) or (None if known is False else fetch)

    def _unknown(self, command: str) -> int:
        """Fewer ingredients known to be unfetchable first."""
        return sum(self.fetch.get(part) is False for part, _ in self.commands[command][2])
