"""The TextCraft environment: texts and rules of the original, deterministic and without its defects.

Splits. The 544 craftable items, sorted by (depth, name), are the goals. Test = positions 0-30, 140-180, 420-444, 533-535, the
positions of AgentGym's 100 test tasks (31/41/25/3 items of depth 1-4; AgentGym's own order depends on a file system, so
the items are not the same). Of the other 444, 70 spread evenly over that order are dev, the 374 left (AgentGym's number) train.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import ClassVar

from agentexp.capabilities import Alignment, Checkpoint, CheckpointMatcher, Question
from agentexp.core import CognitiveMap, EnvCard, FactTracker, Policy, Step, Task
from agentexp.envs.textcraft import checkpoints, expert, policies, questions
from agentexp.envs.textcraft.rules import Recipe, RuleBook, id_of, load, recipe_folder, text_of
from agentexp.envs.textcraft.tracker import TextCraftTracker
from agentexp.errors import UserError
from agentexp.packages import version_of

LOGIC = "1"  # changes when the same recipes and task would play differently
TEST_POSITIONS = (*range(31), *range(140, 181), *range(420, 445), *range(533, 536))
DEV_SIZE = 70
CRAFT = re.compile(r"craft (.*) using (.*)")
GET = re.compile(r"get ([0-9]{1,9}) (.*)")
COUNTED = re.compile(r"([0-9]{1,9}) (.*)")
PER_INPUT = 10  # recipes that each shown ingredient may contribute to the distractors, as upstream


class TextCraft:
    """TextCraft as an `Env` with expert, facts and scripted agents. Pure Python: about 20 microseconds a step.

    Args:
        recipes: folder of Minecraft recipe files; None takes the one inside the installed `textcraft` package.
        distractors: most commands in the list that the goal does not need (upstream: 10).
    """

    name = "textcraft"
    card = EnvCard(
        intro="You are in a text version of Minecraft crafting. A list of crafting commands is given; basic items can be "
        "fetched, other items must be crafted.",
        actions="get {count} {item} | craft {count} {item} using {count} {ingredient}, {count} {ingredient}, ... | inventory",
        notes='Counts must match the listed command exactly. A generic ingredient such as "planks" may be replaced by any '
        "special kind of it.",
        info_actions=r"^inventory\b",
        plays_on=True,
    )
    _books: ClassVar[dict[str | None, RuleBook]] = {}  # recipes never change within a process

    def __init__(self, recipes: str | None = None, distractors: int = 10) -> None:
        if distractors < 0:
            raise UserError(f"env.distractors={distractors} must be 0 or more.")
        self._recipes, self._distractors = recipes, distractors
        self._goal = ""
        self._listed: list[Recipe] = []
        self._inventory: dict[str, int] = {}
        self._useful: tuple[str, ...] = ()
        self._generic: list[tuple[Recipe, str, int]] = []
        self._won = False

    # --------------------------------------------------------------------------------------------------------- tasks

    @property
    def book(self) -> RuleBook:
        """The recipes; read at first use. Raises `MissingDependency` or `UserError` when they are not there."""
        book = self._books.get(self._recipes)
        if book is None:
            book = self._books[self._recipes] = load(recipe_folder(self._recipes))
        return book

    def splits(self) -> Sequence[str]:
        """Names of the splits."""
        return ("train", "dev", "test")

    def tasks(self, split: str) -> list[Task]:
        """Goals of a split by (depth, name); the id is the item's name, the kind its depth."""
        if split not in self.splits():
            raise UserError(f"env.split={split} does not exist in textcraft; choose one of {', '.join(self.splits())}.")
        goals = self.book.goals
        if len(goals) <= TEST_POSITIONS[-1]:
            raise UserError(f"env.recipes gives only {len(goals)} craftable items; the splits need {TEST_POSITIONS[-1] + 1}.")
        rest = [goal for i, goal in enumerate(goals) if i not in TEST_POSITIONS]
        dev = [goal for i, goal in enumerate(rest) if (i + 1) * DEV_SIZE // len(rest) > i * DEV_SIZE // len(rest)]
        chosen = {"test": [goals[i] for i in TEST_POSITIONS], "dev": dev, "train": [g for g in rest if g not in dev]}[split]
        return [
            Task(goal.removeprefix("minecraft:"), self.name, split, kind=f"depth_{self.book.depth(goal)}", spec={"goal": goal})
            for goal in chosen
        ]

    def versions(self) -> dict[str, str]:
        """Package version, hash of the recipe files and version of the rules."""
        return {"textcraft_data": version_of("textcraft"), "textcraft_recipes": self.book.digest, "textcraft_logic": LOGIC}

    # ------------------------------------------------------------------------------------------------------- episode

    def reset(self, task: Task) -> Step:
        """Start with an empty inventory. The list of commands depends on the task's item and seed only."""
        goal = str(task.spec.get("goal") or id_of(task.id))
        if goal not in self.book.by_item:
            raise UserError(f"textcraft has no craftable item {task.id!r}; ids come from `tasks`.")
        self._goal, self._inventory, self._won = goal, {}, False
        self._listed = self._command_list(random.Random(task.instance_seed))
        gets = {f"get {n} {text_of(name)}": None for recipe in self._listed for name, n in recipe.inputs}
        self._useful = (*gets, *map(str, self._listed), "inventory")
        tags = self.book.tags
        self._generic = [(recipe, name, n) for recipe in self._listed for name, n in recipe.inputs if name in tags]
        text = "Crafting commands:\n" + "\n".join(map(str, self._listed))
        return Step(text, admissible=self._useful, goal=f"craft {text_of(goal)}.")

    def step(self, action: str) -> Step:
        """Carry out `get`, `craft` or `inventory`; anything else "Could not execute ..."."""
        if not self._goal:
            raise UserError("textcraft: call reset before step.")
        action = action.strip()
        text, error = self._execute(action)
        return Step(text, done=self._won, success=self._won, score=float(self._won), error=error, admissible=self._admissible())

    def close(self) -> None:
        """Nothing to stop."""

    def _command_list(self, rng: random.Random) -> list[Recipe]:
        needed = self.book.closure(self._goal)
        others: dict[Recipe, None] = {}
        for recipe in needed:
            for name, _ in recipe.inputs:
                uses = self.book.uses(name)
                others.update(dict.fromkeys(rng.sample(uses, min(len(uses), PER_INPUT))))
        known = set(needed)
        pool = [recipe for recipe in others if recipe not in known]
        listed = needed + rng.sample(pool, min(len(pool), self._distractors))
        rng.shuffle(listed)
        return listed

    def _admissible(self) -> tuple[str, ...]:
        """Useful commands, not all that work: `get` for each listed amount, the listed commands, generic slots filled in."""
        more: dict[str, None] = {}
        for recipe, tag, count in self._generic:
            for item, have in self._inventory.items():
                if have >= count and self.book.fits(item, tag):
                    inputs = tuple((item if slot == tag else slot, n) for slot, n in recipe.inputs)
                    more[str(Recipe(recipe.output, recipe.count, inputs))] = None
        return (*more, *self._useful) if more else self._useful

    # --------------------------------------------------------------------------------------------------------- rules

    def _execute(self, action: str) -> tuple[str, bool]:
        """Answer and whether it is an error."""
        if match := CRAFT.match(action):
            return self._craft(match[1], match[2])
        if match := GET.match(action):
            count, item = int(match[1]), match[2]
            name = id_of(item)
            if not self.book.is_gettable(name):
                return f"Could not find {item}", True
            self._inventory[name] = self._inventory.get(name, 0) + count
            return f"Got {count} {item}", False
        if action.startswith("inventory"):
            things = "".join(f"[{text_of(item)}] ({count}) " for item, count in self._inventory.items())
            return "Inventory: " + (things or "You are not carrying anything."), False
        return f"Could not execute {action}", True

    def _craft(self, output: str, listing: str) -> tuple[str, bool]:
        counted = COUNTED.match(output)
        count, words = (int(counted[1]), counted[2]) if counted else (1, output)
        target = id_of(words)
        given: list[tuple[str, int]] = []
        for part in listing.split(","):
            match = COUNTED.match(part.strip())
            if not match:
                return f"Wrong item format: {part.strip()}", True
            given.append((id_of(match[2]), int(match[1])))
        if any(name not in self._inventory or self._inventory[name] < n for name, n in given):
            return f"Could not find enough items to craft {'None' if target in self.book.tags else target}", True
        recipe = next((r for r in self.book.by_item.get(target, ()) if self.book.matches(r, given)), None)
        if recipe is None:
            return f"Could not find a valid recipe for {_upstream_name(target, count, target in self.book.tags)}", True
        for name, n in given:
            self._inventory[name] -= n
            if not self._inventory[name]:
                del self._inventory[name]
        self._inventory[target] = self._inventory.get(target, 0) + recipe.count
        self._won = self._won or target == self._goal
        return f"Crafted {recipe.count} {target}", False

    # -------------------------------------------------------------------------------------------------- capabilities

    def oracle(self) -> list[str]:
        """Commands from the current inventory to the goal; each is carried out without error."""
        return [] if self._won else expert.solve(self.book, self._goal, self._inventory)

    def checkpoints(self, relevance: str = "task_closure") -> list[Checkpoint]:
        """See `HasCheckpoints` and `textcraft.checkpoints`."""
        if not self._goal:
            raise UserError("textcraft: call reset before checkpoints.")
        return checkpoints.checkpoints(self.book, self._goal, self._listed, relevance)

    def checkpoint_matcher(self) -> CheckpointMatcher:
        """See `textcraft.checkpoints.CraftMatcher`."""
        return checkpoints.CraftMatcher(self.book)

    def questions(self, seed: int) -> list[Question]:
        """See `HasQuestions` and `textcraft.questions`."""
        if not self._goal:
            raise UserError("textcraft: call reset before questions.")
        return questions.questions(self.book, self._goal, self._listed, seed)

    def look_up(self, question: Question, known: CognitiveMap) -> str:
        """See `HasQuestions`."""
        return questions.look_up(question, known)

    def align(self, known: CognitiveMap) -> Alignment:
        """See `HasAlignment` and `textcraft.questions`."""
        return questions.align(self.book, self._goal, known)

    def fact_tracker(self) -> FactTracker:
        """See `TextCraftTracker`."""
        return TextCraftTracker()

    def policy(self, name: str, seed: int) -> Policy:
        """curious, myopic or mapuser."""
        return policies.make(name, seed)


def _upstream_name(target: str, count: int, is_tag: bool) -> str:
    """The original prints its Python object here; agents in published runs saw exactly this."""
    kind = f"tag='{target}', item_id=None" if is_tag else f"tag=None, item_id='{target}'"
    return f"ItemTagWithCount(item_tag=ItemTag({kind}), count={count})"
