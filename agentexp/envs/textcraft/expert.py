"""The expert: recursive decomposition of the goal, using what is already in the inventory."""

from __future__ import annotations

from collections.abc import Mapping

from agentexp.envs.textcraft.rules import Recipe, RuleBook, text_of


def solve(book: RuleBook, goal: str, inventory: Mapping[str, int]) -> list[str]:
    """Commands that craft `goal` once more from `inventory`: one fetch per item, then the crafts."""
    plan = _Plan(book, dict(inventory))
    plan.craft(goal, {goal})
    return [f"get {count} {text_of(item)}" for item, count in plan.gets.items()] + plan.crafts


class _Plan:
    def __init__(self, book: RuleBook, stock: dict[str, int]) -> None:
        self.book, self.stock = book, stock
        self.gets: dict[str, int] = {}
        self.crafts: list[str] = []

    def provide(self, slot: str, count: int, busy: set[str]) -> str:
        """Take `count` of one item that fits the slot out of the stock, making it if needed; returns the item."""
        item = self._choose(slot, count, busy)
        short = count - self.stock.get(item, 0)
        if short > 0 and self.book.is_gettable(item):
            self.gets[item] = self.gets.get(item, 0) + short
            self.stock[item] = self.stock.get(item, 0) + short
        while self.stock.get(item, 0) < count:
            self.craft(item, busy | {item})
        self.stock[item] -= count
        return item

    def craft(self, item: str, busy: set[str]) -> None:
        """Carry out the shallowest recipe of `item` once."""
        recipe = min(self.book.by_item[item], key=lambda r: self._cost(r, busy))
        inputs = tuple((self.provide(slot, count, busy), count) for slot, count in recipe.inputs)
        self.crafts.append(str(Recipe(recipe.output, recipe.count, inputs)))
        self.stock[item] = self.stock.get(item, 0) + recipe.count

    def _choose(self, slot: str, count: int, busy: set[str]) -> str:
        if slot not in self.book.tags:
            return slot
        members = sorted(item for item, tag in self.book.tag_of.items() if tag == slot and item not in busy)
        return min(members, key=lambda item: (self.stock.get(item, 0) < count, self.book.depth(item), item))

    def _cost(self, recipe: Recipe, busy: set[str]) -> tuple[bool, int, int]:
        """Never through an item that is being made; else by depth, then by the number of ingredients."""
        loops = any(name in busy for name, _ in recipe.inputs)
        return loops, max(self.book.depth(name) for name, _ in recipe.inputs), len(recipe.inputs)
