"""Checkpoints of a TextCraft instance from the recipe graph (paper 001, appendix E), and the proof of them in its texts.

The world has no zones, so there are no locations. Objects are concrete items, ingredients and products; generic ingredients
("planks") stand for their members and are none. An affordance is a crafting command as it is listed, or "get X" for an item
that can be fetched (the paper names "valid crafting recipes and resource-gathering commands").

    "task_closure"   every recipe that can have a part in making the hidden goal
    "all"            the listed recipes, distractors included, without those that the list leaves out of reach
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from agentexp.capabilities import Checkpoint
from agentexp.core import Step
from agentexp.envs.textcraft.rules import Recipe, RuleBook, id_of, text_of
from agentexp.errors import UserError

_GOT = re.compile(r"Got \d+ (.+)")
_CRAFTED = re.compile(r"Crafted (\d+) (minecraft:.+)")
_HELD = re.compile(r"\[([^\]]+)\] \(\d+\)")
_CRAFT = re.compile(r"craft (?:\d+ )?.* using (.*)")
_PART = re.compile(r"(\d+) (.+)")


def checkpoints(book: RuleBook, goal: str, listed: Iterable[Recipe], relevance: str = "task_closure") -> list[Checkpoint]:
    """The checkpoints of an instance.

    Args:
        book: all recipes.
        goal: id of the item to craft.
        listed: the recipes shown at the start.
        relevance: "task_closure" or "all".

    Raises:
        UserError: another relevance.
    """
    if relevance == "task_closure":
        recipes = book.closure(goal)
    elif relevance == "all":
        recipes = reachable(book, listed)
    else:
        raise UserError(f"relevance={relevance} is unknown: choose task_closure or all.")
    found = {Checkpoint("affordance", str(recipe)) for recipe in recipes}
    for recipe in recipes:
        items = [recipe.output, *(name for name, _ in recipe.inputs if name not in book.tags)]
        found |= {Checkpoint("object", text_of(item)) for item in items}
        found |= {Checkpoint("affordance", f"get {text_of(item)}") for item in items if book.is_gettable(item)}
    return sorted(found)


def reachable(book: RuleBook, listed: Iterable[Recipe]) -> list[Recipe]:
    """The listed recipes that can be carried out with fetched items and with products of the list."""
    waiting, done = list(listed), list[Recipe]()
    made: set[str] = set()
    while True:
        ready = [r for r in waiting if all(book.is_gettable(n) or any(book.fits(m, n) for m in made) for n, _ in r.inputs)]
        if not ready:
            return done
        done += ready
        made |= {recipe.output for recipe in ready}
        waiting = [recipe for recipe in waiting if recipe not in ready]


class CraftMatcher:
    """Implements `CheckpointMatcher`. Stateless.

    object      the item was handed out ("Got"), made ("Crafted") or is held ("Inventory"); an error that names it is no proof
    affordance  the item was handed out; or a command was carried out that fits the recipe, whatever stands in its generic slots
    """

    def __init__(self, book: RuleBook) -> None:
        self._book = book

    def observe(self, action: str | None, step: Step) -> set[Checkpoint]:
        """See `CheckpointMatcher`."""
        if action is None or step.error:
            return set()
        text = step.observation
        if match := _GOT.fullmatch(text):
            return {Checkpoint("object", match[1]), Checkpoint("affordance", f"get {match[1]}")}
        if match := _CRAFTED.fullmatch(text):
            made = {Checkpoint("object", text_of(match[2]))}
            return made | {Checkpoint("affordance", str(recipe)) for recipe in self._recipe(match[2], int(match[1]), action)}
        if text.startswith("Inventory: "):
            return {Checkpoint("object", name) for name in _HELD.findall(text)}
        return set()

    def _recipe(self, output: str, count: int, action: str) -> list[Recipe]:
        """The recipe that was carried out: the first that fits, as in the game."""
        listing = _CRAFT.match(action.strip())
        parts = [_PART.fullmatch(part.strip()) for part in listing[1].split(",")] if listing else []
        given = [(id_of(part[2]), int(part[1])) for part in parts if part]
        fitting = (r for r in self._book.by_item.get(output, ()) if r.count == count and self._book.matches(r, given))
        return list(fitting)[:1]
