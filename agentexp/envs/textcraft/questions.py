"""Questions about a TextCraft instance, with answers from its recipes (Map QA; MAP, appendix C.3), and the check of its maps.

The world has no places: where a thing comes from stands in for where it is.

object_location  Is oak log fetched or crafted?
affordance       What can a listed command with 1 oak log give?
negative         Can planks be fetched?
task_reasoning   What is crafted directly before the target? What goes into it? What has to be fetched for it?
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Sequence

from agentexp.capabilities import Alignment, Question
from agentexp.core import CognitiveMap
from agentexp.envs.map_index import UNKNOWN, MapIndex, affordance
from agentexp.envs.textcraft.rules import Recipe, RuleBook, id_of, text_of
from agentexp.envs.textcraft.tracker import generic, makes, parse_list

SOURCES, YES_NO = ("fetched", "crafted"), ("yes", "no")
CHOICES = 4  # results offered for a command


def questions(book: RuleBook, goal: str, listed: Sequence[Recipe], seed: int) -> list[Question]:
    """All questions, in an order drawn from `seed`.

    Args:
        book: all recipes.
        goal: id of the item to craft.
        listed: the recipes shown at the start.
        seed: of the wrong choices and of the order.
    """
    shop, rng = _Shop(book, goal, listed), random.Random(seed)
    found = [*shop.sources(), *shop.results(rng), *shop.errands()]
    rng.shuffle(found)
    return found


class _Shop:
    def __init__(self, book: RuleBook, goal: str, listed: Sequence[Recipe]) -> None:
        self.book, self.goal, self.listed = book, goal, listed
        parts = {name for recipe in listed for name, _ in recipe.inputs}
        self.items = sorted(parts | {recipe.output for recipe in listed})
        self.words = tuple(sorted(map(text_of, self.items)))

    def sources(self) -> Iterator[Question]:
        for item in self.items:
            name, fetched = text_of(item), self.book.is_gettable(item)
            if not fetched and not self.book.is_craftable(item):
                continue
            got, refused = rf"^Got \d+ {re.escape(name)}$", rf"^Could not find {re.escape(name)}$"
            made = rf"^Crafted \d+ {re.escape(item)}$"
            yield Question(
                "object_location",
                f"Is {name} fetched or crafted?",
                ("fetched" if fetched else "crafted",),
                choices=SOURCES,
                entity=name,
                evidence=(got if fetched else f"{refused}|{made}",),
                query=("source", name),
            )
            yield Question(
                "negative",
                f"Can {name} be fetched?",
                ("yes" if fetched else "no",),
                choices=YES_NO,
                entity=name,
                evidence=(got if fetched else refused,),
                query=("fetch", name),
            )

    def results(self, rng: random.Random) -> Iterator[Question]:
        """What commands give, asked by their ingredients; the wrong choices are results of other listed commands."""
        patterns = {recipe: self._using(recipe) for recipe in self.listed}
        asked: set[str] = set()
        for recipe, said in patterns.items():
            using = _ingredients(recipe)
            if using in asked:
                continue
            asked.add(using)
            alike = [r for r in self.listed if re.fullmatch(said, _ingredients(r)) or re.fullmatch(patterns[r], using)]
            right = sorted({_result(r) for r in alike})
            wrong = sorted({_result(r) for r in self.listed if r not in alike} - set(right))
            choices = [*right, *rng.sample(wrong, min(max(CHOICES - len(right), 1), len(wrong)))]
            rng.shuffle(choices)
            made = "|".join(rf"{r.count} {re.escape(r.output)}" for r in alike)
            yield Question(
                "affordance",
                f"What can a listed command with the ingredients {using} give?",
                tuple(right),
                choices=tuple(choices),
                entity=using,
                evidence=(rf"^> craft .* using {said}\nCrafted (?:{made})$",),
                query=("result", said),
            )

    def _using(self, recipe: Recipe) -> str:
        """A regular expression for the recipe's ingredients with any kind of a generic one."""
        slots = []
        for name, count in recipe.inputs:
            kinds = [
                name,
                *(item for item in sorted(self.book.tag_of) if name in self.book.tags and self.book.fits(item, name)),
            ]
            slots.append(rf"{count} (?:{'|'.join(re.escape(text_of(kind)) for kind in kinds)})")
        return ", ".join(slots)

    # ---------------------------------------------------------------------------------------------------- the task

    def errands(self) -> Iterator[Question]:
        target = text_of(self.goal)
        own = [recipe for recipe in self.listed if recipe.output == self.goal]
        shown = (rf"^craft \d+ {re.escape(target)} using ",)
        parts = {name for recipe in own for name, _ in recipe.inputs}
        if not own:
            return
        yield self._about("What is one ingredient of the target?", self._kinds(parts), shown, ("ingredient", target))
        crafted = {name for name in parts if self.book.is_craftable(name)}
        if crafted:
            ask = "Which item must be crafted directly before the target?"
            yield self._about(ask, self._kinds(crafted, crafted=True), shown, ("before", target))
        base = {name for r in self.book.closure(self.goal) for name, _ in r.inputs if self.book.is_gettable(name)}
        if base:
            got = "|".join(rf"^Got \d+ {re.escape(text_of(name))}$" for name in sorted(base))
            yield self._about("What is one item that has to be fetched for it?", self._kinds(base), (got,), ("base", target))

    def _kinds(self, names: Iterable[str], crafted: bool = False) -> tuple[str, ...]:
        """Names with all kinds of the generic ones."""
        found = set(names)
        for name in found & self.book.tags:
            found |= {item for item in self.book.tag_of if self.book.fits(item, name)}
        return tuple(sorted(text_of(name) for name in found if not crafted or self.book.is_craftable(name)))

    def _about(self, ask: str, answers: tuple[str, ...], evidence: tuple[str, ...], query: tuple[str, ...]) -> Question:
        target = text_of(self.goal)
        words = tuple(sorted({*self.words, *answers} - {target}))
        return Question("task_reasoning", f"The task is: craft {target}. {ask}", answers, (), words, target, evidence, query)


def _ingredients(recipe: Recipe) -> str:
    return str(recipe).split(" using ", 1)[1]


def _result(recipe: Recipe) -> str:
    return f"{recipe.count} {text_of(recipe.output)}"


# --------------------------------------------------------------------------------------------------------- the rules reader


def look_up(question: Question, known: CognitiveMap) -> str:
    """The answer that a map gives, or "unknown"."""
    index = MapIndex(known)
    kind, name = question.query
    if kind in ("source", "fetch"):
        fetched = _fetched(index, name)
        if fetched is None and kind == "source" and _made(index, name):
            return "crafted"
        yes, no = SOURCES if kind == "source" else YES_NO
        return UNKNOWN if fetched is None else yes if fetched else no
    if kind == "result":
        done = [a.effect for a in index.affordances if a.works and re.fullmatch(rf"craft .+ using {name}", a.action)]
        return done[0].removeprefix("gives ") if done else UNKNOWN
    commands = parse_list("\n".join(text.partition(": ")[2] for text in index.texts() if " is made by: " in text))
    kinds, outputs = generic(commands), [output for output, _, _ in commands.values()]
    parts = [part for output, _, inputs in commands.values() if output == name for part, _ in inputs]
    made = [p for p in parts if not _fetched(index, p) and any(makes(output, p, kinds) for output in outputs)]
    if kind == "before":
        return next(iter(made), UNKNOWN)
    if kind == "ingredient":
        return next(iter(parts), UNKNOWN)
    needed = dict.fromkeys(part for _, _, inputs in commands.values() for part, _ in inputs)
    return next((part for part in needed if _fetched(index, part)), UNKNOWN)


def _fetched(index: MapIndex, name: str) -> bool | None:
    return next((a.works for a in index.affordances if a.action.startswith("get ") and a.target == name), None)


def _made(index: MapIndex, name: str) -> bool:
    return any(a.works and re.fullmatch(rf"craft (?:\d+ )?{re.escape(name)} using .*", a.action) for a in index.affordances)


# --------------------------------------------------------------------------------------------------------------- alignment


def align(book: RuleBook, goal: str, known: CognitiveMap) -> Alignment:
    """Judge the fetches and crafts of a map; coverage counts what has to be fetched for the goal (MAP, appendix B.2).

    Args:
        book: all recipes.
        goal: id of the item to craft.
        known: the map.
    """
    verdicts = [_holds(book, affordance(entry).action, bool(entry.get("works")), entry) for entry in known.affordances]
    base = {name for recipe in book.closure(goal) for name, _ in recipe.inputs if book.is_gettable(name)}
    index = MapIndex(known)
    others = len(known.spatial) + len(known.absent)
    return Alignment(
        right=verdicts.count(True),
        wrong=tuple(("affordances", i) for i, verdict in enumerate(verdicts) if verdict is False),
        unjudged=verdicts.count(None) + others,
        found=sum(_fetched(index, text_of(name)) is True for name in base),
        places=len(base),
    )


def _holds(book: RuleBook, action: str, works: bool, entry: dict[str, object]) -> bool | None:
    if match := re.fullmatch(r"get (?:\d+ )?(.+)", action):
        return book.is_gettable(id_of(match[1])) is works
    if match := re.fullmatch(r"craft (?:(\d+) )?(.+?) using (.+)", action):
        parts = [re.fullmatch(r"(\d+) (.+)", part.strip()) for part in match[3].split(",")]
        if not all(parts):
            return not works
        given = [(id_of(part[2]), int(part[1])) for part in parts if part]
        recipe = next((r for r in book.by_item.get(id_of(match[2]), ()) if book.matches(r, given)), None)
        if works and recipe is not None and (gives := re.search(r"gives (\d+) (.+)", str(entry.get("effect") or ""))):
            return (int(gives[1]), id_of(gives[2])) == (recipe.count, recipe.output)
        return (recipe is not None) is works
    return None
