"""`python -m agentexp.wise.knowledge.build`: makes the knowledge bases of 1.11.2 and 1.16.5 and counts their rows by kind.

Sources: the PyPI package minecraft-data (MIT; facts extracted from the game) for names, drops and recipes, and `hand.yaml` for
what the package lacks. It lists no loot of mobs before 1.14, so 1.11.2 takes 1.16.5's for the mobs and items that it has. The
paper's base (made from a wiki) has 1,534 entries; this one has as many as there are.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.metadata import version as package_version
from pathlib import Path
from typing import Any

import yaml

from agentexp.errors import MissingDependency, UserError

HERE = Path(__file__).parent
VERSIONS = ("1.11.2", "1.16.5")
Pairs = dict[str, list[str]]


def package_data() -> Path:
    """The package's data folder. Raises `MissingDependency`."""
    try:
        import minecraft_data
    except ImportError as error:
        raise MissingDependency("Building the knowledge base needs `pip install minecraft-data==3.20.0`.") from error
    return Path(minecraft_data.__file__).parent / "data" / "data"


class Package:
    """The package's tables of one version of the game.

    Args:
        folder: see `package_data`.
        version: "1.16.5".
    """

    def __init__(self, folder: Path, version: str) -> None:
        self.folder = folder
        self.paths: Mapping[str, str] = json.loads((folder / "dataPaths.json").read_text())["pc"][version]
        self.items = {row["id"]: row["name"] for row in self.table("items")}
        self.blocks = {row["id"]: row["name"] for row in self.table("blocks")}

    def table(self, kind: str) -> Any:
        """One file as it is; empty where the version has none."""
        if kind not in self.paths:
            return []
        return json.loads((self.folder / self.paths[kind] / f"{kind}.json").read_text())

    def name(self, thing: object) -> str | None:
        """Name behind a recipe's or drop's entry: an id, {"id"}, [id, metadata] or null. None for nothing and for air."""
        number = thing.get("id") if isinstance(thing, dict) else thing[0] if isinstance(thing, list) else thing
        name = self.items.get(number) or self.blocks.get(number) if isinstance(number, int) and number > 0 else None
        return None if name == "air" else name

    def mobs(self) -> list[str]:
        """What lives: the categories of mobs, and those of no known category that have loot."""
        loot = {row["entity"] for row in self.table("entityLoot") if row["drops"]}
        return sorted(
            {
                row["name"]
                for row in self.table("entities")
                if "mobs" in (row.get("category") or "") or (row["name"] in loot and row["name"] != "player")
            }
        )

    def recipes(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """(output, its distinct ingredients), once per recipe."""
        for listed in self.table("recipes").values():
            for recipe in listed:
                cells = recipe.get("ingredients") or [cell for row in recipe["inShape"] for cell in row]
                parts = tuple(sorted({name for cell in cells if (name := self.name(cell))}))
                output = self.name(recipe["result"])
                if output and parts:
                    yield output, parts

    def block_drops(self) -> Iterator[tuple[str, str]]:
        """(block, item): the loot tables, or the blocks' own lists where the version has no tables."""
        if loot := self.table("blockLoot"):
            yield from ((row["block"], drop["item"]) for row in loot for drop in row["drops"])
            return
        for row in self.table("blocks"):
            for drop in row.get("drops", []):
                what = drop.get("drop") if isinstance(drop, dict) else drop
                if row["name"] != "air" and (name := self.name(what)):
                    yield row["name"], name


def pairs(rows: Iterable[tuple[str, str]]) -> Pairs:
    """{source: sorted targets}, each pair once; nothing gives itself but a block that drops itself."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for source, target in rows:
        found[source].add(target)
    return {source: sorted(found[source]) for source in sorted(found)}


def build(folder: Path, version: str) -> dict[str, Any]:
    """The base of one version as JSON; see `KnowledgeBase` for its form."""
    package = Package(folder, version)
    newest = Package(folder, VERSIONS[-1])
    hand: Mapping[str, Any] = yaml.safe_load((HERE / "hand.yaml").read_text(encoding="utf-8"))
    environment = sorted({row["name"] for row in package.table("biomes")} | set(hand["environment"]))
    mobs = package.mobs()
    known = {*package.items.values(), *package.blocks.values(), *mobs, "charcoal", "iron_nugget"} - {"air"}
    if version != VERSIONS[-1]:
        # In the package's 1.11.2 tables coal is also charcoal (one item, two metadata), and iron_nugget (1.11.1) is missing.
        mobs = [mob for mob in mobs if mob not in hand["newer_mobs"]]
    translate = translator(known, {} if version == VERSIONS[-1] else hand["renamed"])
    loot = [(row["entity"], drop["item"]) for row in newest.table("entityLoot") for drop in row["drops"]]
    if version != VERSIONS[-1]:
        loot = [(mob, item) for mob, item in loot if mob not in hand["newer_mobs"]]
    crafts: defaultdict[str, set[tuple[str, ...]]] = defaultdict(set)
    for output, parts in package.recipes():
        crafts[output].add(parts)
    rows: dict[str, Any] = {
        "mob_drop": pairs((mob, item) for mob, item in translate(loot) if mob in mobs),
        "block_drop": pairs(package.block_drops()),
        "crafting": {output: sorted(map(list, crafts[output])) for output in sorted(crafts)},
        "smelting": pairs((a, b) for a, b in translate(_listed(hand["smelting"])) if a != b),
        "transition": pairs((a, b) for a, b in translate(_listed(hand["transitions"])) if a != b),
    }
    counts = {kind: sum(map(len, table.values())) for kind, table in rows.items()}
    return {
        "version": version,
        "source": f"minecraft-data {package_version('minecraft-data')} (MIT), hand.yaml",
        "counts": {**counts, "total": sum(counts.values())},
        "rows": rows,
        "names": {
            "entity": mobs,
            "block": sorted(set(package.blocks.values()) - {"air", "void_air", "cave_air"}),
            "item": sorted({*package.items.values(), "charcoal", "iron_nugget"} - {"air"}),
            "environment": environment,
        },
    }


def translator(known: set[str], renamed: Mapping[str, str]) -> Callable[[Iterable[tuple[str, str]]], list[tuple[str, str]]]:
    """A function that brings pairs of 1.16.5's names to a version's own and drops pairs that it does not have."""

    def translate(rows: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
        named = ((renamed.get(a, a), renamed.get(b, b)) for a, b in rows)
        return [(a, b) for a, b in named if a in known and b in known]

    return translate


def _listed(table: Mapping[str, list[str]]) -> Iterator[tuple[str, str]]:
    return ((source, target) for source, targets in table.items() for target in targets)


def main(argv: list[str] | None = None) -> None:
    """Write the files, or with --check compare them with what is there."""
    parser = argparse.ArgumentParser(description="Build the knowledge bases of WISE.")
    parser.add_argument("--check", action="store_true", help="change nothing; fail if a file differs")
    check = parser.parse_args(argv).check
    for version in VERSIONS:
        base = build(package_data(), version)
        text = json.dumps(base, indent=None, separators=(",", ":"), sort_keys=True) + "\n"
        path = HERE / f"{version}.json"
        if not check:
            path.write_text(text, encoding="utf-8")
        elif not path.is_file() or path.read_text(encoding="utf-8") != text:
            raise UserError(f"{path.name} is not what build.py makes: run python -m agentexp.wise.knowledge.build.")
        counts = ", ".join(f"{kind} {count:,}" for kind, count in base["counts"].items())
        sys.stdout.write(f"{version}: {counts}\n")


if __name__ == "__main__":
    main()
